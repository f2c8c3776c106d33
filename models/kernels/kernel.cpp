// FLOPs of kernels.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel.h"

#include "models/ops/layer_op.h"

namespace plumbline {
namespace {

struct ToFlops {
  double operator()(const ProductKernel& kernel) const {
    return 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
           static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
  }
  double operator()(const AttentionKernel& kernel) const {
    const double pairs = static_cast<double>(kernel.batch) * static_cast<double>(kernel.queries) *
                         static_cast<double>(kernel.heads) *
                         mean_reach(kernel.keys, kernel.window, kernel.by_chunk);
    const auto query = static_cast<double>(kernel.query_size);
    const auto value = static_cast<double>(kernel.value_size);
    // Backward: the scores again, and two products for each of the forward's.
    return 2 * pairs * (kernel.backward ? 3 * query + 2 * value : query + value);
  }
  double operator()(const MemoryKernel&) const { return 0; }
  double operator()(const CollectiveKernel&) const { return 0; }
};

}  // namespace

double flops_of(const Kernel& kernel) { return std::visit(ToFlops{}, kernel); }

}  // namespace plumbline
