// Tensors between GPUs by NCCL: training over one that is made up, and the real one's interface.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/nccl.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/libraries/libraries.h"
#include "calibrate/cuda/timing/calibration.h"
#include "tests/support/cuda_training.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/same_call.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace plumbline {
namespace {

#define PLUMBLINE_NCCL_SAME(call) \
  static_assert(test::SameCall<decltype(Nccl::call), decltype(&::nccl##call)>::value);
PLUMBLINE_NCCL_CALLS(PLUMBLINE_NCCL_SAME)
#undef PLUMBLINE_NCCL_SAME

static_assert(nccl::kSuccess == ncclSuccess);
static_assert(nccl::kBytes == ncclUint8);
static_assert(nccl::kFloat == ncclFloat32);
static_assert(nccl::kBf16 == ncclBfloat16);
static_assert(nccl::kSum == ncclSum);

}  // namespace
}  // namespace plumbline
#endif

namespace plumbline::test {
namespace {

FakeOptions several(std::size_t gpus, std::uint64_t seed = 1) {
  FakeOptions options;
  options.gpus.assign(gpus, FakeGpu{});
  options.seed = seed;
  return options;
}

std::size_t gpus_of(const std::string& rest) {
  return static_cast<std::size_t>(rest[rest.find("devices: ") + 9] - '0');
}

const std::vector<std::string>& plans() {
  static const std::string replicas = "plan: {stages: 2, replicas: [2, 1]}\n";
  static const std::vector<std::string> all = {
      on_devices(3, "name: 1f1b, micro_batches: 4"),
      on_devices(3, "name: gpipe, micro_batches: 3, transfers: blocking"),
      on_devices(3, "name: 1f1b, micro_batches: 3, recompute: full"),
      on_devices(2, "name: 1f1b, micro_batches: 3, recompute: layers"),
      on_devices(3, "name: pipedream, micro_batches: 3, weights: stash"),
      on_devices(3, "name: 1f1b, micro_batches: 4, mini_batches: 2", replicas),
      on_devices(4, "name: 1f1b, micro_batches: 3", "plan: {stages: 2, data_parallel: 2}\n"),
      on_devices(3, "name: data-parallel, micro_batches: 2, bucket: 1 KiB"),
      on_devices(3, "name: pipedream, micro_batches: 4, weights: two", replicas)};
  return all;
}

TEST_CASE("over NCCL every run makes the weights that it makes over copies" *
          doctest::test_suite("slow")) {
  for (const std::string& rest : plans()) {
    CAPTURE(rest);
    const Scenario scenario = network_scenario(kMlp, rest);
    const Trained copied = train(scenario, several(gpus_of(rest)));
    const std::uint64_t seeds = kSanitized ? 2 : 4;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(seed);
      const Trained trained = train(scenario, several(gpus_of(rest), seed), 1, 0.05, &fake_nccl());
      check_clean(trained);
      CHECK(live_nccl_ranks() == 0);
      CHECK(bit_equal(copied.parameters, trained.parameters));  // both add up in the same order
      CHECK(copied.losses == trained.losses);
    }
  }
}

TEST_CASE("over NCCL no GPU copies to another, in bf16 as in fp32" * doctest::test_suite("slow")) {
  const Scenario scenario = network_scenario(
      kHalf,
      on_devices(4, "name: 1f1b, micro_batches: 3", "plan: {stages: 2, data_parallel: 2}\n"));
  FakeGpus fake(several(4));
  CudaOptions options = builtin_kernels();
  options.nccl = true;
  {
    auto backend = cuda_backend(fake.cuda.driver(), scenario, options, &fake_nccl());
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    const auto run = run_scenario(scenario, **backend, few_iterations(1));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    CHECK((*backend)->provenance().at("transfers") == "NCCL 2.28.9");
    // The iteration is executed twice: 3 micro-batches there and back, in two copies; two stages.
    CHECK(fake.cuda.calls("ncclSend") == 2 * 3 * 2 * 2);
    CHECK(fake.cuda.calls("ncclRecv") == fake.cuda.calls("ncclSend"));
    CHECK(fake.cuda.calls("ncclAllReduce") == 2 * 2 * 2);
    CHECK(fake.cuda.calls("ncclCommInitAll") == 4 + 2);
    CHECK(fake.cuda.calls("cuMemcpyPeerAsync") == 0);
  }
  CHECK(fake.cuda.faults() == std::vector<std::string>{});
  CHECK(fake.cuda.live() == "");
}

std::string problem_of(FakeCuda& fake, const Scenario& scenario, const Nccl* nccl = &fake_nccl()) {
  CudaOptions options = builtin_kernels();
  options.nccl = true;
  auto backend = cuda_backend(fake.driver(), scenario, options, nccl);
  if (!backend) return to_text(backend.problems());
  const auto run = run_scenario(scenario, **backend, few_iterations(1));
  return run ? "" : to_text(run.problems());
}

TEST_CASE("a call of NCCL that fails ends the run with the call and what it said") {
  const Scenario scenario = network_scenario(
      kMlp, on_devices(3, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, replicas: [2, 1]}\n"));
  for (const auto& planted : std::vector<std::pair<std::string, int>>{
           {"ncclCommInitAll", 2}, {"ncclSend", 3}, {"ncclRecv", 1}, {"ncclAllReduce", 2}}) {
    const auto& [call, nth] = planted;
    CAPTURE(planted.first);
    FakeGpus fake(several(3));
    fake.cuda.fail(call, nth, CUDA_ERROR_UNKNOWN);
    const std::string text = problem_of(fake.cuda, scenario);
    CAPTURE(text);
    CHECK(contains(text, call + ": unhandled cuda error (Cuda failure)"));
    CHECK(contains(text, call == "ncclCommInitAll" ? "has not begun" : " failed at "));
    CHECK(fake.cuda.live() == "");
    CHECK(live_nccl_ranks() == 0);
  }
}

TEST_CASE("where NCCL cannot be had, that is told before anything runs") {
  FakeGpus one_gpu;
  const Scenario plain = network_scenario(kTiny, on_devices(2, "name: 1f1b, micro_batches: 2"));
  CHECK(contains(problem_of(one_gpu.cuda, plain),
                 "--nccl moves tensors between GPUs, and these 2 devices are parts of one"));
  const Scenario held = network_scenario(
      kTiny,
      "cluster: {devices: 2, link: {latency: 3 us}}\nschedule: {name: 1f1b, micro_batches: 2}\n");
  CHECK(contains(problem_of(one_gpu.cuda, held), "and NCCL keeps to none"));
  const Scenario sharded = network_scenario(
      kTiny, on_devices(2, "name: data-parallel, micro_batches: 2", "training: {zero_stage: 1}\n"));
  CHECK(contains(problem_of(one_gpu.cuda, sharded), "NCCL is only asked for whole all-reduces"));
  auto timed = parse_scenario(
      text_source("t.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 us, backward: 1 us}}\n"
                  "cluster: {devices: 2}\nschedule: {name: gpipe, micro_batches: 2}\n"),
      {});
  REQUIRE(timed);
  CHECK(contains(problem_of(one_gpu.cuda, *timed), "a model that is known by its times has none"));
  // One device has nobody to talk to.
  const Scenario alone = network_scenario(kTiny, on_devices(1, "name: 1f1b, micro_batches: 2"));
  CHECK(problem_of(one_gpu.cuda, alone) == "");
}

TEST_CASE("a calibration over parts of one GPU has no NCCL either") {
  FakeGpus fake;
  const auto network = parse_network(text_source("n.yaml", kTiny));
  REQUIRE(network);
  CudaCalibrationOptions options;
  options.builtin_kernels = true;
  options.nccl = true;
  const auto devices =
      cuda_calibration_devices(fake.cuda.driver(), *network, 2, options, &fake_nccl());
  REQUIRE_FALSE(devices);
  CHECK(contains(to_text(devices.problems()), "are parts of one"));
}

TEST_CASE("nccl: a file that is not there, and one that is another library") {
  const auto missing = load_nccl("/nowhere/libnccl.so");
  REQUIRE_FALSE(missing);
  CHECK(missing.problems().front().fault == Fault::no_device);
  CHECK(missing.problems().front().message.starts_with(
      "NCCL cannot be loaded: /nowhere/libnccl.so: "));
  const auto other = load_nccl("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.problems().front().message == "'libc.so.6' lacks ncclGetVersion");
}

TEST_CASE("nccl: the real library has every function that is called") {
  const auto found = load_cuda_library(kNccl);
  if (!found) {
    MESSAGE("skipped: ", found.problems().front().message);
    return;
  }
  const auto library = load_nccl(found->path);
  REQUIRE_MESSAGE(library, (library ? "" : to_text(library.problems())));
  CHECK(name_of(*library).starts_with("NCCL 2."));
  CHECK(name_of(*library) == "NCCL " + found->version);
  CHECK(std::string(library->GetErrorString(nccl::kSuccess)) == "no error");
}

}  // namespace
}  // namespace plumbline::test
