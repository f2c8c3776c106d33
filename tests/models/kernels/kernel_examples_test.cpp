// Times of single kernels beside those of an independent program.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <string>

#include "tests/support/close_to.h"
#include "tests/support/kernel_models.h"
#include "tests/support/kernel_text.h"

namespace plumbline {
namespace {

ProductKernel product(NumberFormat format, KernelPass pass, std::int64_t m, std::int64_t n,
                      std::int64_t k, std::int64_t batch = 1) {
  return {.format = format, .pass = pass, .m = m, .n = n, .k = k, .batch = batch};
}

ProductKernel grouped(KernelPass pass, std::int64_t experts, std::int64_t m, std::int64_t n,
                      std::int64_t k) {
  ProductKernel kernel = product(NumberFormat::bf16, pass, m, n, k, experts);
  kernel.grouped = true;
  return kernel;
}

AttentionKernel attention(bool backward, std::int64_t batch, std::int64_t queries,
                          std::int64_t keys, std::int64_t heads, std::int64_t query_size) {
  return {.backward = backward,
          .batch = batch,
          .queries = queries,
          .keys = keys,
          .heads = heads,
          .key_heads = heads,
          .query_size = query_size,
          .value_size = 128};
}

MemoryKernel memory(MemoryKind kind, double bytes, std::int64_t launches) {
  return {.kind = kind, .bytes = bytes, .launches = launches};
}

CollectiveKernel in_server(CollectiveKind kind, std::int64_t devices, std::int64_t bytes) {
  return {.kind = kind, .devices = devices, .near = devices, .bytes = bytes};
}

struct Example {
  const char* device;
  const char* stack;
  Kernel kernel;
  double microseconds;
};

TEST_CASE("kernels take the time that an independent program in Python gives them") {
  using enum KernelPass;
  using enum CollectiveKind;
  constexpr auto bf16 = NumberFormat::bf16;
  constexpr auto fp8 = NumberFormat::fp8;
  const Example examples[] = {
      {"a100-sxm-40gb", "eager-2023", product(bf16, forward, 24'576, 12'288, 4'096), 11'034.24},
      {"a100-sxm-40gb", "eager-2023", product(bf16, input, 24'576, 4'096, 50'368), 44'233.22},
      {"a100-sxm-40gb", "eager-2023", product(bf16, weights, 4'096, 4'096, 24'576), 3'836.23},
      {"a100-sxm-40gb", "eager-2023", attention(false, 12, 2'048, 2'048, 32, 128), 4'217.93},
      {"a100-sxm-40gb", "eager-2023", attention(true, 12, 2'048, 2'048, 32, 128), 12'498.82},
      {"a100-sxm-40gb", "eager-2023", memory(MemoryKind::norm, 603'979'776, 2), 491.51},
      {"a100-sxm-40gb", "eager-2023", memory(MemoryKind::loss, 22'281'191'424, 3), 17'919.93},
      {"a100-sxm-80gb", "megatron-2022", product(bf16, forward, 2'048, 2'048, 96, 128), 981.32},
      {"a100-sxm-80gb", "megatron-2022", memory(MemoryKind::scores, 2'147'483'648, 1), 3'294.26},
      {"a100-sxm-80gb", "megatron-2022", product(bf16, weights, 25'216, 3'072, 16'384), 10'571.78},
      {"a100-sxm-80gb", "megatron-2022", in_server(all_reduce, 2, 100'663'296), 549.43},
      {"h100-sxm", "megatron-core", product(bf16, forward, 4'096, 2'560, 8'192), 278.68},
      {"h100-sxm", "megatron-core", product(bf16, input, 4'096, 2'048, 8'192), 221.27},
      {"h100-sxm", "megatron-core", product(bf16, weights, 14'336, 8'192, 4'096), 1'634.94},
      {"h100-sxm", "megatron-core", product(fp8, forward, 4'096, 14'336, 8'192), 807.34},
      {"h100-sxm", "megatron-core", product(fp8, weights, 8'192, 2'048, 4'096), 128.67},
      {"h100-sxm", "megatron-core", memory(MemoryKind::cast, 134'217'728, 1), 126.28},
      {"h100-sxm", "megatron-core", attention(false, 1, 4'096, 8'192, 16, 128), 271.54},
      {"h100-sxm", "megatron-core", in_server(reduce_scatter, 4, 67'108'864), 192.25},
      {"h100-sxm", "megatron-core", in_server(all_gather, 2, 8'388'608), 29.43},
      {"h100-sxm", "megatron-core", in_server(all_reduce, 4, 16'384), 10.39},
      {"h100-sxm", "torch-compile", attention(false, 1, 32'768, 65'536, 16, 128), 43'146.24},
      {"h100-sxm", "torch-compile", attention(true, 1, 32'768, 65'536, 16, 128), 115'697.44},
      {"b200-sxm", "megatron-core", product(bf16, forward, 4'096, 576, 7'168), 44.39},
      {"b200-sxm", "megatron-core", product(bf16, weights, 32'768, 512, 4'096), 149.56},
      {"b200-sxm", "megatron-core", attention(false, 1, 4'096, 4'096, 128, 192), 719.92},
      {"b200-sxm", "megatron-core", attention(true, 1, 4'096, 4'096, 128, 192), 2'460.66},
      {"b200-sxm", "megatron-core", grouped(forward, 32, 1'024, 4'096, 7'168), 2'213.24},
      {"b200-sxm", "megatron-core", grouped(weights, 32, 4'096, 7'168, 1'024), 2'420.01},
      {"b200-sxm", "megatron-core", memory(MemoryKind::permute, 1'937'768'448, 2), 490.44},
      {"b200-sxm", "megatron-core", in_server(all_to_all, 8, 469'762'048 / 8 * 7), 847.19},
  };
  for (const Example& example : examples) {
    CAPTURE(std::string(example.device));
    CAPTURE(std::string(example.stack));
    CAPTURE(test::to_text(example.kernel));
    const double seconds =
        test::kernel_model(example.device, example.stack).seconds(example.kernel);
    CHECK(1e6 * seconds == test::close_to(example.microseconds, .002));
  }
}

}  // namespace
}  // namespace plumbline
