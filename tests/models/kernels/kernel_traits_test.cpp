// Every device and every stack has its numbers, and they are plausible.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_traits.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "base/bug.h"
#include "models/kernels/stack_numbers.h"
#include "tests/support/close_to.h"
#include "tests/support/kernel_models.h"

namespace plumbline {
namespace {

bool is_share(double value) { return value > 0 && value <= 1; }

void check_products(const ProductTraits& products) {
  CHECK(is_share(products.ceiling));
  CHECK(products.depth > 0);
  CHECK(products.tail >= 0);
  CHECK(products.tail <= 1);
  CHECK(is_share(products.memory_share));
  CHECK(products.small >= 1);
}

void check_attention(const AttentionTraits& attention) {
  CHECK(attention.at[0].size > 0);
  CHECK(attention.fill >= 0);
  double before = 0;
  for (const AttentionTraits::AtSize& at : attention.at) {
    if (at.size == 0) break;
    CHECK(at.size > before);
    CHECK(is_share(at.share));
    CHECK(at.keys >= 0);
    before = at.size;
  }
}

void check_traits(const KernelTraits& traits) {
  CAPTURE(std::string(traits.device));
  CHECK(traits.multiprocessors > 0);
  check_products(traits.bf16);
  if (traits.fp8) check_products(*traits.fp8);
  CHECK(traits.weights_factor >= 1);
  CHECK(is_share(traits.sustained));
  for (const double share :
       {traits.memory_share, traits.permute_share, traits.update_share, traits.network_share,
        traits.collectives.all_reduce, traits.collectives.all_gather,
        traits.collectives.reduce_scatter, traits.collectives.all_to_all})
    CHECK(is_share(share));
  CHECK(traits.clock_hz > 1e9);
  CHECK(traits.clock_hz < 3e9);
  check_attention(traits.newest.forward);
  check_attention(traits.newest.backward);
  CHECK(!traits.source.empty());
}

TEST_CASE("every preset of a device has kernels of its own, with their source") {
  for (const DevicePreset& preset : device_presets()) {
    const KernelTraits& traits = kernel_traits(preset.name);
    CHECK(traits.device == preset.name);
    check_traits(traits);
    CHECK((preset.peak(NumberFormat::fp8).has_value() == traits.fp8.has_value()));
  }
  CHECK_THROWS_AS(kernel_traits("h1000"), Bug);
}

TEST_CASE("devices that were measured say how far products were off, others what is assumed") {
  std::set<std::string> assumed;
  for (const DevicePreset& preset : device_presets()) {
    const KernelTraits& traits = kernel_traits(preset.name);
    CHECK(traits.caveat.empty() == (traits.bf16.held_out_error > 0));
    if (!traits.caveat.empty()) assumed.emplace(preset.name);
  }
  CHECK(assumed == std::set<std::string>{"b300-sxm", "gb300", "h100-pcie", "h20-sxm", "l40s"});
}

TEST_CASE("a device known by its peak alone has the multiprocessors of the nearest generation") {
  for (const double peak : {1e12, 121e12, 312e12, 989.5e12, 2250e12, 1e16}) {
    check_traits(usual_kernel_traits(peak));
    CHECK(!usual_kernel_traits(peak).caveat.empty());
  }
  CHECK(usual_kernel_traits(1e12).multiprocessors == 108);
  CHECK(usual_kernel_traits(500e12).multiprocessors == 108);
  CHECK(usual_kernel_traits(600e12).multiprocessors == 132);
  CHECK(usual_kernel_traits(1400e12).multiprocessors == 132);
  CHECK(usual_kernel_traits(1600e12).multiprocessors == 148);
}

TEST_CASE("attention written for an A100 gets a smaller share of later devices, and never more") {
  const auto share = [](const char* preset, AttentionKind kind) {
    const KernelDevice device = test::kernel_device(preset);
    return attention_rates(device.traits, kind, device.peak).forward.at[1].share;
  };
  using enum AttentionKind;
  CHECK(share("a100-sxm-80gb", flash_1) == test::close_to(.37));
  CHECK(share("a100-sxm-80gb", flash_2) == test::close_to(.63));
  CHECK(share("h100-sxm", flash_2) == test::close_to(.541 * .63, .001));
  CHECK(share("b200-sxm", flash_2) < share("h100-sxm", flash_2));
  for (const DevicePreset& preset : device_presets()) {
    const KernelDevice device = test::kernel_device(preset.name);
    for (const AttentionKind kind : {flash_1, flash_2})
      check_attention(attention_rates(device.traits, kind, device.peak).forward);
    CHECK(share(preset.name.data(), flash_1) < share(preset.name.data(), flash_2));
    CHECK(share(preset.name.data(), flash_2) <= share(preset.name.data(), newest));
  }
}

TEST_CASE("every software stack is found by its name") {
  const std::vector<std::string> names = software_stack_names();
  CHECK(names == std::vector<std::string>{"eager-2023", "megatron-2022", "megatron-core",
                                          "torch-compile", "plumbline"});
  for (const std::string& name : names) {
    const SoftwareStack* stack = find_software_stack(name);
    REQUIRE(stack);
    CHECK(stack->name == name);
    CHECK(!stack->summary.empty());
    CHECK(!stack->source.empty());
  }
  CHECK(!find_software_stack("megatron"));
  CHECK(usual_stack().name == "megatron-core");
}

TEST_CASE("each number of a software stack is listed, once") {
  // One name for each member: a new one does not compile until it stands here and in the list.
  const auto& [name, summary, source, attention, product_closure, weights_out_bytes,
               fuses_activation, fuses_residual, scores_share, cast_passes, ring_attention,
               repeats_keys, loss_forward_bytes, loss_backward_bytes, skips_last_product,
               update_passes, host_per_op_s, gap_per_op_s, hides_tensor, hides_tensor_gradient,
               hides_context, hides_experts, exposed_weights, per_doubling] = usual_stack();
  const std::vector<double> all = {
      product_closure,
      weights_out_bytes,
      static_cast<double>(fuses_activation),
      static_cast<double>(fuses_residual),
      scores_share,
      cast_passes,
      ring_attention,
      static_cast<double>(repeats_keys),
      loss_forward_bytes,
      loss_backward_bytes,
      static_cast<double>(skips_last_product),
      update_passes,
      host_per_op_s,
      gap_per_op_s,
      hides_tensor,
      hides_tensor_gradient,
      hides_context,
      hides_experts,
      exposed_weights,
      per_doubling,
  };
  std::vector<double> listed;
  std::set<std::string_view> names;
  for (const StackNumber& number : stack_numbers()) {
    listed.push_back(number.of(usual_stack()));
    names.insert(number.name);
  }
  CHECK(listed == all);
  CHECK(names.size() == all.size());
  CHECK(name_of(attention) == "newest");
  CHECK(!name.empty());
  CHECK(!summary.empty());
  CHECK(!source.empty());
}

TEST_CASE("a stack's products add gradients to no sum, to one in their own numbers, or in fp32") {
  const auto sum = [](std::string_view stack, NumberFormat format) {
    return find_software_stack(stack)->accumulation(format);
  };
  CHECK(sum("torch-compile", NumberFormat::bf16) == Accumulation::none);
  CHECK(sum("torch-compile", NumberFormat::fp32) == Accumulation::none);
  CHECK(sum("megatron-core", NumberFormat::bf16) == Accumulation::fp32);
  CHECK(sum("megatron-core", NumberFormat::fp8) == Accumulation::fp32);
  CHECK(sum("plumbline", NumberFormat::bf16) == Accumulation::bf16);
  CHECK(sum("plumbline", NumberFormat::fp32) == Accumulation::fp32);
}

}  // namespace
}  // namespace plumbline
