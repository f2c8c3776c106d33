// Random valid scenarios, as text and through the whole tool; every law on each.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/engine/simulate.h"
#include "sim/planning/predict.h"
#include "sim/report/report.h"
#include "sim/whatif/sweep.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

constexpr std::uint64_t kScenarios = trials(10'000);

/// Writes scenarios that keep all rules of the contract.
class Author {
 public:
  explicit Author(std::uint64_t seed) : dice_(seed) {}

  std::string write() {
    layers_ = dice_.roll(1, 9);
    stages_ = dice_.roll(1, std::min<std::int64_t>(layers_, 5));
    const auto& rules = schedule_rules();
    rule_ = &rules[static_cast<std::size_t>(
        dice_.roll(0, static_cast<std::int64_t>(rules.size()) - 1))];
    if (rule_->whole_model) stages_ = 1;
    choose_replicas();
    if (rule_->chunks) choose_chunks(*rule_->chunks);
    recomputes_ = chance(3);
    is_full_ = recomputes_ && chance(2);
    return "version: 1\n" + model() + cluster() + plan() + schedule() + training() + overhead();
  }

 private:
  bool chance(std::int64_t one_in) { return dice_.roll(1, one_in) == 1; }
  std::string time(std::int64_t max_us) { return fmt::format("{} us", dice_.roll(0, max_us)); }
  std::string bytes(std::int64_t max_kib) { return fmt::format("{} KiB", dice_.roll(0, max_kib)); }

  void choose_chunks(const ChunkRule& rule) {
    devices_ = dice_.roll(1, 4);
    chunks_ = rule.max_chunks > 2 ? dice_.roll(2, 3) : rule.max_chunks;
    if (rule.even_devices) devices_ += devices_ % 2;
    stages_ = devices_ * chunks_;
    layers_ = stages_ + dice_.roll(0, 3);
    replicas_.assign(static_cast<std::size_t>(stages_), 1);
    shares_device_ = false;
    micro_batches_ = std::max(micro_batches_, devices_ * rule.min_rounds);
    micro_batches_ *= replicas_in(rule.placement);
  }

  void choose_replicas() {
    replicas_.assign(static_cast<std::size_t>(stages_), 1);
    copies_ = 1;
    micro_batches_ = dice_.roll(1, 10);
    shares_device_ = !rule_->whole_model && stages_ > 1 && chance(4);
    if (rule_->whole_model) {
      copies_ = dice_.roll(1, 5);
    } else {
      if (!rule_->asynchronous && chance(3)) copies_ = dice_.roll(1, 3);
      if (!shares_device_ && chance(3)) {
        for (std::int64_t& r : replicas_) r = dice_.roll(1, 3);
        if (!rule_->asynchronous) micro_batches_ = 6 * dice_.roll(1, 2);
      }
    }
    devices_ = 0;
    for (const std::int64_t r : replicas_) devices_ += r;
    if (shares_device_) --devices_;
  }

  std::string costs() {
    std::string text = fmt::format("forward: {}, ", time(40));
    text += chance(3) ? fmt::format("backward_input: {}, backward_weight: {}, ", time(40), time(40))
                      : fmt::format("backward: {}, ", time(80));
    return text + fmt::format("output: {}, activation: {}, parameters: {}, update: {}", bytes(64),
                              bytes(64), bytes(64), time(chance(2) ? 0 : 9));
  }

  std::string model() {
    std::string text = "model:\n";
    if (chance(2)) {
      text += fmt::format("  uniform: {{layers: {}, {}}}\n", layers_, costs());
    } else {
      text += "  layers:\n";
      for (std::int64_t i = 0; i < layers_; ++i)
        text += fmt::format("    - {{name: l{}, {}}}\n", i, costs());
      if (layers_ > 2 && chance(2)) {
        std::vector<std::string> edges;
        for (std::int64_t i = 1; i < layers_; ++i) {
          edges.push_back(fmt::format("[l{}, l{}]", dice_.roll(0, i - 1), i));
          if (i > 1 && chance(2)) edges.push_back(fmt::format("[l{}, l{}]", i - 2, i));
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        text += fmt::format("  edges: [{}]\n", fmt::join(edges, ", "));
      }
    }
    has_batch_ = chance(2);
    if (has_batch_) text += fmt::format("  batch: {}\n", dice_.roll(1, 64));
    return text;
  }

  std::string link() {
    return fmt::format("latency: {}{}", time(chance(2) ? 0 : 20),
                       chance(2) ? "" : fmt::format(", bandwidth: {} GB/s", dice_.roll(1, 40)));
  }

  std::string cluster() {
    const std::int64_t needed = devices_ * copies_;
    std::string text = "cluster:\n";
    // data-parallel takes every device, so there are as many as copies. With spare devices stages
    // could be as many as there are devices, and several on a device would be more of them.
    const bool takes_all = rule_->whole_model || (rule_->chunks && chunks_ > 1);
    if (!rule_->whole_model && chance(3)) {
      const std::int64_t size = takes_all ? 1 : dice_.roll(1, 3);
      text += fmt::format("  levels: [{{size: {}, {}}}, {{size: {}, {}}}]\n", size, link(),
                          (needed + size - 1) / size, link());
    } else {
      const std::int64_t spare = takes_all ? 0 : dice_.roll(0, 2);
      text += fmt::format("  devices: {}\n  link: {{{}}}\n", needed + spare, link());
    }
    if (chance(3)) text += "  memory: 1 GiB\n";
    return text;
  }

  std::string plan() {
    std::string text = "plan:\n";
    if (!rule_->whole_model) {
      text += fmt::format("  stages: {}\n", stages_);
      if (copies_ > 1) text += fmt::format("  data_parallel: {}\n", copies_);
      if (devices_ > stages_) text += fmt::format("  replicas: [{}]\n", fmt::join(replicas_, ", "));
      if (shares_device_) {
        const std::int64_t twice = dice_.roll(0, stages_ - 2);
        std::vector<std::int64_t> devices;
        for (std::int64_t s = 0; s < stages_; ++s) devices.push_back(s > twice ? s - 1 : s);
        text += fmt::format("  devices: [{}]\n", fmt::join(devices, ", "));
      }
    }
    text += chance(2) ? "  partition: balanced\n" : "  partition: even\n";
    return text;
  }

  std::string schedule() {
    std::string text =
        fmt::format("schedule:\n  name: {}\n  micro_batches: {}\n", rule_->name, micro_batches_);
    if (rule_->chunks && rule_->chunks->max_chunks > 1)
      text += fmt::format("  chunks: {}\n", chunks_);
    if (chance(3)) text += fmt::format("  mini_batches: {}\n", dice_.roll(1, 3));
    if (chance(4)) text += "  transfers: blocking\n";
    if (recomputes_) text += is_full_ ? "  recompute: full\n" : "  recompute: layers\n";
    if (chance(3)) text += "  update_lag: 0\n";
    if (chance(3)) text += fmt::format("  bucket: {} KiB\n", dice_.roll(1, 64));
    return text;
  }

  std::string training() {
    std::string text = "training:\n";
    if (chance(2)) {
      text += chance(2) ? fmt::format("  micro_batch_size: {}\n", dice_.roll(1, 64))
                        : fmt::format("  mini_batch_size: {}\n",
                                      micro_batches_ * copies_ * dice_.roll(1, 16));
    }
    if (!rule_->asynchronous && chance(3)) {
      const bool has_replicas =
          std::any_of(replicas_.begin(), replicas_.end(), [](std::int64_t r) { return r > 1; });
      const bool in_two_places = rule_->chunks && replicas_in(rule_->chunks->placement) > 1;
      const bool splits =
          rule_->chunks && rule_->name != "interleaved-1f1b" && rule_->name != "looped-bfs";
      const std::int64_t max = has_replicas || in_two_places ? 1 : splits || is_full_ ? 2 : 3;
      text += fmt::format("  zero_stage: {}\n", dice_.roll(1, max));
      if (chance(2)) text += "  gather: with-forward\n";
    }
    if (chance(4)) text += "  gradients: 1.5\n";
    return text + fmt::format("  optimizer_state: {}\n", dice_.roll(0, 4));
  }

  std::string overhead() {
    if (chance(2)) return "";
    return fmt::format("overhead: {{per_op: {}, hand_over: {}, per_iteration: {}}}\n", time(3),
                       time(3), time(9));
  }

  Dice dice_;
  const ScheduleRule* rule_ = nullptr;
  std::int64_t layers_ = 1;
  std::int64_t stages_ = 1;
  std::vector<std::int64_t> replicas_;
  std::int64_t copies_ = 1;
  std::int64_t micro_batches_ = 1;
  std::int64_t chunks_ = 1;
  std::int64_t devices_ = 1;
  bool shares_device_ = false;
  bool has_batch_ = false;
  bool recomputes_ = false;
  bool is_full_ = false;  ///< Whether backwards begin with the whole forward.
};

void check_time(const Outcome& p) {
  const Metrics& m = p.metrics;
  for (const DeviceMetrics& device : m.devices) {
    CHECK(device.busy + device.idle == m.makespan);
    CHECK(device.idle_by_cause.sum() == device.idle);
    for (const IdleCause cause : kIdleCauses) CHECK(device.idle_by_cause.of(cause) >= Duration{});
    CHECK(device.span <= m.makespan);
  }
  CHECK(m.bubble_fraction() >= 0);
  CHECK(m.bubble_fraction() <= 1);
  CHECK(m.communication_stall_fraction() <= m.bubble_fraction() + 1e-12);
  CHECK(m.operations ==
        std::ssize(p.setup.schedule.issue_order) * p.setup.rules.mini_batches * p.setup.copies());
  if (p.formula && m.makespan.count() > 0) {
    CHECK(m.makespan == p.formula->makespan * p.setup.mini_batches);
    CHECK(m.bubble_fraction() == close_to(p.formula->bubble_fraction));
  }
  if (m.steady) {
    CHECK(m.steady->fill + m.steady->length + m.steady->drain == m.makespan);
    CHECK(m.steady->first < m.steady->last);
  }
}

void check_two_evaluations(const Outcome& p) {
  const auto shared = p.graph.shared_channels();
  if (std::none_of(shared.begin(), shared.end(), [](bool s) { return s; })) {
    CHECK(longest_path(p.graph) == p.trace);
    return;
  }
  // Sharing only ever delays: nothing ends before it would with cards of its own.
  OpGraph apart = p.graph;
  for (Channel& channel : apart.channels) channel.path.out = channel.path.in = std::nullopt;
  CHECK(longest_path_end(apart).time_since_epoch() <= p.metrics.makespan);
}

void check_memory(const Outcome& p) {
  const auto all = memory_steps(p.graph, p.trace, p.setup.costs, p.setup.schedule.shape.positions,
                                memory_rules(p.setup));
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    const auto& steps = all[slot];
    const MemoryParts& peak = p.memory[slot].peak;
    Bytes max;
    std::int32_t flying = 0;
    for (const MemoryStep& step : steps) {
      CHECK(step.activations >= Bytes{});
      CHECK(step.buffers >= Bytes{});
      CHECK(step.in_flight >= 0);
      max = std::max(max, step.activations + step.buffers);
      flying = std::max(flying, step.in_flight);
    }
    CHECK(peak.activations + peak.buffers == max);
    CHECK(p.memory[slot].peak_in_flight == static_cast<std::uint32_t>(flying));
    if (steps.empty()) continue;
    CHECK(steps.back().activations == Bytes{});
    CHECK(steps.back().buffers == Bytes{});
    CHECK(steps.back().in_flight == 0);
  }
  // No position has more in flight than its window.
  const PipelineShape& shape = p.setup.schedule.shape;
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    if (p.setup.schedule.host_loop) break;
    for (const std::uint32_t slot : p.graph.stage_slots[shape.positions[i].first_stage])
      if (!p.setup.windows.empty()) CHECK(p.memory[slot].peak_in_flight <= p.setup.windows[i]);
  }
}

/// The JSON holds the same numbers, and no more.
void check_json(const Outcome& p) {
  const auto json = nlohmann::json::parse(to_json(p, "0"));
  CHECK(json["device_count"] == p.graph.slots());
  double busy = 0, idle = 0;
  for (const auto& device : json["devices"]) {
    busy += device["busy_s"].get<double>();
    idle += device["idle_s"].get<double>();
  }
  CHECK(busy + idle == close_to(json["makespan_s"].get<double>() * p.graph.slots()));
  if (!json["throughput_samples_per_s"].is_null()) {
    CHECK(json["throughput_samples_per_s"].get<double>() * json["iteration_time_s"].get<double>() ==
          close_to(static_cast<double>(p.setup.micro_batch_size) * p.setup.micro_batches *
                   p.setup.copies()));
  }
}

/// Rows of a sweep over the scenario are what predict gives for each point, to the tick.
void check_sweep(const std::string& text) {
  const std::vector<std::string> axes = {"schedule.micro_batches=6,7,12",
                                         "overhead.per_op=0 us,3 us"};
  const auto source = text_source("random.yaml", text);
  const auto sweep = Sweep::parse(source, axes);
  REQUIRE_MESSAGE(sweep, (sweep ? "" : to_text(sweep.problems())));
  const auto combined = combinations(axes);
  REQUIRE(combined->size() == sweep->points());
  for (std::uint64_t point = 0; point < sweep->points(); ++point) {
    CAPTURE(point);
    const SweepRow row = sweep->evaluate(point);
    const auto scenario = parse_scenario(source, (*combined)[point]);
    const auto outcome = scenario ? predict(*scenario) : Result<Outcome>(scenario.problems());
    REQUIRE(row.numbers.has_value() == static_cast<bool>(outcome));
    if (!outcome) {
      CHECK(row.reason == outcome.problems().front().message);
      continue;
    }
    const SweepNumbers& numbers = *row.numbers;
    const Metrics& metrics = outcome->metrics;
    CHECK(numbers.iteration_time_s == outcome->iteration_time_s);
    CHECK(numbers.throughput_samples_per_s == outcome->throughput_samples_per_s);
    CHECK(numbers.bubble_fraction == metrics.bubble_fraction());
    CHECK(numbers.bubble_overhead == metrics.bubble_overhead());
    CHECK(numbers.communication_stall_fraction == metrics.communication_stall_fraction());
    CHECK(numbers.steady_bubble_fraction.has_value() == metrics.steady.has_value());
    CHECK(numbers.formula_bubble_fraction.has_value() == outcome->formula.has_value());
    CHECK(numbers.fits == outcome->fits());
    Bytes max;
    for (const DeviceMemory& device : outcome->memory) max = std::max(max, device.peak.sum());
    CHECK(numbers.peak_memory_bytes == max.count);
    CHECK(row.estimated == outcome->setup.estimated);
  }
}

TEST_CASE("every law holds on every random scenario" * doctest::test_suite("slow")) {
  std::uint64_t steady = 0, shared = 0, reducing = 0;
  for (std::uint64_t seed = 1; seed <= kScenarios; ++seed) {
    const std::string text = Author(seed).write();
    CAPTURE(text);
    const auto scenario = parse_scenario(text_source("random.yaml", text), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto prediction = predict(*scenario);
    if (!prediction && prediction.problems().front().fault == Fault::infeasible) {
      // Only updates that wait for each other may stop a valid scenario.
      REQUIRE(text.find("update_lag: 0") != std::string::npos);
      continue;
    }
    REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
    check_time(*prediction);
    check_two_evaluations(*prediction);
    check_memory(*prediction);
    if (seed % 10 == 0) check_json(*prediction);
    if (seed % 20 == 0) check_sweep(text);
    steady += prediction->metrics.steady ? 1 : 0;
    reducing += prediction->metrics.all_reduces > 0 ? 1 : 0;
    const auto cards = prediction->graph.shared_channels();
    shared += std::any_of(cards.begin(), cards.end(), [](bool s) { return s; }) ? 1 : 0;
  }
  // The generator reaches what it is for.
  CHECK(steady * 20 > kScenarios);
  CHECK(reducing * 10 > kScenarios);
  CHECK(shared * 50 > kScenarios);
}

}  // namespace
}  // namespace plumbline::test
