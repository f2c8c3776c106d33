// A discrete-event engine: a queue of (time, sequence, action) and nothing else.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "base/units.h"

namespace plumbline {

/// Runs actions in the order of their times; those due at one instant run in the order in which
/// they were scheduled. An action is a small value that the handler of run() understands; the
/// engine knows nothing of pipelines, ops or devices.
template <class Action>
class Engine {
 public:
  SimTime now() const { return now_; }

  /// Requires: at >= now().
  void schedule(SimTime at, Action action) {
    PLUMBLINE_CHECK(at >= now_, at.time_since_epoch().count(), now_.time_since_epoch().count());
    const Entry entry{at, sequence_++, action};
    if (top_is_hole_) {  // the first action that an action schedules takes its place
      top_is_hole_ = false;
      sift_down(entry);
    } else {
      queue_.push_back(entry);
      sift_up(queue_.size() - 1);
    }
  }

  /// Calls `handle(action)` for every action, with now() at its time, until none is left.
  template <class Handler>
  void run(Handler&& handle) {
    while (!queue_.empty()) {
      now_ = queue_.front().at;
      const Action action = queue_.front().action;
      top_is_hole_ = true;
      handle(action);
      if (!top_is_hole_) continue;
      top_is_hole_ = false;
      const Entry last = queue_.back();
      queue_.pop_back();
      if (!queue_.empty()) sift_down(last);
    }
  }

 private:
  struct Entry {
    SimTime at;
    std::uint64_t sequence;
    Action action;

    bool before(const Entry& other) const {
      return at != other.at ? at < other.at : sequence < other.sequence;
    }
  };

  // A heap with four children a node: half as deep as a binary one, and its children share a cache
  // line or two.
  static constexpr std::size_t kArity = 4;

  void sift_up(std::size_t at) {
    const Entry entry = queue_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / kArity;
      if (!entry.before(queue_[parent])) break;
      queue_[at] = queue_[parent];
      at = parent;
    }
    queue_[at] = entry;
  }

  /// Fills the hole at the top with `entry`.
  void sift_down(const Entry& entry) {
    std::size_t at = 0;
    const std::size_t size = queue_.size();
    while (true) {
      const std::size_t first = at * kArity + 1;
      if (first >= size) break;
      std::size_t smallest = first;
      const std::size_t end = first + kArity < size ? first + kArity : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (queue_[child].before(queue_[smallest])) smallest = child;
      }
      if (!queue_[smallest].before(entry)) break;
      queue_[at] = queue_[smallest];
      at = smallest;
    }
    queue_[at] = entry;
  }

  std::vector<Entry> queue_;
  std::uint64_t sequence_ = 0;
  SimTime now_{};
  bool top_is_hole_ = false;  ///< While an action runs whose entry still stands at the top.
};

}  // namespace plumbline
