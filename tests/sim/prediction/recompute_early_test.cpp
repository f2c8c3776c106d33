// schedule.recompute_early: a run against a slow model of its own, and the closed forms.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/prediction/predict_resolved.h"
#include "tests/support/close_to.h"
#include "tests/support/outcome_of.h"
#include "tests/support/rules.h"
#include "tests/support/scenario_of.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

std::string refusal_of(const std::string& schedule, const std::string& more = "") {
  const auto outcome = predict_resolved(
      scenario_of("version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward_input: 1 ms, "
                  "backward_weight: 1 ms, output: 1 MiB}}\ncluster: {devices: 4}\nschedule: {" +
                  schedule + ", recompute_early: true}\n" + more));
  return outcome ? "" : to_text(outcome.problems());
}

/// A pipeline of a synchronous schedule whose stages take these microseconds, on links of a latency
/// alone.
struct Early {
  std::string schedule = "1f1b";
  std::int64_t micro_batches = 4;
  std::int64_t latency = 0;
  std::int64_t devices = 3;
  std::int64_t chunks = 1;
  std::vector<std::int64_t> forward{};
  std::vector<std::int64_t> backward{};
  std::vector<std::int64_t> activation{};  ///< kB
  std::int64_t output = 0;                 ///< kB
  std::string more{};                      ///< Of the schedule.
};

std::string text_of(const Early& e) {
  std::string layers;
  for (std::size_t i = 0; i < e.forward.size(); ++i) {
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward: {} us, activation: {} kB, output: {} kB}}",
        i == 0 ? "" : ", ", i, e.forward[i], e.backward[i], e.activation[i], e.output);
  }
  return fmt::format(
      "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, link: {{latency: {} us}}}}\n"
      "plan: {{stages: {}}}\nschedule: {{name: {}, micro_batches: {}{}, recompute: full, "
      "recompute_early: true{}}}\n",
      layers, e.devices, e.latency, e.devices * e.chunks, e.schedule, e.micro_batches,
      e.chunks > 1 ? fmt::format(", chunks: {}", e.chunks) : "", e.more);
}

Early random_pipeline(std::uint64_t seed, bool equal) {
  struct Shape {
    const char* schedule;
    std::int64_t chunks;
  };
  static const Shape shapes[] = {{"1f1b", 1},
                                 {"gpipe", 1},
                                 {"naive", 1},
                                 {"eager-1f1b", 1},
                                 {"delayed-backward", 1},
                                 {"interleaved-1f1b", 2},
                                 {"looped-bfs", 3}};
  Dice dice(seed);
  const Shape& shape = shapes[seed % (equal ? 4 : std::size(shapes))];
  Early e;
  e.schedule = shape.schedule;
  e.devices = dice.roll(shape.chunks > 1 ? 2 : 1, 5);
  e.chunks = shape.chunks;
  e.micro_batches = shape.chunks > 1 ? e.devices * dice.roll(1, 3) : dice.roll(1, 3 * e.devices);
  e.latency = equal ? 0 : dice.roll(0, 1) * dice.roll(0, 20);
  e.output = dice.roll(0, 3);
  const std::int64_t f = dice.roll(0, 30), b = dice.roll(0, 30);
  for (std::int64_t i = 0; i < e.devices * e.chunks; ++i) {
    e.forward.push_back(equal ? f : dice.roll(0, 30));
    e.backward.push_back(equal ? b : dice.roll(0, 30));
    e.activation.push_back(dice.roll(1, 30));
  }
  return e;
}

/// The makespan, in microseconds, of the schedule's lists. Each device does the next op of its list
/// as soon as it can. For a B it first does the F again, which waits for nothing.
std::int64_t slow_makespan(const Early& e, const OpLists& lists) {
  std::map<std::tuple<OpKind, std::uint32_t, std::uint32_t>, std::int64_t> ends;
  std::vector<std::size_t> next(lists.size(), 0);
  std::vector<std::int64_t> free_at(lists.size(), 0);
  const std::uint32_t last = static_cast<std::uint32_t>(e.forward.size()) - 1;
  const auto device_of = [&](std::uint32_t stage) {
    for (std::size_t d = 0; d < lists.size(); ++d) {
      for (const Op& op : lists[d]) {
        if (op.stage.value == stage) return d;
      }
    }
    return lists.size();
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < lists.size(); ++d) {
      if (next[d] == lists[d].size()) continue;
      const Op& op = lists[d][next[d]];
      const std::uint32_t s = op.stage.value;
      const bool is_forward = op.kind == OpKind::forward;
      std::int64_t ready = 0;
      if (is_forward ? s > 0 : s < last) {
        const std::uint32_t from = is_forward ? s - 1 : s + 1;
        const auto found = ends.find({op.kind, from, op.micro_batch.value});
        if (found == ends.end()) continue;
        ready = found->second + (device_of(from) == d ? 0 : e.latency);
      }
      const std::int64_t again = is_forward ? 0 : e.forward[s];
      const std::int64_t begin = std::max(free_at[d] + again, ready);
      free_at[d] = begin + (is_forward ? e.forward[s] : e.backward[s]);
      ends[{op.kind, s, op.micro_batch.value}] = free_at[d];
      ++next[d];
      moved = true;
    }
  }
  for (std::size_t d = 0; d < lists.size(); ++d) REQUIRE(next[d] == lists[d].size());
  return *std::max_element(free_at.begin(), free_at.end());
}

}  // namespace

TEST_CASE("three stages that make everything again take 22 ms, and 24 ms if they wait for it") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 3, forward: 1 ms, backward: 2 ms, output: 1 MiB, "
      "activation: 8 MiB}}\ncluster: {devices: 3}\nschedule: {name: 1f1b, micro_batches: 4, "
      "recompute: full";
  CHECK(outcome_of(text + "}\n").metrics.makespan == std::chrono::milliseconds(24));
  CHECK(outcome_of(text + ", recompute_early: false}\n").metrics.makespan ==
        std::chrono::milliseconds(24));
  const Outcome early = outcome_of(text + ", recompute_early: true}\n");
  CHECK(early.metrics.makespan == std::chrono::milliseconds(22));
  CHECK(early.metrics.devices[0].busy == std::chrono::milliseconds(16));
  REQUIRE(early.formula);
  CHECK(early.formula->makespan == std::chrono::milliseconds(22));
}

TEST_CASE("a run whose forwards again are early equals a slow model, and no run is later for it") {
  std::int64_t faster = 0;
  for (std::uint64_t seed = 1; seed <= trials(1000); ++seed) {
    const Early e = random_pipeline(seed, false);
    const std::string text = text_of(e);
    CAPTURE(text);
    const Outcome early = outcome_of(text);
    CHECK(early.metrics.makespan ==
          std::chrono::microseconds(slow_makespan(e, early.setup.schedule.lists())));
    Early late = e;
    late.more = ", recompute_early: false";
    std::string late_text = text_of(late);
    late_text.replace(late_text.find(", recompute_early: true"), 23, "");
    const Outcome waits = outcome_of(late_text);
    CHECK(early.metrics.makespan <= waits.metrics.makespan);
    faster += early.metrics.makespan < waits.metrics.makespan ? 1 : 0;
    for (std::size_t d = 0; d < early.metrics.devices.size(); ++d) {
      CHECK(early.metrics.devices[d].busy == waits.metrics.devices[d].busy);
      // What it makes again is there while its gradient is on its way, of one B at a time.
      CHECK(early.memory[d].peak_in_flight <= waits.memory[d].peak_in_flight + 1);
    }
  }
  CHECK(faster > static_cast<std::int64_t>(trials(1000) / 2));
}

TEST_CASE("closed forms with early forwards again hold where they are claimed") {
  std::uint64_t answered = 0;
  for (std::uint64_t seed = 1; seed <= trials(1000); ++seed) {
    const Early e = random_pipeline(seed, true);
    const std::string text = text_of(e);
    CAPTURE(text);
    const Outcome outcome = outcome_of(text);
    if (!outcome.formula) continue;
    ++answered;
    CHECK(outcome.formula->makespan == outcome.metrics.makespan);
    CHECK(outcome.formula->bubble_fraction == close_to(outcome.metrics.bubble_fraction(), 1e-12));
    CHECK(outcome.formula->bubble_overhead == close_to(outcome.metrics.bubble_overhead(), 1e-12));
  }
  CHECK(answered > trials(900));
}

TEST_CASE("the activations are there from the forward again on") {
  Early e;
  e.devices = 2;
  e.schedule = "gpipe";
  e.micro_batches = 2;
  e.forward = {10, 50};
  e.backward = {10, 10};
  e.activation = {7, 1};
  const Outcome outcome = outcome_of(text_of(e));
  // Device 0: F0 to 10 us, F1 to 20 us, B1 again to 30 us, and its gradient at 180 us.
  Bytes at_peak{};
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (outcome.graph.activities[node].kind != ActivityKind::backward_part) continue;
    if (outcome.graph.activities[node].stage.value != 0) continue;
    CHECK(outcome.trace.spans[node].begin.time_since_epoch() == std::chrono::microseconds(20));
    at_peak = outcome.memory[0].peak.activations;
    break;
  }
  CHECK(at_peak == Bytes{7'000});
}

TEST_CASE("with buckets the forward again is a part in front of the others") {
  Early e;
  e.devices = 4;
  e.forward = {10, 10, 10, 10};
  e.backward = {20, 20, 20, 20};
  e.activation = {7, 7, 7, 7};
  const std::string whole = text_of(e);
  e.more = ", bucket: 1 kB";
  std::string text = text_of(e);
  text.replace(text.find("stages: 4"), 9, "stages: 2, data_parallel: 2");
  std::string two = whole;
  two.replace(two.find("stages: 4"), 9, "stages: 2, data_parallel: 2");
  CHECK(outcome_of(text).metrics.makespan == outcome_of(two).metrics.makespan);
  for (std::string& one : std::vector<std::string>{text, two}) {
    for (std::size_t at = 0; (at = one.find("output: 0 kB", at)) != std::string::npos; ++at)
      one.replace(at, 12, "output: 0 kB, parameters: 9 kB");
    const Outcome outcome = outcome_of(one);
    std::map<std::pair<std::uint32_t, std::uint32_t>, Duration> sums;
    for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
      const Activity& activity = outcome.graph.activities[node];
      if (op_of(activity.kind) == ActivityKind::backward)
        sums[{outcome.graph.nodes[node].resource, activity.micro_batch.value}] +=
            outcome.graph.cost(node).hold;
    }
    CHECK(sums.size() == 4 * 4);
    for (const auto& [of, sum] : sums)
      CHECK(sum == std::chrono::microseconds(60));  // of two layers
  }
}

TEST_CASE("what cannot run its forwards again early is refused, with the reason") {
  CHECK(refusal_of("name: 1f1b, micro_batches: 4, recompute: full").empty());
  CHECK(refusal_of("name: zb-h1, micro_batches: 4, recompute: full")
            .find("recompute_early is true, but the schedule splits backwards into I and W") !=
        std::string::npos);
  CHECK(refusal_of("name: 1f1b, micro_batches: 4, recompute: full, transfers: blocking")
            .find("recompute_early is true, and schedule.transfers is blocking") !=
        std::string::npos);
  CHECK(refusal_of("name: pipedream, micro_batches: 4, recompute: full")
            .find("recompute_early is true, but the schedule updates after every backward") !=
        std::string::npos);
  CHECK(refusal_of("name: 1f1b, micro_batches: 4, recompute: full, pairs: overlapped")
            .find("recompute_early is true, and schedule.pairs is overlapped") !=
        std::string::npos);
  const Outcome none = outcome_of(
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 2}\nschedule: {name: zb-h1, micro_batches: 4, recompute_early: true}\n");
  const auto& notes = none.setup.notes;
  CHECK(std::find(notes.begin(), notes.end(),
                  "schedule.recompute_early changes nothing: schedule.recompute is none, not "
                  "full") != notes.end());
}

}  // namespace plumbline::test
