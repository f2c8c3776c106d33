// From ops to kernels: what a software stack launches in each pass over a layer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/kernels/kernel.h"
#include "models/kernels/software_stack.h"
#include "models/ops/layer_op.h"

namespace plumbline {

/// The kernels of one pass over `ops`, in the order of the forward. The bytes of those that move
/// count each tensor that they read or write once, by what the stack fuses.
std::vector<Kernel> launches(const LayerOps& ops, KernelPass pass, const SoftwareStack& stack);

/// The kernels of the forward that selective recomputation runs again.
std::vector<Kernel> launches_again(const LayerOps& ops, const SoftwareStack& stack);

/// The last product of the forward, which makes the layer's output; nothing without products.
std::vector<Kernel> last_product(const LayerOps& ops, const SoftwareStack& stack);

}  // namespace plumbline
