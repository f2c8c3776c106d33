// Work that a fake device has been given: what waits for what, who goes next, and when it was.
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

/// What a task takes from its device.
struct FakeDemand {
  // NOLINTNEXTLINE(google-explicit-constructor): most tasks only take their time
  FakeDemand(std::uint64_t alone) : nanoseconds(alone) {}
  FakeDemand(std::uint64_t alone, double moved, double held)
      : nanoseconds(alone), bytes(moved), sms(held) {}

  std::uint64_t nanoseconds = 0;  ///< Alone, with as much memory bandwidth as it can use.
  double bytes = 0;               ///< From and to the device's memory.
  double sms = 0;                 ///< That it keeps busy; 0 = it takes its time whatever runs.
};

/// What is to be done, as a stream or a graph's node holds it.
struct FakeTask {
  std::string what;  ///< "" = a mark in a stream, which takes no time.
  int gpu = 0;
  unsigned first_sm = 0;
  unsigned sms = 0;
  bool is_kernel = false;
  bool in_graph = false;
  /// Does it; tells what it takes. Null for a mark.
  std::function<FakeDemand(const FakeTask&, std::uint64_t begin)> act;
};

struct FakeWork;
using FakeWorkPointer = std::shared_ptr<FakeWork>;

/// One task in its place.
struct FakeWork {
  FakeTask task;
  std::size_t lane = 0;  ///< The stream's number: the adversary likes some better than others.
  std::size_t unmet = 0;
  std::vector<FakeWorkPointer> next;
  std::uint64_t begin = 0;  ///< Nanoseconds; the earliest so far until it is done.
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
  /// Goes on until this is done, and with other things as it likes; the host's clock follows.
  /// Null = nothing to do.
  virtual void finish(const FakeWorkPointer& work) = 0;
  virtual void finish_all() = 0;
  /// Goes on a little, if there is something to do.
  virtual void step() = 0;

  std::uint64_t now = 0;  ///< The host's clock.
  std::function<void(const FakeWork&)> on_done;
  /// Called with the text of an exception that a task threw. What comes after it does nothing.
  std::function<void(const std::string&)> on_failure;

 protected:
  /// What the task takes, once it has been done; nothing once one has failed.
  FakeDemand act(const FakeWork& work);

 private:
  bool broken_ = false;
};

/// In the order of lanes that a random choice ranks anew now and then. Tasks do not compete.
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
  std::uint64_t kernels_free_ = 0;  ///< Where kernels go one at a time.
  std::vector<double> ranks_;
  std::vector<FakeWorkPointer> ready_;
};

}  // namespace plumbline
