// Published orders of devices with several stages and of split backwards: complete, without
// deadlock, as others wrote them down, and as long as their closed forms say.
//
// SPDX-License-Identifier: MIT
#include "schedules/generators/chunk_orders.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedules/files/schedule_file.h"
#include "schedules/order/check.h"
#include "schedules/order/replay.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/close_to.h"
#include "tests/support/rules.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// Shapes that the rule takes.
std::vector<ChunkShape> shapes_of(const ChunkRule& rule) {
  std::vector<ChunkShape> shapes;
  for (std::uint32_t p = 1; p <= 6; ++p) {
    for (std::uint32_t v = rule.min_chunks; v <= std::min(rule.max_chunks, 4U); ++v) {
      for (std::uint32_t m = 1; m <= 14; ++m) {
        const ChunkShape shape{p, v, m};
        if (m % replicas_in(rule.placement) == 0 && !rule.refuse(shape, {}, {}))
          shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

PipelineShape pipeline_of(const ChunkRule& rule, const ChunkShape& chunks) {
  Partition partition;
  const auto placed = placed_stages(rule.placement, chunks);
  for (std::uint32_t s = 0; s < chunks.stages(); ++s) {
    partition.stages.push_back({{LayerId{s}}, {}});
    for (const std::uint32_t device : placed[s])
      partition.stages.back().devices.push_back(DeviceId{device});
  }
  return pipeline_shape(partition, chunks.micro_batches);
}

TEST_CASE("every order with chunks runs, and is read back from a file as it is") {
  for (const ScheduleRule& rule : chunk_rules()) {
    const auto shapes = shapes_of(*rule.chunks);
    CHECK(shapes.size() > 10);
    for (const ChunkShape& shape : shapes) {
      CAPTURE(rule.name);
      CAPTURE(shape.devices);
      CAPTURE(shape.chunks);
      CAPTURE(shape.micro_batches);
      const OpLists lists = rule.chunks->lists(shape);
      REQUIRE(lists.size() == shape.devices);
      const auto schedule = checked_schedule(std::string(rule.name), false,
                                             pipeline_of(*rule.chunks, shape), lists, Mark{});
      REQUIRE_MESSAGE(schedule, (schedule ? "" : to_text(schedule.problems())));
      CHECK(schedule->lists() == lists);
      const auto file = parse_schedule_file(text_source("order.csv", torch_csv(*schedule)));
      REQUIRE_MESSAGE(file, (file ? "" : to_text(file.problems())));
      CHECK(file->lists == lists);
    }
  }
}

TEST_CASE("orders by name are those of the examples' files") {
  for (const auto& example : std::map<std::string, ChunkShape>{
           {"zb-h1", {4, 1, 8}}, {"zb-h2", {4, 1, 8}}, {"interleaved", {4, 2, 8}}}) {
    const auto& [name, shape] = example;
    CAPTURE(example.first);
    const auto file = read_schedule_file("examples/orders/" + name + ".csv");
    REQUIRE(file);
    const ScheduleRule* const rule =
        find_schedule_rule(name == "interleaved" ? "interleaved-1f1b" : name);
    CHECK(rule->chunks->lists(shape) == file->lists);
  }
}

/// How long these lists take where every op is one step.
std::uint32_t steps(const ChunkRule& rule, const ChunkShape& shape, const OpLists& lists) {
  const Replay replayed = replay(pipeline_of(rule, shape), lists);
  CHECK(replayed.complete);
  std::uint32_t last = 0;
  for (const auto& starts : replayed.start) last = std::max(last, starts.back());
  return last + 1;
}

TEST_CASE(
    "split backwards fill the pipeline, ZB-H1 with a plan, ZB-H2 with room for a greedy rule") {
  const ChunkRule& rule = *find_schedule_rule("zb-h1")->chunks;
  for (const std::uint32_t p : {1U, 2U, 3U, 5U, 8U, 16U, 33U}) {
    for (const std::uint32_t m : {p, 2 * p - 1, 2 * p, 3 * p + 1, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const ChunkShape shape{p, 1, m};
      CHECK(steps(rule, shape, interleaved_zero_bubble(shape)) == 3 * m + p - 1);
      if (m >= 2 * p - 1) CHECK(steps(rule, shape, zero_bubble_h2(shape)) == 3 * m + p - 1);
      // The greedy rule needs that room: with ZB-H1's it is no faster than ZB-H1.
      CHECK(steps(rule, shape, greedy_zero_bubble(shape, p)) >= 3 * m + p - 1);
    }
  }
}

/// The most micro-batches of a device that stand between F and B, or W where that is apart.
std::uint32_t max_held(const std::vector<Op>& list) {
  std::uint32_t held = 0;
  std::uint32_t max = 0;
  for (const Op& op : list) {
    if (op.kind == OpKind::forward) max = std::max(max, ++held);
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) --held;
  }
  return max;
}

TEST_CASE("orders with chunks hold as many micro-batches as was published") {
  const auto held = [](const char* name, std::uint32_t p, std::uint32_t v, std::uint32_t m) {
    const OpLists lists = find_schedule_rule(name)->chunks->lists({p, v, m});
    std::vector<std::uint32_t> max;
    max.reserve(lists.size());
    for (const auto& list : lists) max.push_back(max_held(list));
    return max;
  };
  using Counts = std::vector<std::uint32_t>;
  CHECK(held("interleaved-1f1b", 4, 2, 12) == Counts{11, 9, 7, 5});
  CHECK(held("looped-bfs", 3, 2, 5) == Counts{10, 10, 10});
  CHECK(held("interleaved-zb", 4, 3, 12) == Counts{12, 12, 12, 12});
  CHECK(held("interleaved-zb", 4, 2, 4) == Counts{8, 8, 8, 8});
  CHECK(held("zb-h1", 4, 1, 12) == Counts{4, 4, 4, 4});
  CHECK(held("zb-h2", 4, 1, 12) == Counts{7, 7, 7, 7});
  CHECK(held("zb-v", 4, 2, 12) == Counts{8, 8, 8, 8});
  for (const std::uint32_t max : held("dualpipev", 4, 2, 12)) CHECK(max <= 9);
  for (const std::uint32_t max : held("dualpipe", 8, 1, 24)) CHECK(max <= 9);
  CHECK(held("chimera", 8, 1, 8) == Counts{5, 6, 7, 8, 8, 7, 6, 5});
  CHECK(held("chimera", 4, 1, 12) == Counts{4, 4, 4, 4});
}

TEST_CASE("blocks are as long as was found, with the memory that was published") {
  const auto max_of = [](const OpLists& lists) {
    std::uint32_t max = 0;
    for (const auto& list : lists) max = std::max(max, max_held(list));
    return max;
  };
  const ChunkRule& half = *find_schedule_rule("v-half")->chunks;
  const ChunkRule& min = *find_schedule_rule("v-min")->chunks;
  for (std::uint32_t p = 3; p <= 18; ++p) {
    for (const std::uint32_t m : {p, p + 1, 2 * p + 3}) {
      CAPTURE(p);
      CAPTURE(m);
      const ChunkShape shape{p, 2, m};
      const OpLists halves = half.lists(shape);
      CHECK(steps(half, shape, halves) == 6 * m + 3 * p - (p % 2 == 0 ? 7 : 4));
      CHECK(max_of(halves) == 2 * ((p + 2) / 2));
      const OpLists thirds = min.lists(shape);
      CHECK(steps(min, shape, thirds) == 6 * m + 4 * p - (p % 3 == 1 ? 5 : 7));
      CHECK(max_of(thirds) == 2 * ((p + 4) / 3));
    }
  }
}

TEST_CASE("schedules with chunks take what their closed forms say, where these hold") {
  struct Times {
    int forward, input, weight;
  };
  std::map<std::string, int> held;
  std::uint64_t seen = 0;
  for (const ScheduleRule& rule : chunk_rules()) {
    for (const ChunkShape& shape : shapes_of(*rule.chunks)) {
      if (kSanitized && ++seen % 4 != 0) continue;
      if (shape.micro_batches % 3 == 1 && shape.micro_batches > 4) continue;  // enough of them
      for (const Times& t : {Times{10, 20, 20},
                             {10, 10, 10},
                             {20, 20, 10},
                             {20, 30, 10},
                             {10, 20, 30},
                             {30, 20, 10},
                             {20, 10, 10}}) {
        const std::string text = fmt::format(
            "version: 1\nmodel: {{uniform: {{layers: {}, forward: {} us, backward_input: {} us, "
            "backward_weight: {} us}}}}\ncluster: {{devices: {}}}\n"
            "schedule: {{name: {}, chunks: {}, micro_batches: {}}}\n",
            shape.stages(), t.forward, t.input, t.weight, shape.devices, rule.name, shape.chunks,
            shape.micro_batches);
        CAPTURE(text);
        const auto scenario = parse_scenario(text_source("chunks.yaml", text), {});
        REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
        const auto prediction = predict(*scenario);
        REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
        if (!prediction->formula) continue;
        ++held[std::string(rule.name)];
        CHECK(prediction->metrics.makespan == prediction->formula->makespan);
        CHECK(prediction->metrics.bubble_fraction() ==
              close_to(prediction->formula->bubble_fraction));
      }
    }
  }
  for (const ScheduleRule& rule : chunk_rules()) {
    CAPTURE(rule.name);
    CHECK(held[std::string(rule.name)] > (kSanitized ? 2 : 10));
  }
}

TEST_CASE("zero-bubble schedules leave no gap on a device where their parts are equal") {
  for (const char* name : {"zb-h2", "zb-v"}) {
    const std::string text = fmt::format(
        "version: 1\nmodel: {{uniform: {{layers: 8, forward: 1 ms, backward_input: 1 ms, "
        "backward_weight: 1 ms}}}}\ncluster: {{devices: 4}}\n"
        "schedule: {{name: {}, micro_batches: 9}}\n",
        name);
    const auto prediction = predict(*parse_scenario(text_source("zero.yaml", text), {}));
    REQUIRE(prediction);
    for (const DeviceMetrics& device : prediction->metrics.devices)
      CHECK(device.span == device.busy);
  }
}

/// The error message for a scenario with these lines.
std::string problem_of(const std::string& rest) {
  const auto scenario = parse_scenario(
      text_source(
          "wrong.yaml",
          "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n" + rest),
      {});
  if (!scenario) return to_text(scenario.problems());
  const auto settled = resolve_plan(*scenario);
  if (!settled) return to_text(settled.problems());
  const auto prediction = predict(*settled);
  return prediction ? "" : to_text(prediction.problems());
}

TEST_CASE("what a schedule with chunks cannot have is told with what would do") {
  const auto says = [](const std::string& rest, const std::string& message) {
    const std::string text = problem_of(rest);
    CAPTURE(text);
    CHECK(text.find(message) != std::string::npos);
  };
  const std::string four = "cluster: {devices: 4}\n";
  says(four + "schedule: {name: interleaved-1f1b, micro_batches: 10, group: 12}\n",
       "4:62: error: schedule.group is 12, but there are 10 micro-batches");
  says(four + "schedule: {name: interleaved-1f1b, micro_batches: 12, group: 2}\n",
       "help: schedule.group: 4 or more, and with a last group of as many: without it 4 go round");
  says(four + "schedule: {name: looped-bfs, micro_batches: 12, group: 4}\n",
       "4:56: error: schedule.group does not apply to the schedule 'looped-bfs'");
  says(four + "schedule: {name: dualpipev, micro_batches: 6}\n",
       "schedule.micro_batches is 6, too few for 4 devices");
  says(four + "schedule: {name: chimera, micro_batches: 5}\n",
       "schedule.micro_batches is 5, which the 2 replicas of stage 0 do not divide evenly");
  says(four + "plan: {replicas: [1, 1, 1, 1]}\nschedule: {name: chimera, micro_batches: 4}\n",
       "plan.replicas differs from those of the schedule 'chimera'");
  says("cluster: {devices: 3}\nschedule: {name: chimera, micro_batches: 4}\n",
       "4:18: error: the schedule needs an even number of devices, not 3");
  says(four + "schedule: {name: interleaved-1f1b, micro_batches: 8, chunks: 1}\n",
       "schedule.chunks is 1, but the schedule 'interleaved-1f1b' has 2 or more stages");
  says(four + "schedule: {name: zb-h1, micro_batches: 8, chunks: 2}\n",
       "schedule.chunks is 2, but the schedule 'zb-h1' has 1 stage on each device");
  says(four + "schedule: {name: interleaved-1f1b, micro_batches: 8, chunks: 3}\n",
       "the number of stages is 12, but that of layers is 8");
  says(four + "plan: {stages: 7}\nschedule: {name: zb-v, micro_batches: 8}\n",
       "the number of stages is 7, which the 2 of each device do not divide");
  says(four + "plan: {replicas: [2, 1, 1, 1]}\nschedule: {name: zb-h1, micro_batches: 8}\n",
       "plan.replicas above 1 do not go with the schedule 'zb-h1'");
  says(four + "plan: {warm_up: [3, 2, 1, 0]}\nschedule: {name: zb-h1, micro_batches: 8}\n",
       "plan.warm_up does not apply to the schedule 'zb-h1'");
  says(four + "plan: {partition: pipedream}\nschedule: {name: zb-v, micro_batches: 8}\n",
       "a planned partition does not go with the schedule 'zb-v'");
  says(four +
           "plan: {devices: [0, 1, 2, 3, 0, 1, 2, 3]}\nschedule: {name: zb-v, micro_batches: 8}\n",
       "plan.devices differs from how the schedule 'zb-v' places stages");
}

/// Interleaved 1F1B as Megatron-LM's table of (micro-batch, chunk) gives it, written down anew: one
/// row a device, forwards by the table, backwards with the chunks turned round.
std::vector<std::string> megatron_rows(std::uint32_t p, std::uint32_t v, std::uint32_t m,
                                       std::uint32_t group) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> table;
  for (std::uint32_t first = 0; first < m; first += group) {
    for (std::uint32_t chunk = 0; chunk < v; ++chunk) {
      for (std::uint32_t j = first; j < std::min(m, first + group); ++j)
        table.emplace_back(j, chunk);
    }
  }
  std::vector<std::string> rows;
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    std::string row;
    const auto add = [&](char letter, std::size_t k) {
      const auto& [j, turn] = table[k];
      const std::uint32_t chunk = letter == 'F' ? turn : v - 1 - turn;
      row += fmt::format("{}{}{}{}", row.empty() ? "" : ",", chunk * p + rank, letter, j);
    };
    const std::size_t warm_up =
        std::min<std::size_t>(table.size(), (p - rank - 1) * 2 + (v - 1) * group);
    std::size_t next = 0;
    while (next < warm_up) add('F', next++);
    for (std::size_t k = 0; k < table.size(); ++k) {
      if (next < table.size()) add('F', next++);
      add('B', k);
    }
    rows.push_back(row + '\n');
  }
  return rows;
}

TEST_CASE("interleaved 1F1B with a group of any size is Megatron's table") {
  for (std::uint32_t p = 1; p <= 5; ++p) {
    for (std::uint32_t v = 2; v <= 4; ++v) {
      for (std::uint32_t m = 1; m <= 13; ++m) {
        for (std::uint32_t group = 1; group <= m; ++group) {
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          CAPTURE(group);
          const OpLists lists = interleaved_1f1b({p, v, m, group});
          std::string csv;
          for (const auto& list : lists) {
            for (std::size_t i = 0; i < list.size(); ++i)
              csv += (i == 0 ? "" : ",") + to_text(list[i]);
            csv += '\n';
          }
          CHECK(csv == fmt::format("{}", fmt::join(megatron_rows(p, v, m, group), "")));
        }
      }
    }
  }
}

TEST_CASE("the group is PyTorch's where that is whole, else the least that Megatron takes") {
  for (std::uint32_t p = 1; p <= 8; ++p) {
    for (std::uint32_t m = 1; m <= 40; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      const std::uint32_t group = usual_group({p, 2, m});
      const std::uint32_t rounds = m < p ? 1 : m / p;
      if (m % rounds == 0) {
        CHECK(group * rounds == m);
        continue;
      }
      const auto takes = [&](std::uint32_t g) { return m % g == 0 || m % g >= p; };
      CHECK(group >= p);
      CHECK(takes(group));
      for (std::uint32_t less = p; less < group; ++less) CHECK(!takes(less));
    }
  }
}

/// The iteration time of interleaved 1F1B, F 1 ms and B 2 ms a stage, 4 devices with 2 stages each.
double interleaved_ms(const std::string& schedule, std::vector<std::string>* notes = nullptr) {
  const auto scenario = parse_scenario(
      text_source("interleaved.yaml",
                  "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n"
                  "cluster: {devices: 4}\nschedule: " +
                      schedule),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto prediction = predict(*scenario);
  REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
  if (notes) *notes = prediction->setup.notes;
  return prediction->iteration_time_s * 1e3;
}

TEST_CASE("interleaved 1F1B takes any number of micro-batches, and says how many go round") {
  std::vector<std::string> notes;
  const auto says = [&](const std::string& note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  CHECK(interleaved_ms("{name: interleaved-1f1b, micro_batches: 8}", &notes) == close_to(57));
  CHECK(notes.size() == 1);  // of the batch
  CHECK(interleaved_ms("{name: interleaved-1f1b, micro_batches: 10}", &notes) == close_to(69));
  CHECK(
      says("10 micro-batches are no multiple of 4 devices: groups of 5 go round "
           "(schedule.group)"));
  CHECK(interleaved_ms("{name: interleaved-1f1b, micro_batches: 3}", &notes) == close_to(30));
  CHECK(
      says("3 micro-batches are no multiple of 4 devices: groups of 3 go round "
           "(schedule.group)"));
  CHECK(interleaved_ms("{name: interleaved-1f1b, micro_batches: 11}", &notes) == close_to(75));
  CHECK(
      says("11 micro-batches are no multiple of 4 devices: groups of 6 go round, the last of 5 "
           "(schedule.group)"));
  CHECK(interleaved_ms("{name: interleaved-1f1b, micro_batches: 11, group: 7}", &notes) ==
        close_to(75));
  CHECK(notes.size() == 1);
}

TEST_CASE("looped-bfs with one chunk is GPipe with its backwards turned round") {
  CHECK(interleaved_ms("{name: looped-bfs, chunks: 1, micro_batches: 6}") == close_to(9 * 6));
  const OpLists lists = looped_breadth_first({2, 1, 2});
  CHECK(lists[1] == std::vector<Op>{{OpKind::forward, {1}, {0}},
                                    {OpKind::forward, {1}, {1}},
                                    {OpKind::backward, {1}, {1}},
                                    {OpKind::backward, {1}, {0}}});
}

TEST_CASE("stages of a schedule with chunks stand on devices under any numbers") {
  const auto time = [](const std::string& schedule, const std::string& plan) {
    const std::string text =
        "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward_input: 1 ms, "
        "backward_weight: 1 ms, output: 1 MB}}\ncluster: {devices: 4, link: {bandwidth: 10 "
        "GB/s}}\n" +
        plan + "schedule: {name: " + schedule + ", micro_batches: 8}\n";
    const auto scenario = parse_scenario(text_source("numbers.yaml", text), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto prediction = predict(*scenario);
    REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
    return *prediction;
  };
  for (const auto& [its_schedule, devices] :
       std::map<std::string, std::string>{{"zb-h1", "[2, 0, 3, 1]"},
                                          {"zb-h2", "[3, 2, 1, 0]"},
                                          {"zb-v", "[1, 0, 3, 2, 2, 3, 0, 1]"},
                                          {"interleaved-1f1b", "[1, 2, 3, 0, 1, 2, 3, 0]"},
                                          {"chimera", "[[1, 2], [0, 3], [3, 0], [2, 1]]"}}) {
    const auto& schedule = its_schedule;
    CAPTURE(schedule);
    const Outcome in_turn = time(schedule, "");
    const Outcome other = time(schedule, "plan: {devices: " + devices + "}\n");
    CHECK(other.iteration_time_s == in_turn.iteration_time_s);
    CHECK(other.setup.schedule.lists() != in_turn.setup.schedule.lists());
  }
  // The list of the device with the first stage is that of device 0.
  const Outcome zero = time("zb-h1", "plan: {devices: [2, 0, 3, 1]}\n");
  const OpLists lists = interleaved_zero_bubble({4, 1, 8});
  CHECK(zero.setup.schedule.lists() == OpLists{lists[1], lists[3], lists[0], lists[2]});
}

}  // namespace
}  // namespace plumbline::test
