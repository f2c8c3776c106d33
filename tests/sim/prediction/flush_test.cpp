// training.flush: none. The period against mini-batches that are glued together, and what follows.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "sim/engine/period.h"
#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/prediction/predict_resolved.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

Result<Outcome> predicted(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(text_source("flush.yaml", text), overrides);
  if (!scenario) return scenario.problems();
  return predict_resolved(*scenario);
}

Outcome outcome_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto outcome = predicted(text, overrides);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

Duration period_of(const Outcome& outcome) {
  REQUIRE(outcome.metrics.period);
  return *outcome.metrics.period;
}

/// A time for which one mini-batch has something.
struct Hold {
  std::int64_t begin;
  std::int64_t end;
};

/// The holds of one mini-batch: each device as a whole, from its first op until its update and the
/// gathers of its weights are over; each link and each half of a card hold by hold.
std::map<std::string, std::vector<Hold>> holds_of(const OpGraph& graph, const Trace& trace) {
  std::map<std::string, std::vector<Hold>> holds;
  const auto at = [&](std::uint32_t node) {
    return Hold{trace.spans[node].begin.time_since_epoch().count(),
                trace.spans[node].end.time_since_epoch().count()};
  };
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    Hold all{INT64_MAX, 0};
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const Node& n = graph.nodes[node];
      const auto& slots = graph.stage_slots[graph.activities[node].stage.value];
      const bool ends_collective = graph.activities[node].kind == ActivityKind::collective_end &&
                                   std::find(slots.begin(), slots.end(), slot) != slots.end();
      const bool own = n.resource == slot || n.peer_resource == slot;
      if (own) all.begin = std::min(all.begin, at(node).begin);
      if (own || ends_collective) all.end = std::max(all.end, at(node).end);
    }
    holds[fmt::format("device {}", slot)].push_back(all);
  }
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (!graph.holds_channel(node)) continue;
    Hold hold = at(node);
    hold.end -= graph.cost(node).latency.count();
    if (hold.end <= hold.begin) continue;
    holds[fmt::format("link {}", graph.nodes[node].resource)].push_back(hold);
    const Path& path = graph.channel(node).path;
    for (const auto& card : {path.out, path.in}) {
      if (card) {
        holds[fmt::format("card {} {} {}", card->level, card->group, card->outgoing)].push_back(
            hold);
      }
    }
  }
  return holds;
}

/// Whether mini-batches that begin `period` apart have anything at the same time.
bool clash(const std::map<std::string, std::vector<Hold>>& holds, std::int64_t period) {
  constexpr int copies = 6;
  for (const auto& [name, all] : holds) {
    for (int later = 1; later < copies; ++later) {
      for (const Hold& a : all) {
        for (const Hold& b : all) {
          if (b.begin + later * period < a.end && a.begin < b.end + later * period) return true;
        }
      }
    }
  }
  return false;
}

std::string random_text(Dice& dice) {
  const std::string schedules[] = {"gpipe", "1f1b", "eager-1f1b", "naive",           "zb-h1",
                                   "zb-h2", "zb-v", "chimera",    "interleaved-1f1b"};
  const std::string schedule = schedules[dice.roll(0, 8)];
  const std::int64_t devices = schedule == "chimera" ? 4 : dice.roll(2, 5);
  const std::int64_t copies = dice.roll(1, 2);
  const bool chunks = schedule == "zb-v" || schedule == "interleaved-1f1b";
  const std::int64_t stages = devices * (chunks ? 2 : 1);
  std::string text = "version: 1\nmodel:\n  layers:\n";
  for (std::int64_t i = 0; i < stages; ++i) {
    text += fmt::format(
        "    - {{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, update: "
        "{} us, output: {} kB, parameters: {} MB}}\n",
        i, dice.roll(1, 40), dice.roll(1, 40), dice.roll(1, 40), dice.roll(0, 60),
        dice.roll(0, 900), dice.roll(0, 1));
  }
  const std::string links[] = {
      "cluster: {{devices: {}, link: {{bandwidth: 20 GB/s, latency: 3 us}}}}\n",
      "cluster: {{devices: {}}}\n"};
  const std::int64_t all = devices * copies;
  text += all % 2 == 0 && dice.roll(0, 1) == 0
              ? fmt::format(
                    "cluster: {{levels: [{{name: server, size: {}, bandwidth: 50 GB/s}}, {{name: "
                    "rack, size: 2, bandwidth: 20 GB/s, latency: 5 us}}]}}\n",
                    all / 2)
              : fmt::format(fmt::runtime(links[dice.roll(0, 1)]), all);
  text += fmt::format("plan: {{stages: {}, data_parallel: {}}}\n", stages, copies);
  text +=
      fmt::format("schedule: {{name: {}, micro_batches: {}{}}}\n", schedule,
                  devices * dice.roll(1, 3), dice.roll(0, 3) == 0 ? ", transfers: blocking" : "");
  text += fmt::format("training: {{optimizer_state: 2, zero_stage: {}, flush: none}}\n",
                      schedule == "chimera" ? 0 : dice.roll(0, 2));
  text += fmt::format("overhead: {{per_iteration: {} us}}\n", dice.roll(0, 1) * 7);
  return text;
}

TEST_CASE("mini-batches a period apart share nothing, and a nanosecond less is too short") {
  int runs = 0;
  int gains = 0;
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    const std::string text = random_text(dice);
    CAPTURE(text);
    const auto outcome = predicted(text);
    if (!outcome) continue;
    ++runs;
    const auto holds = holds_of(outcome->graph, outcome->trace);
    const std::int64_t period = period_of(*outcome).count();
    const std::int64_t overhead = outcome->setup.rules.overheads.per_iteration.count();
    CHECK_FALSE(clash(holds, period));
    std::int64_t longest = 0;
    for (const auto& [name, all] : holds) {
      if (name.starts_with("device"))
        longest = std::max(longest, all.front().end - all.front().begin);
    }
    if (period == longest + overhead) {
      if (overhead == 0) CHECK(clash(holds, period - 1));
    } else {  // transfers of two mini-batches were in each other's way
      ++moved;
      CHECK(period > longest + overhead);
      CHECK(clash(holds, period - 1));
    }
    gains += *outcome->metrics.period < outcome->metrics.makespan ? 1 : 0;
    CHECK(outcome->iteration_time_s == close_to(static_cast<double>(period) / 1e9));
    CHECK(period <= outcome->metrics.makespan.count());
    for (const DeviceMetrics& device : outcome->metrics.devices) {
      CHECK(device.busy + device.idle == *outcome->metrics.period);
      CHECK(device.idle == device.idle_by_cause.sum());
      CHECK(device.idle_by_cause.overhead.count() == overhead);
    }
  }
  CHECK(runs > 90);
  CHECK(gains > 20);
  MESSAGE(runs << " runs, " << gains << " faster than their makespan, " << moved
               << " longer than the longest span");
}

const std::string kFour =
    "version: 1\n"
    "model: {uniform: {layers: 4, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}}\n"
    "cluster: {devices: 4}\n"
    "schedule: {name: zb-h2, micro_batches: 8}\n";

TEST_CASE("zb-h2 loses its bubble without a flush, and the schedules that keep device 0 do not") {
  const auto ms = [](const std::string& schedule, const std::string& flush) {
    return 1e3 * outcome_of(kFour, {"schedule.name=" + schedule, "training.flush=" + flush})
                     .iteration_time_s;
  };
  CHECK(ms("zb-h2", "all") == close_to(27));
  CHECK(ms("zb-h2", "none") == close_to(24));
  CHECK(ms("1f1b", "all") == close_to(33));
  CHECK(ms("1f1b", "none") == close_to(33));
  CHECK(ms("gpipe", "none") == close_to(33));
  CHECK(ms("zb-h1", "none") == close_to(27));
  const Outcome none = outcome_of(kFour, {"training.flush=none"});
  CHECK(none.metrics.bubble_fraction() == 0);
  CHECK(none.metrics.makespan.count() == 27'000'000);  // the timeline is that of one mini-batch
  CHECK(none.memory.front().peak.sum() == outcome_of(kFour).memory.front().peak.sum());
}

TEST_CASE("without a flush an update stands behind its device's own work") {
  const std::string updates =
      "model.uniform={layers: 4, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, "
      "update: 2 ms}";
  CHECK(1e3 * outcome_of(kFour, {updates}).iteration_time_s == close_to(29));
  const Outcome none = outcome_of(kFour, {updates, "training.flush=none"});
  CHECK(1e3 * none.iteration_time_s == close_to(26));
  for (const DeviceMetrics& device : none.metrics.devices) {
    CHECK(device.idle.count() == 0);
    CHECK(device.span.count() == 26'000'000);
  }
  const Outcome slow =
      outcome_of(kFour, {updates, "training.flush=none", "overhead.per_iteration=5 ms"});
  CHECK(1e3 * slow.iteration_time_s == close_to(31));
  CHECK(slow.metrics.devices.front().idle_by_cause.overhead.count() == 5'000'000);
}

TEST_CASE("transfers of two mini-batches that would meet on a card make the period longer") {
  // The copies of stage 1 stand in both servers. Their ring ends with their span, just when the
  // first activation of the next mini-batch comes over the same card.
  const Outcome outcome = outcome_of(
      "version: 1\n"
      "model:\n"
      "  layers:\n"
      "    - {name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 10 MB}\n"
      "    - {name: b, forward: 1 ms, backward_input: 1 ms, backward_weight: 2 ms, output: 10 MB, "
      "parameters: 40 MB}\n"
      "    - {name: c, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
      "cluster: {levels: [{name: server, size: 3, bandwidth: 20 GB/s}, {name: rack, size: 2, "
      "bandwidth: 20 GB/s}]}\n"
      "plan: {data_parallel: 2}\n"
      "schedule: {name: zb-h2, micro_batches: 6}\n"
      "training: {flush: none}\n");
  const auto holds = holds_of(outcome.graph, outcome.trace);
  const std::int64_t period = period_of(outcome).count();
  CHECK(period > longest(device_spans(outcome.graph, outcome.trace)).length().count());
  CHECK_FALSE(clash(holds, period));
  CHECK(clash(holds, period - 1));
  CHECK(outcome.setup.notes.back().starts_with("the period is longer than the "));
}

TEST_CASE("training.flush: all is what a scenario without the key does") {
  for (const char* schedule : {"1f1b", "zb-h2", "chimera", "data-parallel"}) {
    CAPTURE(schedule);
    const std::string name = std::string("schedule.name=") + schedule;
    const Outcome before = outcome_of(kFour, {name});
    const Outcome all = outcome_of(kFour, {name, "training.flush=all"});
    CHECK(all.trace.spans == before.trace.spans);
    CHECK(all.iteration_time_s == before.iteration_time_s);
    CHECK_FALSE(all.metrics.period);
    CHECK(all.setup.notes == before.setup.notes);
  }
}

TEST_CASE("copies that reduce their gradients wait for each other, and for no other stage") {
  const std::string text =
      "version: 1\n"
      "model: {uniform: {layers: 4, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, "
      "parameters: 40 MB, update: 1 ms}}\n"
      "cluster: {devices: 8, link: {bandwidth: 20 GB/s}}\n"
      "plan: {data_parallel: 2}\n"
      "schedule: {name: zb-h2, micro_batches: 8}\n"
      "training: {flush: none}\n";
  // 24 ms of work, 2 ms around the ring, 1 ms of update.
  const Outcome whole = outcome_of(text);
  CHECK(1e3 * whole.iteration_time_s == close_to(27));
  CHECK(whole.metrics.devices.front().idle_by_cause.all_reduce.count() == 2'000'000);
  // The reduce-scatter, half an update, the gather.
  const Outcome shared = outcome_of(text, {"training.zero_stage=1"});
  CHECK(1e3 * shared.iteration_time_s == close_to(24 + 1 + 0.5 + 1));
  CHECK(shared.metrics.devices.front().idle_by_cause.all_reduce.count() == 2'000'000);
  CHECK(predict_resolved(*parse_scenario(text_source("flush.yaml", text), {}), Evaluation::fastest)
            ->iteration_time_s == whole.iteration_time_s);
}

TEST_CASE("with noise the sampled times are periods") {
  const Outcome outcome =
      outcome_of(kFour + "noise: {spread: 0, samples: 5}\n", {"training.flush=none"});
  REQUIRE(outcome.uncertainty);
  for (const double time : outcome.uncertainty->iteration_times_s)
    CHECK(time == outcome.iteration_time_s);
  const Outcome noisy =
      outcome_of(kFour + "noise: {spread: 0.1, samples: 50}\n", {"training.flush=none"});
  CHECK(noisy.uncertainty->iteration_time_s(0.5) > noisy.iteration_time_s);
  CHECK(noisy.uncertainty->iteration_time_s(0.5) < 1.3 * noisy.iteration_time_s);
}

TEST_CASE("several mini-batches are one without a flush, which a note says") {
  const Outcome outcome = outcome_of(kFour, {"training.flush=none", "schedule.mini_batches=3"});
  CHECK(1e3 * outcome.iteration_time_s == close_to(24));
  CHECK(outcome.setup.mini_batches == 1);
  const auto& notes = outcome.setup.notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("schedule.mini_batches is left out");
  }));
}

}  // namespace
}  // namespace plumbline::test
