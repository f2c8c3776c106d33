// Recordings of all ranks of a run, made of a prediction: its ops, transfers and updates, again and
// again, each rank on a clock of its own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_files.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"
#include "calibrate/recording/rank_recording.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// A small training. Times are microseconds; those of stages go round.
struct MadeTraining {
  std::string schedule = "1f1b";
  std::uint32_t devices = 2;
  std::uint32_t chunks = 1;
  std::uint32_t micro_batches = 4;
  std::vector<std::int64_t> forward = {100};
  std::vector<std::int64_t> backward_input = {110};
  std::vector<std::int64_t> backward_weight = {90};
  std::vector<std::int64_t> update = {30};
  std::int64_t latency = 5;
  std::string more{};   ///< Further lines of the scenario.
  std::string order{};  ///< The text of an order file; "" = the schedule's own.

  std::uint32_t stages() const { return devices * chunks; }
};

inline Scenario scenario_of_training(const MadeTraining& made) {
  const auto at = [](const std::vector<std::int64_t>& values, std::uint32_t stage) {
    return values[stage % values.size()];
  };
  std::string text = "version: 1\nname: made\nmodel:\n  layers:\n";
  for (std::uint32_t s = 0; s < made.stages(); ++s) {
    const std::int64_t input = at(made.backward_input, s), weight = at(made.backward_weight, s);
    text += fmt::format(
        "    - {{name: s{}, forward: {} us, backward: {} us, backward_input: {} us, "
        "backward_weight: {} us, update: {} us}}\n",
        s, at(made.forward, s), input + weight, input, weight, at(made.update, s));
  }
  text += fmt::format(
      "cluster: {{devices: {}, link: {{latency: {} us}}}}\nplan: {{stages: {}, partition: [{}]}}\n",
      made.devices, made.latency, made.stages(),
      fmt::join(std::vector<int>(made.stages(), 1), ", "));
  text += made.order.empty()
              ? fmt::format("schedule: {{name: {}, micro_batches: {}{}}}\n", made.schedule,
                            made.micro_batches,
                            made.chunks > 1 ? fmt::format(", chunks: {}", made.chunks) : "")
              : "schedule: {file: order.csv}\n";
  const MemoryFiles files({{"order.csv", made.order}});
  auto scenario = parse_scenario(text_source("made.yaml", text + made.more), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

inline Outcome prediction_of(const MadeTraining& made) {
  auto outcome = predict(scenario_of_training(made));
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// How recordings are made of a prediction.
struct RecordingStyle {
  enum class Transfers : std::uint8_t {
    none,
    named,     ///< Ranges that name the op, as CPUs and GPUs have.
    by_peer,   ///< Kernels that name the other rank.
    received,  ///< Receives of gloo, which name neither. There are no sends.
  };

  std::int64_t iterations = 4;
  std::int64_t first_number = 10;  ///< Of the profiler's steps.
  Transfers transfers = Transfers::by_peer;
  OpClock clock = OpClock::kernels;
  Bytes bytes{};  ///< Of each transfer.
  bool tells_stages = true, tells_micro_batches = true, has_steps = true, has_updates = true;
  std::vector<Duration> ahead{};  ///< Of each rank's clock; those that are missing are right.
  std::vector<double> ppm{};      ///< By which each rank's clock is too fast.
  /// By how much a rank's clock is ahead in an iteration, besides that.
  std::function<Duration(std::uint32_t rank, std::int64_t iteration)> jump{};
  /// By how much an op ends earlier than predicted; what follows stays where it is.
  std::function<Duration(std::int64_t iteration, const Op& op)> earlier{};
  /// The time from the end of an iteration to the next one, besides the prediction's.
  Duration pause{};
};

/// The time between iterations.
inline Duration made_period(const Outcome& outcome, const RecordingStyle& style = {}) {
  return outcome.metrics.whole() + style.pause;
}

/// One recording a device, in their order; each is a rank.
class RecordingMaker {
 public:
  RecordingMaker(const Outcome& outcome, const RecordingStyle& style)
      : graph_(outcome.graph), trace_(outcome.trace), style_(style) {
    period_ = made_period(outcome, style);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      RankRecording recording;
      recording.file = fmt::format("rank{}.json", slot);
      recording.rank = slot;
      recording.rank_known = true;
      recording.clock = style.clock;
      recording.events = 1;
      recording.has_peers = graph_.slots() > 1;
      recordings_.push_back(std::move(recording));
    }
  }

  std::vector<RankRecording> make() {
    for (std::int64_t k = 0; k < style_.iterations; ++k) add_iteration(k);
    for (RankRecording& recording : recordings_) {
      const auto sort = [](auto& list, auto begin) {
        std::stable_sort(list.begin(), list.end(),
                         [&](const auto& a, const auto& b) { return begin(a) < begin(b); });
      };
      sort(recording.ops, [](const RecordedOp& op) { return op.issued; });
      sort(recording.transfers, [](const RecordedTransfer& t) { return t.span.begin; });
      sort(recording.updates, [](const RecordedUpdate& update) { return update.issued; });
    }
    return std::move(recordings_);
  }

 private:
  /// A time of a rank's own clock.
  SimTime shown(std::uint32_t rank, std::int64_t iteration, SimTime at) const {
    constexpr Duration origin{1'700'000'000'000'000'000};
    const Duration since = at.time_since_epoch() + iteration * period_;
    Duration ahead = rank < style_.ahead.size() ? style_.ahead[rank] : Duration{};
    if (rank < style_.ppm.size())
      ahead += Duration{std::llround(static_cast<double>(since.count()) * style_.ppm[rank] / 1e6)};
    if (style_.jump) ahead += style_.jump(rank, iteration);
    return SimTime{origin + since + ahead};
  }
  RecordedSpan shown(std::uint32_t rank, std::int64_t iteration, SimTime begin, SimTime end) const {
    return {shown(rank, iteration, begin), shown(rank, iteration, end)};
  }

  void add_iteration(std::int64_t k) {
    std::vector<std::optional<SimTime>> first(graph_.slots());
    std::vector<SimTime> free(graph_.slots());
    std::map<Op, SimTime> before;  // when the op before an op ended on its device
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const Activity& activity = graph_.activities[node];
      const Span& span = trace_.spans[node];
      const std::uint32_t slot = graph_.nodes[node].resource;
      if (is_op(activity.kind)) {
        const Op op{static_cast<OpKind>(activity.kind), activity.stage, activity.micro_batch};
        const SimTime end = span.end - (style_.earlier ? style_.earlier(k, op) : Duration{});
        REQUIRE(end >= span.begin);
        add_op(k, slot, op, span.begin, end);
        if (!first[slot]) first[slot] = span.begin;
        before[op] = std::exchange(free[slot], end);
      } else if (activity.kind == ActivityKind::update && style_.has_updates) {
        const RecordedSpan work = shown(slot, k, span.begin, span.end);
        recordings_[slot].updates.push_back({work, work.begin, 0});
      }
    }
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const Activity& activity = graph_.activities[node];
      if (!is_transfer(activity.kind) || !graph_.holds_channel(node)) continue;
      for (const OpKind kind : {OpKind::forward, OpKind::backward, OpKind::backward_input}) {
        const bool is_forward = activity.kind == ActivityKind::activation_transfer;
        const auto fed = before.find({kind, activity.stage, activity.micro_batch});
        if (is_forward == (kind == OpKind::forward) && fed != before.end())
          add_transfer(k, node, fed->second);
      }
    }
    if (!style_.has_steps) return;
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot)
      recordings_[slot].steps.push_back(
          {style_.first_number + k, shown(slot, k, *first[slot], *first[slot] + period_)});
  }

  NamedOp named(const Op& op) const {
    NamedOp all{op.kind, op.stage.value, op.micro_batch.value};
    if (!style_.tells_stages) all.stage.reset();
    if (!style_.tells_micro_batches) all.micro_batch.reset();
    return all;
  }

  void add_op(std::int64_t k, std::uint32_t slot, const Op& op, SimTime begin, SimTime end) {
    const RecordedSpan work = shown(slot, k, begin, end);
    recordings_[slot].ops.push_back({.op = named(op),
                                     .partner = std::nullopt,
                                     .work = work,
                                     .busy = work.length(),
                                     .issued = work.begin,
                                     .device = 0});
  }

  /// The send lasts as long as the transfer, and the receive from the op before the one that needs
  /// it, if that is earlier. Gloo's is posted behind that op, also where the data has been there.
  void add_transfer(std::int64_t k, std::uint32_t node, SimTime before) {
    if (style_.transfers == RecordingStyle::Transfers::none) return;
    const Activity& activity = graph_.activities[node];
    const bool is_forward = activity.kind == ActivityKind::activation_transfer;
    const auto [begin, end, by] = trace_.spans[node];
    const Channel& channel = graph_.channel(node);
    RecordedTransfer sent, received;
    sent.sends = true;
    sent.bytes = received.bytes = style_.bytes;
    sent.span = shown(channel.from_slot, k, begin, end);
    const bool is_posted_late = style_.transfers == RecordingStyle::Transfers::received;
    received.span = is_posted_late ? shown(channel.to_slot, k, before, std::max(before, end))
                                   : shown(channel.to_slot, k, std::min(before, begin), end);
    sent.is_whole = received.is_whole = style_.transfers != RecordingStyle::Transfers::named;
    if (style_.transfers == RecordingStyle::Transfers::by_peer) {
      sent.peer = channel.to_slot;
      received.peer = channel.from_slot;
    } else if (style_.transfers == RecordingStyle::Transfers::named) {
      const OpKind kind = is_forward ? OpKind::forward : OpKind::backward;
      const std::uint32_t maker = activity.stage.value + (is_forward ? -1 : 1);
      sent.op = NamedOp{kind, maker, activity.micro_batch.value};
      received.op = NamedOp{kind, activity.stage.value, activity.micro_batch.value};
    }
    if (style_.transfers != RecordingStyle::Transfers::received)
      recordings_[channel.from_slot].transfers.push_back(sent);
    recordings_[channel.to_slot].transfers.push_back(received);
  }

  const OpGraph& graph_;
  const Trace& trace_;
  const RecordingStyle& style_;
  Duration period_{};
  std::vector<RankRecording> recordings_;
};

inline std::vector<RankRecording> recordings_of(const Outcome& outcome,
                                                const RecordingStyle& style = {}) {
  return RecordingMaker(outcome, style).make();
}
inline std::vector<RankRecording> recordings_of(const MadeTraining& made,
                                                const RecordingStyle& style = {}) {
  return recordings_of(prediction_of(made), style);
}

inline RecordedRun run_of(const std::vector<RankRecording>& recordings,
                          const AssemblyOptions& options = {}) {
  auto run = assemble(recordings, options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  return *std::move(run);
}
inline RecordedRun run_of(const MadeTraining& made, const RecordingStyle& style = {}) {
  return run_of(recordings_of(made, style));
}

/// Trainings of all schedules that a scenario of a recorded run may name, and one that none has.
inline std::vector<MadeTraining> made_trainings() {
  std::vector<MadeTraining> all;
  for (const char* name : {"gpipe", "1f1b", "naive", "eager-1f1b", "zb-h1", "zb-h2"})
    all.push_back({.schedule = name, .devices = 3, .micro_batches = 6});
  for (const char* name : {"interleaved-1f1b", "interleaved-zb", "looped-bfs", "zb-v"})
    all.push_back({.schedule = name, .devices = 2, .chunks = 2, .micro_batches = 6});
  return all;
}

/// Whether one of the notes has this text.
inline bool notes_hold(const std::vector<std::string>& notes, std::string_view text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace plumbline::test
