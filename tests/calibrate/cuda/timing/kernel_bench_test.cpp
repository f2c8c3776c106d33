// Single kernels of a CUDA device without a GPU: which there are, and that all their runs count.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/kernel_bench.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/timing/calibration.h"
#include "models/network/network_reader.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"

namespace plumbline::test {
namespace {

Network small_network() {
  const auto network = parse_network(std::make_shared<const Source>(
      Source{"n.network.yaml",
             "version: 1\nkind: network\nname: n\ninput: {shape: [6]}\nlayers:\n"
             "  - {kind: linear, features: 5}\n",
             ""}));
  REQUIRE(network);
  return *network;
}

KernelKey key_of_class(KernelClass kernels, std::array<std::int64_t, kMostSizes> sizes,
                       KernelPass pass, NumberFormat format) {
  KernelKey key;
  key.group.kernels = kernels;
  key.group.format = format;
  key.group.pass = pass;
  key.sizes = sizes;
  return key;
}

/// All kernels of dense blocks, very small: they are emulated.
std::vector<KernelKey> keys_of_blocks(NumberFormat format) {
  std::vector<KernelKey> keys;
  for (const KernelPass pass : {KernelPass::forward, KernelPass::input, KernelPass::weights}) {
    keys.push_back(key_of_class(KernelClass::gemm, {5, 4, 3, 1, 1}, pass, format));
    if (pass == KernelPass::weights) continue;
    keys.push_back(key_of_class(KernelClass::sdpa, {2, 3, 3, 2, 1}, pass, format));
    keys.back().group.query_size = 8;
    keys.back().group.value_size = 8;
    for (const MemoryKind kind : {MemoryKind::norm, MemoryKind::rotation, MemoryKind::activation,
                                  MemoryKind::residual, MemoryKind::sum, MemoryKind::loss}) {
      keys.push_back(key_of_class(KernelClass::memory, {3, 6, 1, 1, 1}, pass, format));
      keys.back().group.memory = kind;
    }
  }
  return keys;
}

/// Devices whose kernels are emulated, with a bench on the first.
struct Emulated {
  explicit Emulated(const KernelForms& forms = {}) {
    fake.add(emulated_kernels());
    CudaCalibrationOptions own;
    own.builtin_kernels = true;
    auto opened = cuda_calibration_devices(fake.driver(), small_network(), 1, own);
    REQUIRE(opened);
    devices = *std::move(opened);
    bench = devices->kernel_bench(forms);
    REQUIRE(bench != nullptr);
  }

  FakeCuda fake;
  std::unique_ptr<CalibrationDevices> devices;
  std::unique_ptr<KernelBench> bench;
};

TEST_CASE("the kernels of dense blocks are there, and take time" * doctest::test_suite("slow")) {
  for (const KernelForms& forms : {KernelForms{.head_size = 2},
                                   KernelForms{NormKind::layer_norm, Activation::gelu, false, 6}}) {
    Emulated emulated(forms);
    for (const NumberFormat format : {NumberFormat::fp32, NumberFormat::bf16}) {
      for (const KernelKey& key : keys_of_blocks(format)) {
        CAPTURE(static_cast<int>(key.group.kernels));
        CAPTURE(static_cast<int>(key.group.memory));
        const auto kernel = emulated.bench->prepare(key);
        REQUIRE(kernel != nullptr);
        const auto time = kernel->nanoseconds(2);
        REQUIRE(time);
        CHECK(*time > 0);
        CHECK_FALSE(emulated.bench->library(key).empty());
      }
    }
  }
}

/// Times of kernels in ns, from which a sum tells which of them ran.
const std::vector<std::pair<std::string, std::uint64_t>> kTimes = {
    {"layer_norm", 3'000},
    {"layer_norm_input_gradient", 5'000},
    {"column_partial_sums", 7'000},
    {"scale_partial_sums", 11'000},
    {"add_partial_sums", 13'000},
    {"norm_heads", 17'000},
    {"norm_heads_gradient", 19'000},
    {"head_scale_partial_sums", 23'000},
    {"turn_heads", 29'000},
    {"gate", 31'000},
    {"gate_gradient", 37'000},
    {"activate", 41'000},
    {"activate_gradient", 43'000},
    {"bias_rows", 47'000},
    {"add", 53'000},
    {"softmax_loss", 59'000},
    {"logits_gradient", 61'000},
    {"product", 67'000}};

TEST_CASE("a kernel's time is that of what the layers run for it" * doctest::test_suite("slow")) {
  KernelForms modern;
  modern.head_size = 2;
  modern.tokens = 3;
  KernelForms of_heads = modern;
  of_heads.hidden_beside_head_norms = 4;
  const KernelForms plain{NormKind::layer_norm, Activation::gelu, false, 2, 3, 0};
  struct Expected {
    KernelForms forms;
    MemoryKind kind;
    std::uint64_t forward, backward;
  };
  for (const Expected& expected : {Expected{modern, MemoryKind::norm, 3'000, 29'000},
                                   Expected{plain, MemoryKind::norm, 3'000, 49'000},
                                   Expected{of_heads, MemoryKind::norm, 17'000, 55'000},
                                   Expected{modern, MemoryKind::rotation, 29'000, 29'000},
                                   Expected{modern, MemoryKind::activation, 31'000, 37'000},
                                   Expected{plain, MemoryKind::activation, 41'000, 43'000},
                                   Expected{modern, MemoryKind::residual, 47'000, 53'000},
                                   Expected{modern, MemoryKind::sum, 53'000, 53'000},
                                   Expected{modern, MemoryKind::loss, 59'000, 122'000}}) {
    CAPTURE(static_cast<int>(expected.kind));
    Emulated emulated(expected.forms);
    for (const auto& [kernel, time] : kTimes)
      emulated.fake.set_duration("plumbline_" + kernel + "_f32", time);
    for (const KernelPass pass : {KernelPass::forward, KernelPass::input}) {
      KernelKey key = key_of_class(KernelClass::memory, {3, 6, 1, 1, 1}, pass, NumberFormat::fp32);
      key.group.memory = expected.kind;
      const auto kernel = emulated.bench->prepare(key);
      REQUIRE(kernel != nullptr);
      const bool forward = pass == KernelPass::forward;
      CHECK(*kernel->nanoseconds(3) ==
            doctest::Approx(double(forward ? expected.forward : expected.backward)).epsilon(1e-3));
    }
  }
  Emulated emulated;
  for (const auto& [kernel, time] : kTimes)
    emulated.fake.set_duration("plumbline_" + kernel + "_f32", time);
  const auto product = emulated.bench->prepare(
      key_of_class(KernelClass::gemm, {5, 4, 3, 1, 1}, KernelPass::forward, NumberFormat::fp32));
  // More than run behind one head start of the host.
  CHECK(*product->nanoseconds(20) == doctest::Approx(67'000).epsilon(1e-3));
}

TEST_CASE("an activation that no kernel computes is not there") {
  KernelForms forms;
  forms.activation = std::nullopt;
  Emulated emulated(forms);
  KernelKey key =
      key_of_class(KernelClass::memory, {3, 6, 1, 1, 1}, KernelPass::forward, NumberFormat::fp32);
  key.group.memory = MemoryKind::activation;
  CHECK(emulated.bench->prepare(key) == nullptr);
}

TEST_CASE("gradients are added to sums of their own type alone") {
  Emulated emulated;
  const auto is_there = [&](NumberFormat format, Accumulation sum) {
    KernelKey key = key_of_class(KernelClass::gemm, {5, 4, 3, 1, 1}, KernelPass::weights, format);
    key.group.accumulation = sum;
    return emulated.bench->prepare(key) != nullptr;
  };
  CHECK(is_there(NumberFormat::fp32, Accumulation::fp32));
  CHECK(is_there(NumberFormat::bf16, Accumulation::bf16));
  CHECK(is_there(NumberFormat::bf16, Accumulation::none));
  CHECK_FALSE(is_there(NumberFormat::bf16, Accumulation::fp32));
  CHECK_FALSE(is_there(NumberFormat::fp32, Accumulation::bf16));
}

TEST_CASE("what the layers do not compute so is not there") {
  Emulated emulated;
  KernelKey fp8 =
      key_of_class(KernelClass::gemm, {5, 4, 3, 1, 1}, KernelPass::forward, NumberFormat::fp8);
  KernelKey fewer_queries =
      key_of_class(KernelClass::sdpa, {2, 3, 6, 2, 1}, KernelPass::forward, NumberFormat::bf16);
  fewer_queries.group.query_size = 8;
  fewer_queries.group.value_size = 8;
  KernelKey permute =
      key_of_class(KernelClass::memory, {3, 6, 1, 1, 1}, KernelPass::forward, NumberFormat::bf16);
  permute.group.memory = MemoryKind::permute;
  const KernelKey grouped =
      key_of_class(KernelClass::grouped, {2, 3, 4, 5, 1}, KernelPass::forward, NumberFormat::bf16);
  for (const KernelKey& key : {fp8, fewer_queries, permute, grouped})
    CHECK(emulated.bench->prepare(key) == nullptr);
}

}  // namespace
}  // namespace plumbline::test
