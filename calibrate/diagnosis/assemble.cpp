// The passes from the recordings of all ranks to one run.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/statistics.h"
#include "base/table.h"
#include "calibrate/diagnosis/clocks.h"
#include "calibrate/diagnosis/device_streams.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/transfer_matches.h"

namespace plumbline {
namespace {

Diagnostic at_file(const std::string& file, std::string message, std::string help = "") {
  auto source = std::make_shared<Source>();
  source->name = file;
  return input_error({source}, std::move(message), std::move(help));
}

/// Whether two recordings have the same ops at the same times.
bool is_same(const RankRecording& a, const RankRecording& b) {
  return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const RecordedOp& x, const RecordedOp& y) {
                      return x.work.begin == y.work.begin && x.work.end == y.work.end;
                    });
}

/// The recordings by rank. Those that do not tell their rank get the place among the files.
/// Errors: a rank twice.
Result<std::vector<RankRecording>> by_rank(std::vector<RankRecording> recordings,
                                           std::vector<std::string>& notes) {
  const bool all_known = std::all_of(recordings.begin(), recordings.end(),
                                     [](const RankRecording& one) { return one.rank_known; });
  if (!all_known) {
    for (std::size_t i = 0; i < recordings.size(); ++i)
      recordings[i].rank = static_cast<std::int64_t>(i);
    if (recordings.size() > 1)
      notes.emplace_back(
          "not every trace tells its rank: the files are taken as ranks 0, 1, ... in their order");
  }
  std::stable_sort(recordings.begin(), recordings.end(),
                   [](const RankRecording& a, const RankRecording& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < recordings.size(); ++i) {
    if (recordings[i].rank == recordings[i - 1].rank)
      return at_file(
          recordings[i].file,
          fmt::format("is rank {}, and so is {}", recordings[i].rank, recordings[i - 1].file),
          "give the trace of each rank once, of one run");
  }
  return recordings;
}

/// The devices of one copy of the pipeline, by their stages.
using CopyStreams = std::vector<DeviceStream>;

std::string stages_text(const std::vector<std::uint32_t>& stages) {
  return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

/// Errors: a rank that others send to, or a stage, of which there is no trace; the same trace
/// twice.
std::optional<Diagnostic> check_all_there(const std::vector<RankRecording>& recordings) {
  std::set<std::int64_t> ranks;
  std::uint32_t last = 0;
  for (const RankRecording& recording : recordings) {
    ranks.insert(recording.rank);
    for (const RecordedOp& op : recording.ops) last = std::max(last, op.op.stage.value_or(0));
  }
  for (std::size_t i = 1; i < recordings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (is_same(recordings[i], recordings[j]))
        return at_file(recordings[i].file,
                       fmt::format("has the same ops as {}", recordings[j].file),
                       "give the trace of each rank once");
    }
  }
  const std::string help = "give the traces of all ranks of the run";
  for (const RankRecording& recording : recordings) {
    for (const RecordedTransfer& transfer : recording.transfers) {
      if (transfer.peer && !ranks.count(*transfer.peer))
        return at_file(recording.file,
                       fmt::format("{} rank {}, of which there is no trace",
                                   transfer.sends ? "sends to" : "receives from", *transfer.peer),
                       help);
      if (!transfer.op || !transfer.op->stage) continue;
      const bool is_forward = transfer.op->kind == OpKind::forward;
      // The last stage sends no activation, and gets no gradient.
      if (*transfer.op->stage == last && transfer.sends == is_forward)
        return at_file(
            recording.file,
            fmt::format("stage {} {} another stage behind it, of which there is no trace", last,
                        transfer.sends ? "sends to" : "receives from"),
            help);
    }
  }
  return std::nullopt;
}

/// Sorts the devices into copies: each has every stage once. Errors: a stage that no trace has; a
/// different number of traces for different stages; stages that overlap in part.
Result<std::vector<CopyStreams>> copies_of(std::vector<DeviceStream> streams,
                                           const std::vector<RankRecording>& recordings) {
  std::map<std::vector<std::uint32_t>, std::vector<DeviceStream>> by_stages;
  for (DeviceStream& stream : streams) by_stages[stream.device.stages].push_back(std::move(stream));
  std::set<std::uint32_t> seen;
  for (const auto& [stages, of] : by_stages) {
    for (const std::uint32_t stage : stages) {
      if (!seen.insert(stage).second)
        return at_file(
            recordings[of.front().device.recording].file,
            fmt::format("has {}, of which other traces have only some", stages_text(stages)),
            "are these the traces of one run?");
    }
  }
  std::vector<std::uint32_t> missing;
  for (std::uint32_t stage = 0; stage < *seen.rbegin(); ++stage) {
    if (!seen.count(stage)) missing.push_back(stage);
  }
  if (!missing.empty())
    return at_file(recordings.front().file,
                   fmt::format("no trace has an op of {}", stages_text(missing)),
                   "give the traces of all ranks of the run");
  const std::size_t copies = by_stages.begin()->second.size();
  for (const auto& [stages, of] : by_stages) {
    if (of.size() != copies)
      return at_file(
          recordings[of.front().device.recording].file,
          fmt::format("{} traces have {}, but {} have {}", of.size(), stages_text(stages), copies,
                      stages_text(by_stages.begin()->first)),
          "give the traces of all ranks of the run");
  }
  std::vector<CopyStreams> all(copies);
  for (auto& [stages, of] : by_stages) {
    for (std::size_t c = 0; c < copies; ++c) all[c].push_back(std::move(of[c]));
  }
  return all;
}

/// The number of micro-batches if every stage has an F and a B (or an I and a W) of each, from one
/// number on; those numbers then begin at 0. Nothing if the iteration is not whole.
std::optional<std::uint32_t> renumber(RunIteration& iteration, std::uint32_t stages) {
  std::set<std::uint32_t> numbers;
  std::map<std::pair<std::uint32_t, OpKind>, std::set<std::uint32_t>> of;
  for (const auto& device : iteration.ops) {
    for (const RunOp& op : device) {
      numbers.insert(op.op.micro_batch.value);
      of[{op.op.stage.value, op.op.kind}].insert(op.op.micro_batch.value);
    }
  }
  if (numbers.empty()) return std::nullopt;
  const std::uint32_t first = *numbers.begin();
  const auto count = static_cast<std::uint32_t>(numbers.size());
  if (*numbers.rbegin() - first + 1 != count) return std::nullopt;
  const auto has_all = [&](std::uint32_t stage, OpKind kind) {
    const auto found = of.find({stage, kind});
    return found != of.end() && found->second.size() == count;
  };
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    std::set<std::uint32_t> backwards = of[{stage, OpKind::backward}];
    const auto& inputs = of[{stage, OpKind::backward_input}];
    if (inputs != of[{stage, OpKind::backward_weight}]) return std::nullopt;
    for (const std::uint32_t m : inputs) {
      if (!backwards.insert(m).second) return std::nullopt;
    }
    if (!has_all(stage, OpKind::forward) || backwards.size() != count) return std::nullopt;
  }
  for (auto& device : iteration.ops) {
    for (RunOp& op : device) op.op.micro_batch.value -= first;
  }
  return count;
}

OpLists lists_of(const RunIteration& iteration) {
  OpLists lists;
  for (const auto& device : iteration.ops) {
    lists.emplace_back();
    for (const RunOp& op : device) lists.back().push_back(op.op);
  }
  return lists;
}

/// The iterations that all devices have, by their numbers.
std::vector<RunIteration> joined_iterations(const CopyStreams& copy) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const StreamIteration*>> by_number;
  for (std::size_t d = 0; d < copy.size(); ++d) {
    for (const StreamIteration& iteration : copy[d].iterations) {
      auto& of = by_number[{iteration.number, iteration.place}];
      of.resize(copy.size());
      of[d] = &iteration;
    }
  }
  std::vector<RunIteration> iterations;
  for (const auto& [key, of] : by_number) {
    RunIteration iteration;
    iteration.number = key.first;
    iteration.pass = key.second;
    iteration.place = iterations.size();
    for (const StreamIteration* one : of) {
      iteration.ops.push_back(one ? one->ops : std::vector<RunOp>());
      iteration.updates.push_back(one ? one->update : std::nullopt);
    }
    iterations.push_back(std::move(iteration));
  }
  return iterations;
}

/// Keeps the iterations that are whole and have the order that most have. Errors: none is whole;
/// devices that run different numbers of micro-batches.
std::optional<Diagnostic> keep_whole(std::vector<RunIteration> iterations,
                                     const std::vector<RankRecording>& recordings,
                                     RecordedRun& run) {
  struct Kept {
    std::size_t count = 0;
    std::uint32_t micro_batches = 0;
  };
  std::map<std::vector<std::vector<Op>>, Kept> orders;
  std::vector<OpLists> order_of(iterations.size());
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const auto micro_batches = renumber(iterations[i], run.stages);
    if (!micro_batches) continue;
    order_of[i] = lists_of(iterations[i]);
    auto& kept = orders[order_of[i]];
    ++kept.count;
    kept.micro_batches = *micro_batches;
  }
  if (orders.empty()) {
    std::vector<std::string> counts;
    const RunIteration& one = iterations[iterations.size() / 2];
    for (std::size_t d = 0; d < run.devices.size(); ++d) {
      std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> of_stage;  // forwards, backwards
      for (const RunOp& op : one.ops[d]) {
        auto& [forwards, backwards] = of_stage[op.op.stage.value];
        ++(op.op.kind == OpKind::forward ? forwards : backwards);
      }
      for (const auto& [stage, count] : of_stage)
        counts.push_back(fmt::format("{} and {} of stage {} in {}", plural(count.first, "forward"),
                                     plural(count.second, "backward"), stage,
                                     recordings[run.devices[d].recording].file));
    }
    Diagnostic wrong = at_file(
        recordings.front().file,
        "no iteration is whole: every stage needs a forward and a backward of each micro-batch",
        "are these the traces of one run, and do they hold a whole step?");
    wrong.detail = fmt::format("  iteration {} has {}\n", one.number, fmt::join(counts, ",\n  "));
    return wrong;
  }
  const auto most = std::max_element(
      orders.begin(), orders.end(),
      [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  run.lists = most->first;
  run.micro_batches = most->second.micro_batches;
  std::size_t part = 0, other = 0;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    if (order_of[i] == run.lists) {
      run.iterations.push_back(std::move(iterations[i]));
    } else {
      ++(order_of[i].empty() ? part : other);
    }
  }
  run.left_out = part + other;
  if (part > 0)
    run.notes.push_back(fmt::format("{} left out: not every op of {} was recorded",
                                    plural(part, "iteration"), part == 1 ? "it" : "them"));
  if (other > 0)
    run.notes.push_back(fmt::format("{} left out: {} had another order of ops",
                                    plural(other, "iteration"), other == 1 ? "it" : "they"));
  return std::nullopt;
}

/// Sets where iterations begin and end, and the time until the next one. All times count from the
/// begin of the first one from here on.
void set_ends(RecordedRun& run) {
  for (RunIteration& iteration : run.iterations) {
    iteration.begin = SimTime::max();
    iteration.end = SimTime::min();
    for (std::size_t d = 0; d < iteration.ops.size(); ++d) {
      for (const RunOp& op : iteration.ops[d]) {
        iteration.begin = std::min(iteration.begin, op.work.begin);
        iteration.end = std::max(iteration.end, op.work.end);
      }
      if (iteration.updates[d]) iteration.end = std::max(iteration.end, iteration.updates[d]->end);
    }
  }
  const Duration origin = run.iterations.front().begin.time_since_epoch();
  const auto move = [&](RecordedSpan& span, Duration by) {
    span.begin -= by;
    span.end -= by;
  };
  for (RunIteration& iteration : run.iterations) {
    iteration.begin -= origin;
    iteration.end -= origin;
    for (auto& device : iteration.ops) {
      for (RunOp& op : device) move(op.work, origin);
    }
    for (auto& update : iteration.updates) {
      if (update) move(*update, origin);
    }
    for (auto& [op, transfer] : iteration.transfers) {
      if (transfer.sent) move(*transfer.sent, origin);
      if (transfer.received) move(*transfer.received, origin);
    }
  }
  for (std::size_t k = 0; k + 1 < run.iterations.size(); ++k) {
    const RunIteration& next = run.iterations[k + 1];
    if (next.place == run.iterations[k].place + 1)
      run.iterations[k].period = next.begin - run.iterations[k].begin;
    // Wild times: the next one cannot begin before.
    if (run.iterations[k].period && run.iterations[k].period->count() <= 0)
      run.iterations[k].period.reset();
  }
  for (auto* const spans : {&run.collectives, &run.sends}) {
    for (auto& of_device : *spans) {
      for (RecordedSpan& span : of_device) move(span, origin);
    }
  }
  for (auto& collectives : run.collectives) collectives = joined(std::move(collectives));
  for (auto& sends : run.sends) {
    std::sort(sends.begin(), sends.end(),
              [](const RecordedSpan& a, const RecordedSpan& b) { return a.end < b.end; });
  }
}

/// Puts one copy together.
Result<RecordedRun> assemble_copy(const CopyStreams& copy,
                                  const std::vector<RankRecording>& recordings,
                                  const AssemblyOptions& options) {
  RecordedRun run;
  for (const DeviceStream& stream : copy) {
    run.devices.push_back(stream.device);
    run.stages += static_cast<std::uint32_t>(stream.device.stages.size());
  }
  run.devices_of_stages.resize(run.stages);
  for (std::uint32_t d = 0; d < run.devices.size(); ++d) {
    for (const std::uint32_t stage : run.devices[d].stages) run.devices_of_stages[stage] = d;
    const OpClock clock = recordings[run.devices[d].recording].clock;
    if (d > 0 && clock != run.clock)
      run.notes.push_back(
          fmt::format("{} has {}, other traces have not: its times are of another kind",
                      recordings[run.devices[d].recording].file,
                      clock == OpClock::kernels ? "kernels" : "no kernels"));
    run.clock = d == 0 ? clock : std::max(run.clock, clock);  // what all have
  }
  auto iterations = joined_iterations(copy);
  if (iterations.empty())
    return at_file(recordings.front().file, "all ops come before the first step of the profiler",
                   "let the profiler record whole steps");
  if (iterations.size() <= options.skip)
    return at_file(recordings.front().file, fmt::format("--skip {}, but there are {}", options.skip,
                                                        plural(iterations.size(), "iteration")));
  iterations.erase(iterations.begin(), iterations.begin() + options.skip);
  if (auto wrong = keep_whole(std::move(iterations), recordings, run)) return *wrong;
  for (const RunDevice& device : run.devices) {
    const RankRecording& recording = recordings[device.recording];
    run.collectives.push_back(recording.collectives);
    run.sends.push_back(recording.sends);
    run.guessed = run.guessed || recording.guessed;
  }
  match_transfers(run, recordings);
  if (auto wrong = align_clocks(run, recordings)) return *wrong;
  set_ends(run);
  return run;
}

double median_time_s(const RecordedRun& run) {
  std::vector<double> times;
  for (const std::size_t k : run.timed()) times.push_back(seconds(run.iterations[k].time()));
  return statistics_of(std::move(times)).median;
}

}  // namespace

Duration covered(const std::vector<RecordedSpan>& spans, SimTime begin, SimTime end) {
  auto at =
      std::upper_bound(spans.begin(), spans.end(), begin,
                       [](SimTime time, const RecordedSpan& span) { return time < span.end; });
  Duration sum{};
  for (; at != spans.end() && at->begin < end; ++at)
    sum += std::min(end, at->end) - std::max(begin, at->begin);
  return sum;
}

Duration waited_for(const std::vector<RecordedSpan>& sends, SimTime begin, SimTime end) {
  const auto after =
      std::upper_bound(sends.begin(), sends.end(), end,
                       [](SimTime time, const RecordedSpan& span) { return time < span.end; });
  if (after == sends.begin()) return {};
  const RecordedSpan& last = *std::prev(after);
  return std::max(Duration{}, last.end - std::max(begin, last.begin));
}

std::vector<std::size_t> RecordedRun::timed() const {
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < iterations.size(); ++k) {
    if (iterations[k].period) found.push_back(k);
  }
  for (std::size_t k = 0; found.empty() && k < iterations.size(); ++k) found.push_back(k);
  return found;
}

std::optional<SimTime> RunTransfer::arrival() const {
  if (!received) return std::nullopt;
  return sent ? std::max(sent->begin, received->end) : received->end;
}

std::optional<SimTime> RunTransfer::moved_from() const {
  if (!sent || !received) return std::nullopt;
  return std::min(std::max(sent->begin, received->begin), *arrival());
}

std::optional<Op> producer_of(const Op& op, std::uint32_t stages, bool split) {
  if (op.kind == OpKind::backward_weight) return std::nullopt;
  if (op.kind == OpKind::forward) {
    if (op.stage.value == 0) return std::nullopt;
    return Op{OpKind::forward, {op.stage.value - 1}, op.micro_batch};
  }
  if (op.stage.value + 1 >= stages) return std::nullopt;
  return Op{
      split ? OpKind::backward_input : OpKind::backward, {op.stage.value + 1}, op.micro_batch};
}

Result<RecordedRun> assemble(const std::vector<RankRecording>& given,
                             const AssemblyOptions& options) {
  std::vector<std::string> notes;
  auto recordings = by_rank(given, notes);
  if (!recordings) return recordings.problems();
  for (const RankRecording& recording : *recordings)
    notes.insert(notes.end(), recording.notes.begin(), recording.notes.end());
  if (std::any_of(recordings->begin(), recordings->end(),
                  [](const RankRecording& one) { return one.guessed; }))
    notes.emplace_back(
        "a guess: no range names an op, so what autograd launched counts as backwards, other work "
        "as forwards, and a send or a receive in between as the end of one");
  if (auto wrong = check_all_there(*recordings)) return *wrong;
  auto streams = device_streams(*recordings, options, notes);
  if (!streams) return streams.problems();
  auto copies = copies_of(*std::move(streams), *recordings);
  if (!copies) return copies.problems();
  if (options.copy >= copies->size())
    return at_file(recordings->front().file,
                   copies->size() == 1
                       ? fmt::format("--copy {}, but there is 1 copy of the pipeline", options.copy)
                       : fmt::format("--copy {}, but there are {} copies of the pipeline",
                                     options.copy, copies->size()),
                   "copies are counted from 0");
  std::optional<RecordedRun> shown;
  std::vector<double> times;
  for (std::size_t c = 0; c < copies->size(); ++c) {
    auto run = assemble_copy((*copies)[c], *recordings, options);
    if (!run) return run.problems();
    times.push_back(median_time_s(*run));
    if (c == options.copy) shown = *std::move(run);
  }
  shown->copies = copies->size();
  shown->copy_times_s = std::move(times);
  shown->notes.insert(shown->notes.begin(), notes.begin(), notes.end());
  return *std::move(shown);
}

}  // namespace plumbline
