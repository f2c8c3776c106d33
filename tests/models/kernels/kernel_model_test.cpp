// Laws of single kernels' times.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_model.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "tests/support/close_to.h"
#include "tests/support/kernel_models.h"

namespace plumbline {
namespace {

ProductKernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  return {.m = m, .n = n, .k = k, .batch = batch};
}

AttentionKernel attention(std::int64_t batch, std::int64_t tokens, std::int64_t heads,
                          bool backward = false) {
  return {.backward = backward,
          .batch = batch,
          .queries = tokens,
          .keys = tokens,
          .heads = heads,
          .key_heads = heads,
          .query_size = 128,
          .value_size = 128};
}

CollectiveKernel collective(CollectiveKind kind, std::int64_t devices, std::int64_t near,
                            std::int64_t bytes) {
  return {.kind = kind, .devices = devices, .near = near, .bytes = bytes};
}

/// FLOP/s that a kernel reaches, as a share of the device's peak.
double share_of_peak(const KernelModel& model, const Kernel& kernel) {
  return flops_of(kernel) / model.seconds(kernel) / model.device().peak;
}

TEST_CASE("a product takes no less time if one of its sizes grows") {
  for (const char* device : {"a100-sxm-80gb", "h100-sxm", "gb200", "l40s", "h20-sxm"}) {
    const KernelModel model = test::kernel_model(device);
    double rows = 0, columns = 0, depth = 0;
    for (std::int64_t size = 64; size <= 6'000; size += 56) {
      CAPTURE(size);
      const double more_rows = model.seconds(product(size, 1'024, 2'048));
      const double more_columns = model.seconds(product(2'000, size, 2'048));
      const double more_depth = model.seconds(product(2'000, 1'000, size));
      CHECK(more_rows >= rows);
      CHECK(more_columns >= columns);
      CHECK(more_depth > depth);
      rows = more_rows, columns = more_columns, depth = more_depth;
    }
  }
}

TEST_CASE("twice the batch never takes less time") {
  const KernelModel model = test::kernel_model("h100-sxm");
  double before = 0;
  for (std::int64_t batch = 1; batch <= 512; batch *= 2) {
    const double now = model.seconds(product(512, 512, 128, batch));
    CHECK(now >= before);
    before = now;
  }
}

TEST_CASE("very large products reach the ceiling at the sustained clock, less the stack's loss") {
  for (const DevicePreset& preset : device_presets()) {
    const KernelModel model = test::kernel_model(preset.name);
    const KernelTraits& traits = model.device().traits;
    const double reached = share_of_peak(model, product(65'536, 65'536, 65'536));
    const double most = traits.bf16.ceiling * traits.sustained / model.stack().product_closure;
    CAPTURE(std::string(preset.name));
    CHECK(reached < most);
    CHECK(reached == test::close_to(most, .01));
  }
}

TEST_CASE("one tile more than the multiprocessors takes a wave more, as far as the tail is paid") {
  KernelDevice device = test::kernel_device("h100-sxm");
  device.traits.launch_s = 0;
  device.memory_bandwidth = 1e15;  // Nothing waits for it.
  const auto more = [&](double tail) {
    device.traits.bf16.tail = tail;
    const KernelModel model(device, usual_stack());
    return model.seconds(product(128 * 132 + 1, 256, 8'192)) /
           model.seconds(product(128 * 132, 256, 8'192));
  };
  CHECK(more(1) == test::close_to(2));
  CHECK(more(0) == test::close_to(133. / 132));
  CHECK(more(.5) == test::close_to(133. / 132 + .5 * 131 / 132));
}

TEST_CASE("products in fp8 are faster than those in bf16 where they are large") {
  for (const DevicePreset& preset : device_presets()) {
    if (!preset.peak(NumberFormat::fp8)) continue;
    const KernelModel model = test::kernel_model(preset.name);
    const auto seconds = [&](NumberFormat format, std::int64_t size) {
      ProductKernel kernel = product(size, size, size);
      kernel.format = format;
      return model.seconds(kernel);
    };
    CAPTURE(std::string(preset.name));
    const double gain = seconds(NumberFormat::bf16, 8'192) / seconds(NumberFormat::fp8, 8'192);
    CHECK(gain > 1.7);
    CHECK(gain < 2.1);
    const double small = seconds(NumberFormat::bf16, 512) / seconds(NumberFormat::fp8, 512);
    CHECK(small < gain);
  }
}

TEST_CASE("a product with few rows waits for the memory") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const KernelTraits& traits = model.device().traits;
  const double bytes = 2. * (8'192 + 8'192. * 8'192 + 8'192);
  const double moving = bytes / (3.35e12 * traits.bf16.memory_share) + traits.launch_s;
  CHECK(model.seconds(product(1, 8'192, 8'192)) ==
        test::close_to(model.stack().product_closure * moving));
}

TEST_CASE("a product that waits for the memory writes numbers of its own format") {
  for (const KernelPass pass : {KernelPass::forward, KernelPass::weights}) {
    const KernelModel model = test::kernel_model("h100-sxm", "eager-2023");
    ProductKernel wide = product(16'384, 16'384, 8);
    wide.pass = pass;
    const double in_bf16 = model.seconds(wide);
    wide.format = NumberFormat::fp32;
    CHECK(model.seconds(wide) == test::close_to(2 * in_bf16, .04));
  }
}

TEST_CASE("products for weights are slower, and those of experts the more the fewer their rows") {
  const KernelModel model = test::kernel_model("b200-sxm");
  ProductKernel weights = product(8'192, 8'192, 8'192);
  weights.pass = KernelPass::weights;
  CHECK(model.seconds(weights) / model.seconds(product(8'192, 8'192, 8'192)) ==
        test::close_to(model.device().traits.weights_factor, .001));
  double before = 0;
  for (const std::int64_t rows : {256, 1'024, 4'096}) {
    ProductKernel experts = product(rows, 4'096, 8'192, 16);
    const double alone = model.seconds(experts);
    experts.grouped = true;
    const double share = alone / model.seconds(experts);
    CHECK(share < 1);
    CHECK(share > before);
    before = share;
  }
}

TEST_CASE("attention reaches more of the peak with longer sequences, and less with few heads") {
  for (const DevicePreset& preset : device_presets()) {
    for (const char* stack : {"eager-2023", "torch-compile", "megatron-core"}) {
      const KernelModel model = test::kernel_model(preset.name, stack);
      double before = 0;
      for (std::int64_t tokens = 512; tokens <= 131'072; tokens *= 2) {
        const double now = share_of_peak(model, attention(1, tokens, 32));
        CHECK(now > before);
        before = now;
      }
      CHECK(before < 1);
      CHECK(share_of_peak(model, attention(1, 2'048, 4)) <
            share_of_peak(model, attention(1, 2'048, 64)));
    }
  }
}

TEST_CASE("attention's backward does 2.5 times the work of its forward, and takes longer") {
  CHECK(flops_of(attention(2, 4'096, 32)) == 4. * 2 * 4'096 * 4'096 * 32 * 128 / 2);
  CHECK(flops_of(attention(2, 4'096, 32, true)) == 2.5 * flops_of(attention(2, 4'096, 32)));
  for (const DevicePreset& preset : device_presets()) {
    const KernelModel model = test::kernel_model(preset.name);
    const double ratio =
        model.seconds(attention(2, 4'096, 32, true)) / model.seconds(attention(2, 4'096, 32));
    CAPTURE(std::string(preset.name));
    CHECK(ratio > 2);
    CHECK(ratio < 4.5);
  }
}

TEST_CASE(
    "between two sizes of heads attention's share lies on a line, beyond them it is the last") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const auto share = [&](std::int64_t size) {
    AttentionKernel kernel = attention(64, 65'536, 64);
    kernel.query_size = kernel.value_size = size;
    return share_of_peak(model, kernel);
  };
  CHECK(share(192) == test::close_to((share(128) + share(256)) / 2, .001));
  CHECK(share(512) == test::close_to(share(256), .001));
  CHECK(share(32) == test::close_to(share(64), .001));
}

TEST_CASE("a ring of devices slows attention where the stack says so") {
  AttentionKernel part = attention(1, 65'536, 32);
  part.queries = 8'192;
  const double torch = test::kernel_model("a100-sxm-80gb", "torch-compile").seconds(part);
  const double other = test::kernel_model("a100-sxm-80gb", "megatron-2022").seconds(part);
  CHECK(torch / other == test::close_to(1.6, .001));
  part.queries = part.keys;
  CHECK(test::kernel_model("a100-sxm-80gb", "torch-compile").seconds(part) ==
        test::kernel_model("a100-sxm-80gb", "megatron-2022").seconds(part));
}

TEST_CASE("a kernel that moves takes its bytes at a share of the bandwidth, and a start a launch") {
  const KernelModel model = test::kernel_model("a100-sxm-80gb", "megatron-2022");
  const auto seconds = [&](MemoryKind kind, double bytes, std::int64_t launches) {
    return model.seconds(MemoryKernel{.kind = kind, .bytes = bytes, .launches = launches});
  };
  CHECK(seconds(MemoryKind::norm, 1e9, 1) == test::close_to(1e9 / (2.039e12 * .8) + 3e-6));
  CHECK(seconds(MemoryKind::norm, 1e9, 4) == test::close_to(1e9 / (2.039e12 * .8) + 12e-6));
  CHECK(seconds(MemoryKind::permute, 1e9, 1) == test::close_to(1e9 / (2.039e12 * .4) + 3e-6));
  CHECK(seconds(MemoryKind::scores, 1e9, 1) == test::close_to(1e9 / (2.039e12 * .8 * .4) + 3e-6));
  const KernelModel megatron = test::kernel_model("h100-sxm");
  const MemoryKernel cast{.kind = MemoryKind::cast, .bytes = 1e9};
  CHECK(megatron.seconds(cast) == test::close_to(1.6 * 1e9 / (3.35e12 * .52) + 3e-6));
}

TEST_CASE("small collectives take their steps, large ones their bytes") {
  const KernelModel model = test::kernel_model("h100-sxm");
  using enum CollectiveKind;
  const auto seconds = [&](CollectiveKind kind, std::int64_t devices, std::int64_t bytes) {
    return model.seconds(collective(kind, devices, devices, bytes));
  };
  CHECK(seconds(all_gather, 8, 8) - seconds(all_gather, 4, 8) == test::close_to(4 * .8e-6, .02));
  CHECK(seconds(all_reduce, 8, 8) - seconds(all_gather, 8, 8) == test::close_to(7 * .8e-6, .02));
  constexpr std::int64_t large = 1LL << 36;
  CHECK(seconds(all_gather, 8, large) == test::close_to(large * 7. / 8 / (450e9 * .78), .02));
  CHECK(seconds(reduce_scatter, 8, large) == seconds(all_gather, 8, large));
  const double twice = seconds(all_reduce, 8, large) / seconds(all_gather, 8, large);
  CHECK(twice > 1.7);
  CHECK(twice <= 2);
}

TEST_CASE("groups over several servers are slower, less so where members share their cards") {
  const KernelModel model = test::kernel_model("h100-sxm");
  using enum CollectiveKind;
  constexpr std::int64_t bytes = 1 << 28;
  for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce}) {
    const double near_all = model.seconds(collective(kind, 8, 8, bytes));
    const double near_4 = model.seconds(collective(kind, 8, 4, bytes));
    const double near_1 = model.seconds(collective(kind, 8, 1, bytes));
    CHECK(near_all < near_4);
    CHECK(near_4 < near_1);
    CHECK(near_1 / near_4 == test::close_to(4, .1));
  }
  // One member in each of two servers: half of the tensor over one card.
  CHECK(model.seconds(collective(all_gather, 2, 1, 1LL << 34)) ==
        test::close_to((1LL << 33) / (50e9 * .8), .02));
}

TEST_CASE("tokens to experts take the slower of link and network card") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const auto seconds = [&](std::int64_t link, std::int64_t network) {
    return model.seconds(CollectiveKernel{.kind = CollectiveKind::all_to_all,
                                          .use = CollectiveUse::experts,
                                          .devices = 16,
                                          .near = 8,
                                          .bytes = link,
                                          .network_bytes = network});
  };
  constexpr std::int64_t large = 1LL << 34;
  CHECK(seconds(large, 0) == test::close_to(large / (450e9 * .79), .03));
  CHECK(seconds(0, large) == test::close_to(large / (50e9 * .8), .001));
  CHECK(seconds(large, large) == seconds(0, large));
}

TEST_CASE("copies gather weights as fast as their slowest way") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const double in_server = model.ring_seconds(1e10, {8, 8});
  CHECK(in_server == test::close_to(1e10 * 7 / 8 / (450e9 * .78), .05));
  // Eight cards of 50 GB/s are slower than NVLink, one is slower still.
  CHECK(model.ring_seconds(1e10, {64, 8}) == test::close_to(1e10 * 63 / 64 / (8 * 50e9 * .8), .05));
  CHECK(model.ring_seconds(1e10, {64, 1}) > 5 * model.ring_seconds(1e10, {64, 8}));
  // Other links and cards than the device's.
  CHECK(model.ring_seconds(1e10, {8, 8, 45e9}) > 5 * in_server);
  CHECK(model.ring_seconds(1e10, {64, 8, 0, 50e9}) ==
        test::close_to(8 * model.ring_seconds(1e10, {64, 8}), .05));
  // Many copies pay each step of the ring.
  CHECK(model.ring_seconds(1, {512, 8}) - model.ring_seconds(1, {128, 8}) ==
        test::close_to(384 * 4e-6, .01));
}

}  // namespace
}  // namespace plumbline
