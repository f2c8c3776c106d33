// The work of a fake device: its dependences, its order and its times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plumbline {

/// The demand of a task on its device.
struct FakeDemand {
  // NOLINTNEXTLINE(google-explicit-constructor): most tasks only take their time
  FakeDemand(std::uint64_t alone) : nanoseconds(alone) {}
  FakeDemand(std::uint64_t alone, double moved, double held)
      : nanoseconds(alone), bytes(moved), sms(held) {}

  std::uint64_t nanoseconds = 0;  ///< Time alone, with all bandwidth that it can use.
  double bytes = 0;               ///< Bytes from and to the device's memory.
  double sms = 0;                 ///< SMs kept busy; 0 = its time is fixed, whatever runs.
};

/// A task in a stream or in a node of a graph.
struct FakeTask {
  std::string what;  ///< "" = a mark in a stream, which takes no time.
  int gpu = 0;
  unsigned first_sm = 0;
  unsigned sms = 0;
  bool is_kernel = false;
  bool in_graph = false;
  /// Executes the task and returns its demand. Null for a mark.
  std::function<FakeDemand(const FakeTask&, std::uint64_t begin)> act;
  /// Whether it still waits for the host; null = it does not. A device with a clock of its own does
  /// not execute it before.
  std::function<bool()> holds = nullptr;
};

struct FakeWork;
using FakeWorkPointer = std::shared_ptr<FakeWork>;

/// A task with its predecessors and its times.
struct FakeWork {
  FakeTask task;
  std::size_t lane = 0;  ///< The stream's number: the adversary prefers some.
  std::size_t unmet = 0;
  std::vector<FakeWorkPointer> next;
  std::uint64_t begin = 0;  ///< Nanoseconds; until it is done, the earliest so far.
  std::uint64_t end = 0;
  bool done = false;
};

/// Runs tasks whose predecessors are done.
class FakeWorks {
 public:
  virtual ~FakeWorks() = default;

  /// Null predecessors count as done.
  virtual FakeWorkPointer add(FakeTask task, std::size_t lane,
                              const std::vector<FakeWorkPointer>& predecessors) = 0;
  /// Runs until this work is done, and may run other work as well. The host's clock follows. Null =
  /// nothing to do.
  virtual void finish(const FakeWorkPointer& work) = 0;
  virtual void finish_all() = 0;
  /// Runs some work, if there is any.
  virtual void step() = 0;

  std::uint64_t now = 0;  ///< The host's clock.
  std::function<void(const FakeWork&)> on_done;
  /// Called with the text of an exception that a task threw. Later tasks do nothing.
  std::function<void(const std::string&)> on_failure;

 protected:
  /// Executes the task and returns its demand. After a failure it does nothing.
  FakeDemand act(const FakeWork& work);

 private:
  bool broken_ = false;
};

/// Runs tasks by the rank of their lanes, which changes at random from time to time. Tasks do not
/// compete.
class FakeAdversary : public FakeWorks {
 public:
  FakeAdversary(std::uint64_t seed, bool one_at_a_time);

  FakeWorkPointer add(FakeTask task, std::size_t lane,
                      const std::vector<FakeWorkPointer>& predecessors) override;
  void finish(const FakeWorkPointer& work) override;
  void finish_all() override;
  void step() override;

 private:
  double chance();
  double rank(std::size_t lane);
  void run(FakeWork& work);

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  bool one_at_a_time_;
  std::uint64_t kernels_free_ = 0;  ///< Used if kernels run one at a time.
  std::vector<double> ranks_;
  std::vector<FakeWorkPointer> ready_;
};

}  // namespace plumbline
