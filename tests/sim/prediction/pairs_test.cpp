// A forward and a backward that run at the same time, against sums made by hand, the published
// bubble, and what a pair means.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/pairs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/order/in_flight.h"
#include "sim/prediction/predict_resolved.h"
#include "tests/support/builders.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::milliseconds;

/// The work of one stage, in ms: its compute, and its transfers that compute can hide.
struct Work {
  int f = 10, i = 10, w = 10;
  int forward_sent = 0, input_sent = 0;

  int forward() const { return std::max(f, forward_sent); }
  int input() const { return std::max(i, input_sent); }
  int backward() const { return input() + w; }
  int pair() const { return std::max(f + i + w, forward_sent + input_sent); }
};

Result<Scenario> scenario_of(const std::string& schedule, int devices, int chunks, const Work& work,
                             const std::vector<std::string>& overrides = {}) {
  const std::string text = fmt::format(
      "version: 1\n"
      "model: {{uniform: {{layers: {}, flops: {{forward: {} GFLOP, backward_input: {} GFLOP, "
      "backward_weight: {} GFLOP}}, network_traffic: {{forward: {} MB, backward_input: {} MB}}, "
      "output: 1 MB, activation: 1 MB, parameters: 1 MB}}}}\n"
      "cluster: {{devices: {}, device: {{peak: 1 TFLOP/s, memory_bandwidth: 1000 TB/s, efficiency: "
      "1, "
      "network: 1 GB/s, network_overlap: 1}}}}\n"
      "plan: {{stages: {}, partition: balanced}}\n"
      "schedule: {{{}, pairs: overlapped}}\n",
      devices * chunks, work.f, work.i, work.w, work.forward_sent, work.input_sent, devices,
      devices * chunks, schedule);
  return parse_scenario(text_source("s.yaml", text), overrides);
}

Outcome outcome_of(const std::string& schedule, int devices, int chunks, const Work& work,
                   const std::vector<std::string>& overrides = {},
                   Evaluation evaluation = Evaluation::fastest) {
  auto scenario = scenario_of(schedule, devices, chunks, work, overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict_resolved(*scenario, evaluation);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

double ms(Duration time) { return seconds(time) * 1e3; }

// Each update moves 3 MB at 1000 TB/s: 3 ns.
constexpr double kUpdate = 1e-4;  // ms, and more

TEST_CASE("a pair takes as long as both compute, or as both send") {
  // One device: F0, then B and the next F at once, then the last B.
  for (const Work& work :
       {Work{}, Work{10, 12, 9, 18, 15}, Work{10, 10, 10, 25, 20}, Work{20, 10, 5, 2, 40}}) {
    const Outcome outcome = outcome_of("name: 1f1b, micro_batches: 5", 1, 1, work);
    CHECK(ms(outcome.metrics.makespan) ==
          doctest::Approx(work.forward() + 4 * work.pair() + work.backward()).epsilon(1e-6));
    // With F made again there is as much more of either.
    const Outcome again = outcome_of("name: 1f1b, micro_batches: 5, recompute: full", 1, 1, work);
    const int pair =
        std::max(2 * work.f + work.i + work.w, 2 * work.forward_sent + work.input_sent);
    CHECK(ms(again.metrics.makespan) ==
          doctest::Approx(2 * work.forward() + 4 * pair + work.backward()).epsilon(1e-6));
  }
}

TEST_CASE("a pair hides what no pass hides of itself") {
  const Work work{10, 10, 10, 30, 20};
  // Both compute for 30 ms and send for 50, whatever of that each hides of its own.
  for (const auto& [overlap, forward, backward] :
       {std::tuple{"0", 40, 40}, {"0.5", 30, 30}, {"1", 30, 30}}) {
    const Outcome outcome = outcome_of("name: 1f1b, micro_batches: 5", 1, 1, work,
                                       {fmt::format("cluster.device.network_overlap={}", overlap)});
    CHECK(ms(outcome.metrics.makespan) ==
          doctest::Approx(forward + 4 * 50 + backward).epsilon(1e-6));
  }
}

TEST_CASE("what is made again in part sends nothing, and hides what others send") {
  const std::string text =
      "version: 1\n"
      "model: {layers: [{name: a, flops: 10 GFLOP, network_traffic: {forward: 30 MB, "
      "backward_input: 30 MB}, activation: 2 MB, selective: {activation: 1 MB, flops: 8 GFLOP}}]}\n"
      "cluster: {devices: 1, device: {peak: 1 TFLOP/s, memory_bandwidth: 1000 TB/s, efficiency: 1, "
      "network: 1 GB/s, network_overlap: 1}}\n"
      "plan: {stages: 1, partition: balanced}\n"
      "schedule: {name: 1f1b, micro_batches: 5, pairs: overlapped, recompute: selective}\n";
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  REQUIRE(scenario);
  const auto outcome = predict_resolved(*scenario);
  REQUIRE(outcome);
  CHECK(ms(outcome->metrics.makespan) == doctest::Approx(30 + 4 * 60 + 48).epsilon(1e-6));
}

TEST_CASE("a pair holds what both need until it ends") {
  // One stage: B_i and F_(i+1) at once, so that two micro-batches are there.
  const Outcome paired = outcome_of("name: 1f1b, micro_batches: 5", 1, 1, Work{});
  const Outcome apart =
      outcome_of("name: 1f1b, micro_batches: 5", 1, 1, Work{}, {"schedule.pairs=apart"});
  CHECK(apart.memory[0].peak_in_flight == 1);
  CHECK(paired.memory[0].peak_in_flight == 2);
  CHECK(paired.memory[0].peak.activations == Bytes{2 * apart.memory[0].peak.activations.count});
  CHECK(max_in_flight(paired.setup.schedule) == std::vector<std::uint32_t>{2});
}

TEST_CASE("of the two ways to pair a list the faster one is taken") {
  // F first: in 1F1B the last stage has the F and B of one micro-batch side by side.
  const Outcome outcome = outcome_of("name: 1f1b, micro_batches: 16", 4, 1, Work{});
  const auto& partners = outcome.setup.schedule.partners;
  const auto& order = outcome.setup.schedule.issue_order;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (partners[i] > i) CHECK(order[i].kind == OpKind::backward);
  }
  // 16 - 4 on the first device, one more on each behind it.
  CHECK(outcome.graph.pairs.size() == 12 + 13 + 14 + 15);
}

TEST_CASE("pairs of eager 1F1B hide as much with as many micro-batches as the pipeline takes") {
  // From 2p - 1 micro-batches on the first way leaves the last device without pairs.
  const Work work{10, 10, 10, 18, 18};
  for (const auto& [micro_batches, time] :
       {std::pair{5, 328}, {6, 364}, {7, 400}, {8, 436}, {16, 724}}) {
    const Outcome outcome =
        outcome_of(fmt::format("name: eager-1f1b, micro_batches: {}", micro_batches), 4, 1, work);
    CHECK(ms(outcome.metrics.makespan) == doctest::Approx(time).epsilon(1e-6));
  }
}

TEST_CASE("in pairs more micro-batches take longer, and where much is sent not longer than apart") {
  for (const Work& work : {Work{}, Work{10, 10, 10, 18, 18}, Work{10, 12, 9, 30, 5}}) {
    for (const auto& [its_name, chunks] : {std::pair<std::string, int>{"1f1b", 1},
                                           {"eager-1f1b", 1},
                                           {"interleaved-1f1b", 2},
                                           {"chimera", 1},
                                           {"dualpipe", 1},
                                           {"dualpipev", 2}}) {
      const auto& name = its_name;
      for (const int devices : {2, 3, 4}) {
        CAPTURE(name);
        CAPTURE(devices);
        Duration before{};
        for (int m = 1; m <= 16; ++m) {
          CAPTURE(m);
          const std::string schedule = fmt::format("name: {}, micro_batches: {}", name, m);
          const auto scenario = scenario_of(schedule, devices, chunks, work);
          if (!scenario) continue;
          const auto paired = predict_resolved(*scenario, Evaluation::fastest);
          if (!paired) continue;  // not with so few
          CHECK(paired->metrics.makespan >= before);
          before = paired->metrics.makespan;
          if (work.forward_sent == 0 || name == "1f1b" || name == "chimera") continue;
          const Outcome apart =
              outcome_of(schedule, devices, chunks, work, {"schedule.pairs=apart"});
          CHECK(paired->metrics.makespan <= apart.metrics.makespan);
        }
        CHECK((before.count() > 0 || devices == 3));
      }
    }
  }
}

/// The same with every F in a pair with the B behind it, by a file.
Outcome all_paired(const std::string& schedule, int devices, int chunks, const Work& work) {
  const Outcome apart = outcome_of(schedule, devices, chunks, work, {"schedule.pairs=apart"});
  const auto ways = pair_up(apart.setup.schedule, {}, {});
  REQUIRE(ways);
  const TemporaryFolder folder;
  const std::string file = folder.file("order.csv", torch_csv(ways->front()));
  std::vector<std::string> of_stages;
  for (int s = 0; s < devices * chunks; ++s) {
    of_stages.push_back(chunks == 1 ? fmt::format("[{}, {}]", s, devices - 1 - s)
                                    : fmt::format("[{}]", std::min(s, 2 * devices - 1 - s)));
  }
  return outcome_of("file: " + file, devices, chunks, work,
                    {fmt::format("plan.devices=[{}]", fmt::join(of_stages, ", "))});
}

TEST_CASE("the bubble of DualPipe with each pair at once is the published one") {
  // (p/2 - 1)(F&B + B - 3 W) (DeepSeek-AI 2024, "DeepSeek-V3", table 2), on the device with the
  // most pairs, for I no shorter than F; else F in the place of I, which B - W is.
  for (const Work& work : {Work{}, Work{12, 11, 9}, Work{10, 10, 10, 18, 18},
                           Work{10, 10, 10, 14, 20}, Work{20, 15, 5, 30, 30}}) {
    for (const int p : {2, 4, 6, 8}) {
      CAPTURE(p);
      const int longer = std::max(work.forward(), work.input());
      const int each = work.pair() + longer + work.w - 3 * work.w;
      const auto max_idle = [&](const std::string& schedule, int chunks) {
        const Outcome outcome = all_paired(schedule, p, chunks, work);
        Duration max{};
        for (const DeviceMetrics& device : outcome.metrics.devices)
          max = std::max(max, device.idle);
        return ms(max);
      };
      CHECK(std::abs(max_idle(fmt::format("name: dualpipe, micro_batches: {}", 4 * p), 1) -
                     (p / 2 - 1) * each) < 20 * kUpdate);
      CHECK(std::abs(max_idle(fmt::format("name: dualpipev, micro_batches: {}", 3 * p), 2) -
                     (p - 1) * each) < 20 * kUpdate);
    }
  }
}

TEST_CASE(
    "DualPipe by name leaves the first pair of its middle apart, as DeepSeek's program does") {
  const Work work{10, 10, 10, 18, 18};
  const auto run = [&](const std::string& schedule, int devices, int chunks) {
    return outcome_of(schedule, devices, chunks, work);
  };
  CHECK(ms(run("name: dualpipe, micro_batches: 8", 4, 1).metrics.makespan) ==
        doctest::Approx(372).epsilon(1e-6));
  CHECK(ms(all_paired("name: dualpipe, micro_batches: 8", 4, 1, work).metrics.makespan) ==
        doctest::Approx(362).epsilon(1e-6));
  for (const auto& [schedule, devices, chunks, apart] :
       {std::tuple{"name: dualpipe, micro_batches: 12", 6, 1, 2},
        {"name: dualpipe, micro_batches: 4", 2, 1, 2},
        {"name: dualpipev, micro_batches: 9", 4, 2, 1}}) {
    const Outcome named = run(schedule, devices, chunks);
    const Outcome all = all_paired(schedule, devices, chunks, work);
    CHECK(all.graph.pairs.size() - named.graph.pairs.size() == static_cast<std::size_t>(apart));
    // On the devices whose stages are neighbours the first F before a B is alone.
    const Schedule& order = named.setup.schedule;
    const OpLists lists = order.lists();
    const PairStarts starts = pair_starts(order);
    for (std::size_t slot = 0; slot < lists.size(); ++slot) {
      const bool is_middle = chunks == 2 ? static_cast<int>(slot) == devices - 1
                                         : static_cast<int>(slot) == devices / 2 - 1 ||
                                               static_cast<int>(slot) == devices / 2;
      std::size_t i = 0;
      while (lists[slot][i + 1].kind != OpKind::backward) ++i;
      CHECK(lists[slot][i].kind == OpKind::forward);
      CHECK(starts[slot][i] == !is_middle);
      CHECK((starts[slot][i + 2] || !is_middle));
    }
  }
}

TEST_CASE("a pair begins with the inputs of both, and what it makes leaves when both have ended") {
  const std::vector<std::pair<std::string, int>> schedules = {
      {"name: 1f1b, micro_batches: 7", 1},
      {"name: eager-1f1b, micro_batches: 9, mini_batches: 2", 1},
      {"name: dualpipe, micro_batches: 16", 1},
      {"name: dualpipev, micro_batches: 11", 2},
      {"name: chimera, micro_batches: 8", 1},
      {"name: interleaved-1f1b, micro_batches: 8, mini_batches: 2", 2}};
  std::uint64_t seed = 0;
  for (const auto& named : schedules) {
    const std::string& schedule = named.first;
    const int chunks = named.second;
    CAPTURE(schedule);
    for (std::uint64_t trial = 0; trial < trials(5); ++trial) {
      Dice dice(++seed);
      const auto roll = [&](int max) { return static_cast<int>(dice.roll(1, max)); };
      const Work work{roll(20), roll(20), roll(20), roll(40), roll(40)};
      const int copies = roll(2);
      const std::vector<std::string> links = {fmt::format("cluster.link.latency={} us", roll(9000)),
                                              fmt::format("plan.data_parallel={}", copies),
                                              fmt::format("cluster.devices={}", 4 * copies)};
      const Outcome outcome = outcome_of(schedule, 4, chunks, work, links);
      const OpGraph& graph = outcome.graph;
      const std::vector<Span>& spans = outcome.trace.spans;
      const Outcome events = outcome_of(schedule, 4, chunks, work, links, Evaluation::events);
      CHECK(events.metrics.makespan == outcome.metrics.makespan);
      if (events.graph.size() == graph.size()) CHECK(events.trace.spans == spans);

      const std::vector<std::uint32_t>& partners = outcome.setup.schedule.partners;
      const std::vector<Op>& order = outcome.setup.schedule.issue_order;
      REQUIRE(partners.size() == order.size());
      std::size_t pairs = 0;
      // By kind, stage and micro-batch, the node of an op, and of the transfer that feeds it.
      using Key = std::tuple<ActivityKind, std::uint32_t, std::uint32_t>;
      std::map<Key, std::uint32_t> nodes;
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        const Activity& activity = graph.activities[node];
        if (is_op(activity.kind) || is_transfer(activity.kind))  // the first copy of each
          nodes.try_emplace({activity.kind, activity.stage.value, activity.micro_batch.value},
                            node);
      }
      const auto span_of = [&](ActivityKind kind, const Op& op) -> const Span* {
        const auto found = nodes.find({kind, op.stage.value, op.micro_batch.value});
        return found == nodes.end() ? nullptr : &spans[found->second];
      };
      for (std::uint32_t i = 0; i < order.size(); ++i) {
        if (partners[i] <= i) continue;
        ++pairs;
        const Op& first = order[i];
        const Op& second = order[partners[i]];
        CHECK(partners[partners[i]] == i);
        CHECK(first.micro_batch != second.micro_batch);
        const Span& a = *span_of(static_cast<ActivityKind>(first.kind), first);
        const Span& b = *span_of(static_cast<ActivityKind>(second.kind), second);
        CHECK(a.end == b.begin);
        CHECK(ms(b.end - a.begin) == doctest::Approx(work.pair()).epsilon(1e-6));
        for (const Op& op : {first, second}) {
          const bool up = op.kind == OpKind::forward;
          const ActivityKind moves =
              up ? ActivityKind::activation_transfer : ActivityKind::gradient_transfer;
          if (const Span* input = span_of(moves, op)) CHECK(input->end <= a.begin);
          if (!up && op.stage.value == 0) continue;
          const Op consumer{
              op.kind, {up ? op.stage.value + 1 : op.stage.value - 1}, op.micro_batch};
          if (const Span* output = span_of(moves, consumer)) CHECK(output->begin >= b.end);
        }
      }
      CHECK(pairs > 0);
    }
  }
}

TEST_CASE("in pairs a run has the same ops, tensors and peaks, in the same order on each device") {
  for (const std::string schedule :
       {"name: eager-1f1b, micro_batches: 9", "name: dualpipe, micro_batches: 12"}) {
    const Outcome paired = outcome_of(schedule, 4, 1, Work{});
    const Outcome apart = outcome_of(schedule, 4, 1, Work{}, {"schedule.pairs=apart"});
    CHECK(paired.setup.schedule.lists() == apart.setup.schedule.lists());
    CHECK(paired.graph.size() == apart.graph.size());
    for (std::size_t slot = 0; slot < paired.memory.size(); ++slot)
      CHECK(paired.memory[slot].peak_in_flight == apart.memory[slot].peak_in_flight);
    CHECK(paired.metrics.makespan >= apart.metrics.makespan);  // nothing is sent
    const auto& notes = paired.setup.notes;
    CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("which hide nothing of each other") != std::string::npos;
    }));
  }
}

TEST_CASE("an op that is cut into buckets runs beside nothing") {
  // Each device has a replica of both stages. The last backward of one stands beside the first
  // forward of the other.
  const TemporaryFolder folder;
  const std::string file = folder.file("order.csv", "0F0,1F1,0B0,1B1\n0F1,1F0,1B0,0B1\n");
  const std::string text = fmt::format(
      "version: 1\n"
      "model: {{uniform: {{layers: 4, flops: 10 GFLOP, network_traffic: {{forward: 36 MB, "
      "backward_input: 36 MB}}, parameters: 50 MB}}}}\n"
      "cluster: {{devices: 2, link: {{bandwidth: 10 GB/s}}, device: {{peak: 1 TFLOP/s, "
      "memory_bandwidth: 1000 TB/s, efficiency: 1, network: 1 GB/s}}}}\n"
      "plan: {{stages: 2, partition: balanced, devices: [[0, 1], [1, 0]]}}\n"
      "schedule: {{file: {}}}\n",
      file);
  const auto run = [&](const std::vector<std::string>& overrides) {
    const auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    auto outcome = predict_resolved(*scenario);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return *std::move(outcome);
  };
  const std::string paired = "schedule.pairs=overlapped";
  const std::string cut = "schedule.bucket=10 MB";
  CHECK_FALSE(run({paired}).graph.pairs.empty());
  CHECK(run({paired}).metrics.makespan != run({}).metrics.makespan);
  CHECK(run({paired, cut}).graph.pairs.empty());
  CHECK(run({paired, cut}).metrics.makespan == run({cut}).metrics.makespan);
}

TEST_CASE("pairs are written and read in PyTorch's form, and a file's are those that run") {
  const TemporaryFolder folder;
  for (const std::string schedule :
       {"name: dualpipe, micro_batches: 12", "name: 1f1b, micro_batches: 12"}) {
    const Work work{10, 10, 10, 18, 18};
    const Outcome named = outcome_of(schedule, 4, 1, work);
    const std::string csv = torch_csv(named.setup.schedule);
    CHECK(csv.find(")OVERLAP_F_B,") != std::string::npos);
    const std::string file = "file: " + folder.file("order.csv", csv);
    const bool both_ways = schedule.find("dualpipe") != std::string::npos;
    std::vector<std::string> overrides;
    if (both_ways) overrides = {"plan.devices=[[0, 3], [1, 2], [2, 1], [3, 0]]"};
    const Outcome read = outcome_of(file, 4, 1, work, overrides);
    CHECK(read.metrics.makespan == named.metrics.makespan);
    CHECK(read.graph.pairs.size() == named.graph.pairs.size());
    CHECK(torch_csv(read.setup.schedule) == csv);
  }
  // One of the two that could be.
  const std::string one =
      folder.file("one.csv", "0F0,0F1,0F2,(0B0;0F3)OVERLAP_F_B,0B1,0F4,0B2,0B3,0B4\n");
  CHECK(outcome_of("file: " + one, 1, 1, Work{}).graph.pairs.size() == 1);
  const std::string same = folder.file("same.csv", "0F0,(0F1;0B1)OVERLAP_F_B,0B0\n");
  const auto scenario = scenario_of("file: " + same, 1, 1, Work{});
  REQUIRE(scenario);
  const auto outcome = predict_resolved(*scenario);
  REQUIRE_FALSE(outcome);
  CHECK(
      outcome.problems().front().message ==
      "schedule.pairs is overlapped, but the pair of 0F1 and 0B1 is no forward and whole backward "
      "of two micro-batches");
}

TEST_CASE("what has no pairs, or cannot have them, says so") {
  const auto refused = [](const std::string& schedule, const std::vector<std::string>& overrides) {
    const auto scenario = scenario_of(schedule, 4, 1, Work{}, overrides);
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto outcome = predict_resolved(*scenario);
    REQUIRE_FALSE(outcome);
    return outcome.problems().front().message;
  };
  CHECK(refused("name: zb-h1, micro_batches: 4", {}) ==
        "the schedule 'zb-h1' has no forward right beside the whole backward of another "
        "micro-batch");
  CHECK(refused("name: gpipe, micro_batches: 4", {}) ==
        "in pairs, the ops of the schedule 'gpipe' wait for each other");
  CHECK(refused("name: pipedream, micro_batches: 4", {}) ==
        "schedule.pairs is overlapped, but the schedule updates after every backward");
  CHECK(refused("name: 1f1b, micro_batches: 4", {"schedule.transfers=blocking"}) ==
        "schedule.pairs is overlapped, and schedule.transfers blocking");
  CHECK(refused("name: 1f1b, micro_batches: 4", {"schedule.slices=2"}) ==
        "schedule.pairs is overlapped, and micro-batches are cut into slices");
  CHECK(refused("name: 1f1b, micro_batches: 4",
                {"training.zero_stage=2", "plan.data_parallel=2", "cluster.devices=8"}) ==
        "schedule.pairs is overlapped, and training.zero_stage 2, which cuts each backward into "
        "buckets");
}

}  // namespace
}  // namespace plumbline::test
