// Launches within ranges, and the kernels that they started.
//
// SPDX-License-Identifier: MIT
#include "models/import/trace_kernels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

namespace plumbline {
namespace {

constexpr std::uint32_t kOfNone = UINT32_MAX;
constexpr std::uint32_t kOfSeveral = UINT32_MAX - 1;
constexpr std::uint32_t kOfOthers = UINT32_MAX - 2;  // launched by threads that are not autograd's

/// Finds the range of launches.
class LaunchRanges {
 public:
  LaunchRanges(const std::vector<TraceRange>& ranges,
               const std::set<std::int64_t>& autograd_threads)
      : ranges_(ranges), autograd_threads_(autograd_threads) {
    for (std::uint32_t i = 0; i < ranges.size(); ++i) {
      if (!ranges[i].on_gpu) by_start_.push_back(i);
    }
    const auto starts_before = [&](std::uint32_t a, std::uint32_t b) {
      return ranges[a].start < ranges[b].start;
    };
    std::stable_sort(by_start_.begin(), by_start_.end(), starts_before);
    for (const std::uint32_t i : by_start_) threads_[ranges[i].thread].push_back(i);
  }

  /// The ranges that are open when a thread without ranges launches: true = a backward is among
  /// them, false = only others, nothing = none, or the thread has ranges. Requires: launches come
  /// in the order of their times.
  std::optional<bool> is_within_backward(const TraceLaunch& launch) {
    open_until(launch.at);
    if (open_.empty() || threads_.count(launch.thread) > 0) return std::nullopt;
    return std::any_of(open_.begin(), open_.end(),
                       [&](std::uint32_t range) { return is_backward(ranges_[range].pass); });
  }

  /// Requires: launches come in the order of their times.
  std::uint32_t range_of(const TraceLaunch& launch) {
    open_until(launch.at);
    if (const auto own = range_of_thread(launch)) return *own;
    return range_of_others(launch);
  }

 private:
  std::optional<std::uint32_t> range_of_thread(const TraceLaunch& launch) const {
    const auto thread = threads_.find(launch.thread);
    if (thread == threads_.end()) return std::nullopt;
    const auto after =
        std::upper_bound(thread->second.begin(), thread->second.end(), launch.at,
                         [&](double at, std::uint32_t range) { return at < ranges_[range].start; });
    if (after == thread->second.begin()) return std::nullopt;
    const std::uint32_t last = *(after - 1);
    if (launch.at > ranges_[last].end()) return std::nullopt;
    return last;
  }

  void open_until(double at) {
    for (; next_ < by_start_.size() && ranges_[by_start_[next_]].start <= at; ++next_)
      open_.push_back(by_start_[next_]);
    open_.erase(std::remove_if(open_.begin(), open_.end(),
                               [&](std::uint32_t range) { return ranges_[range].end() < at; }),
                open_.end());
  }

  std::uint32_t range_of_others(const TraceLaunch& launch) const {
    if (open_.empty()) return kOfNone;
    if (autograd_threads_.count(launch.thread) == 0) return kOfOthers;
    std::uint32_t backward = kOfNone;
    for (const std::uint32_t range : open_) {
      if (is_backward(ranges_[range].pass)) backward = backward == kOfNone ? range : kOfSeveral;
    }
    return backward;
  }

  const std::vector<TraceRange>& ranges_;
  const std::set<std::int64_t>& autograd_threads_;
  std::vector<std::uint32_t> by_start_;
  std::map<std::int64_t, std::vector<std::uint32_t>> threads_;
  std::vector<std::uint32_t> open_;
  std::size_t next_ = 0;
};

/// Threads that launch within backwards, and never while other ranges alone are open.
std::set<std::int64_t> threads_of_backwards(const TraceEvents& events) {
  const std::set<std::int64_t> none;
  LaunchRanges ranges(events.ranges, none);
  std::set<std::int64_t> within, beside;
  for (const TraceLaunch& launch : events.launches) {
    const auto is_within = ranges.is_within_backward(launch);
    if (is_within) (*is_within ? within : beside).insert(launch.thread);
  }
  std::set<std::int64_t> found;
  std::set_difference(within.begin(), within.end(), beside.begin(), beside.end(),
                      std::inserter(found, found.end()));
  return found;
}

/// Adds a kernel to the work of its range. Requires: kernels come in the order of their starts.
void add(const TraceKernel& kernel, RangeWork& work) {
  const double length = std::max(kernel.length, 0.0);
  const double kernel_end = kernel.start + length;
  if (work.kernels == 0) {
    work = {1, kernel.start, kernel_end, length};
    return;
  }
  ++work.kernels;
  work.busy += std::max(0.0, kernel_end - std::max(kernel.start, work.end));
  work.end = std::max(work.end, kernel_end);
}

}  // namespace

TraceWork join_kernels(TraceEvents& events, std::set<std::int64_t> autograd_threads) {
  std::vector<TraceLaunch>& launches = events.launches;
  std::vector<TraceKernel>& kernels = events.kernels;
  TraceWork work;
  work.of_range.resize(events.ranges.size());
  // The range of every correlation id. Where several calls have one id, the first of them counts.
  std::sort(launches.begin(), launches.end(), [](const TraceLaunch& a, const TraceLaunch& b) {
    return std::tuple(a.at, a.correlation) < std::tuple(b.at, b.correlation);
  });
  if (events.autograd_threads.empty()) autograd_threads.merge(threads_of_backwards(events));
  LaunchRanges ranges(events.ranges, autograd_threads);
  std::vector<std::pair<std::int64_t, std::uint32_t>> range_of;
  range_of.reserve(launches.size());
  for (const TraceLaunch& launch : launches)
    range_of.emplace_back(launch.correlation, ranges.range_of(launch));
  std::stable_sort(range_of.begin(), range_of.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // The kernels of every range.
  std::sort(kernels.begin(), kernels.end(), [](const TraceKernel& a, const TraceKernel& b) {
    return std::tuple(a.start, a.length) < std::tuple(b.start, b.length);
  });
  for (const TraceKernel& kernel : kernels) {
    const auto at = std::lower_bound(
        range_of.begin(), range_of.end(), kernel.correlation,
        [](const auto& known, std::int64_t correlation) { return known.first < correlation; });
    if (at == range_of.end() || at->first != kernel.correlation) {
      ++work.without_launch;
    } else if (at->second == kOfSeveral) {
      ++work.ambiguous;
    } else if (at->second == kOfOthers) {
      ++work.of_others;
    } else if (at->second != kOfNone && kernel.peer == PeerWork::send_or_receive) {
      ++work.sends_and_receives;
    } else if (at->second != kOfNone) {
      add(kernel, work.of_range[at->second]);
      ++work.kernels;
      if (kernel.peer == PeerWork::unknown) ++work.maybe_sends;
      if (kernel.peer == PeerWork::collective) ++work.collectives;
    }
  }
  return work;
}

}  // namespace plumbline
