// Ranges within ranges.
//
// SPDX-License-Identifier: MIT
#include "models/import/trace_nesting.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumbline {
namespace {

/// The backwards on the CPU that wait for autograd. They answer which backward of another thread
/// contains a moment.
class Backwards {
 public:
  Backwards(const std::vector<TraceRange>& ranges, const std::set<std::int64_t>& autograd_threads) {
    for (const TraceRange& range : ranges) {
      if (!range.on_gpu && is_backward(range.pass) && autograd_threads.count(range.thread) == 0)
        by_start_.push_back(&range);
    }
    std::sort(by_start_.begin(), by_start_.end(),
              [](const TraceRange* a, const TraceRange* b) { return a->start < b->start; });
    latest_.reserve(by_start_.size());
    for (const TraceRange* range : by_start_) {
      Latest latest = latest_.empty() ? Latest{} : latest_.back();
      latest.add(range);
      latest_.push_back(latest);
    }
  }

  /// A backward of another thread that is open at this moment; null where there is none.
  const TraceRange* holding(double at, std::int64_t but_of_thread) const {
    const auto after = std::upper_bound(
        by_start_.begin(), by_start_.end(), at,
        [](double moment, const TraceRange* range) { return moment < range->start; });
    if (after == by_start_.begin()) return nullptr;
    const Latest& latest = latest_[static_cast<std::size_t>(after - by_start_.begin()) - 1];
    const TraceRange* range =
        latest.first->thread != but_of_thread ? latest.first : latest.of_other_thread;
    return range && at < range->end() ? range : nullptr;
  }

 private:
  /// Among the backwards that have started, the one that ends last, and the last one of another
  /// thread.
  struct Latest {
    const TraceRange* first = nullptr;
    const TraceRange* of_other_thread = nullptr;

    void add(const TraceRange* range) {
      if (!first || range->end() > first->end()) {
        if (first && first->thread != range->thread) of_other_thread = first;
        first = range;
      } else if (range->thread != first->thread &&
                 (!of_other_thread || range->end() > of_other_thread->end())) {
        of_other_thread = range;
      }
    }
  };

  std::vector<const TraceRange*> by_start_;
  std::vector<Latest> latest_;
};

class Nesting {
 public:
  Nesting(TraceEvents& events, std::size_t max)
      : events_(events), max_(max), backwards_(events.ranges, events.autograd_threads) {}

  TraceNesting find() {
    sort_by_thread();
    find_autograd_threads();
    for (const auto& [thread, ranges] : threads_) look_at(thread, ranges);
    take_away();
    return std::move(found_);
  }

 private:
  /// Ranges on the CPU, each before those within it.
  void sort_by_thread() {
    for (std::size_t i = 0; i < events_.ranges.size(); ++i) {
      if (!events_.ranges[i].on_gpu) threads_[events_.ranges[i].thread].push_back(i);
    }
    for (auto& [thread, ranges] : threads_) {
      std::sort(ranges.begin(), ranges.end(), [&](std::size_t a, std::size_t b) {
        const TraceRange& x = events_.ranges[a];
        const TraceRange& y = events_.ranges[b];
        return std::tuple(x.start, -x.length, a) < std::tuple(y.start, -y.length, b);
      });
    }
  }

  void find_autograd_threads() {
    found_.autograd_threads = events_.autograd_threads;
    for (const auto& [thread, ranges] : threads_) {
      if (std::all_of(ranges.begin(), ranges.end(), [&, of = thread](std::size_t i) {
            return backwards_.holding(events_.ranges[i].middle(), of) != nullptr;
          }))
        found_.autograd_threads.insert(thread);
    }
  }

  void look_at(std::int64_t thread, const std::vector<std::size_t>& ranges) {
    const bool is_autograd = found_.autograd_threads.count(thread) > 0;
    std::vector<std::size_t> open;
    for (const std::size_t i : ranges) {
      const TraceRange& range = events_.ranges[i];
      // The middle decides, because rounding can make neighbours overlap slightly.
      while (!open.empty() && range.middle() >= events_.ranges[open.back()].end()) open.pop_back();
      // A thread that is only guessed to be autograd's may take recomputation out, but gives no
      // error.
      const bool is_known = events_.autograd_threads.count(thread) > 0;
      const TraceRange* outer = !open.empty() ? &events_.ranges[open.back()]
                                : is_autograd ? backwards_.holding(range.middle(), thread)
                                              : nullptr;
      const bool is_guess = open.empty() && !is_known && range.pass != RangePass::forward;
      if (outer && !is_guess) within(i, *outer);
      open.push_back(i);
    }
  }

  void within(std::size_t inner, const TraceRange& outer) {
    const TraceRange& range = events_.ranges[inner];
    if (range.pass == RangePass::forward && is_backward(outer.pass)) {
      left_out_.insert(inner);
      if (range.external_id) recomputed_.insert({range.layer, range.pass, *range.external_id});
    } else if (found_.twice.size() < max_ &&
               reported_.insert({range.layer, range.pass, outer.layer, outer.pass}).second) {
      found_.twice.emplace_back(range, outer);
    }
  }

  void take_away() {
    found_.recomputed = left_out_.size();
    if (left_out_.empty()) return;
    std::vector<TraceRange> kept;
    kept.reserve(events_.ranges.size() - left_out_.size());
    for (std::size_t i = 0; i < events_.ranges.size(); ++i) {
      const TraceRange& range = events_.ranges[i];
      const bool on_gpu_alone =
          range.on_gpu && range.external_id &&
          recomputed_.count({range.layer, range.pass, *range.external_id}) > 0;
      if (left_out_.count(i) == 0 && !on_gpu_alone) kept.push_back(range);
    }
    events_.ranges = std::move(kept);
  }

  TraceEvents& events_;
  std::size_t max_;
  Backwards backwards_;  // made from the ranges as they were found
  TraceNesting found_;
  std::map<std::int64_t, std::vector<std::size_t>> threads_;
  std::set<std::size_t> left_out_;
  std::set<std::tuple<std::uint32_t, RangePass, std::int64_t>> recomputed_;
  std::set<std::tuple<std::uint32_t, RangePass, std::uint32_t, RangePass>> reported_;
};

}  // namespace

TraceNesting leave_out_recomputation(TraceEvents& events, std::size_t max) {
  return Nesting(events, max).find();
}

}  // namespace plumbline
