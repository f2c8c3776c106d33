// The passes from the events of one trace to its ops.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/rank_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "base/quantity.h"
#include "base/table.h"
#include "calibrate/recording/guessed_ops.h"
#include "calibrate/recording/range_work.h"
#include "calibrate/recording/rank_events.h"

namespace plumbline {
namespace {

/// The number behind the last "rank" in a file's name: `rank3.json`, `trace_rank-012.json.gz`.
std::optional<std::int64_t> rank_in_name(const std::string& file) {
  const std::string name = lower_case(std::filesystem::path(file).filename().string());
  std::size_t at = name.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  at += 4;
  while (at < name.size() && (name[at] == '_' || name[at] == '-' || name[at] == '.')) ++at;
  std::size_t end = at;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
  while (at + 1 < end && name[at] == '0') ++at;
  return parse_count(name.substr(at, end - at)).value;
}

/// "the trace has the ranges 'forward' (12 times), 'loss' (12 times)".
std::string known_names(const RankEvents& events) {
  std::vector<std::pair<std::string, std::size_t>> names(events.other_ranges.begin(),
                                                         events.other_ranges.end());
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += fmt::format("{}'{}' ({} times)", i == 0 ? "" : ", ", names[i].first, names[i].second);
  return text.empty() ? "" : "the trace has the ranges " + text;
}

Diagnostic no_ops(const std::shared_ptr<const Source>& source, const RankEvents& events) {
  const std::string known = known_names(events);
  return input_error({source},
                     "nothing tells of a forward or a backward; " +
                         (known.empty() ? "the trace has no named ranges" : known),
                     "ranges may be called 'PP:0F3' as in torch.distributed.pipelining; --forward "
                     "and --backward name others, such as 'stage{stage} F{micro_batch}'");
}

/// Whether a rank sent or received anything.
bool has_peers(const RankEvents& events) {
  const auto is_transfer = [](const TitledRange& range) {
    return range.title.use == RangeUse::send || range.title.use == RangeUse::receive;
  };
  const auto is_pair = [](const GpuKernel& kernel) {
    return kernel.use == KernelUse::send || kernel.use == KernelUse::receive ||
           kernel.use == KernelUse::send_or_receive;
  };
  const auto is_call = [](const CpuCall& call) {
    return call.use != CallUse::work && call.use != CallUse::collective;
  };
  return std::any_of(events.ranges.begin(), events.ranges.end(), is_transfer) ||
         std::any_of(events.kernels.begin(), events.kernels.end(), is_pair) ||
         std::any_of(events.calls.begin(), events.calls.end(), is_call);
}

/// Moves all times by what they count from.
void count_from_base(std::int64_t base_ns, RankRecording& recording) {
  const Duration base{base_ns};
  const auto move = [&](RecordedSpan& span) {
    span.begin += base;
    span.end += base;
  };
  for (RecordedOp& op : recording.ops) {
    move(op.work);
    op.issued += base;
  }
  for (RecordedTransfer& transfer : recording.transfers) move(transfer.span);
  for (RecordedSpan& collective : recording.collectives) move(collective);
  for (RecordedSpan& send : recording.sends) move(send);
  for (RecordedUpdate& update : recording.updates) {
    move(update.work);
    update.issued += base;
  }
  for (RecordedStep& step : recording.steps) move(step.span);
}

/// One op, or one update, of each range that is around one.
void take_ranges(const RankEvents& events, const RangesWork& work, RankRecording& recording) {
  std::size_t without_work = 0;
  for (std::size_t i = 0; i < events.ranges.size(); ++i) {
    const TitledRange& range = events.ranges[i];
    const RangeWork& done = work.of_range[i];
    const RecordedSpan span = done.work.value_or(range.span);
    const Duration busy = done.work ? done.busy : range.span.length();
    switch (range.title.use) {
      case RangeUse::op:
      case RangeUse::pair: {
        if (!done.work && recording.clock != OpClock::ranges) ++without_work;
        RecordedOp op{range.title.op, std::nullopt, span, busy, range.span.begin, done.device};
        if (range.title.use == RangeUse::pair) op.partner = range.title.partner;
        recording.ops.push_back(op);
        break;
      }
      case RangeUse::update:
        recording.updates.push_back({span, range.span.begin, done.device});
        break;
      case RangeUse::iteration:
        recording.steps.push_back({range.title.iteration, range.span});
        break;
      case RangeUse::reduction:
        if (recording.clock != OpClock::kernels) recording.collectives.push_back(range.span);
        break;
      default:
        break;
    }
  }
  std::stable_sort(recording.collectives.begin(), recording.collectives.end(),
                   [](const RecordedSpan& a, const RecordedSpan& b) { return a.begin < b.begin; });
  if (without_work > 0)
    recording.notes.push_back(
        fmt::format("{}: {} of {} ops launched nothing; their ranges on the CPU count",
                    recording.file, without_work, recording.ops.size()));
}

}  // namespace

std::vector<RecordedSpan> joined(std::vector<RecordedSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const RecordedSpan& a, const RecordedSpan& b) { return a.begin < b.begin; });
  std::vector<RecordedSpan> all;
  for (const RecordedSpan& span : spans) {
    if (all.empty() || span.begin > all.back().end)
      all.push_back(span);
    else
      all.back().end = std::max(all.back().end, span.end);
  }
  return all;
}

Result<RankRecording> parse_recording(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const OpNames& names) {
  auto events = read_rank_events(text, source, names);
  if (!events) return events.problems();
  RankRecording recording;
  if (std::none_of(events->ranges.begin(), events->ranges.end(),
                   [](const TitledRange& range) { return range.title.is_around_op(); })) {
    auto guessed = guessed_ops(*events);
    recording.guessed = !guessed.empty();
    events->ranges.insert(events->ranges.end(), guessed.begin(), guessed.end());
  }
  const std::size_t inner = leave_out_inner_ops(events->ranges);
  recording.file = source->name;
  recording.events = events->header.events;
  const auto rank = events->header.rank ? events->header.rank : rank_in_name(source->name);
  recording.rank_known = rank.has_value();
  recording.rank = rank.value_or(0);

  recording.other_ranges = known_names(*events);
  recording.has_peers = has_peers(*events);
  for (const TitledRange& range : events->ranges) {
    if (range.title.own >= 0) recording.fitting.insert(range.title.own);
  }
  const bool on_gpus = !events->kernels.empty();
  RangesWork work = on_gpus ? work_on_gpus(*events) : work_on_cpu(*events);
  const bool any_work = std::any_of(work.of_range.begin(), work.of_range.end(),
                                    [](const RangeWork& one) { return one.work.has_value(); });
  recording.clock = !any_work ? OpClock::ranges : on_gpus ? OpClock::kernels : OpClock::work;
  recording.transfers = std::move(work.transfers);
  recording.collectives = std::move(work.collectives);
  recording.sends = std::move(work.sends);
  take_ranges(*events, work, recording);
  if (recording.ops.empty()) return no_ops(source, *events);
  const auto note = [&](const std::string& told) {
    recording.notes.push_back(fmt::format("{}: {}", recording.file, told));
  };
  if (inner > 0)
    note(fmt::format("{} within other ops are their recomputation, and part of them",
                     plural(inner, "op")));
  if (events->without_time > 0)
    note(fmt::format("{} have no time that makes sense, and are left out",
                     plural(events->without_time, "kernel or call")));
  if (work.untold > 0)
    note(
        fmt::format("{} sends or receives of NCCL do not tell their ranks: when data arrived is "
                    "unknown",
                    work.untold));
  Duration in_ops{};
  for (const RecordedOp& op : recording.ops) in_ops += op.busy;
  constexpr std::int64_t worth_telling = 20;  // of the time in ops
  if (work.outside > in_ops / worth_telling)
    note(fmt::format("kernels of {} in all are in no range: that time counts as idle",
                     to_text(work.outside)));
  if (work.unlaunched > 0)
    recording.notes.push_back(
        fmt::format("{}: {} of {} kernels have no launch in the trace and belong to no op",
                    recording.file, work.unlaunched, events->kernels.size()));
  count_from_base(events->header.base_ns, recording);
  return recording;
}

Result<RankRecording> read_recording(const std::string& path, const OpNames& names) {
  return read_trace_file<RankRecording>(
      path, [&](std::istream& text, const std::shared_ptr<const Source>& source) {
        return parse_recording(text, source, names);
      });
}

}  // namespace plumbline
