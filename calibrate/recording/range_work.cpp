// Ranges of one thread are sorted, and few lie within each other, so a binary search finds the open
// one.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/range_work.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace plumbline {
namespace {

constexpr std::uint32_t kNoRange = ~std::uint32_t{0};

bool has_backward(const RangeTitle& title) {
  return (title.use == RangeUse::op && title.op.kind != OpKind::forward) ||
         (title.use == RangeUse::pair);
}

/// Whether a range can own work. Steps cannot: they are around everything.
bool owns_work(const RangeTitle& title) { return title.use != RangeUse::iteration; }

/// The ranges of each thread, to look up which is open at a time.
class OpenRanges {
 public:
  explicit OpenRanges(const std::vector<TitledRange>& ranges) : ranges_(ranges) {
    for (std::uint32_t i = 0; i < ranges.size(); ++i) {
      if (!owns_work(ranges[i].title)) continue;
      add(by_thread_[ranges[i].thread], i);
      if (has_backward(ranges[i].title)) add(backwards_, i);
    }
  }

  /// The innermost range that is open on a thread; kNoRange = none.
  std::uint32_t on_thread(std::int64_t thread, SimTime time) const {
    const auto found = by_thread_.find(thread);
    return found == by_thread_.end() ? kNoRange : open_in(found->second, time);
  }
  /// The backward that is open on any thread.
  std::uint32_t backward(SimTime time) const { return open_in(backwards_, time); }

 private:
  /// Ranges ascending by their begin.
  struct Sorted {
    std::vector<std::uint32_t> ranges;
    std::vector<SimTime> until;  ///< The latest end of this range and of all before it.
  };

  void add(Sorted& sorted, std::uint32_t range) const {
    const SimTime end = ranges_[range].span.end;
    sorted.until.push_back(sorted.until.empty() ? end : std::max(sorted.until.back(), end));
    sorted.ranges.push_back(range);
  }

  /// The last to begin of those that are open. Few ranges lie within each other, so few steps back
  /// find it, or that there is none.
  std::uint32_t open_in(const Sorted& sorted, SimTime time) const {
    const auto after = std::upper_bound(
        sorted.ranges.begin(), sorted.ranges.end(), time,
        [&](SimTime t, std::uint32_t range) { return t < ranges_[range].span.begin; });
    for (auto i = static_cast<std::size_t>(after - sorted.ranges.begin()); i > 0; --i) {
      if (sorted.until[i - 1] <= time) break;
      if (ranges_[sorted.ranges[i - 1]].span.holds(time)) return sorted.ranges[i - 1];
    }
    return kNoRange;
  }

  const std::vector<TitledRange>& ranges_;
  std::map<std::int64_t, Sorted> by_thread_;
  Sorted backwards_;
};

/// The time in which at least one of these spans runs.
Duration union_of(const std::vector<RecordedSpan>& spans) {
  Duration busy{};
  for (const RecordedSpan& span : joined(spans)) busy += span.length();
  return busy;
}

RecordedSpan hull_of(const std::vector<RecordedSpan>& spans) {
  RecordedSpan hull = spans.front();
  for (const RecordedSpan& span : spans) {
    hull.begin = std::min(hull.begin, span.begin);
    hull.end = std::max(hull.end, span.end);
  }
  return hull;
}

/// Adds up the work of each range from its spans by device.
class WorkSum {
 public:
  explicit WorkSum(std::size_t ranges) : spans_(ranges) {}

  void add(std::uint32_t range, std::int64_t device, const RecordedSpan& span) {
    spans_[range][device].push_back(span);
  }

  /// One device does a range's work; what others do for it, such as copies, does not count.
  std::vector<RangeWork> take() {
    std::vector<RangeWork> works(spans_.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      for (auto& [device, spans] : spans_[i]) {
        const Duration busy = union_of(spans);
        if (works[i].work && busy <= works[i].busy) continue;
        works[i] = {hull_of(spans), busy, device};
      }
    }
    return works;
  }

 private:
  std::vector<std::map<std::int64_t, std::vector<RecordedSpan>>> spans_;
};

/// The op of the range around a transfer, if the range says which.
std::optional<NamedOp> transferred(const RankEvents& events, std::uint32_t range) {
  if (range == kNoRange) return std::nullopt;
  const RangeTitle& title = events.ranges[range].title;
  const bool tells = title.use == RangeUse::send || title.use == RangeUse::receive;
  return tells ? std::optional(title.op) : std::nullopt;
}

/// The range that each launch belongs to, by correlation.
std::unordered_map<std::int64_t, std::uint32_t> ranges_of_launches(const RankEvents& events,
                                                                   const OpenRanges& open) {
  std::unordered_map<std::int64_t, std::uint32_t> ranges;
  ranges.reserve(events.launches.size());
  for (const GpuLaunch& launch : events.launches) {
    std::uint32_t range = open.on_thread(launch.thread, launch.at);
    if (range == kNoRange && events.autograd_threads.count(launch.thread))
      range = open.backward(launch.at);
    ranges[launch.correlation] = range;
  }
  return ranges;
}

void sort_by_begin(RangesWork& found) {
  std::sort(found.transfers.begin(), found.transfers.end(),
            [](const RecordedTransfer& a, const RecordedTransfer& b) {
              return a.span.begin < b.span.begin;
            });
  const auto earlier = [](const RecordedSpan& a, const RecordedSpan& b) {
    return a.begin < b.begin;
  };
  std::sort(found.collectives.begin(), found.collectives.end(), earlier);
  std::sort(found.sends.begin(), found.sends.end(), earlier);
}

}  // namespace

std::size_t leave_out_inner_ops(std::vector<TitledRange>& ranges) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const TitledRange& a, const TitledRange& b) {
    return a.span.begin != b.span.begin ? a.span.begin < b.span.begin : a.span.end > b.span.end;
  });
  std::map<std::int64_t, SimTime> open_until;  // of each thread's outermost op
  return std::erase_if(ranges, [&](const TitledRange& range) {
    if (!range.title.is_around_op()) return false;
    const auto [at, is_first] = open_until.try_emplace(range.thread, range.span.end);
    if (is_first) return false;
    // Rounded times may let an op begin before the one before it has ended.
    if (range.span.end <= at->second && range.span.begin < at->second) return true;
    at->second = std::max(at->second, range.span.end);
    return false;
  });
}

RangesWork work_on_gpus(const RankEvents& events) {
  RangesWork found;
  const OpenRanges open(events.ranges);
  const auto ranges = ranges_of_launches(events, open);
  WorkSum sum(events.ranges.size());
  for (const GpuKernel& kernel : events.kernels) {
    const auto launch = ranges.find(kernel.correlation);
    if (launch == ranges.end()) ++found.unlaunched;
    const std::uint32_t range = launch == ranges.end() ? kNoRange : launch->second;
    switch (kernel.use) {
      case KernelUse::work:
        if (range != kNoRange)
          sum.add(range, kernel.device, kernel.span);
        else if (launch != ranges.end())
          found.outside += kernel.span.length();
        break;
      case KernelUse::collective:
        if (range != kNoRange && events.ranges[range].title.is_around_op()) {
          sum.add(range, kernel.device, kernel.span);
        } else {
          found.collectives.push_back(kernel.span);
        }
        break;
      default: {
        RecordedTransfer transfer{.sends = kernel.use == KernelUse::send,
                                  .peer = std::nullopt,
                                  .op = transferred(events, range),
                                  .span = kernel.span,
                                  .bytes = {kernel.bytes},
                                  .is_whole = true};
        if (kernel.peer >= 0) transfer.peer = kernel.peer;
        if (kernel.use == KernelUse::send_or_receive) {
          if (!transfer.op) {  // nobody knows what it is
            ++found.untold;
            break;
          }
          transfer.sends = events.ranges[range].title.use == RangeUse::send;
        }
        found.transfers.push_back(transfer);
      }
    }
  }
  found.of_range = sum.take();
  sort_by_begin(found);
  return found;
}

RangesWork work_on_cpu(const RankEvents& events) {
  RangesWork found;
  const OpenRanges open(events.ranges);
  WorkSum sum(events.ranges.size());
  for (const CpuCall& call : events.calls) {
    const std::uint32_t range = open.on_thread(call.thread, call.span.begin);
    const bool in_op = range != kNoRange && owns_work(events.ranges[range].title);
    if (call.use == CallUse::work) {
      if (in_op) sum.add(range, 0, call.span);
    } else if (call.use == CallUse::sent) {
      found.sends.push_back(call.span);
    } else if (call.use == CallUse::received) {
      found.transfers.push_back({false, std::nullopt, std::nullopt, call.span, {}, true});
    } else if (call.use == CallUse::collective) {
      if (!in_op || !events.ranges[range].title.is_around_op())
        found.collectives.push_back(call.span);
    }
  }
  for (std::uint32_t i = 0; i < events.ranges.size(); ++i) {
    const TitledRange& range = events.ranges[i];
    if (range.title.use != RangeUse::send && range.title.use != RangeUse::receive) continue;
    found.transfers.push_back({.sends = range.title.use == RangeUse::send,
                               .peer = std::nullopt,
                               .op = range.title.op,
                               .span = range.span,
                               .bytes = {},
                               .is_whole = false});
  }
  found.of_range = sum.take();
  sort_by_begin(found);
  return found;
}

}  // namespace plumbline
