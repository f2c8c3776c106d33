// When shared gradients are reduced, when gathered weights are freed, how far gathers run ahead,
// and groups of copies that share: closed forms, memory, who may not.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/builders.h"
#include "tests/support/predicted.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

/// So many layers of 2 ms + 4 ms and 10 MB on each of so many devices; a bucket is a layer. A
/// gather or a reduction over all takes (r - 1) / r of 10 MB: 1 ms for two devices.
std::string data_parallel(int devices, int layers, int micro_batches, const std::string& training,
                          const std::string& cluster = "link: {bandwidth: 5 GB/s}") {
  return fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: {}, forward: 2 ms, backward: 4 ms, update: 1 ms, "
      "parameters: 10 MB}}}}\ncluster: {{devices: {}, memory: 1 GB, {}}}\n"
      "schedule: {{name: data-parallel, micro_batches: {}, bucket: 10 MB}}\n"
      "training: {{optimizer_state: 6, {}}}\n",
      layers, devices, cluster, micro_batches, training);
}

/// The numbers of gathers and reductions.
std::pair<int, int> gathers_and_reductions(const Outcome& outcome) {
  std::pair<int, int> numbers(0, 0);
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (!outcome.graph.holds_channel(node) || outcome.graph.sender(node) != 0) continue;
    numbers.first += outcome.graph.activities[node].kind == ActivityKind::all_gather ? 1 : 0;
    numbers.second += outcome.graph.activities[node].kind == ActivityKind::reduce_scatter ? 1 : 0;
  }
  return numbers;
}

TEST_CASE("what is not freed is not gathered again, and what is reduced once is reduced once") {
  using std::chrono::milliseconds;
  for (const int layers : {2, 5}) {
    for (const int m : {1, 3}) {
      CAPTURE(layers);
      CAPTURE(m);
      const auto of = [&](const std::string& rest) {
        return predicted(data_parallel(2, layers, m, "zero_stage: 3, " + rest));
      };
      // A backward begins with the layer that the forward ended with, which is whole already.
      const int each = m * (2 * layers - 1);
      CHECK(gathers_and_reductions(of("reshard: each-pass")) == std::pair(each, m * layers));
      CHECK(gathers_and_reductions(of("reshard: after-forward")) ==
            std::pair(layers + m * (layers - 1), m * layers));
      CHECK(gathers_and_reductions(of("reshard: after-backward")) ==
            std::pair(m * layers, m * layers));
      CHECK(gathers_and_reductions(of("reshard: after-mini-batch")) ==
            std::pair(layers, m * layers));
      CHECK(gathers_and_reductions(of("reduce: with-last-backward")) == std::pair(each, layers));
      CHECK(gathers_and_reductions(of("reduce: behind-last-backward")) == std::pair(each, layers));

      // Compute hides all but the first gather of each micro-batch, whose weights the backward
      // before it has just freed, the last reduction, and what is not ahead.
      const Duration work = m * layers * milliseconds(6) + layers * microseconds(500);
      const Duration half = milliseconds(1);
      CHECK(of("reduce: with-last-backward").metrics.makespan == work + (m + 1) * half);
      CHECK(of("reduce: behind-last-backward").metrics.makespan == work + (m + layers) * half);
      CHECK(of("prefetch: 0").metrics.makespan == work + (each + 1) * half);
      CHECK(of("prefetch: 1").metrics.makespan == work + (m + 1) * half);
      CHECK(of("prefetch: 0, reshard: after-mini-batch").metrics.makespan ==
            work + (layers + 1) * half);
    }
  }
}

TEST_CASE(
    "gradients that are reduced once take as long, and as much memory, as with zero_stage 1") {
  const auto run = [](const std::string& training) {
    return predicted(
        "version: 1\nmodel: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MB, "
        "parameters: 10 MB, update: 1 ms}}\ncluster: {devices: 8, memory: 1 GB, link: {bandwidth: "
        "5 GB/s}}\nplan: {stages: 4, data_parallel: 2}\nschedule: {name: 1f1b, micro_batches: 6, "
        "bucket: 10 MB}\ntraining: {optimizer_state: 2, " +
        training + "}\n");
  };
  const Outcome two = run("zero_stage: 2, reduce: with-last-backward");
  const Outcome one = run("zero_stage: 1");
  CHECK(two.metrics.makespan == one.metrics.makespan);
  CHECK(two.memory[0].peak.sum() == one.memory[0].peak.sum());
  CHECK(two.metrics.all_reduce_bytes == one.metrics.all_reduce_bytes);
  // Weights that stay for the mini-batch are gathered one bucket ahead, not all at once.
  const Outcome three = run("zero_stage: 3, reduce: with-last-backward, reshard: after-mini-batch");
  const Outcome ahead = run("zero_stage: 1, gather: with-forward");
  // They stand beside the device's share.
  CHECK(three.memory[0].peak.weights == one.memory[0].peak.weights + Bytes{15'000'000});
  CHECK(three.memory[0].peak.gradients == one.memory[0].peak.gradients);
  CHECK(three.metrics.all_reduce_bytes == ahead.metrics.all_reduce_bytes);
  CHECK(three.metrics.makespan >= ahead.metrics.makespan);
}

TEST_CASE("each device holds what its rules leave it") {
  constexpr std::int64_t mb = 1'000'000;
  const auto peak = [](const std::string& training) {
    return predicted(data_parallel(4, 8, 2, training)).memory[0].peak;
  };
  CHECK(peak("zero_stage: 3").weights == Bytes{(20 + 20) * mb});
  CHECK(peak("zero_stage: 3, prefetch: 0").weights == Bytes{(20 + 10) * mb});
  CHECK(peak("zero_stage: 3, prefetch: 3").weights == Bytes{(20 + 40) * mb});
  CHECK(peak("zero_stage: 3, prefetch: 99").weights == Bytes{(20 + 80) * mb});
  for (const std::string kept : {"after-forward", "after-backward", "after-mini-batch"})
    CHECK(peak("zero_stage: 3, reshard: " + kept).weights == Bytes{(20 + 80) * mb});
  for (const std::string stage : {"2", "3"}) {
    CHECK(peak("zero_stage: " + stage).gradients == Bytes{(20 + 20) * mb});
    CHECK(peak("reduce: with-last-backward, zero_stage: " + stage).gradients == Bytes{80 * mb});
    CHECK(peak("reduce: behind-last-backward, zero_stage: " + stage).gradients == Bytes{80 * mb});
  }
  CHECK(peak("zero_stage: 3, shard_degree: 2").weights == Bytes{(40 + 20) * mb});
  CHECK(peak("zero_stage: 3, shard_degree: 2").gradients == Bytes{(40 + 20) * mb});
  CHECK(peak("zero_stage: 1, shard_degree: 2").optimizer == Bytes{240 * mb});
  CHECK(peak("zero_stage: 3, shard_degree: 4").sum() == peak("zero_stage: 3").sum());
  // A checkpoint has a device's share of the weights, whether gathered ones stay or not.
  const auto saved = [](const std::string& training) {
    return predicted(data_parallel(4, 8, 2, training)).checkpoint_bytes();
  };
  CHECK(saved("zero_stage: 3") == Bytes{(20 + 120) * mb});
  CHECK(saved("zero_stage: 3, reshard: after-mini-batch") == saved("zero_stage: 3"));
  CHECK(saved("zero_stage: 1") == Bytes{(80 + 120) * mb});
}

TEST_CASE("the buckets that are whole at a time are neighbours") {
  constexpr std::int64_t mb = 1'000'000;
  // Large, small, small, large: as an embedding and a head around blocks.
  const auto peak = [](const std::string& training, int micro_batches, const std::string& plan,
                       const std::string& schedule) {
    return predicted(
               fmt::format(
                   "version: 1\nmodel: {{layers: [{{name: a, forward: 1 ms, backward: 1 ms, "
                   "parameters: "
                   "60 MB}}, {{name: b, forward: 1 ms, backward: 1 ms, parameters: 10 MB}}, "
                   "{{name: c, "
                   "forward: 1 ms, backward: 1 ms, parameters: 20 MB}}, {{name: d, forward: 1 ms, "
                   "backward: 1 ms, parameters: 50 MB}}]}}\ncluster: {{devices: 10, memory: 1 GB, "
                   "link: "
                   "{{bandwidth: 10 GB/s}}}}\nplan: {{{}}}\nschedule: {{{}, micro_batches: {}, "
                   "bucket: "
                   "1 MB}}\ntraining: {{{}}}\n",
                   plan, schedule, micro_batches, training))
        .memory[0]
        .peak;
  };
  const std::string one = "stages: 1, data_parallel: 10", data = "name: 1f1b";
  CHECK(peak("zero_stage: 3", 1, one, data).weights == Bytes{(14 + 60 + 10) * mb});
  CHECK(peak("zero_stage: 3, prefetch: 0", 1, one, data).weights == Bytes{(14 + 60) * mb});
  CHECK(peak("zero_stage: 3, prefetch: 2", 1, one, data).weights == Bytes{(14 + 90) * mb});
  // A backward begins with the bucket of the forward's end: twice the same.
  CHECK(peak("zero_stage: 3", 1, one, data).gradients == Bytes{(14 + 20 + 50) * mb});
  // The next backward's first bucket may be made while the last one's last is on its way.
  CHECK(peak("zero_stage: 3", 2, one, data).gradients == Bytes{(14 + 60 + 50) * mb});
  // With forwards one behind the other, the next one's first bucket is gathered ahead.
  CHECK(peak("zero_stage: 3", 2, one, "name: gpipe").weights == Bytes{(14 + 60 + 50) * mb});
  // Two chunks on each of two devices: a | c of the first.
  const auto chunks =
      peak("zero_stage: 3", 2, "stages: 4, data_parallel: 5", "name: interleaved-1f1b, chunks: 2");
  CHECK(chunks.weights == Bytes{(60 + 20) / 5 * mb + (60 + 20) * mb});
}

TEST_CASE("groups of copies scatter inside, and all-reduce their shares across") {
  using std::chrono::milliseconds;
  // Two servers of four. Inside, 3/4 of 10 MB take 0.75 ms. Across, a device all-reduces 2.5 MB
  // with the other server's: 2 x 1/2 x 2.5 MB over its own card, 2.5 ms. An update is a quarter.
  const std::string servers =
      "levels: [{size: 4, bandwidth: 10 GB/s}, {size: 2, bandwidth: 1 GB/s, cards: each}]";
  const auto run = [&](const std::string& training, const std::string& cluster) {
    std::string text = data_parallel(8, 6, 2, training, cluster);
    if (cluster.starts_with("levels"))
      text.replace(text.find("devices: 8, "), std::string("devices: 8, ").size(), "");
    return predicted(text);
  };
  const Outcome groups = run("zero_stage: 3, shard_degree: 4", servers);
  const Duration work = 2 * 6 * milliseconds(6) + microseconds(6 * 1000 / 4);
  CHECK(groups.metrics.makespan == work + microseconds(2 * 750 + 750 + 2500));
  // One level that is as fast as both: all copies share, or groups of any size.
  const std::string flat = "link: {bandwidth: 10 GB/s}";
  const auto across = [&](int degree) {
    return run(fmt::format("zero_stage: 3, shard_degree: {}", degree), flat).metrics.makespan;
  };
  const auto expected = [&](int degree) {
    const double inside = 1e3 * (degree - 1) / degree;  // us for 10 MB
    const double shares = degree == 8 ? 0 : 2e3 * (8 - degree) / 8 / degree;
    return 2 * 6 * 6e3 + 6e3 / degree + 3 * inside + shares;
  };
  for (const int degree : {2, 4, 8})
    CHECK(std::chrono::duration<double, std::micro>(across(degree)).count() ==
          doctest::Approx(expected(degree)).epsilon(1e-6));
  CHECK(across(8) == run("zero_stage: 3", flat).metrics.makespan);
  // Two micro-batches all-reduce twice across the groups, or once.
  const auto numbers = [](const Outcome& outcome) {
    int across = 0;
    for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
      const bool is_ring = outcome.graph.activities[node].kind == ActivityKind::all_reduce;
      across += is_ring && outcome.graph.sender(node) == 0 ? 1 : 0;
    }
    return std::pair(outcome.metrics.all_reduces, across);
  };
  CHECK(numbers(groups) == std::pair<std::int64_t, int>(2 * 11 + 2 * 6 + 12, 12));
  const Outcome once =
      run("zero_stage: 3, shard_degree: 4, reduce: in-groups-each-backward", servers);
  CHECK(numbers(once) == std::pair<std::int64_t, int>(2 * 11 + 2 * 6 + 6, 6));
  CHECK(once.metrics.makespan == groups.metrics.makespan);
  CHECK(once.memory[0].peak.sum() == groups.memory[0].peak.sum());
  // Groups of one hold everything.
  const Outcome whole = run("zero_stage: 3, shard_degree: 1", flat);
  CHECK(whole.metrics.makespan == run("zero_stage: 0", flat).metrics.makespan);
  CHECK(whole.setup.notes.front() ==
        "training.shard_degree is 1: each copy holds everything, and training.zero_stage 3 is as "
        "0");
}

TEST_CASE("a share's gradients are added up from its group, then from the other groups") {
  // Six layers of 10 MB at 10 GB/s: 6 ms for all gradients of one device.
  const auto more = [](const std::string& training) {
    const std::string text = data_parallel(8, 6, 1, training);
    return predicted(text + "overhead: {add_up: 10 GB/s}\n").metrics.makespan -
           predicted(text).metrics.makespan;
  };
  CHECK(more("zero_stage: 3") == microseconds(7 * 6000 / 8));
  CHECK(more("zero_stage: 3, shard_degree: 4") == microseconds((3 + 1) * 6000 / 4));
  CHECK(more("zero_stage: 1, shard_degree: 2") == microseconds((1 + 3) * 6000 / 2));
  CHECK(more("zero_stage: 0") == microseconds(7 * 6000));
}

TEST_CASE("of weights that stay, backwards may be split, pairs overlap, and stages recompute") {
  const auto text = [](const std::string& schedule, const std::string& training) {
    return "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms, output: 1 MB, "
           "activation: 3 MB, parameters: 10 MB}}\ncluster: {devices: 8, memory: 1 GB, link: "
           "{bandwidth: 500 GB/s}}\nplan: {stages: 4, data_parallel: 2}\nschedule: {" +
           schedule + ", micro_batches: 8}\ntraining: {zero_stage: 3, " + training + "}\n";
  };
  for (const std::string schedule : {"name: zb-h1", "name: 1f1b, recompute: full",
                                     "name: 1f1b, recompute: full, "
                                     "recompute_early: true"}) {
    CAPTURE(schedule);
    const auto kept =
        parse_scenario(text_source("s.yaml", text(schedule,
                                                  "reshard: after-mini-batch, reduce: "
                                                  "with-last-backward")),
                       {});
    REQUIRE(kept);
    const auto outcome = predict(*kept);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    CHECK(outcome->trace == longest_path(outcome->graph));
    const auto freed =
        parse_scenario(text_source("s.yaml", text(schedule, "reshard: each-pass")), {});
    REQUIRE(freed);
    const auto refused = predict(*freed);
    REQUIRE_FALSE(refused);
    CHECK(refused.problems().front().help.find("training.reshard: after-mini-batch") !=
          std::string::npos);
  }
}

TEST_CASE("what changes nothing is told, and groups that are none are refused") {
  const auto notes = [](const std::string& training) {
    return predicted(data_parallel(4, 2, 1, training)).setup.notes;
  };
  const auto told = [&](const std::string& training, const std::string& note) {
    const std::vector<std::string> all = notes(training);
    return std::find(all.begin(), all.end(), note) != all.end();
  };
  CHECK(told("zero_stage: 2, reshard: after-forward",
             "training.reshard changes nothing: training.zero_stage is 2, and no pass gathers "
             "weights"));
  CHECK(told("zero_stage: 1, reduce: each-backward",
             "training.reduce changes nothing: training.zero_stage is 1, and gradients are reduced "
             "once anyway"));
  CHECK(told("shard_degree: 2",
             "training.shard_degree changes nothing: training.zero_stage is 0, and copies share "
             "nothing"));
  // One note says so of all keys, beside that on the size of a micro-batch.
  CHECK(notes("zero_stage: 2, shard_degree: 1, reduce: each-backward").size() == 2);
  const auto problem = [](const std::string& text) {
    const auto scenario = parse_scenario(text_source("s.yaml", text), {});
    REQUIRE(scenario);
    const auto outcome = predict(*scenario);
    REQUIRE_FALSE(outcome);
    return outcome.problems().front().message;
  };
  CHECK(problem(data_parallel(4, 2, 1, "zero_stage: 3, shard_degree: 3")) ==
        "training.shard_degree is 3, which does not divide the number of copies, 4");
  CHECK(problem("version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
                "plan: {replicas: [2, 2], data_parallel: 2}\nschedule: {name: 1f1b, "
                "micro_batches: 4}\ntraining: {zero_stage: 1, shard_degree: 2}\n") ==
        "training.shard_degree is 2, but stage 0 has 2 replicas, which share with all others");
}

}  // namespace
}  // namespace plumbline::test
