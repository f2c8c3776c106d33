// Real runs on the synthetic backend: what was measured obeys the laws, the books agree with the
// trace, and the prediction is met.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/synthetic.h"
#include "sim/engine/idle.h"
#include "sim/engine/release.h"
#include "sim/engine/simulate.h"
#include "sim/planning/predict.h"
#include "tests/support/load.h"
#include "tests/support/rules.h"
#include "tests/support/subject.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

Subject subject_of(const std::string& text) {
  return Subject(parse_scenario(text_source("runner.yaml", text), {}), /*for_run=*/true);
}

Subject example(const std::string& file, const std::vector<std::string>& overrides = {}) {
  return Subject(read_scenario("examples/" + file + ".yaml", overrides), /*for_run=*/true);
}

RunOptions few(std::uint32_t iterations) {
  RunOptions options;
  options.warm_up = 0;
  options.iterations = options.max_iterations = iterations;
  return options;
}

RunRecord record_of(const Subject& subject, const Noise& synthetic, const RunOptions& options) {
  const auto backend = synthetic_backend(synthetic);
  auto result = run(subject.plan(), *backend, nodes_by_slot(subject.graph), options);
  const auto* failure = std::get_if<RunFailure>(&result);
  REQUIRE_MESSAGE(
      !failure, (failure ? failure->message + "\n" + to_text(subject.graph, failure->stands) : ""));
  return std::get<RunRecord>(std::move(result));
}

// ---- laws ----

void check_waits(const OpGraph& graph, const Trace& trace) {
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Span& span = trace.spans[node];
    CAPTURE(to_text(graph.activities[node]));
    CHECK(span.begin >= SimTime{});
    CHECK(span.end >= span.begin);
    if (graph.nodes[node].input != graph.size())
      CHECK(span.begin >= trace.spans[graph.nodes[node].input].end);
    if (is_compute(graph.activities[node].kind)) CHECK(span.begin >= released(graph, trace, node));
  }
  for (const Join& join : graph.joins) {
    for (const std::uint32_t producer : join.inputs)
      CHECK(trace.spans[join.node].begin >= trace.spans[producer].end);
  }
}

/// Streams and channels carry one thing at a time, in the order of the graph.
void check_order(const OpGraph& graph, const Trace& trace) {
  std::vector<std::uint32_t> last(graph.resources(), graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Node& n = graph.nodes[node];
    CAPTURE(to_text(graph.activities[node]));
    for (const std::uint32_t resource : {n.resource, n.peer_resource}) {
      const std::uint32_t before = last[resource];
      if (before != graph.size() && before != node)
        CHECK(trace.spans[node].begin >= trace.spans[before].end - graph.cost(before).latency);
      last[resource] = node;
    }
  }
}

void check_lengths(const OpGraph& graph, const Trace& trace) {
  const std::vector<bool> shared = graph.shared_channels();
  const bool any_shared = std::find(shared.begin(), shared.end(), true) != shared.end();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Duration took = trace.spans[node].end - trace.spans[node].begin;
    const Duration min = graph.cost(node).hold + graph.cost(node).latency;
    CAPTURE(to_text(graph.activities[node]));
    CHECK(took >= min);
    if (!any_shared && !is_compute(graph.activities[node].kind)) CHECK(took == min);
  }
}

void check_books(const Subject& subject, const MeasuredIteration& iteration) {
  const OpGraph& graph = subject.graph;
  const StageCosts& costs = subject.setup.costs;
  const auto steps =
      memory_steps(graph, iteration.trace, costs, subject.setup.schedule.shape.positions,
                   memory_rules(subject.setup));
  const auto expected = measure_memory(graph, costs, memory_rules(subject.setup), steps);
  REQUIRE(iteration.memory.size() == expected.size());
  for (std::uint32_t slot = 0; slot < expected.size(); ++slot) {
    CAPTURE(slot);
    const MemoryParts& measured = iteration.memory[slot].peak;
    const MemoryParts& peak = expected[slot].peak;
    CHECK(measured.activations + measured.buffers == peak.activations + peak.buffers);
    CHECK(measured.weights == peak.weights);
    CHECK(measured.gradients == peak.gradients);
    CHECK(measured.optimizer == peak.optimizer);
    CHECK(measured.stash <= peak.stash);
    CHECK(iteration.memory[slot].peak_op == expected[slot].peak_op);
    CHECK(iteration.memory[slot].peak_in_flight == expected[slot].peak_in_flight);
    CHECK(iteration.memory[slot].weight_versions <= expected[slot].weight_versions);
    if (steps[slot].empty()) continue;
    CHECK(steps[slot].back().activations == Bytes{});
    CHECK(steps[slot].back().buffers == Bytes{});
  }
  // The versions reported for a stage are those of its fullest replica.
  for (std::uint32_t s = 0; s < graph.stage_slots.size(); ++s) {
    if (subject.setup.schedule.shape.positions.size() != graph.stage_slots.size()) break;
    std::uint32_t max = 0;
    for (const std::uint32_t slot : graph.stage_slots[s])
      max = std::max(max, iteration.memory[slot].weight_versions);
    CAPTURE(s);
    CHECK(max == subject.setup.weights[s].kept);
  }
}

std::int64_t computes(const OpGraph& graph) {
  return std::count_if(graph.activities.begin(), graph.activities.end(),
                       [](const Activity& activity) { return is_compute(activity.kind); });
}

void check_metrics(const Subject& subject, const MeasuredIteration& iteration) {
  const auto outcome = assess(subject.setup, subject.graph, iteration.trace);
  REQUIRE(outcome);
  const Metrics& metrics = outcome->metrics;
  for (const DeviceMetrics& device : metrics.devices) {
    CHECK(device.busy + device.idle == metrics.makespan);
    CHECK(device.idle_by_cause.sum() == device.idle);
    for (const IdleCause cause : kIdleCauses) CHECK(device.idle_by_cause.of(cause) >= Duration{});
  }
  CHECK(iteration.hand_over >= Duration{});
  CHECK(iteration.hand_overs == computes(subject.graph));
  CHECK(iteration.lost >= Duration{});
}

/// Runs it a few times; all laws on every iteration.
void check_laws(const Subject& subject, const Noise& synthetic = {}) {
  const RunRecord record = record_of(subject, synthetic, few(2));
  CHECK(record.iterations.size() == 2);
  for (const MeasuredIteration& iteration : record.iterations) {
    check_waits(subject.graph, iteration.trace);
    check_order(subject.graph, iteration.trace);
    if (synthetic.spread == 0) check_lengths(subject.graph, iteration.trace);
    check_books(subject, iteration);
    check_metrics(subject, iteration);
  }
}

/// Ops of 200 to 300 us, updates, sizes that differ, and what else is asked for.
std::string uneven(std::string_view schedule, std::string_view cluster, std::string_view plan,
                   std::string_view more, std::string_view training = "") {
  return fmt::format(
      "version: 1\nmodel:\n  layers:\n"
      "    - {{name: a, forward: 200 us, backward: 300 us, update: 30 us, output: 64 KiB, "
      "activation: 512 KiB, parameters: 1 MiB}}\n"
      "    - {{name: b, forward: 150 us, backward: 350 us, update: 20 us, output: 96 KiB, "
      "activation: 256 KiB, parameters: 3 MiB}}\n"
      "    - {{name: c, forward: 220 us, backward: 230 us, update: 10 us, output: 32 KiB, "
      "activation: 640 KiB, parameters: 2 MiB}}\n"
      "cluster: {{{}}}\nplan: {{{}}}\nschedule: {{name: {}{}}}\n"
      "training: {{optimizer_state: 2{}}}\n",
      cluster, plan, schedule, more, training);
}

TEST_CASE("in pairs a run holds both ops from the begin to the end of each, as predicted" *
          doctest::test_suite("measures")) {
  const Subject subject(
      parse_scenario(
          text_source("pairs.yaml",
                      "version: 1\nmodel: {uniform: {layers: 2, forward: 200 us, backward: 400 us, "
                      "activation: 10 MB}}\ncluster: {devices: 2}\n"
                      "schedule: {name: 1f1b, micro_batches: 3, pairs: overlapped}\n"),
          {}),
      true);
  for (const MeasuredIteration& iteration : record_of(subject, {}, few(2)).iterations) {
    CHECK(iteration.memory[0].peak_in_flight == 3);
    CHECK(iteration.memory[0].peak.sum() == Bytes{30'000'000});
    CHECK(iteration.memory[1].peak_in_flight == 2);
  }
}

TEST_CASE("every law holds on real runs of every schedule, overlapped and blocking" *
          doctest::test_suite("measures")) {
  for (const ScheduleRule& rule : window_rules()) {
    const std::string schedule(rule.name);
    CAPTURE(schedule);
    for (const std::string link : {"{}", "{latency: 40 us, bandwidth: 2 GB/s}"}) {
      CAPTURE(link);
      for (const std::string more :
           {", micro_batches: 4", ", micro_batches: 4, transfers: blocking",
            ", micro_batches: 4, mini_batches: 2, recompute: full",
            ", micro_batches: 2, transfers: blocking, recompute: full",
            ", micro_batches: 4, recompute: layers"}) {
        CAPTURE(more);
        const std::string cluster = "devices: 3, link: " + link;
        check_laws(subject_of(uneven(schedule, cluster, rule.whole_model ? "" : "stages: 3",
                                     rule.whole_model ? more + ", bucket: 2 MiB" : more)));
      }
    }
  }
}

TEST_CASE("a gap before a part of an op is a hand-over like one before an op" *
          doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      uneven("data-parallel", "devices: 2, link: {}", "", ", micro_batches: 3, bucket: 1 MiB"));
  const OpGraph& graph = subject.graph;
  MeasuredIteration iteration;
  iteration.trace = simulate(graph);
  count_hand_over(graph, iteration);
  CHECK(iteration.hand_over == Duration{});
  CHECK(iteration.hand_overs == computes(graph));
  // Each of the first device begins 5 us behind the one before it.
  const std::vector<std::uint32_t> nodes = nodes_by_slot(graph).front();
  CHECK(nodes.size() > 7);  // an F and a B of each micro-batch, one update, and the parts
  Duration later{};
  for (const std::uint32_t node : nodes) {
    later += std::chrono::microseconds(5);
    iteration.trace.spans[node].begin += later;
    iteration.trace.spans[node].end += later;
  }
  count_hand_over(graph, iteration);
  CHECK(iteration.hand_over == static_cast<int>(nodes.size()) * std::chrono::microseconds(5));
}

TEST_CASE("every law holds on real runs of schedules with chunks and split backwards" *
          doctest::test_suite("measures")) {
  for (const ScheduleRule& rule : chunk_rules()) {
    const std::string schedule(rule.name);
    CAPTURE(schedule);
    const std::string devices = rule.chunks->even_devices ? "4" : "3";
    const std::string twice = rule.chunks->even_devices ? "8" : "6";
    for (const char* const more : {"", ", transfers: blocking",
                                   ", mini_batches: 2, recompute: full", ", recompute: layers"}) {
      CAPTURE(more);
      const std::string chunks = rule.chunks->max_chunks > 2 ? ", chunks: 3" : "";
      check_laws(subject_of(
          "version: 1\nmodel: {uniform: {layers: 9, forward: 90 us, backward_input: 80 us, "
          "backward_weight: 100 us, update: 10 us, output: 64 KiB, activation: 512 KiB, "
          "parameters: "
          "1 MiB}}\ncluster: {devices: " +
          devices + ", link: {latency: 20 us, bandwidth: 2 GB/s}}\nschedule: {name: " + schedule +
          chunks + ", micro_batches: " + twice + more + "}\ntraining: {optimizer_state: 2}\n"));
    }
  }
}

TEST_CASE("every law holds on real runs with replicas and copies" *
          doctest::test_suite("measures")) {
  const std::string link = ", link: {latency: 20 us, bandwidth: 4 GB/s}";
  for (const std::string more : {", micro_batches: 4", ", micro_batches: 4, transfers: blocking"}) {
    CAPTURE(more);
    for (const std::string schedule :
         {"gpipe", "1f1b", "eager-1f1b", "naive", "delayed-backward"}) {
      CAPTURE(schedule);
      check_laws(subject_of(
          uneven(schedule, "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]", more)));
      check_laws(
          subject_of(uneven(schedule, "devices: 6" + link, "stages: 3, data_parallel: 2", more)));
      check_laws(subject_of(uneven(schedule, "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]",
                                   more, ", zero_stage: 1")));
      check_laws(subject_of(uneven(schedule, "devices: 6" + link, "stages: 3, data_parallel: 2",
                                   more, ", gradients: 2")));
    }
    check_laws(subject_of(
        uneven("pipedream", "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]", more)));
  }
}

TEST_CASE("every law holds on real runs of groups that hold parameters alike" *
          doctest::test_suite("measures")) {
  for (const std::string plan : {"{stages: 2}", "{stages: 2, data_parallel: 2}"}) {
    CAPTURE(plan);
    check_laws(subject_of(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 1 ms, update: 1 ms, "
        "parameters: 4 kB, replicated: 3 kB}, group: {devices: 3}}\ncluster: {devices: 4}\nplan: " +
        plan +
        "\nschedule: {name: 1f1b, micro_batches: 4}\n"
        "training: {optimizer_state: 2, zero_stage: 1}\n"));
  }
}

TEST_CASE("every law holds on real runs of the examples" * doctest::test_suite("measures")) {
  for (const std::string file :
       {"zero-bubble", "two-servers", "blocking-transfers", "recompute", "data-parallel",
        "interleaved", "shared-device", "branching", "delayed-backward", "slow-link",
        "uneven-stages", "four-stages", "naive-two-devices"}) {
    CAPTURE(file);
    check_laws(example(file));
  }
  check_laws(example("zero-bubble", {"schedule.transfers=blocking"}));
  check_laws(example("zero-bubble", {"schedule.file=examples/orders/zb-h2.csv"}));
  check_laws(example("two-servers", {"plan.stages=4", "plan.data_parallel=2",
                                     "plan.devices=", "schedule.micro_batches=4"}));
}

TEST_CASE("every law holds on real runs whose ops take random times" *
          doctest::test_suite("measures")) {
  Noise synthetic;
  synthetic.spread = 0.3;
  synthetic.straggler_probability = 0.1;
  for (const std::string schedule : {"gpipe", "1f1b", "pipedream"}) {
    CAPTURE(schedule);
    check_laws(subject_of(uneven(schedule, "devices: 3, link: {latency: 20 us}", "stages: 3",
                                 ", micro_batches: 4")),
               synthetic);
  }
}

TEST_CASE("the ledgers keep as many versions of the weights as order alone says" *
          doctest::test_suite("measures")) {
  for (const std::string weights : {"stash", "vertical-sync", "none", "two"}) {
    CAPTURE(weights);
    for (const std::string plan :
         {"stages: 3", "stages: 3, replicas: [2, 1, 1]", "stages: 3, replicas: [1, 2, 1]",
          "stages: 3, replicas: [2, 2, 2]", "stages: 3, replicas: [3, 2, 1]"}) {
      CAPTURE(plan);
      for (const int lag : {0, 1}) {
        if (lag != 1 && plan == "stages: 3") continue;
        CAPTURE(lag);
        const std::string text =
            uneven("pipedream", "devices: 6, link: {latency: 20 us}", plan,
                   fmt::format(", micro_batches: 6, weights: {}{}", weights,
                               plan == "stages: 3" ? "" : fmt::format(", update_lag: {}", lag)));
        const Subject subject = subject_of(text);
        const RunRecord record = record_of(subject, {}, few(1));
        check_books(subject, record.iterations.front());
        // Nothing but the number of micro-batches that a replica sees may make it keep less.
        for (std::uint32_t s = 0; s < subject.graph.stage_slots.size(); ++s) {
          for (const std::uint32_t slot : subject.graph.stage_slots[s]) {
            const std::uint32_t kept = record.iterations.front().memory[slot].weight_versions;
            if (kept != subject.setup.weights[s].kept)
              MESSAGE(fmt::format("{}, {}, lag {}: stage {}, slot {} keeps {} of {} versions",
                                  weights, plan, lag, s, slot, kept,
                                  subject.setup.weights[s].kept));
          }
        }
      }
    }
  }
}

TEST_CASE("a graph with one device runs" * doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      "version: 1\nmodel:\n  uniform: {layers: 2, forward: 100 us, backward: 200 us, update: 10 "
      "us, "
      "output: 1 KiB, activation: 1 KiB, parameters: 1 KiB}\ncluster: {devices: 1}\n"
      "plan: {stages: 1}\nschedule: {name: 1f1b, micro_batches: 3}\n");
  check_laws(subject);
}

// ---- the runner ----

TEST_CASE("a run measures as many iterations as it is told, after its warm-up" *
          doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 2"));
  RunOptions options;
  options.warm_up = 2;
  options.iterations = 4;
  options.clean_below = 1e9;  // every iteration counts as clean
  std::uint32_t max_suggested = 0;
  options.progress = [&](std::uint32_t done, std::uint32_t max) {
    CHECK(done >= max_suggested);
    CHECK(done <= max);
    max_suggested = done;
    CHECK(max == 2 + 8);
  };
  CHECK(record_of(subject, {}, options).iterations.size() == 4);
  options.progress = nullptr;
  options.clean_below = -1;  // none does
  const RunRecord record = record_of(subject, {}, options);
  CHECK(record.iterations.size() == 8);
  for (const MeasuredIteration& iteration : record.iterations) CHECK(!iteration.clean);
  options.max_iterations = 3;
  CHECK(record_of(subject, {}, options).iterations.size() == 3);
}

/// Loses time, says so or not.
class LosingBackend : public Backend {
 public:
  std::string_view name() const override { return "losing"; }
  std::string device_text() const override { return "threads that lose time"; }
  bool has_own_overheads() const override { return false; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    class Losing : public Worker {
     public:
      Losing(std::unique_ptr<Worker> inner, bool loses) : inner_(std::move(inner)), loses_(loses) {}
      Work run(const Task& task, const std::atomic<bool>& stop) override {
        Work work = inner_->run(task, stop);
        if (loses_ && task.iteration == 1) work.lost = 50'000'000;
        return work;
      }
      Duration min_time(std::uint32_t iteration, std::uint32_t node,
                        Duration predicted) const override {
        return inner_->min_time(iteration, node, predicted);
      }

     private:
      std::unique_ptr<Worker> inner_;
      bool loses_;
    };
    auto workers = inner_->workers(plan);
    for (std::size_t slot = 0; slot < workers.size(); ++slot)
      workers[slot] = std::make_unique<Losing>(std::move(workers[slot]), slot == 1);
    return workers;
  }

 private:
  std::unique_ptr<Backend> inner_ = synthetic_backend({});
};

TEST_CASE("an iteration in which a device loses time is not clean" *
          doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 2"));
  LosingBackend backend;
  auto result = run(subject.plan(), backend, nodes_by_slot(subject.graph), few(2));
  const auto* record = std::get_if<RunRecord>(&result);
  REQUIRE(record);
  REQUIRE(record->iterations.size() == 2);
  const MeasuredIteration& second = record->iterations[1];
  CHECK(!second.clean);
  CHECK(second.lost >= std::chrono::milliseconds(4 * 49));  // four ops and an update, each 50 ms
}

// ---- the synthetic backend ----

TEST_CASE("synthetic factors have the mean and the deviation that were asked for" *
          doctest::test_suite("measures")) {
  constexpr std::uint32_t iterations = 200;
  constexpr std::uint32_t nodes = 500;
  constexpr double draws = double{iterations} * double{nodes};
  const Subject subject =
      subject_of(uneven("gpipe", "devices: 2", "stages: 2", ", micro_batches: 150"));
  REQUIRE(subject.graph.size() > nodes);
  for (const double spread : {0.05, 0.2, 0.5}) {
    CAPTURE(spread);
    Noise options;
    options.spread = spread;
    double sum = 0, squares = 0;
    const auto workers = synthetic_backend(options)->workers(subject.plan());
    for (std::uint32_t i = 0; i < iterations; ++i) {
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const double factor = noise_factor(options, i, node);
        CHECK(factor > 0);
        sum += factor;
        squares += factor * factor;
        const Duration min = workers.front()->min_time(i, node, std::chrono::seconds(1));
        CHECK(min.count() == std::llround(1e9 * factor));
      }
    }
    const double mean = sum / draws;
    CHECK(std::abs(mean - 1) < 5 * spread / std::sqrt(draws));
    CHECK(std::sqrt(squares / draws - mean * mean) == doctest::Approx(spread).epsilon(0.02));
  }
}

TEST_CASE("synthetic factors depend on the seed, the iteration and the op, and on nothing else" *
          doctest::test_suite("measures")) {
  CHECK(noise_factor({}, 3, 7) == 1);
  Noise options;
  options.spread = 0.2;
  options.seed = 5;
  Noise other = options;
  CHECK(noise_factor(options, 3, 7) == noise_factor(other, 3, 7));
  CHECK(noise_factor(options, 3, 7) != noise_factor(options, 3, 8));
  CHECK(noise_factor(options, 3, 7) != noise_factor(options, 4, 7));
  other.seed = 6;
  CHECK(noise_factor(options, 3, 7) != noise_factor(other, 3, 7));
}

TEST_CASE("stragglers take as much longer, and are as frequent, as they are told" *
          doctest::test_suite("measures")) {
  Noise options;
  options.straggler_probability = 0.1;
  options.straggler_factor = 3;
  std::uint32_t straggling = 0;
  constexpr std::uint32_t draws = 100'000;
  for (std::uint32_t node = 0; node < draws; ++node) {
    const double factor = noise_factor(options, node % 10, node);
    CHECK((factor == 1 || factor == 3));
    straggling += factor == 3 ? 1 : 0;
  }
  CHECK(straggling == doctest::Approx(0.1 * draws).epsilon(0.05));
}

TEST_CASE("a measured op takes its time times its factor" * doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 4"));
  Noise options;
  options.spread = 0.3;
  options.seed = 11;
  const RunRecord record = record_of(subject, options, few(3));
  for (std::uint32_t i = 0; i < record.iterations.size(); ++i) {
    for (std::uint32_t node = 0; node < subject.graph.size(); ++node) {
      if (!is_compute(subject.graph.activities[node].kind)) continue;
      const Span& span = record.iterations[i].trace.spans[node];
      const auto min = std::llround(static_cast<double>(subject.graph.cost(node).hold.count()) *
                                    noise_factor(options, i, node));
      CHECK((span.end - span.begin).count() >= min);
      if (record.iterations[i].clean && !kSanitized)
        CHECK((span.end - span.begin).count() <= min + 200'000);
    }
  }
}

TEST_CASE("a stopped op returns early" * doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      "version: 1\nmodel:\n  uniform: {layers: 1, forward: 100 s, backward: 100 s}\n"
      "cluster: {devices: 1}\nschedule: {name: gpipe, micro_batches: 1}\n");
  const auto workers = synthetic_backend({})->workers(subject.plan());
  const auto& worker = workers.front();
  std::atomic<bool> stop{false};
  Task task;
  task.begin = now();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  });
  const Work work = worker->run(task, stop);
  stopper.join();
  CHECK(work.end - task.begin >= 30'000'000);
  CHECK(work.end - task.begin < 1'000'000'000);
}

// ---- prediction against run ----

/// One point of the matrix.
struct Point {
  std::string what;
  Scenario scenario;
  /// The relative excess of the predicted time over the real time, for the nearest run.
  double error = INFINITY;
};

constexpr double kLargestError = 0.05;

bool is_right(const Point& point) { return std::abs(point.error) <= kLargestError; }

Point point_of(const std::string& what, const std::string& text) {
  const auto scenario = parse_scenario(text_source("matrix.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return {.what = what, .scenario = *scenario};
}

/// Runs `point` once more.
void attempt(Point& point) {
  const auto prediction = predict(point.scenario);
  REQUIRE(prediction);
  const auto backend = synthetic_backend({});
  RunOptions options;
  options.warm_up = 0;
  options.iterations = 2;
  options.max_iterations = 3;
  const auto real = run_scenario(point.scenario, *backend, options);
  REQUIRE_MESSAGE(real, (real ? "" : to_text(real.problems())));
  const double error = prediction->iteration_time_s / real->time_s.median - 1;
  if (std::abs(error) < std::abs(point.error)) point.error = error;
}

std::vector<Point> matrix() {
  std::vector<Point> points;
  for (const ScheduleRule& rule : window_rules()) {
    for (const int devices : {2, 4, 8}) {
      for (const int micro_batches : {2, 4, 8, 16}) {
        if (kSanitized && micro_batches > 2) continue;
        const bool whole = rule.whole_model;
        const std::string text = fmt::format(
            "version: 1\nmodel:\n  uniform: {{layers: {}, forward: 1 ms, backward: 1 ms, "
            "output: 1 MiB, activation: 1 MiB, parameters: 1 MiB}}\n"
            "cluster: {{devices: {}, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n{}"
            "schedule: {{name: {}, micro_batches: {}}}\n",
            whole ? 1 : devices, devices,
            whole ? "" : fmt::format("plan: {{stages: {}}}\n", devices), rule.name, micro_batches);
        points.push_back(point_of(
            fmt::format("{}, {} devices, {} micro-batches", rule.name, devices, micro_batches),
            text));
      }
    }
    if (rule.whole_model) continue;
    for (const std::string slices : {"3", "[1, 2, 3]"}) {
      if (!rule.takes_slices) continue;
      const std::string text = fmt::format(
          "version: 1\nmodel:\n  uniform: {{layers: 4, forward: 3 ms, backward: 3 ms, output: 3 "
          "MiB, activation: 3 MiB, parameters: 1 MiB}}\n"
          "cluster: {{devices: 4, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n"
          "schedule: {{name: {}, micro_batches: 2, slices: {}}}\n",
          rule.name, slices);
      points.push_back(point_of(fmt::format("{}, slices {}", rule.name, slices), text));
    }
    // Replicas and copies.
    for (const std::string plan : {"stages: 2, replicas: [2, 2]", "stages: 2, data_parallel: 2",
                                   "stages: 4, data_parallel: 2"}) {
      if (rule.asynchronous && plan.find("data_parallel") != std::string::npos) continue;
      const std::string text = fmt::format(
          "version: 1\nmodel:\n  uniform: {{layers: 4, forward: 1 ms, backward: 1 ms, output: 1 "
          "MiB, activation: 1 MiB, parameters: 4 MiB}}\n"
          "cluster: {{devices: 8, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n"
          "plan: {{{}}}\nschedule: {{name: {}, micro_batches: 4}}\n",
          plan, rule.name);
      points.push_back(point_of(fmt::format("{}, {}", rule.name, plan), text));
    }
  }
  return points;
}

TEST_CASE("waiters do not take the cores from the ops that they wait for" *
          doctest::test_suite("measures")) {
  // More threads than cores, and ops about as long as the time for which a waiter does not sleep.
  for (const int microseconds : {70, 85, 90, 95, 100, 110, 130, 150, 170}) {
    CAPTURE(microseconds);
    const std::string text = fmt::format(
        "version: 1\nmodel:\n  uniform: {{layers: 5, forward: {0} us, backward: {0} us, output: 4 "
        "KiB}}\ncluster: {{devices: 5, link: {{latency: 12 us}}}}\nplan: {{stages: 5}}\n"
        "schedule: {{name: naive, micro_batches: 4}}\n",
        microseconds);
    const auto scenario = parse_scenario(text_source("waiters.yaml", text), {});
    REQUIRE(scenario);
    const auto prediction = predict(*scenario);
    REQUIRE(prediction);
    // Other work on the machine does that too, but not each time.
    double best = INFINITY;
    for (int attempt = 0; attempt < 20 && best >= 2 * prediction->iteration_time_s; ++attempt) {
      const auto real = run_scenario(*scenario, *synthetic_backend({}), few(5));
      REQUIRE(real);
      best = std::min(best, *std::min_element(real->times_s.begin(), real->times_s.end()));
    }
    if (kSanitized) continue;
    if (best >= 2 * prediction->iteration_time_s && has_other_work()) {
      MESSAGE("inconclusive: the machine has other work");
      continue;
    }
    CHECK(best < 2 * prediction->iteration_time_s);
  }
}

TEST_CASE("devices that wait slow each other down as predicted" * doctest::test_suite("measures")) {
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    CAPTURE(schedule);
    auto scenario =
        parse_scenario(text_source("neighbours.yaml",
                                   "version: 1\nmodel:\n  layers:\n"
                                   "    - {name: a, kind: linear, forward: 2 ms, backward: 4 ms}\n"
                                   "    - {name: b, kind: linear, forward: 2 ms, backward: 4 ms}\n"
                                   "cluster: {devices: 2}\nschedule: {name: " +
                                       std::string(schedule) + ", micro_batches: 3}\n"),
                       {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto apart = predict(*scenario);
    scenario->model.edit().profile.slowdown["linear"] = {0.8, 1.4};
    const auto prediction = predict(*scenario);
    REQUIRE(apart);
    REQUIRE(prediction);
    CHECK(std::abs(prediction->iteration_time_s / apart->iteration_time_s - 1) > 0.04);
    double best = INFINITY;
    for (int attempt = 0; attempt < 5 && best > 1.03 * prediction->iteration_time_s; ++attempt) {
      const auto real = run_scenario(*scenario, *synthetic_backend({}), few(5));
      REQUIRE(real);
      best = std::min(best, *std::min_element(real->times_s.begin(), real->times_s.end()));
    }
    CHECK(best > 0.99 * prediction->iteration_time_s);
    if (!kSanitized && best > 1.03 * prediction->iteration_time_s)
      MESSAGE(fmt::format("inconclusive: {:.3f} of what was predicted",
                          best / prediction->iteration_time_s));
  }
}

TEST_CASE("runs of every schedule take as long as predicted" * doctest::test_suite("measures")) {
  std::vector<Point> points = matrix();
  // Other work on the machine spoils runs; a prediction that is wrong is wrong in each round.
  const int rounds = kSanitized ? 1 : 8;
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      if (!is_right(point)) attempt(point);
    }
  }
  if (kSanitized) return;
  const auto wrong = std::count_if(points.begin(), points.end(), std::not_fn(is_right));
  const bool spoilt = wrong > 0 && has_other_work();
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const Point& point : points) {
    errors.push_back(std::abs(point.error));
    const std::string text = fmt::format("{}: error {:.2f} %", point.what, 100 * point.error);
    CAPTURE(text);
    if (spoilt && !is_right(point)) {
      MESSAGE("inconclusive, the machine has other work: " << text);
    } else {
      CHECK(is_right(point));
    }
  }
  std::sort(errors.begin(), errors.end());
  MESSAGE(fmt::format("{} points, {} wrong; error: median {:.3f} %, worst {:.3f} %", points.size(),
                      wrong, 100 * errors[errors.size() / 2], 100 * errors.back()));
}

}  // namespace
}  // namespace plumbline::test
