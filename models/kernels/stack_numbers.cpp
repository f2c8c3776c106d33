// The table of a stack's numbers.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/stack_numbers.h"

#include <array>

namespace plumbline {
namespace {

constexpr bool kFromRuns = true, kStated = false;

constexpr std::array kNumbers = {
    StackNumber{"product_closure", "", "a product's time in a step, of that alone", kFromRuns,
                &SoftwareStack::product_closure},
    StackNumber{"weights_out_bytes", "B", "moved for each number of a weight's gradient", kStated,
                &SoftwareStack::weights_out_bytes},
    StackNumber{"fuses_activation", "", "a gated activation is one kernel", kStated,
                &SoftwareStack::fuses_activation},
    StackNumber{"fuses_residual", "", "a residual is added within the kernel before it", kStated,
                &SoftwareStack::fuses_residual},
    StackNumber{"scores_share", "", "bytes of fused kernels over scores, of those it moves",
                kFromRuns, &SoftwareStack::scores_share},
    StackNumber{"cast_passes", "", "how often numbers are moved to be cast to fp8", kFromRuns,
                &SoftwareStack::cast_passes},
    StackNumber{"ring_attention", "", "attention's time over a ring of devices, of that alone",
                kFromRuns, &SoftwareStack::ring_attention},
    StackNumber{"repeats_keys", "", "keys are repeated to all heads before they are sent", kStated,
                &SoftwareStack::repeats_keys},
    StackNumber{"loss_forward_bytes", "B", "moved by the loss for each logit", kStated,
                &SoftwareStack::loss_forward_bytes},
    StackNumber{"loss_backward_bytes", "B", "the same in its backward", kStated,
                &SoftwareStack::loss_backward_bytes},
    StackNumber{"skips_last_product", "", "recomputation ends before a block's last product",
                kStated, &SoftwareStack::skips_last_product},
    StackNumber{"update_passes", "", "bytes of an update, of those of its optimizer", kStated,
                &SoftwareStack::update_passes},
    StackNumber{"host_per_op_s", "s", "the least time from one launch to the next", kStated,
                &SoftwareStack::host_per_op_s},
    StackNumber{"gap_per_op_s", "s", "between the ops of a pipeline", kStated,
                &SoftwareStack::gap_per_op_s},
    StackNumber{"hides_tensor", "", "hidden of tensor-parallel collectives, with overlap",
                kFromRuns, &SoftwareStack::hides_tensor},
    StackNumber{"hides_tensor_gradient", "", "hidden of the all-reduce beside a weight's gradient",
                kFromRuns, &SoftwareStack::hides_tensor_gradient},
    StackNumber{"hides_context", "", "hidden of the collectives of keys and values", kFromRuns,
                &SoftwareStack::hides_context},
    StackNumber{"hides_experts", "", "hidden of tokens' way to experts, with overlap and chunks",
                kFromRuns, &SoftwareStack::hides_experts},
    StackNumber{"exposed_weights", "", "not hidden of gathering and scattering sharded weights",
                kFromRuns, &SoftwareStack::exposed_weights},
    StackNumber{"per_doubling", "", "longer iterations for twice as many devices, above 8",
                kFromRuns, &SoftwareStack::per_doubling}};

}  // namespace

double StackNumber::of(const SoftwareStack& stack) const {
  return std::visit([&](auto own) { return static_cast<double>(stack.*own); }, member);
}

std::span<const StackNumber> stack_numbers() { return kNumbers; }

std::string_view name_of(AttentionKind kind) {
  constexpr std::array<std::string_view, 3> names = {"flash-1", "flash-2", "newest"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace plumbline
