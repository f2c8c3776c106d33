// Ranges within ranges.
// SPDX-License-Identifier: MIT
#include "models/trace_nesting.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumbline {
namespace {

/// The backwards on the CPU of all threads but one, to be asked which of them holds a moment.
class Backwards {
 public:
  Backwards(const std::vector<TraceRange>& ranges, std::int64_t but_of_thread) {
    for (const TraceRange& range : ranges) {
      if (!range.on_gpu && is_backward(range.pass) && range.thread != but_of_thread)
        by_start_.push_back(&range);
    }
    std::sort(by_start_.begin(), by_start_.end(),
              [](const TraceRange* a, const TraceRange* b) { return a->start < b->start; });
    for (const TraceRange* range : by_start_)
      last_to_end_.push_back(last_to_end_.empty() || range->end() > last_to_end_.back()->end()
                                 ? range
                                 : last_to_end_.back());
  }

  /// A backward that is open at this moment; null where there is none.
  const TraceRange* holding(double at) const {
    const auto after = std::upper_bound(
        by_start_.begin(), by_start_.end(), at,
        [](double moment, const TraceRange* range) { return moment < range->start; });
    if (after == by_start_.begin()) return nullptr;
    const TraceRange* latest =
        last_to_end_[static_cast<std::size_t>(after - by_start_.begin()) - 1];
    return at < latest->end() ? latest : nullptr;
  }

 private:
  std::vector<const TraceRange*> by_start_;
  std::vector<const TraceRange*> last_to_end_;  // of those that have started
};

class Nesting {
 public:
  Nesting(TraceEvents& events, std::size_t most) : events_(events), most_(most) {}

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
      const Backwards others(events_.ranges, thread);
      if (std::all_of(ranges.begin(), ranges.end(), [&](std::size_t i) {
            return others.holding(events_.ranges[i].middle()) != nullptr;
          }))
        found_.autograd_threads.insert(thread);
    }
  }

  void look_at(std::int64_t thread, const std::vector<std::size_t>& ranges) {
    const bool is_autograd = found_.autograd_threads.count(thread) > 0;
    const Backwards others(is_autograd ? events_.ranges : std::vector<TraceRange>{}, thread);
    std::vector<std::size_t> open;
    for (const std::size_t i : ranges) {
      const TraceRange& range = events_.ranges[i];
      // Its middle decides: rounding can make neighbours overlap by a hair.
      while (!open.empty() && range.middle() >= events_.ranges[open.back()].end()) open.pop_back();
      const TraceRange* outer =
          open.empty() ? others.holding(range.middle()) : &events_.ranges[open.back()];
      if (outer) within(i, *outer);
      open.push_back(i);
    }
  }

  void within(std::size_t inner, const TraceRange& outer) {
    const TraceRange& range = events_.ranges[inner];
    if (range.pass == RangePass::forward && is_backward(outer.pass)) {
      left_out_.insert(inner);
      if (range.external_id) recomputed_.insert({range.layer, range.pass, *range.external_id});
    } else if (found_.twice.size() < most_ &&
               told_.insert({range.layer, range.pass, outer.layer, outer.pass}).second) {
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
  std::size_t most_;
  TraceNesting found_;
  std::map<std::int64_t, std::vector<std::size_t>> threads_;
  std::set<std::size_t> left_out_;
  std::set<std::tuple<std::uint32_t, RangePass, std::int64_t>> recomputed_;
  std::set<std::tuple<std::uint32_t, RangePass, std::uint32_t, RangePass>> told_;
};

}  // namespace

TraceNesting leave_out_recomputation(TraceEvents& events, std::size_t most) {
  return Nesting(events, most).find();
}

}  // namespace plumbline
