// Pipelines on CUDA devices that train, without a GPU: a driver that lives in the test runs the
// real kernels' sources, in an order that an adversary picks. SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cpu_backend.h"
#include "calibrate/cpu_layer.h"
#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/calibration.h"
#include "calibrate/cuda/program.h"
#include "calibrate/real_run.h"
#include "calibrate/recalibration.h"
#include "calibrate/stage_layout.h"
#include "models/network_reader.h"
#include "models/profile_writer.h"
#include "sim/idle.h"
#include "sim/predict.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

const char* const kMlp =
    "version: 1\nkind: network\ninput: {shape: [12]}\nlayers:\n"
    "  - {kind: linear, features: 24}\n  - {kind: relu}\n  - {kind: linear, features: 20}\n"
    "  - {kind: gelu}\n  - {kind: layer_norm}\n  - {kind: linear, features: 16}\n"
    "  - {kind: head, classes: 4}\n";
const char* const kGpt =
    "version: 1\nkind: network\ninput: {tokens: 4, vocabulary: 11}\nlayers:\n"
    "  - {kind: embedding, features: 8, positions: true}\n"
    "  - {repeat: 1, layers: [{kind: attention_block, heads: 2}, {kind: mlp_block}]}\n"
    "  - {kind: head}\n";

const char* const kPictures =
    "version: 1\nkind: network\ninput: {shape: [2, 6, 5]}\nlayers:\n"
    "  - {kind: conv2d, channels: 3, padding: 1}\n  - {kind: batch_norm}\n  - {kind: relu}\n"
    "  - {kind: max_pool}\n  - {kind: residual_block, channels: 4, stride: 2}\n"
    "  - {kind: flatten}\n  - {kind: head, classes: 3, norm: false}\n";
const char* const kSentences =
    "version: 1\nkind: network\ninput: {tokens: 4, vocabulary: 7}\nlayers:\n"
    "  - {kind: embedding, features: 6}\n  - {kind: lstm, hidden: 5}\n"
    "  - {kind: lstm, hidden: 5, residual: true}\n  - {kind: head, classes: 7}\n";
const char* const kTiny =
    "version: 1\nkind: network\ninput: {shape: [6]}\nlayers:\n"
    "  - {kind: linear, features: 5}\n  - {kind: relu}\n"
    "  - {kind: head, classes: 3, norm: false}\n";

/// A scenario that runs a network; its times are invented, as nothing here depends on them.
Scenario scenario_of(const char* network_text, const std::string& rest) {
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"n.network.yaml", network_text, ""}));
  REQUIRE(network);
  std::string layers;
  for (const NetworkLayer& layer : network->layers) {
    layers += "    - {name: " + layer.name +
              ", forward: 20 us, backward_input: 20 us, backward_weight: 20 us, output: 1 KiB, "
              "activation: 1 KiB, parameters: 1 KiB}\n";
  }
  const std::string text =
      "version: 1\nname: test\nmodel:\n  batch: 3\n  layers:\n" + layers + rest;
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  scenario->network = std::make_shared<const Network>(*network);
  return *std::move(scenario);
}

std::string devices(int count, const std::string& schedule, const std::string& more = "") {
  return "cluster: {devices: " + std::to_string(count) + "}\nschedule: {" + schedule + "}\n" + more;
}

/// The driver of a test, with all kernels.
class Fake {
 public:
  explicit Fake(FakeOptions options = {}) : cuda(std::move(options)) {
    cuda.add(emulated_kernels());
  }

  FakeCuda cuda;
};

RunOptions few(std::uint32_t iterations, std::uint32_t warm_up = 0) {
  RunOptions options;
  options.warm_up = warm_up;
  options.iterations = iterations;
  options.most_iterations = iterations;
  return options;
}

CudaOptions own(double rate = 0.05) {
  CudaOptions options;
  options.learning_rate = rate;
  options.own_kernels = true;
  return options;
}

struct Trained {
  std::vector<float> parameters;  ///< Layer by layer.
  std::vector<double> losses;
  std::vector<std::string> faults;
  std::string live;
  RealRun run;
};

/// Every measured iteration is executed twice.
Trained train(const Scenario& scenario, FakeOptions fake_options = {}, std::uint32_t iterations = 1,
              double rate = 0.05) {
  Fake fake(std::move(fake_options));
  Trained trained;
  {
    auto backend = cuda_backend(fake.cuda.driver(), scenario, own(rate));
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    auto run = run_scenario(scenario, **backend, few(iterations));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    trained.run = *std::move(run);
    const CudaResults results = (*backend)->results();
    trained.losses = results.losses;
    for (const auto& stage : results.parameters)
      trained.parameters.insert(trained.parameters.end(), stage.begin(), stage.end());
  }
  trained.faults = fake.cuda.faults();
  trained.live = fake.cuda.live();
  return trained;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::int64_t ns(Duration time) { return time.count(); }

bool bit_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  double scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
    scale = std::max(scale, std::abs(double{a[i]}));
  }
  return worst / scale;
}

void check_clean(const Trained& trained) {
  CHECK(trained.faults == std::vector<std::string>{});
  CHECK(trained.live == "");
}

/// What the cpu backend makes of it, in so many executions; nothing in builds without it.
struct OnCpu {
  std::vector<float> parameters;
  std::vector<double> losses;
};
std::optional<OnCpu> on_cpu(const Scenario& scenario, std::uint32_t executions,
                            double rate = 0.05) {
  if (cpu_library().empty()) return std::nullopt;
  CpuOptions options;
  options.learning_rate = rate;
  auto backend = cpu_backend(scenario, options);
  REQUIRE(backend);
  RunOptions run_options = few(executions);
  run_options.clean_below = 1e9;
  const auto run = run_scenario(scenario, **backend, run_options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  const CpuResults results = (*backend)->results();
  OnCpu trained;
  trained.losses = results.losses;
  // Without the gaps between tensors.
  const auto pipeline = plan_pipeline(scenario, true);
  REQUIRE(pipeline);
  for (std::size_t s = 0; s < results.parameters.size(); ++s) {
    const auto& layers = pipeline->partition.stages[s].layers;
    const StageLayout layout(*scenario.network, layers.front().value, layers.back().value,
                             scenario.micro_batch_size, 64);
    for (std::size_t i = 0; i < layout.layers(); ++i) {
      for (std::size_t p = 0; p < layout[i].parameters.size(); ++p) {
        const auto first = results.parameters[s].begin() +
                           static_cast<std::ptrdiff_t>(layout[i].parameters[p] / sizeof(float));
        trained.parameters.insert(trained.parameters.end(), first,
                                  first + layout[i].layer->parameters[p].shape.elements());
      }
    }
  }
  return trained;
}

void check_as_on_cpu(const Scenario& scenario, const Trained& trained, double rate = 0.05) {
  const auto cpu = on_cpu(scenario, static_cast<std::uint32_t>(trained.losses.size()), rate);
  if (!cpu) return;
  CHECK(largest_difference(cpu->parameters, trained.parameters) < 1e-4);
  REQUIRE(cpu->losses.size() == trained.losses.size());
  for (std::size_t i = 0; i < cpu->losses.size(); ++i)
    CHECK(trained.losses[i] == doctest::Approx(cpu->losses[i]).epsilon(1e-4));
}

TEST_CASE("cuda: a synchronous pipeline makes bit by bit the weights of one device") {
  for (const char* network : {kMlp, kGpt, kPictures, kSentences}) {
    const Scenario one = scenario_of(network, devices(1, "name: gpipe, micro_batches: 4"));
    const Trained alone = train(one);
    check_clean(alone);
    CHECK(alone.losses.size() == 2);
    check_as_on_cpu(one, alone);
    for (const char* schedule : {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"}) {
      for (const int count : {2, 4}) {
        const bool slow = network != kMlp;
        if (slow && (count == 4 || schedule[0] == 'n' || schedule[0] == 'e')) continue;
        CAPTURE(network);
        CAPTURE(schedule);
        CAPTURE(count);
        const Trained together = train(scenario_of(
            network, devices(count, std::string("name: ") + schedule + ", micro_batches: 4")));
        CHECK(bit_equal(alone.parameters, together.parameters));
        CHECK(alone.losses == together.losses);
        check_clean(together);
      }
    }
  }
}

TEST_CASE("cuda: GPUs of their own and parts of one make the same bits") {
  const Scenario scenario = scenario_of(kMlp, devices(3, "name: 1f1b, micro_batches: 4"));
  FakeOptions several;
  several.gpus.assign(3, FakeGpu{});
  const Trained whole = train(scenario, several);
  check_clean(whole);
  CHECK(bit_equal(whole.parameters, train(scenario).parameters));
}

TEST_CASE("cuda: blocking transfers, several mini-batches, Adam and recomputation change no bit") {
  for (const char* more : {", transfers: blocking", ", mini_batches: 2", ", recompute: full"}) {
    for (const char* adam : {"", "training: {optimizer_state: 2.0}\n"}) {
      CAPTURE(more);
      CAPTURE(adam);
      const std::string schedule = std::string("name: 1f1b, micro_batches: 3") + more;
      const char* const network = adam[0] == '\0' ? kMlp : kTiny;
      const Trained alone = train(scenario_of(network, devices(1, schedule, adam)));
      const Trained together = train(scenario_of(network, devices(3, schedule, adam)));
      check_clean(together);
      CHECK(bit_equal(alone.parameters, together.parameters));
      CHECK(alone.losses == together.losses);
    }
  }
}

TEST_CASE("cuda: split backwards and several stages on a device make the weights of one device") {
  const auto ordered = [](const char* network, const std::string& csv) {
    const TemporaryFolder folder;
    return scenario_of(network, "cluster: {devices: 2}\nschedule: {file: " +
                                    folder.file("order.csv", csv) + "}\n");
  };
  for (const char* network : {kMlp, kGpt, kPictures, kSentences}) {
    const Trained alone = train(scenario_of(network, devices(1, "name: gpipe, micro_batches: 3")));
    const Trained split = train(ordered(network,
                                        "0F0,0F1,0I0,0F2,0I1,0W0,0I2,0W1,0W2\n"
                                        "1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2\n"));
    check_clean(split);
    CHECK(largest_difference(alone.parameters, split.parameters) < 1e-6);
    const Trained chunks = train(ordered(network,
                                         "0F0,0F1,2F0,2B0,0F2,2F1,2B1,0B0,2F2,2B2,0B1,0B2\n"
                                         "1F0,1F1,3F0,3B0,1B0,1F2,3F1,3B1,1B1,3F2,3B2,1B2\n"));
    check_clean(chunks);
    CHECK(bit_equal(alone.parameters, chunks.parameters));
  }
}

TEST_CASE("cuda: replicas and copies make the weights of one device but for the order of sums") {
  for (const char* network : {kTiny, kMlp}) {
    const Trained alone = train(scenario_of(network, devices(1, "name: gpipe, micro_batches: 6")));
    const auto check = [&](const std::string& rest) {
      CAPTURE(rest);
      const Trained together = train(scenario_of(network, rest));
      check_clean(together);
      CHECK(largest_difference(alone.parameters, together.parameters) < 1e-5);
    };
    check(devices(3, "name: 1f1b, micro_batches: 6", "plan: {stages: 2, replicas: [2, 1]}\n"));
    check(devices(4, "name: 1f1b, micro_batches: 3", "plan: {stages: 2, data_parallel: 2}\n"));
    check(devices(3, "name: data-parallel, micro_batches: 2"));
    check(devices(4, "name: 1f1b, micro_batches: 6", "plan: {stages: 2, replicas: [3, 1]}\n"));
  }
}

TEST_CASE("cuda: an asynchronous run makes the weights that the cpu backend makes") {
  for (const char* weights : {"stash", "vertical-sync", "none", "two"}) {
    CAPTURE(weights);
    const Scenario scenario = scenario_of(
        kTiny,
        devices(3, std::string("name: pipedream, micro_batches: 4, mini_batches: 3, weights: ") +
                       weights));
    // Each op is replayed from the third execution on, or the second.
    const Trained trained = train(scenario, {}, /*iterations=*/3);
    check_clean(trained);
    check_as_on_cpu(scenario, trained);
  }
  const Scenario replicated = scenario_of(kTiny, devices(3, "name: pipedream, micro_batches: 4",
                                                         "plan: {stages: 2, replicas: [2, 1]}\n"));
  const Trained trained = train(replicated);
  check_clean(trained);
  check_as_on_cpu(replicated, trained);
}

TEST_CASE("cuda: no order that streams leave free changes a bit") {
  const std::string replicas = "plan: {stages: 2, replicas: [2, 1]}\n";
  const std::string richest = devices(3, "name: 1f1b, micro_batches: 4, mini_batches: 2", replicas);
  for (const std::string& rest :
       {richest, devices(3, "name: 1f1b, micro_batches: 3"),
        devices(3, "name: gpipe, micro_batches: 3, transfers: blocking"),
        devices(3, "name: 1f1b, micro_batches: 3, recompute: full"),
        devices(3, "name: pipedream, micro_batches: 3, weights: stash"),
        devices(3, "name: pipedream, micro_batches: 4, weights: two", replicas)}) {
    CAPTURE(rest);
    const Scenario scenario = scenario_of(kTiny, rest);
    const Trained first = train(scenario);
    const std::uint64_t seeds = rest == richest ? 20 : 5;
    for (std::uint64_t seed = 2; seed <= seeds; ++seed) {
      CAPTURE(seed);
      FakeOptions options;
      options.seed = seed;
      if (seed % 2 == 0) options.gpus.assign(3, FakeGpu{});
      const Trained again = train(scenario, options);
      CHECK(bit_equal(first.parameters, again.parameters));
      CHECK(first.losses == again.losses);
      check_clean(again);
    }
  }
}

TEST_CASE("cuda: the trace obeys the graph, and the books are those of its times") {
  for (const std::string& rest :
       {devices(3, "name: 1f1b, micro_batches: 4"),
        devices(3, "name: gpipe, micro_batches: 4, transfers: blocking"),
        devices(4, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, data_parallel: 2}\n"),
        devices(2, "name: data-parallel, micro_batches: 3"),
        devices(3, "name: pipedream, micro_batches: 6, weights: stash")}) {
    CAPTURE(rest);
    const Scenario scenario = scenario_of(kTiny, rest);
    const Trained trained = train(scenario, {}, 2);
    const RealRun& run = trained.run;
    CHECK(run.iterations.size() == 2);
    CHECK(run.clean == 2);
    for (const MeasuredIteration& iteration : run.iterations) {
      REQUIRE(iteration.untold);
      CHECK(iteration.untold->count() > 0);
      const OpGraph& graph = run.outcome.graph;
      REQUIRE(iteration.trace.spans.size() == graph.size());
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        CAPTURE(to_text(graph.activities[node]));
        const Span& span = iteration.trace.spans[node];
        CHECK(span.end >= span.begin);
        if (graph.nodes[node].after != graph.size())
          CHECK(span.begin >= iteration.trace.spans[graph.nodes[node].after].end);
        const ActivityKind kind = graph.activities[node].kind;
        if (is_op(kind) || is_transfer(kind)) CHECK(span.end > span.begin);
      }
      for (const Join& join : graph.joins) {
        for (const std::uint32_t before : join.after)
          CHECK(iteration.trace.spans[join.node].begin >= iteration.trace.spans[before].end);
      }
      const auto steps =
          memory_steps(graph, iteration.trace, run.outcome.pipeline.costs,
                       run.outcome.pipeline.schedule.shape.positions, run.outcome.memory_rules);
      const auto expected =
          measure_memory(graph, run.outcome.pipeline.costs, run.outcome.memory_rules, steps);
      for (std::size_t slot = 0; slot < expected.size(); ++slot) {
        CHECK(iteration.memory[slot].peak.activations + iteration.memory[slot].peak.buffers ==
              expected[slot].peak.activations + expected[slot].peak.buffers);
      }
    }
    CHECK(run.outcome.iteration_time_s == run.times_s[run.shown]);
  }
}

TEST_CASE("cuda: links keep their latency and bandwidth to the nanosecond of the device's clock") {
  const auto with_link = [](int count, const std::string& link, const std::string& schedule,
                            const std::string& more = "") {
    return scenario_of(kTiny, "cluster: {devices: " + std::to_string(count) + ", link: {" + link +
                                  "}}\nschedule: {" + schedule + "}\n" + more);
  };
  const std::string both = "latency: 30 us, bandwidth: 100 MB/s";
  const std::vector<Scenario> scenarios = {
      with_link(3, both, "name: 1f1b, micro_batches: 4"),
      with_link(2, both, "name: gpipe, micro_batches: 4"),
      with_link(2, "latency: 30 us", "name: gpipe, micro_batches: 4"),
      with_link(2, "bandwidth: 1 MB/s", "name: 1f1b, micro_batches: 4"),
      with_link(3, both, "name: gpipe, micro_batches: 4, transfers: blocking"),
      with_link(4, both, "name: 1f1b, micro_batches: 6", "plan: {stages: 2, replicas: [3, 1]}\n"),
      with_link(3, both, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, replicas: [1, 2]}\n"),
      with_link(3, both, "name: pipedream, micro_batches: 4",
                "plan: {stages: 2, replicas: [2, 1]}\n"),
      with_link(3, both, "name: data-parallel, micro_batches: 2")};
  const Trained alone = train(scenario_of(kTiny, devices(1, "name: gpipe, micro_batches: 4")));
  for (const Scenario& scenario : scenarios) {
    CAPTURE(scenario.source->text);
    const Trained trained = train(scenario);
    check_clean(trained);
    const OpGraph& graph = trained.run.outcome.graph;
    const bool is_replicated = graph.stage_slots.size() < graph.slots();
    if (!is_replicated) CHECK(bit_equal(trained.parameters, alone.parameters));
    const Trace& trace = trained.run.iterations.front().trace;
    std::map<std::uint32_t, SimTime> free;  // by channel
    std::size_t transfers = 0;
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const bool is_hop = graph.activities[node].kind == ActivityKind::all_reduce;
      if (!is_transfer(graph.activities[node].kind) && !is_hop) continue;
      CAPTURE(to_text(graph.activities[node]));
      ++transfers;
      const Cost& cost = graph.cost(node);
      const Span& span = trace.spans[node];
      // A copy of the fake device is faster than either.
      CHECK((span.end - span.begin).count() == (cost.hold + cost.latency).count());
      if (graph.blocking || is_hop) continue;
      const std::uint32_t channel = graph.nodes[node].resource;
      const SimTime begin = std::max(trace.spans[graph.nodes[node].after].end, free[channel]);
      CHECK(span.begin.time_since_epoch().count() == begin.time_since_epoch().count());
      free[channel] = span.end - cost.latency;
    }
    CHECK(transfers > 0);
  }
}

CudaCalibrationOptions quick_calibration() {
  CudaCalibrationOptions options;
  options.own_kernels = true;
  options.warm_up_seconds = 0.001;
  return options;
}

/// A scenario whose profile was calibrated on the driver, with a plan of two stages.
Scenario calibrated(const CudaDriver& driver, const char* network_text,
                    const std::string& schedule) {
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"n.network.yaml", network_text, ""}));
  REQUIRE(network);
  auto on = cuda_calibration_devices(driver, *network, 2, quick_calibration());
  REQUIRE(on);
  CalibrationOptions options;
  options.devices = 2;
  options.batches = {3};
  options.least_seconds = 0.1;
  options.most_seconds = 20;  // it is precise at once: kernels take a set time
  options.slowdown = false;
  const auto measured = measure_layers(**on, *network, {}, options);
  REQUIRE(measured);
  auto calibration = calibration_of(**on, *network, {}, options, *measured);
  REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
  measure_between(**on, *network, options, calibration->model.profile);
  const std::vector<Block>& blocks = calibration->model.profile.blocks;
  REQUIRE(blocks.size() == 2);
  const TemporaryFolder folder;
  const std::string text =
      "version: 1\nmodel: {network: " + folder.file("n.network.yaml", network_text) +
      ", profile: " + folder.file("n.profile.yaml", profile_yaml(calibration->model)) +
      "}\ncluster: {devices: 2, link: measured}\nplan: {partition: [" +
      std::to_string(blocks[0].layers.size()) + ", " + std::to_string(blocks[1].layers.size()) +
      "]}\nschedule: {" + schedule + "}\noverhead: measured\n";
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

TEST_CASE("cuda: what was calibrated predicts the run, updates and measured links included") {
  const auto check = [](const char* network, const std::string& schedule) {
    CAPTURE(network);
    CAPTURE(schedule);
    FakeOptions slow_copies;
    slow_copies.copy_nanoseconds = 700;
    Fake fake(slow_copies);
    const Scenario scenario = calibrated(fake.cuda.driver(), network, schedule);
    REQUIRE(scenario.link_measured);
    auto backend = cuda_backend(fake.cuda.driver(), scenario, own());
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    fake.cuda.clear_executions();
    const auto run = run_scenario(scenario, **backend, few(2, 2));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    for (const FakeExecution& one : fake.cuda.executions())
      CHECK(one.what != "plumbline_wait_since");  // copies are as fast as they are
    for (const std::string& remark : run->remarks)
      CHECK(remark.find("measured elsewhere") == std::string::npos);
    const auto predicted = predict(scenario);
    REQUIRE(predicted);
    const double off = static_cast<double>(run->iterations.back().untold->count()) -
                       predicted->iteration_time_s * 1e9;
    // A prediction rounds every time up.
    CHECK(std::abs(off) <= static_cast<double>(predicted->graph.size()));
    if (schedule.find("gpipe") == std::string::npos) return;
    // Timed again, the layers are as they were.
    Recalibrations again(
        [&](const Network& layers, const CalibrationOptions& options) {
          return cuda_calibration_devices(fake.cuda.driver(), layers, options.devices,
                                          quick_calibration());
        },
        0.1);
    REQUIRE_FALSE(again.add(scenario, *predicted));
    REQUIRE_FALSE(again.walk());
    const auto now = again.predict(scenario, *predicted);
    REQUIRE(now);
    REQUIRE_MESSAGE(*now, again.of(scenario, *predicted).remark());
    CHECK(std::abs((*now)->iteration_time_s - predicted->iteration_time_s) * 1e9 <=
          static_cast<double>(predicted->graph.size()));
  };
  for (const char* schedule : {"naive", "gpipe", "1f1b", "delayed-backward"})
    check(kMlp, std::string("name: ") + schedule + ", micro_batches: 4");
  if (kSanitized) return;  // a minute there, and sanitizers see the same in other cases
  for (const char* network : {kGpt, kPictures, kSentences})
    check(network, "name: 1f1b, micro_batches: 3");
}

TEST_CASE("cuda: a profile of other parts of a GPU than a run's is told") {
  Fake fake;
  Scenario scenario = calibrated(fake.cuda.driver(), kTiny, "name: gpipe, micro_batches: 2");
  scenario.model.profile.provenance["sms"] = "132";
  auto backend = cuda_backend(fake.cuda.driver(), scenario, own());
  REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
  const auto run = run_scenario(scenario, **backend, few(1));
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  REQUIRE_FALSE(run->remarks.empty());
  CHECK(run->remarks.front() == "the profile was measured elsewhere: sms 132, here 64");
}

TEST_CASE("cuda: a model known by its times runs as predicted, to the nanosecond") {
  for (const std::string& rest :
       {devices(3, "name: 1f1b, micro_batches: 5"), devices(2, "name: naive, micro_batches: 2"),
        devices(4, "name: eager-1f1b, micro_batches: 6"),
        devices(3, "name: pipedream, micro_batches: 6"),
        std::string("cluster: {devices: 3, link: {latency: 7 us, bandwidth: 100 MB/s}}\n"
                    "schedule: {name: 1f1b, micro_batches: 5}\n"),
        std::string("cluster: {devices: 3, link: {latency: 7 us, bandwidth: 100 MB/s}}\n"
                    "schedule: {name: gpipe, micro_batches: 4, transfers: blocking}\n"),
        std::string("cluster: {devices: 4, link: {latency: 7 us, bandwidth: 1 GB/s}}\n"
                    "schedule: {name: 1f1b, micro_batches: 6}\n"
                    "plan: {stages: 2, replicas: [3, 1]}\n"),
        std::string("cluster: {devices: 3, link: {latency: 7 us, bandwidth: 1 GB/s}}\n"
                    "schedule: {name: pipedream, micro_batches: 6}\n"
                    "plan: {stages: 2, replicas: [2, 1]}\n"),
        std::string("cluster: {devices: 3, link: {bandwidth: 1 GB/s}}\n"
                    "schedule: {name: data-parallel, micro_batches: 2}\n")}) {
    CAPTURE(rest);
    Scenario scenario = scenario_of(kMlp, rest);
    scenario.network = nullptr;
    Fake fake;
    {
      auto backend = cuda_backend(fake.cuda.driver(), scenario, {});
      REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
      CHECK(contains((*backend)->device_text(), "kernels that spin for the modelled time"));
      const auto run = run_scenario(scenario, **backend, few(2, 1));
      REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
      const auto predicted = predict(scenario);
      REQUIRE(predicted);
      for (const MeasuredIteration& iteration : run->iterations) {
        REQUIRE(iteration.trace.spans.size() == predicted->trace.spans.size());
        CHECK(ns(*iteration.untold) == ns(predicted->metrics.makespan));
        for (std::uint32_t node = 0; node < predicted->graph.size(); ++node) {
          CAPTURE(to_text(predicted->graph.activities[node]));
          CHECK(ns(iteration.trace.spans[node].end.time_since_epoch()) ==
                ns(predicted->trace.spans[node].end.time_since_epoch()));
        }
      }
      CHECK((*backend)->results().losses.empty());
    }
    CHECK(fake.cuda.faults() == std::vector<std::string>{});
    CHECK(fake.cuda.live() == "");
  }
}

TEST_CASE("cuda: an iteration takes what its kernels take on the driver's clock") {
  // On one device all stands on one stream: what one kernel takes longer, the iteration does.
  const Scenario scenario = scenario_of(kTiny, devices(1, "name: gpipe, micro_batches: 3"));
  const auto untold = [&](std::uint64_t relu) {
    Fake fake;
    fake.cuda.set_duration("plumbline_relu_f32", relu);
    auto backend = cuda_backend(fake.cuda.driver(), scenario, own());
    REQUIRE(backend);
    const auto run = run_scenario(scenario, **backend, few(2, 1));
    REQUIRE(run);
    for (const MeasuredIteration& iteration : run->iterations) {
      const Metrics metrics =
          measure(run->outcome.graph, iteration.trace, run->outcome.pipeline.steady_window);
      CHECK(*iteration.untold == metrics.makespan);
    }
    return run->iterations.back().untold->count();
  };
  CHECK(untold(6000) == untold(1000) + 3 * 5000);
}

/// A run of two iterations, executed twice each; what it says, and how often the driver was asked.
struct Launched {
  std::vector<float> parameters;
  std::vector<std::string> remarks;
  int graphs = 0;
  int kernels = 0;
};

Launched launched(const Scenario& scenario, const FakeOptions& fake_options, bool graphs,
                  CUresult capture = CUDA_SUCCESS) {
  Fake fake(fake_options);
  CudaOptions options = own();
  options.graphs = graphs;
  auto backend = cuda_backend(fake.cuda.driver(), scenario, options);
  REQUIRE(backend);
  Launched made;
  made.graphs = -fake.cuda.calls("cuGraphLaunch");
  made.kernels = -fake.cuda.calls("cuLaunchKernel");
  if (capture != CUDA_SUCCESS) fake.cuda.fail("cuStreamBeginCapture", 3, capture);
  const auto run = run_scenario(scenario, **backend, few(2));
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  made.graphs += fake.cuda.calls("cuGraphLaunch");
  made.kernels += fake.cuda.calls("cuLaunchKernel");
  made.remarks = (*backend)->remarks();
  for (const auto& stage : (*backend)->results().parameters)
    made.parameters.insert(made.parameters.end(), stage.begin(), stage.end());
  backend->reset();
  CHECK(fake.cuda.faults() == std::vector<std::string>{});
  CHECK(fake.cuda.live() == "");
  return made;
}

bool tells(const Launched& run, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(), [&](const std::string& remark) {
    return remark.find(part) != std::string::npos;
  });
}

TEST_CASE("cuda: an op is one launch after its first execution, where graphs can be had") {
  const Scenario scenario = scenario_of(kTiny, devices(2, "name: 1f1b, micro_batches: 3"));
  const Launched one_by_one = launched(scenario, {}, false);
  CHECK(one_by_one.graphs == 0);
  CHECK(tells(one_by_one,
              "kernels are launched one by one, not as a graph for each op: "
              "--no-graphs"));
  const Launched replayed = launched(scenario, {}, true);
  // Three more executions of F and B of three micro-batches and an update, on two devices.
  CHECK(replayed.graphs == 3 * 2 * (2 * 3 + 1));
  CHECK_FALSE(tells(replayed, "one by one"));
  // The first execution and the recording, instead of four executions; and the gates.
  CHECK(replayed.kernels < one_by_one.kernels * 6 / 10);
  CHECK(bit_equal(replayed.parameters, one_by_one.parameters));

  FakeOptions leaving;
  leaving.graphs_leave_partitions = true;
  const Launched left = launched(scenario, leaving, true);
  CHECK(left.graphs == 0);
  CHECK(tells(left, "graphs leave the SMs of device 0 for "));
  CHECK(bit_equal(left.parameters, one_by_one.parameters));

  const Launched refused = launched(scenario, {}, true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(refused.graphs == 0);
  CHECK(tells(refused, "cuStreamBeginCapture: "));
  CHECK(bit_equal(refused.parameters, one_by_one.parameters));
}

std::string problem_of(FakeCuda& fake, const Scenario& scenario, RunOptions options = few(1)) {
  auto backend = cuda_backend(fake.driver(), scenario, own());
  if (!backend) return to_text(backend.problems());
  const auto run = run_scenario(scenario, **backend, options);
  return run ? "" : to_text(run.problems());
}

TEST_CASE("cuda: memory that runs out ends the run before its first iteration") {
  const Scenario scenario = scenario_of(kMlp, devices(2, "name: 1f1b, micro_batches: 4"));
  Fake fake;
  auto backend = cuda_backend(fake.cuda.driver(), scenario, own());
  REQUIRE(backend);
  fake.cuda.fail("cuMemAlloc", 30, CUDA_ERROR_OUT_OF_MEMORY);
  const auto run = run_scenario(scenario, **backend, few(1));
  REQUIRE_FALSE(run);
  const std::string text = to_text(run.problems());
  CAPTURE(text);
  CHECK(contains(text, " failed: cuMemAlloc: "));
  CHECK(contains(text, "take fewer or smaller micro-batches, or more devices"));
  CHECK(contains(text, "has not begun"));
  CHECK(run.problems().front().fault == Fault::infeasible);
  backend->reset();
  CHECK(fake.cuda.live() == "");
}

TEST_CASE("cuda: a device that is lost ends the run with where every device stood") {
  const Scenario scenario = scenario_of(kTiny, devices(2, "name: 1f1b, micro_batches: 4"));
  // While work is enqueued, and while it is waited for.
  const std::vector<std::pair<const char*, int>> places = {
      {"cuLaunchKernel", 20}, {"cuEventRecord", 15}, {"cuStreamWaitEvent", 9}, {"cuEventQuery", 2}};
  for (const auto& [call, nth] : places) {
    const std::string place = call;
    CAPTURE(place);
    Fake fake;
    auto backend = cuda_backend(fake.cuda.driver(), scenario, own());
    REQUIRE(backend);
    RunOptions options = few(3, 1);
    options.progress = [&, &name = call, &n = nth](std::uint32_t done, std::uint32_t) {
      if (done == 1) fake.cuda.fail(name, n, CUDA_ERROR_LAUNCH_FAILED, /*lost=*/true);
    };
    const auto run = run_scenario(scenario, **backend, options);
    REQUIRE_FALSE(run);
    const std::string text = to_text(run.problems());
    CAPTURE(text);
    CHECK(contains(text, std::string(call) + ": "));
    CHECK(contains(text, "the device is lost to this process"));
    CHECK(contains(text, " failed at "));
    CHECK(contains(text, "\n  device 0: "));
    CHECK(contains(text, "\n  device 1: "));
    CHECK_FALSE(contains(text, "has not begun"));
  }
}

TEST_CASE("cuda: a device that makes no progress is told, and left behind") {
  const Scenario scenario = scenario_of(kTiny, devices(2, "name: 1f1b, micro_batches: 4"));
  Fake fake;
  static const CudaDriver* asked = nullptr;
  static std::atomic<int> answers{0};
  asked = &fake.cuda.driver();
  answers = 0;
  CudaDriver driver = *asked;
  driver.cuEventQuery = [](CUevent event) {
    return ++answers > 6 ? CUDA_ERROR_NOT_READY : asked->cuEventQuery(event);
  };
  auto backend = cuda_backend(driver, scenario, own());
  REQUIRE(backend);
  RunOptions options = few(2);
  options.patience = std::chrono::milliseconds(200);
  const auto run = run_scenario(scenario, **backend, options);
  REQUIRE_FALSE(run);
  const std::string text = to_text(run.problems());
  CAPTURE(text);
  CHECK(contains(text, " hangs: "));
  CHECK(contains(text, " has run for 0."));
  CHECK(contains(text, "\n  device 1: "));
  backend->reset();
  CHECK(fake.cuda.live() != "");
}

TEST_CASE("cuda: what is not run is told") {
  Fake fake;
  const Scenario replicated =
      scenario_of(kMlp,
                  "cluster: {levels: [{name: server, size: 2, bandwidth: 1 GB/s}, {name: rack, "
                  "size: 2}]}\nschedule: {name: data-parallel, micro_batches: 2}\n");
  CHECK(contains(problem_of(fake.cuda, replicated),
                 "does not keep where replicas add up their gradients over several levels"));
  const Scenario shared =
      scenario_of(kMlp,
                  "cluster: {levels: [{name: server, size: 2}, {name: rack, size: 2, bandwidth: 1 "
                  "GB/s}]}\nschedule: {name: 1f1b, micro_batches: 4}\n");
  CHECK(contains(problem_of(fake.cuda, shared), "has no network cards that devices share"));
}

}  // namespace
}  // namespace plumbline::test
