// Pipelines on CUDA devices that train, without a GPU: a driver that lives in the test runs the
// real kernels' sources, in an order that an adversary picks.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cpu/backend.h"
#include "calibrate/cpu/layer.h"
#include "calibrate/training/stage_layout.h"
#include "sim/setup/resolve_setup.h"
#include "tests/support/cuda_training.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

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

/// The cpu backend's results of the scenario after `executions` executions. Nothing in builds
/// without that backend.
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
  RunOptions run_options = few_iterations(executions);
  run_options.clean_below = 1e9;
  const auto run = run_scenario(scenario, **backend, run_options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  const CpuResults results = (*backend)->results();
  OnCpu trained;
  trained.losses = results.losses;
  // Without the gaps between tensors.
  const auto pipeline = resolve_setup(scenario, true);
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

TEST_CASE("a synchronous pipeline makes bit by bit the weights of one device" *
          doctest::test_suite("slow")) {
  for (const char* network : {kMlp, kGpt, kImages, kSentences}) {
    const Scenario one = network_scenario(network, on_devices(1, "name: gpipe, micro_batches: 4"));
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
        const Trained together = train(network_scenario(
            network, on_devices(count, std::string("name: ") + schedule + ", micro_batches: 4")));
        CHECK(bit_equal(alone.parameters, together.parameters));
        CHECK(alone.losses == together.losses);
        check_clean(together);
      }
    }
  }
}

/// A driver whose nth launch of a graph comes late: the device has waited for the host until the
/// gate opened by itself.
struct LateHost {
  explicit LateHost(FakeCuda& fake) : driver(fake.driver()) {
    real = &fake.driver();
    launches = 0;
    driver.cuGraphLaunch = [](CUgraphExec graph, CUstream stream) {
      if (std::find(late_at.begin(), late_at.end(), ++launches) != late_at.end())
        real->cuStreamSynchronize(stream);
      return real->cuGraphLaunch(graph, stream);
    };
  }
  CudaDriver driver;
  static inline const CudaDriver* real = nullptr;
  static inline int launches = 0;
  static inline std::vector<int> late_at{};
};

TEST_CASE("an iteration that the host was late for is not clean, and is made again") {
  const Scenario scenario = network_scenario(kTiny, on_devices(2, "name: 1f1b, micro_batches: 2"));
  const auto iterations = [&](std::vector<int> late_at, std::uint32_t most) {
    FakeGpus fake;
    const LateHost host(fake.cuda);
    LateHost::late_at = std::move(late_at);
    auto backend = cuda_backend(host.driver, scenario, builtin_kernels());
    REQUIRE(backend);
    RunOptions options = few_iterations(3, 2);
    options.max_iterations = most;
    const auto run = run_scenario(scenario, **backend, options);
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    CHECK(fake.cuda.faults() == std::vector<std::string>{});
    std::string all;
    for (const MeasuredIteration& one : run->iterations) all += one.clean ? 'c' : 'd';
    return all;
  };
  CHECK(iterations({}, 6) == "ccc");
  // Each device has proved that its graphs stay on its SMs. The first execution is no graph;
  // another one warms up, and each iteration has two.
  const int proofs = 2;
  const int each = (LateHost::launches - proofs) / (1 + 2 * 3);
  REQUIRE(LateHost::launches == proofs + (1 + 2 * 3) * each);
  const auto first_of = [&](int execution) { return proofs + execution * each + 1; };
  CHECK(iterations({first_of(0)}, 6) == "ccc");   // while it warms up
  CHECK(iterations({first_of(1)}, 6) == "dccc");  // before its trace
  CHECK(iterations({first_of(2)}, 6) == "dccc");  // with its trace
  CHECK(iterations({first_of(1), first_of(5)}, 4) == "dcdc");
}

TEST_CASE("GPUs of their own and parts of one make the same bits") {
  const Scenario scenario = network_scenario(kMlp, on_devices(3, "name: 1f1b, micro_batches: 4"));
  FakeOptions several;
  several.gpus.assign(3, FakeGpu{});
  const Trained whole = train(scenario, several);
  check_clean(whole);
  CHECK(bit_equal(whole.parameters, train(scenario).parameters));
}

TEST_CASE("blocking transfers, several mini-batches, Adam and recomputation change no bit" *
          doctest::test_suite("slow")) {
  for (const char* more : {", transfers: blocking", ", mini_batches: 2", ", recompute: full",
                           ", recompute: layers", ", recompute: full, recompute_early: true"}) {
    for (const char* adam : {"", "training: {optimizer_state: 2.0}\n"}) {
      CAPTURE(more);
      CAPTURE(adam);
      const std::string schedule = std::string("name: 1f1b, micro_batches: 3") + more;
      const char* const network = adam[0] == '\0' ? kMlp : kTiny;
      const Trained alone = train(network_scenario(network, on_devices(1, schedule, adam)));
      const Trained together = train(network_scenario(network, on_devices(3, schedule, adam)));
      check_clean(together);
      CHECK(bit_equal(alone.parameters, together.parameters));
      CHECK(alone.losses == together.losses);
    }
  }
}

TEST_CASE("what is computed again, of a stage or layer by layer, changes no bit" *
          doctest::test_suite("slow")) {
  const auto trained = [](const Scenario& scenario) {
    Trained made = train(scenario);
    check_clean(made);
    return made;
  };
  check_recomputation(kMlp, 1, "name: gpipe, micro_batches: 2", trained);
  check_recomputation(kMlp, 2, "name: 1f1b, micro_batches: 3", trained);
  check_recomputation(kTiny, 2, "name: zb-h1, micro_batches: 4", trained);
}

TEST_CASE("backwards that are cut into buckets change no bit" * doctest::test_suite("slow")) {
  for (const char* network : {kTiny, kMlp}) {
    if (kSanitized && network == kMlp) continue;
    check_buckets(network, [](const Scenario& scenario) {
      Trained made = train(scenario);
      check_clean(made);
      return made;
    });
  }
}

TEST_CASE("split backwards and several stages on a device make the weights of one device" *
          doctest::test_suite("slow")) {
  const auto ordered = [](const char* network, const std::string& csv) {
    const TemporaryFolder folder;
    return network_scenario(network, "cluster: {devices: 2}\nschedule: {file: " +
                                         folder.file("order.csv", csv) + "}\n");
  };
  for (const char* network : {kMlp, kGpt, kImages, kSentences}) {
    const Trained alone =
        train(network_scenario(network, on_devices(1, "name: gpipe, micro_batches: 3")));
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

TEST_CASE("replicas and copies make the weights of one device but for the order of sums" *
          doctest::test_suite("slow")) {
  for (const char* network : {kTiny, kMlp}) {
    const Trained alone =
        train(network_scenario(network, on_devices(1, "name: gpipe, micro_batches: 6")));
    const auto check = [&](const std::string& rest) {
      CAPTURE(rest);
      const Trained together = train(network_scenario(network, rest));
      check_clean(together);
      CHECK(largest_difference(alone.parameters, together.parameters) < 1e-5);
    };
    check(on_devices(3, "name: 1f1b, micro_batches: 6", "plan: {stages: 2, replicas: [2, 1]}\n"));
    check(on_devices(4, "name: 1f1b, micro_batches: 3", "plan: {stages: 2, data_parallel: 2}\n"));
    check(on_devices(3, "name: data-parallel, micro_batches: 2"));
    check(on_devices(2, "name: chimera, micro_batches: 6"));
    check(on_devices(2, "name: dualpipe, micro_batches: 6"));
    check(on_devices(4, "name: 1f1b, micro_batches: 6", "plan: {stages: 2, replicas: [3, 1]}\n"));
  }
  const Trained alone =
      train(network_scenario(kMlp, on_devices(1, "name: gpipe, micro_batches: 8")));
  for (const std::string name : {"chimera", "dualpipe"}) {
    CAPTURE(name);
    const Trained both_ways =
        train(network_scenario(kMlp, on_devices(4, "name: " + name + ", micro_batches: 8")));
    check_clean(both_ways);
    CHECK(largest_difference(alone.parameters, both_ways.parameters) < 1e-5);
  }
}

TEST_CASE("a sharded optimizer makes bit by bit the weights of one that is not" *
          doctest::test_suite("slow")) {
  for (const char* network : {kTiny, kMlp}) {
    if (kSanitized && network == kMlp) continue;
    for (const std::string& plan : plans_with_members()) {
      for (const std::string state : {"0", "2"}) {
        CAPTURE(network);
        CAPTURE(plan);
        CAPTURE(state);
        const std::string training = plan + "training: {optimizer_state: " + state;
        const Trained whole = train(network_scenario(network, training + "}\n"));
        const Trained shared = train(network_scenario(network, training + ", zero_stage: 1}\n"));
        CHECK(bit_equal(whole.parameters, shared.parameters));
        CHECK(whole.losses == shared.losses);
        check_clean(shared);
      }
    }
  }
}

TEST_CASE("an asynchronous run makes the weights that the cpu backend makes" *
          doctest::test_suite("slow")) {
  for (const char* weights : {"stash", "vertical-sync", "none", "two"}) {
    CAPTURE(weights);
    const Scenario scenario = network_scenario(
        kTiny,
        on_devices(3, std::string("name: pipedream, micro_batches: 4, mini_batches: 3, weights: ") +
                          weights));
    // Each op is replayed from the third execution on, or the second.
    const Trained trained = train(scenario, {}, /*iterations=*/3);
    check_clean(trained);
    check_as_on_cpu(scenario, trained);
  }
  const Scenario replicated = network_scenario(
      kTiny,
      on_devices(3, "name: pipedream, micro_batches: 4", "plan: {stages: 2, replicas: [2, 1]}\n"));
  const Trained trained = train(replicated);
  check_clean(trained);
  check_as_on_cpu(replicated, trained);
}

TEST_CASE("a run on devices that another has left makes the same weights") {
  FakeGpus fake;
  {
    CudaOptions options = builtin_kernels();
    options.pool = cuda_device_pool();
    std::vector<std::vector<float>> made;
    for (const char* schedule : {"gpipe", "1f1b", "pipedream", "gpipe"}) {
      const Scenario scenario = network_scenario(
          kTiny, on_devices(2, std::string("name: ") + schedule + ", micro_batches: 3"));
      const auto backend = cuda_backend(fake.cuda.driver(), scenario, options);
      REQUIRE(backend);
      REQUIRE(run_scenario(scenario, **backend, few_iterations(1)));
      std::vector<float>& parameters = made.emplace_back();
      for (const auto& stage : (*backend)->results().parameters)
        parameters.insert(parameters.end(), stage.begin(), stage.end());
    }
    CHECK(bit_equal(made[0], made[1]));
    CHECK(bit_equal(made[0], made[3]));
    CHECK_FALSE(bit_equal(made[0], made[2]));
  }
  CHECK(fake.cuda.faults() == std::vector<std::string>{});
  CHECK(fake.cuda.live() == "");
}

TEST_CASE("no order that streams leave free changes a bit" * doctest::test_suite("slow")) {
  const std::string replicas = "plan: {stages: 2, replicas: [2, 1]}\n";
  const std::string richest =
      on_devices(3, "name: 1f1b, micro_batches: 4, mini_batches: 2", replicas);
  for (const std::string& rest :
       {richest, on_devices(3, "name: 1f1b, micro_batches: 3"),
        on_devices(3, "name: gpipe, micro_batches: 3, transfers: blocking"),
        on_devices(3, "name: 1f1b, micro_batches: 3, recompute: full"),
        on_devices(2, "name: 1f1b, micro_batches: 3, recompute: layers"),
        on_devices(2, "name: 1f1b, micro_batches: 3, recompute: full, recompute_early: true"),
        on_devices(3, "name: pipedream, micro_batches: 3, weights: stash"),
        on_devices(3, "name: pipedream, micro_batches: 4, weights: two", replicas),
        on_devices(3, "name: 1f1b, micro_batches: 4, mini_batches: 2",
                   replicas + "training: {zero_stage: 1}\n"),
        on_devices(3, "name: data-parallel, micro_batches: 2, bucket: 1 KiB",
                   "training: {zero_stage: 1, optimizer_state: 2}\n"),
        on_devices(4, "name: zb-h1, micro_batches: 4, bucket: 1 KiB",
                   "plan: {stages: 2, data_parallel: 2}\n")}) {
    CAPTURE(rest);
    const Scenario scenario = network_scenario(kTiny, rest);
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

std::string problem_of(FakeCuda& fake, const Scenario& scenario,
                       RunOptions options = few_iterations(1)) {
  auto backend = cuda_backend(fake.driver(), scenario, builtin_kernels());
  if (!backend) return to_text(backend.problems());
  const auto run = run_scenario(scenario, **backend, options);
  return run ? "" : to_text(run.problems());
}

TEST_CASE("memory that runs out ends the run before its first iteration") {
  const Scenario scenario = network_scenario(kMlp, on_devices(2, "name: 1f1b, micro_batches: 4"));
  FakeGpus fake;
  auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
  REQUIRE(backend);
  fake.cuda.fail("cuMemAlloc", 12, CUDA_ERROR_OUT_OF_MEMORY);
  const auto run = run_scenario(scenario, **backend, few_iterations(1));
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

TEST_CASE("a device that is lost ends the run with where every device stood") {
  const Scenario scenario = network_scenario(kTiny, on_devices(2, "name: 1f1b, micro_batches: 4"));
  // While work is enqueued, and while it is waited for.
  const std::vector<std::pair<const char*, int>> places = {
      {"cuLaunchKernel", 20}, {"cuEventRecord", 15}, {"cuStreamWaitEvent", 9}, {"cuEventQuery", 2}};
  for (const auto& [call, nth] : places) {
    const std::string place = call;
    CAPTURE(place);
    FakeGpus fake;
    auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
    REQUIRE(backend);
    RunOptions options = few_iterations(3, 1);
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

TEST_CASE("a device that makes no progress is told, and left behind") {
  const Scenario scenario = network_scenario(kTiny, on_devices(2, "name: 1f1b, micro_batches: 4"));
  FakeGpus fake;
  static const CudaDriver* asked = nullptr;
  static std::atomic<int> answers{0};
  asked = &fake.cuda.driver();
  answers = 0;
  CudaDriver driver = *asked;
  driver.cuEventQuery = [](CUevent event) {
    return ++answers > 6 ? CUDA_ERROR_NOT_READY : asked->cuEventQuery(event);
  };
  auto backend = cuda_backend(driver, scenario, builtin_kernels());
  REQUIRE(backend);
  RunOptions options = few_iterations(2);
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

TEST_CASE("a run has the attention of its profile, though the other were faster") {
  const std::string what = "attention bf16 3x5x2*8 causal sms 64";
  const auto kernels = [&](const char* profiled, std::uint64_t nanoseconds) {
    Scenario scenario = network_scenario(kHalf, on_devices(2, "name: gpipe, micro_batches: 1"));
    scenario.model.edit().profile.algorithms = {{what, profiled}};
    scenario.model.edit().profile.provenance = {{"device", "Fake H100"},
                                                {"library", "own products"}};
    FakeGpus fake;
    fake.cuda.set_duration("plumbline_attention_key_gradient_32", nanoseconds);
    auto backend = cuda_backend(fake.cuda.driver(), scenario, builtin_kernels());
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    const auto run = run_scenario(scenario, **backend, few_iterations(1));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    std::set<std::string> names;
    for (const FakeExecution& one : fake.cuda.executions()) names.insert(one.what);
    return names;
  };
  const std::string fused = "plumbline_attention_forward_32";
  const std::string by_products = "plumbline_attention_softmax_bf16";
  const auto of_fused = kernels("fused", 1'000'000);
  CHECK(of_fused.contains(fused));
  CHECK(of_fused.contains("plumbline_attention_query_gradient_32"));
  CHECK_FALSE(of_fused.contains(by_products));
  const auto of_products = kernels("products", 1000);
  CHECK(of_products.contains(by_products));
  CHECK(of_products.contains("plumbline_attention_softmax_gradient_bf16"));
  CHECK_FALSE(of_products.contains(fused));
}

TEST_CASE("what is not run is told") {
  FakeGpus fake;
  const Scenario replicated = network_scenario(
      kMlp,
      "cluster: {levels: [{name: server, size: 2, bandwidth: 1 GB/s}, {name: rack, "
      "size: 2}]}\nschedule: {name: data-parallel, micro_batches: 2}\n");
  CHECK(contains(problem_of(fake.cuda, replicated),
                 "does not keep where replicas add up their gradients over several levels"));
  const Scenario shared = network_scenario(
      kMlp,
      "cluster: {levels: [{name: server, size: 2}, {name: rack, size: 2, bandwidth: 1 "
      "GB/s}]}\nschedule: {name: 1f1b, micro_batches: 4}\n");
  CHECK(contains(problem_of(fake.cuda, shared), "has no network cards that devices share"));
  const Scenario wide = network_scenario(
      kMlp, on_devices(2, "name: 1f1b, micro_batches: 4", "training: {gradients: 0.5}\n"));
  CHECK(contains(problem_of(fake.cuda, wide), "training.gradients is 0.5, and a network is run"));
}

}  // namespace
}  // namespace plumbline::test
