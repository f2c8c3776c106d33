// The table of stacks.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/software_stack.h"

#include <algorithm>
#include <array>

namespace plumbline {
namespace {

constexpr SoftwareStack kEager2023 = {
    .name = "eager-2023",
    .summary = "PyTorch FSDP without a compiler, FlashAttention 1",
    .source = "mosaicml/llm-foundry of 2023: MPT with attn_impl triton, PyTorch 2.0",
    .attention = AttentionKind::flash_1,
    .loss_forward_bytes = 14,  // copies of the logits in fp32
    .loss_backward_bytes = 18,
    .skips_last_product = true,  // torch.utils.checkpoint, use_reentrant=False
    .host_per_op_s = 8e-6,
    .exposed_weights = .7};

constexpr SoftwareStack kMegatron2022 = {
    .name = "megatron-2022",
    .summary = "Megatron-LM and Megatron-DeepSpeed before FlashAttention",
    .source = "NVIDIA/Megatron-LM v2.6 to v3.0",
    .attention = AttentionKind::flash_2,  // where flash_attention is asked for all the same
    .product_closure = 1,                 // nothing runs beside its products
    .scores_share = .4,  // scale, mask, softmax and dropout in kernels of their own
    .host_per_op_s = 8e-6,
    .gap_per_op_s = .3e-3,         // torch.cuda.synchronize() around sends and receives
    .hides_tensor_gradient = .5};  // an asynchronous all-reduce beside the weights' gradients

constexpr SoftwareStack kMegatronCore = {
    .name = "megatron-core",
    .summary = "Megatron Core with Transformer Engine; NeMo, Megatron Bridge",
    .source = "NVIDIA/Megatron-LM core v0.7 and later",
    .weights_out_bytes = 8,  // gradient_accumulation_fusion: sums in fp32 are read and written
    .fuses_activation = true,
    .cast_passes = 1.6,  // amax and transposes in kernels of their own
    .host_per_op_s = 3e-6,
    .hides_tensor = .7,
    .hides_context = .7,
    .hides_experts = .8};

constexpr SoftwareStack kTorchCompile = {
    .name = "torch-compile",
    .summary = "PyTorch FSDP2 with torch.compile; torchtitan",
    .source = "pytorch/torchtitan, PyTorch 2.5 and later",
    .attention = AttentionKind::flash_2,
    .fuses_activation = true,
    .fuses_residual = true,
    .ring_attention = 1.6,  // sums of a ring are merged in fp32
    .repeats_keys = true,
    .skips_last_product = true,
    .host_per_op_s = 2e-6,
    .exposed_weights = .7};

constexpr SoftwareStack kPlumbline = {
    .name = "plumbline",
    .summary = "plumbline's own runs: plumbline run, validate",
    .source = "calibrate/cpu and calibrate/cuda in this repository",
    .product_closure = 1,    // a calibration measures it
    .weights_out_bytes = 4,  // products add to gradients in their own numbers
    .fuses_activation = true,
    .fuses_residual = true,  // copied into the output, to which the product is added
    .loss_forward_bytes = 8,
    .loss_backward_bytes = 16};  // both backwards make the gradient of the logits

constexpr std::array kStacks = {kEager2023, kMegatron2022, kMegatronCore, kTorchCompile,
                                kPlumbline};

}  // namespace

std::span<const SoftwareStack> software_stacks() { return kStacks; }

const SoftwareStack* find_software_stack(std::string_view name) {
  const auto found = std::find_if(kStacks.begin(), kStacks.end(),
                                  [&](const SoftwareStack& stack) { return stack.name == name; });
  return found == kStacks.end() ? nullptr : &*found;
}

std::vector<std::string> software_stack_names() {
  std::vector<std::string> names;
  names.reserve(kStacks.size());
  for (const SoftwareStack& stack : kStacks) names.emplace_back(stack.name);
  return names;
}

const SoftwareStack& usual_stack() { return kStacks[2]; }

}  // namespace plumbline
