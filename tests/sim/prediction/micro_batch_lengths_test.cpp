// training.micro_batch_lengths: runs and their memory against a slow model of its own.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/micro_batch_lengths.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/prediction/predict_resolved.h"
#include "tests/support/close_to.h"
#include "tests/support/outcome_of.h"
#include "tests/support/scenario_of.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

std::string error_of(const std::string& training, const std::string& schedule = "") {
  const auto scenario = parse_scenario(
      text_source("s.yaml",
                  "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
                  "cluster: {devices: 4}\nplan: {stages: 2, data_parallel: 2}\n"
                  "schedule: {name: 1f1b, micro_batches: 4" +
                      schedule + "}\ntraining: {micro_batch_lengths: " + training + "}\n"),
      {});
  return scenario ? "" : to_text(scenario.problems());
}

/// A pipeline on links of a latency alone; times in us, bytes in kB. All numbers times a quarter
/// are whole.
struct Unlike {
  std::string schedule;
  std::int64_t devices = 2, chunks = 1, copies = 1, micro_batches = 4, latency = 0;
  bool again = false;
  std::vector<std::int64_t> forward, input, weight, activation, output;
  std::vector<std::int64_t> quarters;  ///< Lengths times 4; for each micro-batch, copy by copy.
  bool splits() const { return schedule.starts_with("zb"); }
};

std::string text_of(const Unlike& u) {
  std::string layers;
  for (std::size_t i = 0; i < u.forward.size(); ++i) {
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, "
        "activation: {} kB, output: {} kB}}",
        i == 0 ? "" : ", ", i, u.forward[i], u.input[i], u.weight[i], u.activation[i], u.output[i]);
  }
  std::vector<double> lengths;
  for (const std::int64_t quarter : u.quarters)
    lengths.push_back(0.25 * static_cast<double>(quarter));
  return fmt::format(
      "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, link: {{latency: {} us}}}}\n"
      "plan: {{stages: {}, data_parallel: {}}}\nschedule: {{name: {}, micro_batches: {}{}{}}}\n"
      "training: {{micro_batch_lengths: [{}]}}\n",
      layers, u.devices * u.copies, u.latency, u.devices * u.chunks, u.copies, u.schedule,
      u.micro_batches, u.chunks > 1 ? fmt::format(", chunks: {}", u.chunks) : "",
      u.again ? ", recompute: full" : "", fmt::join(lengths, ", "));
}

Unlike random_unlike(std::uint64_t seed) {
  struct Shape {
    const char* schedule;
    std::int64_t chunks;
  };
  static const Shape shapes[] = {{"1f1b", 1},       {"gpipe", 1},           {"naive", 1},
                                 {"eager-1f1b", 1}, {"zb-h1", 1},           {"zb-h2", 1},
                                 {"looped-bfs", 2}, {"interleaved-1f1b", 2}};
  Dice dice(seed);
  const Shape& shape = shapes[seed % std::size(shapes)];
  Unlike u;
  u.schedule = shape.schedule;
  u.chunks = shape.chunks;
  u.devices = dice.roll(2, 4);
  u.copies = dice.roll(1, 2);
  u.micro_batches = u.devices * dice.roll(1, 3);
  u.latency = 4 * dice.roll(0, 5);
  u.again = u.chunks == 1 && dice.roll(0, 3) == 0;
  for (std::int64_t i = 0; i < u.devices * u.chunks; ++i) {
    u.forward.push_back(4 * dice.roll(1, 20));
    u.input.push_back(4 * dice.roll(1, 20));
    u.weight.push_back(4 * dice.roll(1, 20));
    u.activation.push_back(4 * dice.roll(1, 20));
    u.output.push_back(4 * dice.roll(0, 5));
  }
  const std::int64_t lists = dice.roll(0, 1) == 0 ? 1 : u.copies;
  for (std::int64_t i = 0; i < u.micro_batches * lists; ++i) u.quarters.push_back(dice.roll(1, 12));
  return u;
}

struct Slow {
  std::int64_t makespan = 0;         ///< us
  std::vector<std::int64_t> memory;  ///< kB of each device.
};

/// One copy, op by op: each device does the next op of its list when it is free and the data is
/// there.
Slow slow_run(const Unlike& u, const OpLists& lists, std::int64_t copy) {
  using Key = std::tuple<OpKind, std::uint32_t, std::uint32_t>;
  std::map<Key, std::pair<std::int64_t, std::int64_t>> spans;
  std::map<std::uint32_t, std::size_t> device_of;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    for (const Op& op : lists[d]) device_of[op.stage.value] = d;
  }
  const auto last = static_cast<std::uint32_t>(u.forward.size()) - 1;
  const auto length = [&](std::uint32_t m) {
    const auto place = static_cast<std::size_t>(copy * u.micro_batches + m);
    return u.quarters[place % u.quarters.size()];
  };
  const auto time = [&](const Op& op) {
    const std::uint32_t s = op.stage.value;
    const std::int64_t again = u.again ? u.forward[s] : 0;
    const std::int64_t whole = op.kind == OpKind::forward    ? u.forward[s]
                               : op.kind == OpKind::backward ? u.input[s] + u.weight[s] + again
                               : op.kind == OpKind::backward_input ? u.input[s] + again
                                                                   : u.weight[s];
    return whole * length(op.micro_batch.value) / 4;
  };
  std::vector<std::size_t> next(lists.size(), 0);
  std::vector<std::int64_t> free_at(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < lists.size(); ++d) {
      if (next[d] == lists[d].size()) continue;
      const Op& op = lists[d][next[d]];
      const std::uint32_t s = op.stage.value;
      const bool is_forward = op.kind == OpKind::forward;
      std::int64_t ready = 0;
      if (op.kind != OpKind::backward_weight && (is_forward ? s > 0 : s < last)) {
        const std::uint32_t from = is_forward ? s - 1 : s + 1;
        const auto found = spans.find({op.kind, from, op.micro_batch.value});
        if (found == spans.end()) continue;
        ready = found->second.second + (device_of[from] == d ? 0 : u.latency);
      }
      const std::int64_t begin = std::max(free_at[d], ready);
      free_at[d] = begin + time(op);
      spans[{op.kind, s, op.micro_batch.value}] = {begin, free_at[d]};
      ++next[d];
      moved = true;
    }
  }
  Slow slow;
  slow.makespan = *std::max_element(free_at.begin(), free_at.end());
  for (std::size_t d = 0; d < lists.size(); ++d) {
    std::map<std::int64_t, std::int64_t> changes;  // at an instant only the sum counts
    for (const auto& [key, span] : spans) {
      const OpKind kind = std::get<0>(key);
      const std::uint32_t s = std::get<1>(key);
      const std::uint32_t m = std::get<2>(key);
      if (device_of[s] != d || kind != OpKind::forward) continue;
      const auto end = u.splits() ? spans.at({OpKind::backward_weight, s, m}).second
                                  : spans.at({OpKind::backward, s, m}).second;
      const auto hold = [&](std::int64_t from, std::int64_t bytes) {
        changes[from] += bytes * length(m) / 4;
        changes[end] -= bytes * length(m) / 4;
      };
      hold(span.first, u.activation[s]);
      if (s > 0 && device_of[s - 1] != d)
        hold(spans.at({OpKind::forward, s - 1, m}).second, u.output[s - 1]);
      const OpKind back = u.splits() ? OpKind::backward_input : OpKind::backward;
      if (s < last && device_of[s + 1] != d) hold(spans.at({back, s + 1, m}).second, u.output[s]);
    }
    std::int64_t held = 0, most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, held += change);
    slow.memory.push_back(most);
  }
  return slow;
}

}  // namespace

TEST_CASE("runs and memory of unlike micro-batches equal a slow model, copy by copy") {
  std::int64_t with_memory = 0;
  for (std::uint64_t seed = 1; seed <= trials(1000); ++seed) {
    const Unlike u = random_unlike(seed);
    const std::string text = text_of(u);
    CAPTURE(text);
    const Outcome outcome = outcome_of(text);
    std::int64_t makespan = 0;
    for (std::int64_t copy = 0; copy < u.copies; ++copy) {
      const Slow slow = slow_run(u, outcome.setup.schedule.lists(), copy);
      makespan = std::max(makespan, slow.makespan);
      const bool is_written = outcome.graph.written_copies > copy;
      if (u.again || !is_written) continue;
      for (std::size_t slot = 0; slot < slow.memory.size(); ++slot) {
        const std::size_t device = slot * outcome.graph.written_copies + copy;
        CHECK(outcome.memory[device].peak.sum() == Bytes{1000 * slow.memory[slot]});
        ++with_memory;
      }
    }
    CHECK(outcome.metrics.makespan == std::chrono::microseconds(makespan));
  }
  CHECK(with_memory > static_cast<std::int64_t>(trials(1000)));
}

TEST_CASE("closed forms of unlike micro-batches hold where they are claimed") {
  std::uint64_t answered = 0;
  for (std::uint64_t seed = 1; seed <= trials(500); ++seed) {
    Unlike u = random_unlike(seed);
    u.latency = 0;
    u.again = false;
    u.quarters.resize(static_cast<std::size_t>(u.micro_batches));
    std::fill(u.forward.begin(), u.forward.end(), u.forward.front());
    std::fill(u.input.begin(), u.input.end(), u.input.front());
    std::fill(u.weight.begin(), u.weight.end(), u.weight.front());
    const std::string text = text_of(u);
    CAPTURE(text);
    const Outcome outcome = outcome_of(text);
    if (!outcome.formula) continue;
    ++answered;
    CHECK(outcome.formula->makespan == outcome.metrics.makespan);
    CHECK(outcome.formula->bubble_fraction == close_to(outcome.metrics.bubble_fraction(), 1e-12));
    CHECK(outcome.formula->bubble_overhead == close_to(outcome.metrics.bubble_overhead(), 1e-12));
  }
  CHECK(answered > trials(500) / 5);  // naive and gpipe are two of eight
}

TEST_CASE("lengths that are all one length give the run of that length") {
  const std::string head =
      "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward_input: 1 ms, "
      "backward_weight: 1 ms, output: 1 MB, activation: 8 MB, parameters: 4 MB}}\n"
      "cluster: {devices: 8, link: {bandwidth: 10 GB/s, latency: 5 us}}\n"
      "plan: {stages: 4, data_parallel: 2}\n";
  for (const char* const schedule :
       {"name: 1f1b, micro_batches: 4", "name: zb-h1, micro_batches: 4, bucket: 4 MB",
        "name: 1f1b, micro_batches: 4, recompute: layers",
        "name: 1f1b, micro_batches: 4, recompute: full, recompute_early: true",
        "name: 1f1b, micro_batches: 4, bucket: 1 MB, mini_batches: 2"}) {
    for (const char* const zero : {"0", "1", "2"}) {
      CAPTURE(schedule);
      const std::string text =
          head + "schedule: {" + schedule + "}\ntraining: {zero_stage: " + zero;
      const Outcome plain = outcome_of(text + "}\n");
      const Outcome alike = outcome_of(text + ", micro_batch_lengths: [1, 1, 1, 1]}\n");
      const Outcome own = outcome_of(text + ", micro_batch_lengths: [1, 1, 1, 1, 1, 1, 1, 1]}\n");
      for (const Outcome* const one : {&alike, &own}) {
        CHECK(one->metrics.makespan == plain.metrics.makespan);
        for (std::size_t slot = 0; slot < 4; ++slot) {
          const std::size_t place = slot * one->graph.written_copies;
          CHECK(one->memory[place].peak.sum() ==
                plain.memory[slot * plain.graph.written_copies].peak.sum());
        }
      }
      const Outcome twice = outcome_of(text + ", micro_batch_lengths: [2, 2, 2, 2]}\n");
      std::string longer = text + "}\n";
      longer.replace(longer.find("forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, "
                                 "output: 1 MB, activation: 8 MB"),
                     90,
                     "forward: 2 ms, backward_input: 2 ms, backward_weight: 2 ms, output: 2 MB, "
                     "activation: 16 MB");
      CHECK(twice.metrics.makespan == outcome_of(longer).metrics.makespan);
    }
  }
}

TEST_CASE("of a config.json each length has layers of its own") {
  const std::string text =
      "version: 1\nmodel: {huggingface: examples/configs/small-llama.json, sequence: 2048}\n"
      "cluster: {gpus: 4, device: h100-sxm}\nplan: {stages: 4}\n"
      "schedule: {name: 1f1b, micro_batches: 8}\n";
  const auto with = [&](const std::string& training) {
    return outcome_of(text + "training: {" + training + "}\n");
  };
  const auto of_sequence = [&](const std::string& sequence) {
    std::string other = text;
    other.replace(other.find("2048"), 4, sequence);
    return outcome_of(other);
  };
  for (const char* const length : {"1024", "2048", "4096"}) {
    const std::string all = fmt::format("{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}", length);
    const Outcome alike = with("micro_batch_lengths: [" + all + "]");
    const Outcome plain = of_sequence(length);
    CHECK(alike.metrics.makespan == plain.metrics.makespan);
    CHECK(alike.memory[0].peak.sum() == plain.memory[0].peak.sum());
    CHECK(*alike.model_flops == close_to(*plain.model_flops, 1e-12));
  }
  // Attention takes more than twice the time for twice the length.
  const Outcome mixed =
      with("micro_batch_lengths: [1024, 1024, 1024, 1024, 4096, 4096, 4096, 4096]");
  const double sum = *of_sequence("1024").model_flops / 2 + *of_sequence("4096").model_flops / 2;
  CHECK(*mixed.model_flops == close_to(sum, 1e-12));
  CHECK(*mixed.model_flops > *of_sequence("2560").model_flops);
}

TEST_CASE("drawn lengths have the mean and the spread that are asked for") {
  LengthChoice choice;
  choice.mean.value = 2000;
  choice.spread = 0.5;
  choice.multiple = Marked<double>{0, {}};
  const auto drawn = decide_lengths(choice, 4096, 100, 10);
  REQUIRE(drawn);
  CHECK(drawn->kind_of.size() == 1000);
  CHECK(drawn->mean() == close_to(2000, 0.001));  // of whole tokens
  double squares = 0;
  for (const std::uint32_t kind : drawn->kind_of) {
    const double off = drawn->lengths[kind] - drawn->mean();
    squares += off * off;
  }
  CHECK(std::sqrt(squares / 1000) == close_to(1000, 0.1));
  choice.multiple = Marked<double>{128, {}};
  choice.longest = Marked<double>{4096, {}};
  const auto padded = decide_lengths(choice, 4096, 100, 10);
  REQUIRE(padded);
  for (const double length : padded->lengths) CHECK(std::fmod(length, 128) == 0);
  CHECK(padded->lengths.back() == 4096);
  const auto again = decide_lengths(choice, 4096, 100, 10);
  CHECK(again->kind_of == padded->kind_of);
  choice.seed = 2;
  CHECK(decide_lengths(choice, 4096, 100, 10)->kind_of != padded->kind_of);
}

TEST_CASE("drawn lengths have their mean for any number of micro-batches") {
  LengthChoice choice;
  choice.mean.value = 1;
  choice.spread = 0.8;
  choice.multiple = Marked<double>{0, {}};
  for (const std::int64_t micro_batches : {1, 2, 3, 8, 64}) {
    const auto lengths = decide_lengths(choice, std::nullopt, micro_batches, 1);
    REQUIRE(lengths);
    CHECK(lengths->mean() == close_to(1, 1e-12));
  }
}

TEST_CASE("the steady state of a pipedream is that of whole mini-batches") {
  const auto period = [](const std::string& mini_batches, const std::string& sort) {
    return outcome_of(
               "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
               "cluster: {devices: 4}\nschedule: {name: pipedream, micro_batches: 8, "
               "mini_batches: " +
               mini_batches +
               "}\ntraining: {micro_batch_lengths: {lengths: [1, 2, 0.5, 0.5, "
               "1, 1, 0.5, 1.5], sort: " +
               sort + "}}\n")
        .iteration_time_s;
  };
  for (const char* const sort : {"as-given", "ascending", "descending"}) {
    CAPTURE(sort);
    CHECK(period("1", sort) == close_to(period("40", sort), 0.02));
  }
}

TEST_CASE("a network that is executed keeps its own length: another one is never forgotten") {
  const auto has_lengths = [](const std::string& lengths) {
    const auto scenario =
        read_scenario("examples/gpt2-on-h100.yaml", {"training.micro_batch_lengths=" + lengths});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    return scenario->lengths != nullptr;
  };
  CHECK(has_lengths("[2, 2, 2, 2, 2, 2, 2, 2]"));
  CHECK_FALSE(has_lengths("[1, 1, 1, 1, 1, 1, 1, 1]"));
}

TEST_CASE("sorted lengths are sorted in each copy") {
  LengthChoice choice;
  choice.list.emplace();
  for (const double length : {3, 1, 2, 2, 4, 1}) choice.list->push_back({length, {}});
  choice.ascending = true;
  const auto up = decide_lengths(choice, std::nullopt, 3, 2);
  REQUIRE(up);
  CHECK(up->lengths == std::vector<double>{1, 2, 3, 4});
  CHECK(up->kind_of == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 3});
  choice.ascending = false;
  choice.descending = true;
  CHECK(decide_lengths(choice, std::nullopt, 3, 2)->kind_of ==
        std::vector<std::uint32_t>{2, 1, 0, 3, 1, 0});
}

TEST_CASE("wrong lengths are refused, with the reason") {
  const auto says = [](const std::string& error, const std::string& part) {
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  CHECK(error_of("[1, 2, 3, 4]").empty());
  CHECK(error_of("[1, 2, 3, 4, 1, 2, 3, 4]").empty());
  says(error_of("[1, 2, 3]"), "has 3 lengths, and a mini-batch has 4 micro-batches in each of 2");
  says(error_of("[1, 2, 3, 0]"), "training.micro_batch_lengths[3] is 0");
  says(error_of("[1, 2, 3, 4096]"), "micro_batch_lengths[3] is 4096, but the model does not say");
  says(error_of("{mean: 2048, spread: 0.5}"), "mean is 2048, but the model does not say");
  says(error_of("{mean: 0}"), "micro_batch_lengths.mean is 0");
  says(error_of("{mean: 2, longest: 1}"), "longest is 1, below the mean of 2");
  says(error_of("{mean: 1, multiple: 5000}"), "but the model does not say which length");
  says(error_of("{lengths: [1, 1, 1, 1], of: 0}"), "micro_batch_lengths.of is 0");
  says(error_of("{lengths: [9, 1, 1, 1], of: 0.001}"), "more than a thousand times `of`");
  says(error_of("{lengths: [1, 2, 3, 4], mean: 3}"), "mean stands beside lengths");
  says(error_of("{spread: 2}"), "mean is missing");
  says(error_of("[1, 2, 3, 4]", ", slices: 2"), "stands beside schedule.slices");
  says(error_of("[1, 2, 3, 4]", ", pairs: overlapped"), "schedule.pairs is overlapped");
  CHECK(error_of("{lengths: [512, 512, 1024, 4096], of: 4096}").empty());
}

}  // namespace plumbline::test
