// All work and all communication in the order in which the CPU issued it, cut into pieces.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/guessed_ops.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace plumbline {
namespace {

/// One thing that the CPU issued.
struct Issued {
  SimTime at;
  SimTime end;  ///< On the CPU.
  std::int64_t thread = 0;
  bool communicates = false;
  Duration work{};
};

/// Whether a thread was within a span of a list at a time.
class ThreadSpans {
 public:
  void add(std::int64_t thread, const RecordedSpan& span) { spans_[thread].push_back(span); }

  /// To call once, when all are added. Spans within others are taken out.
  void sort() {
    for (auto& [thread, spans] : spans_) {
      std::sort(spans.begin(), spans.end(),
                [](const RecordedSpan& a, const RecordedSpan& b) { return a.begin < b.begin; });
      std::vector<RecordedSpan> outer;
      for (const RecordedSpan& span : spans) {
        if (outer.empty() || span.begin >= outer.back().end) outer.push_back(span);
      }
      spans = std::move(outer);
    }
  }

  bool hold(std::int64_t thread, SimTime at) const {
    const auto found = spans_.find(thread);
    if (found == spans_.end()) return false;
    const auto& spans = found->second;
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), at,
                         [](SimTime t, const RecordedSpan& span) { return t < span.begin; });
    return after != spans.begin() && at <= std::prev(after)->end;  // times may be rounded
  }

 private:
  std::map<std::int64_t, std::vector<RecordedSpan>> spans_;
};

std::vector<Issued> issued_to_gpus(const RankEvents& events) {
  std::unordered_map<std::int64_t, const GpuLaunch*> launches;
  for (const GpuLaunch& launch : events.launches) launches[launch.correlation] = &launch;
  std::vector<Issued> all;
  for (const GpuKernel& kernel : events.kernels) {
    const auto launch = launches.find(kernel.correlation);
    if (launch == launches.end() || kernel.use == KernelUse::collective) continue;
    const GpuLaunch& by = *launch->second;
    all.push_back({by.at, by.at + Duration{1}, by.thread, kernel.use != KernelUse::work,
                   kernel.span.length()});
  }
  return all;
}

std::vector<Issued> done_on_cpu(const RankEvents& events) {
  std::vector<Issued> all;
  for (const CpuCall& call : events.calls) {
    if (call.use == CallUse::collective) continue;
    all.push_back({call.span.begin, call.span.end, call.thread, call.use != CallUse::work,
                   call.span.length()});
  }
  return all;
}

/// A part of the order that may be an op.
struct Piece {
  OpKind kind = OpKind::forward;
  RecordedSpan span;
  std::int64_t thread = 0;
  Duration work{};
  bool is_cut = false;  ///< A send or a receive stands before it.

  void join(const Piece& next) {
    span.end = std::max(span.end, next.span.end);
    work += next.work;
  }
};

std::vector<Piece> pieces_of(const std::vector<Issued>& order, const ThreadSpans& autograd,
                             const ThreadSpans& elsewhere, std::int64_t main_thread) {
  std::vector<Piece> pieces;
  bool cut = true;
  for (const Issued& one : order) {
    if (elsewhere.hold(one.thread, one.at)) continue;
    if (one.communicates) {
      cut = true;
      continue;
    }
    const bool is_backward = autograd.hold(one.thread, one.at);
    if (!is_backward && one.thread != main_thread) continue;  // such as a loader's copies
    const OpKind kind = is_backward ? OpKind::backward : OpKind::forward;
    const Piece piece{kind, {one.at, one.end}, one.thread, one.work, cut};
    if (cut || pieces.back().kind != kind)
      pieces.push_back(piece);
    else
      pieces.back().join(piece);
    cut = false;
  }
  return pieces;
}

/// Takes small pieces out. What stood apart only because of them is one piece then.
std::vector<Piece> without_small(const std::vector<Piece>& pieces) {
  constexpr std::int64_t least_part = 10;
  Duration longest[2] = {};
  for (const Piece& piece : pieces) {
    Duration& of_kind = longest[piece.kind == OpKind::forward ? 0 : 1];
    of_kind = std::max(of_kind, piece.work);
  }
  std::vector<Piece> kept;
  bool cut = false;
  for (const Piece& piece : pieces) {
    cut = cut || piece.is_cut;
    if (piece.work < longest[piece.kind == OpKind::forward ? 0 : 1] / least_part) continue;
    if (!cut && !kept.empty() && kept.back().kind == piece.kind)
      kept.back().join(piece);
    else
      kept.push_back(piece);
    cut = false;
  }
  return kept;
}

/// The thread that issued most work outside of autograd: the one that trains.
std::int64_t main_thread_of(const std::vector<Issued>& order, const ThreadSpans& autograd) {
  std::map<std::int64_t, double> work;
  for (const Issued& one : order) {
    if (!autograd.hold(one.thread, one.at))
      work[one.thread] += static_cast<double>(one.work.count());
  }
  const auto most = std::max_element(
      work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == work.end() ? 0 : most->first;
}

}  // namespace

std::vector<TitledRange> guessed_ops(const RankEvents& events) {
  ThreadSpans autograd, elsewhere;
  for (const ThreadSpan& span : events.autograd) autograd.add(span.thread, span.span);
  for (const TitledRange& range : events.ranges) {
    if (range.title.use != RangeUse::iteration) elsewhere.add(range.thread, range.span);
  }
  autograd.sort();
  elsewhere.sort();
  std::vector<Issued> order = events.kernels.empty() ? done_on_cpu(events) : issued_to_gpus(events);
  std::stable_sort(order.begin(), order.end(),
                   [](const Issued& a, const Issued& b) { return a.at < b.at; });
  const auto pieces = pieces_of(order, autograd, elsewhere, main_thread_of(order, autograd));
  std::vector<TitledRange> ranges;
  for (const Piece& piece : without_small(pieces))
    ranges.push_back({{RangeUse::op, {piece.kind, {}, {}}, {}, 0}, piece.span, piece.thread});
  return ranges;
}

}  // namespace plumbline
