// Training frameworks: the kernels that each launches on a device, and the times that it hides.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/kernels/kernel_table.h"
#include "models/kernels/kernel_traits.h"

namespace plumbline {

/// A software stack: cluster.device.stack of a scenario. Every number belongs to the stack, on
/// whatever device.
struct SoftwareStack {
  std::string_view name;
  std::string_view summary;
  std::string_view source;

  // Kernels.
  AttentionKind attention = AttentionKind::newest;
  double product_closure = 1.1;  ///< How much longer products take in a step than alone.
  /// Moved for each number of a weight's gradient: 2, or more where it is added to a sum, which is
  /// read and written: 4 in the numbers of the product, 8 in fp32 beside bf16.
  double weights_out_bytes = 2;
  bool fuses_activation = false;  ///< A gated activation is one kernel.
  bool fuses_residual = false;    ///< A residual is added within the kernel before it.
  double scores_share = 1;        ///< Bytes of fused kernels for those of its kernels over scores.
  double cast_passes = 1;         ///< How often numbers are moved to be cast to fp8.
  double ring_attention = 1;      ///< How much longer attention takes over a ring of devices.
  bool repeats_keys = false;  ///< Keys and values are repeated to all heads before they are sent.
  double loss_forward_bytes = 10, loss_backward_bytes = 6;  ///< Of cross entropy, for each logit.
  bool skips_last_product = false;  ///< Recomputation ends before a block's last product.
  double update_passes = 1.5;       ///< Bytes of an update for each of its optimizer alone.

  // The host.
  double host_per_op_s = 0;  ///< The least time from one launch to the next.
  double gap_per_op_s = 0;   ///< Between the ops of a pipeline.

  // Communication: which share of a pass's time on it computing hides, where it can.
  double hides_tensor = 0;
  double hides_tensor_gradient = 0;
  double hides_context = 0;
  double hides_experts = 0;
  double exposed_weights =
      0;  ///< Of the gathering and scattering of sharded weights, what is seen.
  double per_doubling = .006;  ///< How much longer an iteration takes for twice as many devices.

  /// The sum that gradients of weights are added to, where products multiply in `format`.
  Accumulation accumulation(NumberFormat format) const {
    if (weights_out_bytes <= 2) return Accumulation::none;
    const bool is_short = bytes_of(format) <= 2 && weights_out_bytes <= 4;
    return is_short ? Accumulation::bf16 : Accumulation::fp32;
  }
};

/// All of them, by name.
std::span<const SoftwareStack> software_stacks();

/// The stack of this name, or nullptr.
const SoftwareStack* find_software_stack(std::string_view name);

std::vector<std::string> software_stack_names();

/// The stack that is taken where none is named.
const SoftwareStack& usual_stack();

}  // namespace plumbline
