// Work that a fake device has been given: what waits for what, who goes next, and when it was.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plumbline {

/// What is to be done, as a stream or a graph's node holds it.
struct FakeTask {
  std::string what;  ///< "" = a mark in a stream, which takes no time.
  int gpu = 0;
  unsigned first_sm = 0;
  unsigned sms = 0;
  bool is_kernel = false;
  /// Does it; tells its nanoseconds. Null for a mark.
  std::function<std::uint64_t(const FakeTask&, std::uint64_t begin)> act;
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

/// Runs tasks whose predecessors are done, in the order of lanes that a random choice ranks anew
/// now and then.
class FakeWorks {
 public:
  FakeWorks(std::uint64_t seed, bool one_at_a_time);

  /// Null predecessors count as done.
  FakeWorkPointer add(FakeTask task, std::size_t lane,
                      const std::vector<FakeWorkPointer>& predecessors);
  /// Goes on until this is done, and with other things as it likes; the host's clock follows.
  /// Null = nothing to do.
  void finish(const FakeWorkPointer& work);
  void finish_all();
  /// Does one thing, if there is one to do.
  void step();

  std::uint64_t now = 0;  ///< The host's clock.
  std::function<void(const FakeWork&)> on_done;
  /// Called with the text of an exception that a task threw. What comes after it does nothing.
  std::function<void(const std::string&)> on_failure;

 private:
  double chance();
  double rank(std::size_t lane);
  void act(FakeWork& work);

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  bool one_at_a_time_;
  bool broken_ = false;
  std::uint64_t kernels_free_ = 0;  ///< Where kernels go one at a time.
  std::vector<double> ranks_;
  std::vector<FakeWorkPointer> ready_;
};

}  // namespace plumbline
