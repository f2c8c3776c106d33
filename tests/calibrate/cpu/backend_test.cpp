// Pipelines that train: the gradients are those of one device, the versions those that order says.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/backend.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "calibrate/cpu/buffer.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/runtime/real_run.h"
#include "calibrate/training/training_data.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/network_scenario.h"
#include "tests/support/same_training.h"

namespace plumbline::test {
namespace {

bool has_backend() {
  if (!cpu_library().empty()) return true;
  MESSAGE("skipped: this build has no oneDNN");
  return false;
}

const char* const kMlp =
    "version: 1\nkind: network\ninput: {shape: [12]}\nlayers:\n"
    "  - {kind: linear, features: 24}\n  - {kind: relu}\n  - {kind: linear, features: 20}\n"
    "  - {kind: gelu}\n  - {kind: layer_norm}\n  - {kind: linear, features: 16}\n"
    "  - {kind: head, classes: 4}\n";
const char* const kGpt =
    "version: 1\nkind: network\ninput: {tokens: 6, vocabulary: 11}\nlayers:\n"
    "  - {kind: embedding, features: 8, positions: true}\n"
    "  - {repeat: 2, layers: [{kind: attention_block, heads: 2}, {kind: mlp_block}]}\n"
    "  - {kind: head}\n";
const char* const kConvolutions =
    "version: 1\nkind: network\ninput: {shape: [3, 8, 8]}\nlayers:\n"
    "  - {kind: conv2d, channels: 4, kernel: 3, padding: 1}\n  - {kind: batch_norm}\n"
    "  - {kind: relu}\n  - {kind: residual_block, channels: 6, stride: 2}\n"
    "  - {kind: max_pool, kernel: 2}\n  - {kind: flatten}\n"
    "  - {kind: head, classes: 3, norm: false, bias: true}\n";
const char* const kLstm =
    "version: 1\nkind: network\ninput: {tokens: 5, vocabulary: 9}\nlayers:\n"
    "  - {kind: embedding, features: 8}\n  - {kind: lstm, hidden: 8}\n"
    "  - {kind: lstm, hidden: 8, residual: true}\n  - {kind: head}\n";

/// The weights after some iterations, layer by layer, and the losses.
struct Trained {
  std::vector<float> parameters;
  std::vector<double> losses;
};

Trained train(const Scenario& scenario, std::uint32_t iterations = 3, double rate = 0.05) {
  CpuOptions options;
  options.learning_rate = rate;
  auto backend = cpu_backend(scenario, options);
  REQUIRE(backend);
  RunOptions run_options;
  run_options.warm_up = 0;
  run_options.iterations = iterations;
  run_options.max_iterations = iterations;
  run_options.clean_below = 1e9;
  const auto run = run_scenario(scenario, **backend, run_options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  CpuResults results = (*backend)->results();
  Trained trained;
  trained.losses = results.losses;
  for (const auto& stage : results.parameters)
    trained.parameters.insert(trained.parameters.end(), stage.begin(), stage.end());
  return trained;
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

TEST_CASE("a synchronous pipeline makes bit by bit the weights of one device") {
  if (!has_backend()) return;
  for (const char* network : {kMlp, kGpt, kConvolutions, kLstm}) {
    const Trained alone =
        train(network_scenario(network, on_devices(1, "name: gpipe, micro_batches: 4")));
    CHECK(alone.losses.size() == 3);
    for (const char* schedule : {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"}) {
      for (const int count : {2, 3, 4}) {
        CAPTURE(network);
        CAPTURE(schedule);
        CAPTURE(count);
        const Trained together = train(network_scenario(
            network, on_devices(count, std::string("name: ") + schedule + ", micro_batches: 4")));
        CHECK(bit_equal(alone.parameters, together.parameters));
        CHECK(alone.losses == together.losses);
      }
    }
  }
}

TEST_CASE("an order that was found makes bit by bit the weights of one device") {
  if (!has_backend()) return;
  for (const char* network : {kMlp, kGpt}) {
    const Trained alone =
        train(network_scenario(network, on_devices(1, "name: zb-h1, micro_batches: 5")));
    for (const char* placement : {"straight", "looped", "v"}) {
      CAPTURE(network);
      CAPTURE(placement);
      const auto found = resolve_plan(network_scenario(
          network, on_devices(2, std::string("name: auto, effort: 0.01, micro_batches: 5, "
                                             "placement: ") +
                                     placement)));
      REQUIRE(found);
      const Trained together = train(*found);
      CHECK(bit_equal(alone.parameters, together.parameters));
      CHECK(alone.losses == together.losses);
    }
  }
}

TEST_CASE("blocking transfers, several mini-batches, Adam and recomputation change no bit") {
  if (!has_backend()) return;
  for (const char* network : {kGpt, kConvolutions}) {
    for (const char* more : {", transfers: blocking", ", mini_batches: 2", ", recompute: full",
                             ", recompute: layers", ", recompute: full, recompute_early: true"}) {
      for (const char* adam : {"", "training: {optimizer_state: 2.0}\n"}) {
        CAPTURE(more);
        const std::string schedule = std::string("name: 1f1b, micro_batches: 3") + more;
        const Trained alone = train(network_scenario(network, on_devices(1, schedule, adam)));
        const Trained together = train(network_scenario(network, on_devices(3, schedule, adam)));
        CHECK(bit_equal(alone.parameters, together.parameters));
      }
    }
  }
}

TEST_CASE("what is computed again, of a stage or layer by layer, changes no bit") {
  if (!has_backend()) return;
  const auto trained = [](const Scenario& scenario) { return train(scenario); };
  for (const char* network : {kMlp, kGpt, kLstm, kConvolutions}) {
    check_recomputation(network, 1, "name: gpipe, micro_batches: 3", trained);
    check_recomputation(network, 2, "name: 1f1b, micro_batches: 3", trained);
    check_recomputation(network, 2, "name: zb-h1, micro_batches: 4", trained);
    check_recomputation(network, 2, "name: pipedream, micro_batches: 6", trained);
  }
}

TEST_CASE("backwards that are cut into buckets change no bit") {
  if (!has_backend()) return;
  for (const char* network : {kMlp, kGpt, kLstm, kConvolutions})
    check_buckets(network, [](const Scenario& scenario) { return train(scenario); });
}

TEST_CASE("each part of a backward runs its own layers, and its bucket leaves behind it") {
  if (!has_backend()) return;
  // Five layers that take as long, but for the head; a bucket each. Three iterations at least are
  // not disturbed everywhere.
  std::string network = "version: 1\nkind: network\ninput: {shape: [256]}\nlayers:\n";
  for (int i = 0; i < 5; ++i) network += "  - {kind: linear, features: 256}\n";
  const Scenario scenario =
      network_scenario((network + "  - {kind: head, classes: 2}\n").c_str(),
                       on_devices(2, "name: data-parallel, micro_batches: 2, bucket: 1 KiB"));
  auto backend = cpu_backend(scenario, {});
  REQUIRE(backend);
  RunOptions options;
  options.warm_up = 2;
  options.iterations = options.max_iterations = 12;
  options.clean_below = 1e9;
  const auto run = run_scenario(scenario, **backend, options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  const OpGraph& graph = run->outcome.graph;
  const std::vector<std::uint32_t> ops = ops_of_parts(graph);
  std::map<std::uint32_t, std::vector<std::uint32_t>> parts;  // of each op that is cut
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_part(graph.activities[node].kind)) parts[ops[node]].push_back(node);
  }
  REQUIRE(parts.size() == 2);
  for (auto& [op, nodes] : parts) {
    nodes.push_back(op);
    REQUIRE(nodes.size() == 6);
    std::vector<Duration> shortest(nodes.size(), Duration::max());
    for (const MeasuredIteration& iteration : run->iterations) {
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Span& span = iteration.trace.spans[nodes[i]];
        shortest[i] = std::min(shortest[i], Duration{span.end - span.begin});
      }
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {  // the head's comes first
      CAPTURE(i);
      CHECK(seconds(shortest[i]) > 0.2 * seconds(shortest.back()));
      CHECK(seconds(shortest[i]) < 5 * seconds(shortest.back()));
    }
  }
}

TEST_CASE("replicas and copies make the weights of one device but for the order of sums") {
  if (!has_backend()) return;
  for (const char* network : {kMlp, kGpt, kLstm}) {
    const Trained alone =
        train(network_scenario(network, on_devices(1, "name: gpipe, micro_batches: 8")));
    const std::string replicas = "plan: {stages: 2, replicas: [2, 1]}\n";
    const std::string copies = "plan: {stages: 2, data_parallel: 2}\n";
    CHECK(largest_difference(
              alone.parameters,
              train(network_scenario(network,
                                     on_devices(3, "name: 1f1b, micro_batches: 8", replicas)))
                  .parameters) < 1e-5);
    CHECK(
        largest_difference(
            alone.parameters,
            train(network_scenario(network, on_devices(4, "name: 1f1b, micro_batches: 4", copies)))
                .parameters) < 1e-5);
    CHECK(
        largest_difference(
            alone.parameters,
            train(network_scenario(network, on_devices(4, "name: data-parallel, micro_batches: 2")))
                .parameters) < 1e-5);
  }
}

TEST_CASE("a sharded optimizer makes bit by bit the weights of one that is not") {
  if (!has_backend()) return;
  std::vector<std::string> plans = plans_with_members();
  plans.push_back(on_devices(4, "name: chimera, micro_batches: 4, recompute: full"));
  for (const char* network : {kMlp, kGpt, kLstm}) {
    for (const std::string& plan : plans) {
      for (const std::string state : {"0", "2"}) {
        CAPTURE(network);
        CAPTURE(plan);
        CAPTURE(state);
        const std::string training = plan + "training: {optimizer_state: " + state;
        const Trained whole = train(network_scenario(network, training + "}\n"));
        const Trained shared = train(network_scenario(network, training + ", zero_stage: 1}\n"));
        CHECK(bit_equal(whole.parameters, shared.parameters));
        CHECK(whole.losses == shared.losses);
      }
    }
  }
}

/// The asynchronous run again by one thread: each op on the versions that order alone says.
std::vector<float> by_versions(const Scenario& scenario, double rate) {
  const auto pipeline = resolve_setup(scenario, true);
  REQUIRE(pipeline);
  const Network& network = *scenario.network;
  const std::int64_t batch = scenario.micro_batch_size;
  const std::uint32_t n = pipeline->schedule.shape.micro_batches;
  const TrainingData data(network, batch, std::min(n, 64U), 1);
  struct Stage {
    std::unique_ptr<CpuStage> kernels;
    std::map<std::uint32_t, std::vector<float>> weights;
    std::vector<std::vector<float>> inputs, outputs, kept, down;
    std::vector<float> sum;
    std::uint32_t in_sum = 0;
  };
  std::vector<Stage> stages(pipeline->partition.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto& layers = pipeline->partition.stages[s].layers;
    Stage& stage = stages[s];
    stage.kernels =
        std::make_unique<CpuStage>(network, layers.front().value, layers.back().value, batch);
    stage.weights[0].resize(stage.kernels->parameter_floats());
    stage.kernels->initialise(stage.weights[0].data(), 1);
    stage.sum.assign(stage.kernels->parameter_floats(), 0);
    stage.outputs.resize(n);
    stage.kept.resize(n);
    stage.down.resize(n);
  }
  const std::uint32_t round = scenario.schedule.updates.weights == WeightRule::two
                                  ? scenario.schedule.updates.accumulated
                                  : 1;
  const std::vector<float> loss_weights(static_cast<std::size_t>(batch),
                                        1.0F / static_cast<float>(batch * round));
  for (const Op& op : pipeline->schedule.issue_order) {
    const std::uint32_t s = op.stage.value;
    const std::uint32_t m = op.micro_batch.value;
    Stage& stage = stages[s];
    const VersionUse& use = pipeline->weights[s].uses[m];
    StageTensors t;
    t.input = s == 0 ? data.input(m) : stages[s - 1].outputs[m].data();
    if (s == 0) t.ids = data.ids(m);
    if (s + 1 == stages.size()) t.labels = data.labels(m);
    if (op.kind == OpKind::forward) {
      stage.outputs[m].resize(stage.kernels->output_floats());
      stage.kept[m].resize(stage.kernels->kept_floats());
    }
    t.output = stage.outputs[m].data();
    t.kept = stage.kept[m].data();
    if (op.kind == OpKind::forward) {
      t.parameters = stage.weights.at(use.forward).data();
      stage.kernels->forward(t);
      continue;
    }
    t.parameters = stage.weights.at(use.backward).data();
    Buffer scratch(stage.kernels->scratch_floats());
    t.left = scratch.data();
    t.gradients = stage.sum.data();
    t.output_gradient = s + 1 == stages.size() ? loss_weights.data() : stages[s + 1].down[m].data();
    if (s > 0) {
      stage.down[m].resize(stage.kernels->input_floats());
      t.input_gradient = stage.down[m].data();
    }
    stage.kernels->backward(t);
    if (++stage.in_sum < round) continue;
    CHECK(stage.weights.rbegin()->first == use.applied_to);
    std::vector<float> next(stage.sum.size());
    Optimizer step(OptimizerKind::gradient_descent, {0, next.size()}, rate);
    step.step();
    step.update({0, next.size()}, {stage.sum.data()}, stage.weights.rbegin()->second.data(),
                next.data());
    stage.weights[use.applied_to + 1] = std::move(next);
    stage.in_sum = 0;
    stage.sum.assign(stage.sum.size(), 0);
  }
  std::vector<float> all;
  for (const Stage& stage : stages)
    all.insert(all.end(), stage.weights.rbegin()->second.begin(),
               stage.weights.rbegin()->second.end());
  return all;
}

TEST_CASE("an asynchronous run applies every gradient to the version that order alone says") {
  if (!has_backend()) return;
  use_one_thread();
  for (const char* network : {kMlp, kGpt}) {
    for (const char* weights : {"stash", "vertical-sync", "none", "two"}) {
      CAPTURE(weights);
      const Scenario scenario = network_scenario(
          network,
          on_devices(3,
                     std::string("name: pipedream, micro_batches: 4, mini_batches: 4, weights: ") +
                         weights));
      const Trained trained = train(scenario, 1);
      CHECK(bit_equal(trained.parameters, by_versions(scenario, 0.05)));
    }
  }
}

TEST_CASE("the loss falls under every schedule" * doctest::test_suite("slow")) {
  if (!has_backend()) return;
  const auto falls = [](const Trained& trained) {
    CAPTURE(trained.losses.front());
    CAPTURE(trained.losses.back());
    CHECK(trained.losses.size() == 50);
    CHECK(trained.losses.back() < 0.5 * trained.losses.front());
  };
  for (const char* schedule : {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"}) {
    CAPTURE(schedule);
    falls(train(network_scenario(
                    kMlp, on_devices(2, std::string("name: ") + schedule + ", micro_batches: 4")),
                50, 0.3));
  }
  falls(train(network_scenario(kMlp, on_devices(2, "name: data-parallel, micro_batches: 2")), 50,
              0.3));
  for (const char* weights : {"stash", "vertical-sync", "none", "two"}) {
    CAPTURE(weights);
    falls(train(
        network_scenario(
            kMlp,
            on_devices(2, std::string("name: pipedream, micro_batches: 4, weights: ") + weights)),
        50, 0.05));
  }
  for (const char* network : {kGpt, kConvolutions, kLstm}) {
    CAPTURE(network);
    const Trained trained =
        train(network_scenario(network, on_devices(2, "name: 1f1b, micro_batches: 4",
                                                   "training: {optimizer_state: 2}\n")),
              50, 0.01);
    CHECK(trained.losses.back() < 0.7 * trained.losses.front());
  }
}

TEST_CASE("the same seed trains the same weights, another seed others") {
  if (!has_backend()) return;
  const Scenario scenario = network_scenario(kMlp, on_devices(2, "name: 1f1b, micro_batches: 4"));
  CHECK(bit_equal(train(scenario).parameters, train(scenario).parameters));
  CHECK_FALSE(bit_equal(train(scenario, 3).parameters, train(scenario, 4).parameters));
}

TEST_CASE("what the cpu backend does not run is told") {
  Scenario scenario = network_scenario(kMlp, on_devices(2, "name: 1f1b, micro_batches: 4"));
  const auto message = [&] {
    const auto backend = cpu_backend(scenario, {});
    REQUIRE_FALSE(backend);
    return backend.problems().front().message;
  };
  if (!has_backend()) {
    CHECK(message() == "this build has no cpu backend: it was made without oneDNN");
    return;
  }
  Network network = *scenario.network;
  network.name = "n";
  network.element = ElementType::bf16;
  scenario.network = std::make_shared<const Network>(network);
  CHECK(message() == "the network 'n' is bf16, and the cpu backend computes in fp32");
  network.element = ElementType::fp32;
  network.layers.pop_back();
  scenario.network = std::make_shared<const Network>(network);
  CHECK(message() == "the network 'n' does not end in a head, so it has no loss");
  scenario = network_scenario(
      kMlp, on_devices(2, "name: 1f1b, micro_batches: 4", "training: {gradients: 2}\n"));
  CHECK(message() ==
        "training.gradients is 2, and a network is run with gradients as wide as its parameters");
  scenario =
      network_scenario(kMlp, on_devices(2, "name: 1f1b, micro_batches: 4, recompute: full", ""));
  scenario.schedule.recompute.kind = Recompute::selective;
  CHECK(message() ==
        "schedule.recompute is 'selective', and a network is run with all of a layer's activations "
        "recomputed, or none");
  scenario = network_scenario(kMlp, on_devices(2, "name: 1f1b, micro_batches: 4, slices: 2", ""));
  CHECK(message() == "schedule.slices is 2, and a network is run with whole sequences");
  scenario = network_scenario(
      kMlp, on_devices(2, "name: eager-1f1b, micro_batches: 4, pairs: overlapped", ""));
  CHECK(message() == "schedule.pairs is overlapped, and a device runs one op after the other");
  const auto with = [&](const std::string& training) {
    scenario = network_scenario(
        kMlp, on_devices(2, "name: 1f1b, micro_batches: 4", "training: " + training + "\n"));
    return message();
  };
  CHECK(with("{zero_stage: 2}") ==
        "training.zero_stage is 2, and a run with real kernels shares no more than the optimizer");
  CHECK(with("{zero_stage: 1, gather: with-forward}") ==
        "training.gather is with-forward, and a run with real kernels gathers weights behind the "
        "update");
  for (const char* const lengths : {"[1, 2, 1, 1]", "[1, 1, 2, 2]"}) {
    CHECK(with(std::string("{micro_batch_lengths: ") + lengths + "}") ==
          "training.micro_batch_lengths is given, and a run with real kernels has micro-batches of "
          "one length");
  }
  scenario.network = nullptr;
  CHECK(message() ==
        "the cpu backend executes networks, and the model is known by its times alone");
}

}  // namespace
}  // namespace plumbline::test
