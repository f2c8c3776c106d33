// Iterations are cut where the CPU issued ops: work on a GPU may end after its step.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/device_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace plumbline {
namespace {

/// One op with its place in time, before it has a micro-batch.
struct IssuedOp {
  NamedOp op;
  RecordedSpan work;
  Duration busy{};
  SimTime issued;
  bool in_pair = false;
};

/// The ops of one device, as the CPU issued them.
struct IssuedOps {
  std::size_t recording = 0;
  std::int64_t device = 0;
  std::vector<IssuedOp> ops;
};

/// The mean time of each kind of op of each stage, outside of pairs.
using MeanTimes = std::map<std::pair<std::uint32_t, OpKind>, double>;

MeanTimes mean_times(const RankRecording& recording) {
  std::map<std::pair<std::uint32_t, OpKind>, std::pair<double, std::size_t>> sums;
  for (const RecordedOp& op : recording.ops) {
    if (op.partner) continue;
    auto& [sum, count] = sums[{op.op.stage.value_or(0), op.op.kind}];
    sum += static_cast<double>(op.work.length().count());
    ++count;
  }
  MeanTimes means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / static_cast<double>(sum.second);
  return means;
}

/// The share of a pair's time that its first op gets: by the times that both take alone, else a
/// third for a forward.
double first_share(const RecordedOp& pair, const MeanTimes& means) {
  const auto alone = [&](const NamedOp& op) {
    const auto found = means.find({op.stage.value_or(0), op.kind});
    if (found != means.end()) return found->second;
    return op.kind == OpKind::forward ? 1.0 : 2.0;
  };
  const bool both = means.count({pair.op.stage.value_or(0), pair.op.kind}) &&
                    means.count({pair.partner->stage.value_or(0), pair.partner->kind});
  if (!both) {
    if (pair.op.kind == pair.partner->kind) return 0.5;
    return pair.op.kind == OpKind::forward ? 1.0 / 3 : 2.0 / 3;
  }
  const double first = alone(pair.op);
  const double second = alone(*pair.partner);
  return first + second > 0 ? first / (first + second) : 0.5;
}

/// The ops of each device of a rank.
std::vector<IssuedOps> issued_ops(const RankRecording& recording, std::size_t index) {
  std::map<std::int64_t, IssuedOps> by_device;
  const MeanTimes means = mean_times(recording);
  for (const RecordedOp& op : recording.ops) {
    IssuedOps& of = by_device[op.device];
    of.recording = index;
    of.device = op.device;
    if (!op.partner) {
      of.ops.push_back({op.op, op.work, op.busy, op.issued, false});
      continue;
    }
    const Duration first{static_cast<std::int64_t>(first_share(op, means) *
                                                   static_cast<double>(op.work.length().count()))};
    const SimTime middle = op.work.begin + first;
    of.ops.push_back({op.op, {op.work.begin, middle}, first, op.issued, true});
    of.ops.push_back(
        {*op.partner, {middle, op.work.end}, op.work.length() - first, op.issued, true});
  }
  std::vector<IssuedOps> all;
  for (auto& [device, ops] : by_device) {
    std::stable_sort(ops.ops.begin(), ops.ops.end(),
                     [](const IssuedOp& a, const IssuedOp& b) { return a.issued < b.issued; });
    all.push_back(std::move(ops));
  }
  return all;
}

/// Gives ops without a stage the stage of their device's place. Errors: some ops have one.
std::optional<Diagnostic> add_stages(std::vector<IssuedOps>& devices,
                                     const std::vector<RankRecording>& recordings,
                                     const AssemblyOptions& options,
                                     std::vector<std::string>& notes) {
  std::size_t with = 0, without = 0;
  for (const IssuedOps& device : devices) {
    for (const IssuedOp& op : device.ops) ++(op.op.stage ? with : without);
  }
  if (without == 0) return std::nullopt;
  const auto source = std::make_shared<Source>();
  source->name = recordings.front().file;
  if (with > 0)
    return input_error({source},
                       fmt::format("{} ops tell their stage and {} do not", with, without),
                       "ranges of one kind are needed: name them with --forward and --backward");
  // Ranks that reduce together and send each other nothing are no stages of a pipeline.
  const bool any_peers = std::any_of(recordings.begin(), recordings.end(),
                                     [](const RankRecording& one) { return one.has_peers; });
  const bool are_copies =
      options.stages == 0 && !any_peers && devices.size() > 1 &&
      std::all_of(recordings.begin(), recordings.end(),
                  [](const RankRecording& one) { return !one.collectives.empty(); });
  const std::uint32_t stages = options.stages > 0 ? options.stages
                               : are_copies       ? 1
                                                  : static_cast<std::uint32_t>(devices.size());
  if (devices.size() % stages != 0)
    return input_error({source},
                       fmt::format("{} devices cannot have {} stages", devices.size(), stages),
                       "--stages divides the number of traces");
  const std::size_t copies = devices.size() / stages;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (IssuedOp& op : devices[i].ops) op.op.stage = static_cast<std::uint32_t>(i / copies);
  }
  if (are_copies) {
    notes.emplace_back(
        "the names of ranges tell no stage, and there are collectives, but no sends: each rank is "
        "taken as a copy of the whole model");
    return std::nullopt;
  }
  notes.push_back(fmt::format(
      "the names of ranges tell no stage: the ranks are taken as the stages of a pipeline in "
      "their order{}",
      copies > 1 ? fmt::format(", {} copies of each side by side", copies) : ""));
  return std::nullopt;
}

/// The step in which an op was issued: its index; nothing before the first one.
std::optional<std::size_t> step_of(const std::vector<RecordedStep>& steps, SimTime issued) {
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), issued,
                       [](SimTime at, const RecordedStep& step) { return at < step.span.begin; });
  if (after == steps.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

/// Cuts the ops of one device into iterations.
class Cutter {
 public:
  Cutter(const IssuedOps& ops, const RankRecording& recording)
      : ops_(ops), recording_(recording), steps_(recording.steps) {
    std::sort(steps_.begin(), steps_.end(), [](const RecordedStep& a, const RecordedStep& b) {
      return a.span.begin < b.span.begin;
    });
    // Numbers that do not rise say nothing: then steps are counted.
    const bool rise = std::adjacent_find(steps_.begin(), steps_.end(),
                                         [](const RecordedStep& a, const RecordedStep& b) {
                                           return a.number >= b.number;
                                         }) == steps_.end();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!rise || steps_.front().number < 0) steps_[i].number = static_cast<std::int64_t>(i);
    }
  }

  /// Errors: micro-batches have no numbers, and there are neither steps nor updates.
  Result<std::vector<StreamIteration>> cut(std::vector<std::string>& notes) {
    const bool numbered = std::all_of(ops_.ops.begin(), ops_.ops.end(), [](const IssuedOp& op) {
      return op.op.micro_batch.has_value();
    });
    if (!numbered && steps_.empty() && recording_.updates.empty()) {
      const auto source = std::make_shared<Source>();
      source->name = recording_.file;
      return input_error({source},
                         "it does not tell where an iteration ends: micro-batches have no numbers, "
                         "and there are no steps and no optimizer",
                         "call profiler.step(), or put {micro_batch} into the names of ranges");
    }
    std::size_t before = 0;
    for (const IssuedOp& op : ops_.ops) {
      const auto part = part_of(op.issued);
      if (!part) {
        ++before;
        continue;
      }
      add(op, *part, numbered);
    }
    if (before > 0)
      notes.push_back(
          fmt::format("{}: {} ops before the first step are left out", recording_.file, before));
    finish();
    return std::move(iterations_);
  }

 private:
  using Key = std::tuple<std::uint32_t, OpKind, std::uint32_t>;

  /// The step, or the number of updates before: an iteration lies in one of these.
  std::optional<std::int64_t> part_of(SimTime issued) const {
    if (!steps_.empty()) {
      const auto step = step_of(steps_, issued);
      return step ? std::optional(static_cast<std::int64_t>(*step)) : std::nullopt;
    }
    const auto after = std::upper_bound(
        recording_.updates.begin(), recording_.updates.end(), issued,
        [](SimTime at, const RecordedUpdate& update) { return at < update.issued; });
    return after - recording_.updates.begin();
  }

  void add(const IssuedOp& op, std::int64_t part, bool numbered) {
    const std::uint32_t stage = *op.op.stage;
    if (part != part_ || iterations_.empty()) begin(part);
    std::uint32_t micro_batch = numbered ? *op.op.micro_batch : counts_[{stage, op.op.kind}]++;
    if (!seen_.insert({stage, op.op.kind, micro_batch}).second) {
      begin(part);
      seen_.insert({stage, op.op.kind, micro_batch});
    }
    iterations_.back().ops.push_back(
        {{op.op.kind, {stage}, {micro_batch}}, op.work, op.busy, op.in_pair});
  }

  void begin(std::int64_t part) {
    const bool is_again = part == part_ && !iterations_.empty();
    StreamIteration iteration;
    if (!steps_.empty()) {
      iteration.number = steps_[static_cast<std::size_t>(part)].number;
      iteration.place = is_again ? iterations_.back().place + 1 : 0;
    } else {
      iteration.number = static_cast<std::int64_t>(iterations_.size());
    }
    part_ = part;
    iterations_.push_back(std::move(iteration));
    seen_.clear();
    counts_.clear();
  }

  /// Sorts ops by their work, and adds updates, where a device has none those of its rank's first
  /// device with updates: each belongs to the last iteration that began its ops before.
  void finish() {
    for (StreamIteration& iteration : iterations_) {
      std::stable_sort(iteration.ops.begin(), iteration.ops.end(),
                       [](const RunOp& a, const RunOp& b) { return a.work.begin < b.work.begin; });
    }
    const bool has_own =
        std::any_of(recording_.updates.begin(), recording_.updates.end(),
                    [&](const RecordedUpdate& update) { return update.device == ops_.device; });
    std::int64_t device = ops_.device;
    if (!has_own && !recording_.updates.empty())
      device = std::min_element(recording_.updates.begin(), recording_.updates.end(),
                                [](const RecordedUpdate& a, const RecordedUpdate& b) {
                                  return a.device < b.device;
                                })
                   ->device;
    for (const RecordedUpdate& update : recording_.updates) {
      if (update.device != device) continue;
      const auto after = std::upper_bound(iterations_.begin(), iterations_.end(), update.work.begin,
                                          [](SimTime at, const StreamIteration& iteration) {
                                            return at < iteration.ops.front().work.begin;
                                          });
      StreamIteration* const of = after == iterations_.begin() ? nullptr : &*std::prev(after);
      if (!of) continue;
      if (!of->update) {
        of->update = update.work;
      } else {
        of->update->begin = std::min(of->update->begin, update.work.begin);
        of->update->end = std::max(of->update->end, update.work.end);
      }
    }
  }

  const IssuedOps& ops_;
  const RankRecording& recording_;
  std::vector<RecordedStep> steps_;
  std::vector<StreamIteration> iterations_;
  std::int64_t part_ = -1;
  std::set<Key> seen_;
  std::map<std::pair<std::uint32_t, OpKind>, std::uint32_t> counts_;
};

/// Tells of steps that hold several iterations.
void tell_of_passes(const std::vector<DeviceStream>& streams, std::vector<std::string>& notes) {
  std::int64_t in_step = 1;
  for (const DeviceStream& stream : streams) {
    for (const StreamIteration& one : stream.iterations) in_step = std::max(in_step, one.place + 1);
  }
  if (in_step > 1)
    notes.push_back(
        fmt::format("a step of the profiler holds up to {} passes through the pipeline: an "
                    "iteration is one pass",
                    in_step));
}

/// Errors: a number of a stage or a micro-batch that no run has.
std::optional<Diagnostic> check_numbers(const std::vector<IssuedOps>& devices,
                                        const std::vector<RankRecording>& recordings) {
  constexpr std::uint32_t most_stages = 10'000, most_micro_batches = 1'000'000'000;
  for (const IssuedOps& device : devices) {
    for (const IssuedOp& op : device.ops) {
      const bool is_stage = op.op.stage.value_or(0) >= most_stages;
      if (!is_stage && op.op.micro_batch.value_or(0) < most_micro_batches) continue;
      auto source = std::make_shared<Source>();
      source->name = recordings[device.recording].file;
      return input_error(
          {std::move(source)},
          is_stage ? fmt::format("an op is of stage {}", *op.op.stage)
                   : fmt::format("an op is of micro-batch {}", *op.op.micro_batch),
          fmt::format("there are fewer than {} {}", is_stage ? most_stages : most_micro_batches,
                      is_stage ? "stages" : "micro-batches"));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<DeviceStream>> device_streams(const std::vector<RankRecording>& recordings,
                                                 const AssemblyOptions& options,
                                                 std::vector<std::string>& notes) {
  std::vector<IssuedOps> devices;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    for (IssuedOps& device : issued_ops(recordings[i], i)) devices.push_back(std::move(device));
  }
  if (auto wrong = check_numbers(devices, recordings)) return *wrong;
  if (auto wrong = add_stages(devices, recordings, options, notes)) return *wrong;
  std::vector<DeviceStream> streams;
  for (const IssuedOps& device : devices) {
    const RankRecording& recording = recordings[device.recording];
    auto iterations = Cutter(device, recording).cut(notes);
    if (!iterations) return iterations.problems();
    std::set<std::uint32_t> stages;
    for (const IssuedOp& op : device.ops) stages.insert(*op.op.stage);
    streams.push_back({{device.recording,
                        recording.rank,
                        device.device,
                        {stages.begin(), stages.end()},
                        {},
                        std::nullopt},
                       *std::move(iterations)});
  }
  tell_of_passes(streams, notes);
  return streams;
}

}  // namespace plumbline
