// Runs on a made-up GPU beside their predictions: traces, links, launches, what was calibrated.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "calibrate/cuda/program/program.h"
#include "calibrate/cuda/timing/calibration.h"
#include "calibrate/measure/recalibration.h"
#include "models/profile/profile_writer.h"
#include "sim/engine/idle.h"
#include "sim/planning/predict.h"
#include "tests/support/cuda_training.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

TEST_CASE("the trace obeys the graph, and the books are those of its times") {
  for (const std::string& rest :
       {on_devices(3, "name: 1f1b, micro_batches: 4"),
        on_devices(3, "name: gpipe, micro_batches: 4, transfers: blocking"),
        on_devices(4, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, data_parallel: 2}\n"),
        on_devices(2, "name: data-parallel, micro_batches: 3"),
        on_devices(3, "name: pipedream, micro_batches: 6, weights: stash")}) {
    CAPTURE(rest);
    const Scenario scenario = network_scenario(kTiny, rest);
    const Trained trained = train(scenario, {}, 2);
    const RealRun& run = trained.run;
    CHECK(run.iterations.size() == 2);
    CHECK(run.clean == 2);
    for (const MeasuredIteration& iteration : run.iterations) {
      REQUIRE(iteration.untraced);
      CHECK(iteration.untraced->count() > 0);
      const OpGraph& graph = run.outcome.graph;
      REQUIRE(iteration.trace.spans.size() == graph.size());
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        CAPTURE(to_text(graph.activities[node]));
        const Span& span = iteration.trace.spans[node];
        CHECK(span.end >= span.begin);
        if (graph.nodes[node].input != graph.size())
          CHECK(span.begin >= iteration.trace.spans[graph.nodes[node].input].end);
        const ActivityKind kind = graph.activities[node].kind;
        if (is_op(kind) || is_transfer(kind)) CHECK(span.end > span.begin);
      }
      for (const Join& join : graph.joins) {
        for (const std::uint32_t before : join.inputs)
          CHECK(iteration.trace.spans[join.node].begin >= iteration.trace.spans[before].end);
      }
      const auto steps =
          memory_steps(graph, iteration.trace, run.outcome.setup.costs,
                       run.outcome.setup.schedule.shape.positions, memory_rules(run.outcome.setup));
      const auto expected =
          measure_memory(graph, run.outcome.setup.costs, memory_rules(run.outcome.setup), steps);
      for (std::size_t slot = 0; slot < expected.size(); ++slot) {
        CHECK(iteration.memory[slot].peak.activations + iteration.memory[slot].peak.buffers ==
              expected[slot].peak.activations + expected[slot].peak.buffers);
      }
    }
    CHECK(run.outcome.iteration_time_s == run.times_s[run.shown]);
  }
}

TEST_CASE("links keep their latency and bandwidth to the nanosecond of the device's clock") {
  const auto with_link = [](int count, const std::string& link, const std::string& schedule,
                            const std::string& more = "") {
    return network_scenario(kTiny, "cluster: {devices: " + std::to_string(count) + ", link: {" +
                                       link + "}}\nschedule: {" + schedule + "}\n" + more);
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
      with_link(3, both, "name: data-parallel, micro_batches: 2"),
      with_link(3, both, "name: data-parallel, micro_batches: 2, bucket: 2 KiB"),
      with_link(4, both, "name: 1f1b, micro_batches: 6",
                "plan: {stages: 2, replicas: [3, 1]}\ntraining: {zero_stage: 1}\n"),
      with_link(3, both, "name: data-parallel, micro_batches: 2, bucket: 2 KiB",
                "training: {zero_stage: 1, optimizer_state: 2}\n")};
  const Trained alone =
      train(network_scenario(kTiny, on_devices(1, "name: gpipe, micro_batches: 4")));
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
      const bool is_hop = is_collective(graph.activities[node].kind);
      if (!is_transfer(graph.activities[node].kind) && !is_hop) continue;
      CAPTURE(to_text(graph.activities[node]));
      ++transfers;
      const Cost& cost = graph.cost(node);
      const Span& span = trace.spans[node];
      // A copy of the fake device is faster than either.
      CHECK((span.end - span.begin).count() == (cost.hold + cost.latency).count());
      if (graph.blocking || is_hop) continue;
      const std::uint32_t channel = graph.nodes[node].resource;
      const SimTime begin = std::max(trace.spans[graph.nodes[node].input].end, free[channel]);
      CHECK(span.begin.time_since_epoch().count() == begin.time_since_epoch().count());
      free[channel] = span.end - cost.latency;
    }
    CHECK(transfers > 0);
  }
}

CudaCalibrationOptions quick_calibration() {
  CudaCalibrationOptions options;
  options.builtin_kernels = true;
  options.warm_up_seconds = 0.001;
  options.max_turns = 4;  // kernels are emulated
  return options;
}

/// The network with a profile that was calibrated on the driver, in two stages.
Model calibrated_model(const CudaDriver& driver, const char* network_text,
                       const Nccl* nccl = nullptr) {
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"n.network.yaml", network_text, ""}));
  REQUIRE(network);
  CudaCalibrationOptions with = quick_calibration();
  with.nccl = nccl != nullptr;
  auto on = cuda_calibration_devices(driver, *network, 2, with, nccl);
  REQUIRE_MESSAGE(on, (on ? "" : to_text(on.problems())));
  CalibrationOptions options;
  options.devices = 2;
  options.batches = {3};
  options.min_seconds = 0.1;
  options.max_seconds = 20;  // it is precise at once: kernels take a set time
  options.slowdown = false;
  const auto measured = measure_layers(**on, *network, {}, options);
  REQUIRE(measured);
  auto calibration = calibration_of(**on, *network, {}, options, *measured);
  REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
  measure_between(**on, *network, options, calibration->model.profile);
  REQUIRE(calibration->model.profile.blocks.size() == 2);
  return calibration->model;
}

/// A scenario of it with a plan of the two stages, or one that is given.
Scenario scenario_of(const Model& model, const char* network_text, const std::string& schedule,
                     const std::string& plan = "") {
  const std::vector<Block>& blocks = model.profile.blocks;
  const TemporaryFolder folder;
  const std::string text =
      "version: 1\nmodel: {network: " + folder.file("n.network.yaml", network_text) +
      ", profile: " + folder.file("n.profile.yaml", profile_yaml(model)) +
      "}\ncluster: {devices: 2, link: measured}\n" +
      (plan.empty() ? "plan: {partition: [" + std::to_string(blocks[0].layers.size()) + ", " +
                          std::to_string(blocks[1].layers.size()) + "]}\n"
                    : plan) +
      "schedule: {" + schedule + "}\noverhead: measured\n";
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

TEST_CASE("what was calibrated predicts the run, updates and measured links included" *
          doctest::test_suite("slow")) {
  FakeOptions slow_copies;
  slow_copies.copy_nanoseconds = 700;
  const auto calibrate = [&](const char* network) {
    FakeGpus fake(slow_copies);
    return calibrated_model(fake.cuda.driver(), network);
  };
  const auto check = [&](const Model& model, const char* network, const std::string& schedule) {
    CAPTURE(network);
    CAPTURE(schedule);
    FakeGpus fake(slow_copies);
    const Scenario scenario = scenario_of(model, network, schedule);
    REQUIRE(scenario.link_measured);
    auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    fake.cuda.clear_executions();
    const auto run = run_scenario(scenario, **backend, few_iterations(2, 2));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    for (const FakeExecution& one : fake.cuda.executions())
      CHECK(one.what != "plumbline_wait_since");  // copies are as fast as they are
    for (const std::string& remark : run->remarks)
      CHECK(remark.find("measured elsewhere") == std::string::npos);
    const auto predicted = predict(scenario);
    REQUIRE(predicted);
    const double off = static_cast<double>(run->iterations.back().untraced->count()) -
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
    REQUIRE_FALSE(again.measure_pass());
    const auto now = again.predict(scenario, *predicted);
    REQUIRE(now);
    REQUIRE_MESSAGE(*now, again.of(scenario, *predicted).remark());
    CHECK(std::abs((*now)->iteration_time_s - predicted->iteration_time_s) * 1e9 <=
          static_cast<double>(predicted->graph.size()));
  };
  const Model mlp = calibrate(kMlp);
  for (const char* schedule :
       {"naive", "gpipe", "1f1b", "delayed-backward", "gpipe, transfers: blocking"})
    check(mlp, kMlp, std::string("name: ") + schedule + ", micro_batches: 4");
  if (kSanitized) return;  // a minute there, and sanitizers see the same in other cases
  for (const char* network : {kGpt, kImages, kSentences})
    check(calibrate(network), network, "name: 1f1b, micro_batches: 3");
}

TEST_CASE("what was calibrated with NCCL predicts the run with it" * doctest::test_suite("slow")) {
  const auto check = [](const std::string& schedule, const std::string& plan = "") {
    CAPTURE(schedule);
    FakeOptions two_gpus;
    two_gpus.gpus.assign(2, FakeGpu{});
    two_gpus.copy_nanoseconds = 700;
    FakeGpus fake(two_gpus);
    const Scenario scenario =
        scenario_of(calibrated_model(fake.cuda.driver(), kMlp, &fake_nccl()), kMlp, schedule, plan);
    REQUIRE(scenario.link_measured);
    CHECK(scenario.model->profile.links.front().kind == "nccl 0-1");
    CudaOptions options = builtin_kernels();
    options.nccl = true;
    auto backend = cuda_backend(fake.cuda.driver(), scenario, options, &fake_nccl());
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    CHECK(contains((*backend)->device_text(), "NCCL 2.28.9"));
    const auto run = run_scenario(scenario, **backend, few_iterations(2, 2));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    for (const std::string& remark : run->remarks) CHECK_FALSE(contains(remark, "elsewhere"));
    const auto predicted = predict(scenario);
    REQUIRE(predicted);
    const double off = static_cast<double>(run->iterations.back().untraced->count()) -
                       predicted->iteration_time_s * 1e9;
    if (plan.empty()) CHECK(std::abs(off) <= static_cast<double>(predicted->graph.size()));
    // A ring, of gradients that lie in steps of 256 bytes.
    for (std::uint32_t node = 0; node < predicted->graph.size(); ++node) {
      if (predicted->graph.activities[node].kind != ActivityKind::all_reduce) continue;
      const auto took = [&](const Trace& trace) {
        return ns(trace.spans[node].end - trace.spans[node].begin);
      };
      CHECK(std::abs(took(run->iterations.back().trace) - took(predicted->trace)) <= 30);
    }
    // By copies it is another link than the profile's.
    backend->reset();
    auto by_copies = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
    REQUIRE_MESSAGE(by_copies, (by_copies ? "" : to_text(by_copies.problems())));
    const auto told = run_scenario(scenario, **by_copies, few_iterations(1));
    REQUIRE_MESSAGE(told, (told ? "" : to_text(told.problems())));
    REQUIRE_FALSE(told->remarks.empty());
    CHECK(contains(told->remarks.front(),
                   "the profile was measured elsewhere: transfers NCCL 2.28.9, here copies"));
  };
  for (const char* schedule : {"gpipe", "1f1b", "gpipe, transfers: blocking"})
    check(std::string("name: ") + schedule + ", micro_batches: 4");
  check("name: 1f1b, micro_batches: 4", "plan: {stages: 1, data_parallel: 2}\n");
}

TEST_CASE("a profile of other parts of a GPU than a run's is told" * doctest::test_suite("slow")) {
  FakeGpus fake;
  Scenario scenario = scenario_of(calibrated_model(fake.cuda.driver(), kTiny), kTiny,
                                  "name: gpipe, micro_batches: 2");
  scenario.model.edit().profile.provenance["sms"] = "132";
  auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
  REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
  const auto run = run_scenario(scenario, **backend, few_iterations(1));
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  REQUIRE_FALSE(run->remarks.empty());
  CHECK(run->remarks.front() == "the profile was measured elsewhere: sms 132, here 64");
}

TEST_CASE("a clock that differs from the profile's is told, and warm-up lasts its time" *
          doctest::test_suite("slow")) {
  FakeGpus fake;
  Scenario scenario = scenario_of(calibrated_model(fake.cuda.driver(), kTiny), kTiny,
                                  "name: gpipe, micro_batches: 2");
  CHECK(scenario.model->profile.provenance.at("clock") == "2000 MHz");
  const auto remarks_with = [&](const std::string& clock, double warm_up) {
    scenario.model.edit().profile.provenance["clock"] = clock;
    CudaOptions options = builtin_kernels();
    options.warm_up_seconds = warm_up;
    auto backend = cuda_backend(fake.cuda.driver(), scenario, options);
    REQUIRE(backend);
    const auto run = run_scenario(scenario, **backend, few_iterations(1, 1));
    REQUIRE(run);
    CHECK(run->iterations.size() == 1);
    const std::size_t executed = (*backend)->results().losses.size();
    CHECK((warm_up > 0 ? executed > 3 : executed == 3));
    return run->remarks;
  };
  const std::vector<std::string> other = remarks_with("1800 MHz", 0);
  CHECK(std::count(other.begin(), other.end(),
                   "the GPU ran at 2000 MHz, and at 1800 MHz while the profile was measured: what "
                   "computes may take 0.9 times as long") == 1);
  for (const std::string& remark : remarks_with("1990 MHz", 0.2))
    CHECK_FALSE(contains(remark, "MHz"));
}

TEST_CASE("a model known by its times runs as predicted, to the nanosecond" *
          doctest::test_suite("slow")) {
  for (const std::string& rest :
       {on_devices(3, "name: 1f1b, micro_batches: 5"),
        on_devices(2, "name: naive, micro_batches: 2"),
        on_devices(4, "name: eager-1f1b, micro_batches: 6"),
        on_devices(3, "name: pipedream, micro_batches: 6"),
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
    Scenario scenario = network_scenario(kMlp, rest);
    scenario.network = nullptr;
    FakeGpus fake;
    {
      auto backend = cuda_backend(fake.cuda.driver(), scenario, {});
      REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
      CHECK(contains((*backend)->device_text(), "kernels that spin for the modelled time"));
      const auto run = run_scenario(scenario, **backend, few_iterations(2, 1));
      REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
      const auto predicted = predict(scenario);
      REQUIRE(predicted);
      for (const MeasuredIteration& iteration : run->iterations) {
        REQUIRE(iteration.trace.spans.size() == predicted->trace.spans.size());
        CHECK(ns(*iteration.untraced) == ns(predicted->metrics.makespan));
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

TEST_CASE("an iteration takes what its kernels take on the driver's clock") {
  // On one device all stands on one stream: what one kernel takes longer, the iteration does.
  const Scenario scenario = network_scenario(kTiny, on_devices(1, "name: gpipe, micro_batches: 3"));
  const auto untraced = [&](std::uint64_t relu) {
    FakeGpus fake;
    fake.cuda.set_duration("plumbline_relu_f32", relu);
    auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
    REQUIRE(backend);
    const auto run = run_scenario(scenario, **backend, few_iterations(2, 1));
    REQUIRE(run);
    for (const MeasuredIteration& iteration : run->iterations) {
      const Metrics metrics =
          measure(run->outcome.graph, iteration.trace, run->outcome.setup.steady_window);
      CHECK(*iteration.untraced == metrics.makespan);
    }
    return run->iterations.back().untraced->count();
  };
  CHECK(untraced(6000) == untraced(1000) + 3 * 5000);
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
  FakeGpus fake(fake_options);
  CudaOptions options = builtin_kernels();
  options.graphs = graphs;
  auto backend = cuda_backend(fake.cuda.driver(), scenario, options);
  REQUIRE(backend);
  Launched made;
  made.graphs = -fake.cuda.calls("cuGraphLaunch");
  made.kernels = -fake.cuda.calls("cuLaunchKernel");
  if (capture != CUDA_SUCCESS) fake.cuda.fail("cuStreamBeginCapture", 3, capture);
  const auto run = run_scenario(scenario, **backend, few_iterations(2));
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

TEST_CASE("an op is one launch after its first execution, where graphs can be had") {
  const Scenario scenario = network_scenario(kTiny, on_devices(2, "name: 1f1b, micro_batches: 3"));
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

}  // namespace
}  // namespace plumbline::test
