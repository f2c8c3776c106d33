// Single kernels of the CPU: which there are, and that they take time.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/kernel_bench.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "calibrate/cpu/layer.h"
#include "calibrate/runtime/thread_core.h"

namespace plumbline::test {
namespace {

KernelKey key_of_class(KernelClass kernels, std::array<std::int64_t, kMostSizes> sizes,
                       KernelPass pass = KernelPass::forward) {
  KernelKey key;
  key.group.kernels = kernels;
  key.group.format = NumberFormat::fp32;
  key.group.pass = pass;
  key.sizes = sizes;
  return key;
}

KernelKey attention(KernelPass pass, std::int64_t queries = 32, std::int64_t keys = 32) {
  KernelKey key = key_of_class(KernelClass::sdpa, {2, queries, keys, 4, 2}, pass);
  key.group.query_size = 8;
  key.group.value_size = 8;
  return key;
}

KernelKey memory(MemoryKind kind, KernelPass pass) {
  KernelKey key = key_of_class(KernelClass::memory, {32, 64, 1, 1, 1}, pass);
  key.group.memory = kind;
  return key;
}

/// The best of some runs, as other work may disturb one; they run on a thread of their own, which
/// is bound to a core.
std::optional<double> best_of(const KernelKey& key, const KernelForms& forms = {}) {
  std::optional<double> best;
  std::thread([&] {
    const auto bench = cpu_kernel_bench(forms);
    const auto kernel = bench->prepare(key);
    if (!kernel) return;
    best = 1e18;
    for (int i = 0; i < 50; ++i) best = std::min(*best, kernel->nanoseconds(4).value_or(1e18));
  }).join();
  return best;
}

TEST_CASE("the kernels of dense blocks are there, and take time" *
          doctest::skip(cpu_library().empty())) {
  std::vector<KernelKey> keys;
  for (const KernelPass pass : {KernelPass::forward, KernelPass::input, KernelPass::weights}) {
    keys.push_back(key_of_class(KernelClass::gemm, {64, 48, 32, 1, 1}, pass));
    if (pass == KernelPass::weights) {
      keys.back().group.accumulation = Accumulation::fp32;
      continue;
    }
    keys.push_back(attention(pass));
    for (const MemoryKind kind : {MemoryKind::norm, MemoryKind::rotation, MemoryKind::activation,
                                  MemoryKind::residual, MemoryKind::sum, MemoryKind::loss})
      keys.push_back(memory(kind, pass));
  }
  keys.push_back(memory(MemoryKind::lookup, KernelPass::forward));
  keys.push_back(memory(MemoryKind::lookup, KernelPass::weights));
  const KernelForms plain{NormKind::layer_norm, Activation::gelu, false, 64};
  const KernelForms of_heads{.head_size = 16, .hidden_beside_head_norms = 128};
  for (const KernelKey& key : keys) {
    for (const KernelForms& forms : {KernelForms{.head_size = 32}, plain, of_heads}) {
      const auto time = best_of(key, forms);
      REQUIRE(time);
      CHECK(*time > 1);
      CHECK(*time < 1e15);
    }
  }
}

TEST_CASE("more work takes longer" * doctest::skip(cpu_library().empty())) {
  const auto of = [](std::int64_t m) {
    return *best_of(key_of_class(KernelClass::gemm, {m, 64, 64, 1, 1}));
  };
  CHECK(of(1024) > 2 * of(64));
  KernelKey small = attention(KernelPass::forward);
  KernelKey large = attention(KernelPass::forward, 256, 256);
  CHECK(*best_of(large) > 2 * *best_of(small));
}

TEST_CASE("what the layers do not compute so is not there" * doctest::skip(cpu_library().empty())) {
  KernelKey other_format = key_of_class(KernelClass::gemm, {64, 48, 32, 1, 1});
  other_format.group.format = NumberFormat::bf16;
  KernelKey other_sizes = attention(KernelPass::forward);
  other_sizes.group.value_size = 4;
  for (const KernelKey& key : {other_format, other_sizes, attention(KernelPass::forward, 16, 32),
                               key_of_class(KernelClass::grouped, {4, 8, 8, 8, 1}),
                               key_of_class(KernelClass::batched, {4, 8, 8, 8, 1}),
                               memory(MemoryKind::permute, KernelPass::forward),
                               memory(MemoryKind::scores, KernelPass::forward)})
    CHECK_FALSE(best_of(key));
}

TEST_CASE("the thread may use all its cores again" * doctest::skip(cpu_library().empty())) {
  std::thread([] {
    const std::vector<int> before = cores_of_thread();
    {
      const auto bench = cpu_kernel_bench({});
      CHECK(cores_of_thread().size() == 1);
    }
    CHECK(cores_of_thread() == before);
  }).join();
}

TEST_CASE("each row says what computed it" * doctest::skip(cpu_library().empty())) {
  std::thread([] {
    const auto bench = cpu_kernel_bench({});
    CHECK(bench->library(key_of_class(KernelClass::gemm, {1, 1, 1, 1, 1})) == cpu_library());
    CHECK(bench->library(attention(KernelPass::forward)).starts_with("plumbline"));
  }).join();
}

}  // namespace
}  // namespace plumbline::test
