// One function for each kind of op.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/launches.h"

#include <algorithm>

#include "base/saturating_count.h"

namespace plumbline {
namespace {

/// The kernels of one pass, as they come.
class Launcher {
 public:
  Launcher(NumberFormat dtype, KernelPass pass, const SoftwareStack& stack)
      : dtype_(dtype), e_(static_cast<double>(bytes_of(dtype))), pass_(pass), stack_(stack) {}

  void operator()(const LinearOp& op) {
    const bool grouped = op.experts > 0;
    const std::int64_t batch = grouped ? op.experts : 1;
    const std::int64_t rows = grouped ? (op.rows + batch - 1) / batch : op.rows;
    const bool in_fp8 = op.format == NumberFormat::fp8;
    ProductKernel product{.format = op.format, .pass = pass_, .batch = batch, .grouped = grouped};
    switch (pass_) {
      case KernelPass::forward:
        product.m = rows, product.n = op.outputs, product.k = op.inputs;
        if (in_fp8) cast(op.rows, op.inputs);
        break;
      case KernelPass::input:
        product.m = rows, product.n = op.inputs, product.k = op.outputs;
        if (in_fp8) cast(op.rows, op.outputs);
        break;
      case KernelPass::weights:
        product.m = op.outputs, product.n = op.inputs, product.k = rows;
        break;
    }
    kernels_.emplace_back(product);
  }

  void operator()(const AttentionOp& op) {
    if (pass_ == KernelPass::weights) return;
    if (op.keeps_scores) return with_scores(op);
    kernels_.emplace_back(AttentionKernel{is_backward(), op.batch, op.queries, op.keys, op.heads,
                                          op.key_heads, op.query_size, op.value_size, dtype_,
                                          op.window, op.by_chunk});
  }

  /// A product for each of its heads over the pairs that are not masked, and the choice from their
  /// sums in fp32; its backward has two products.
  void operator()(const IndexOp& op) {
    if (pass_ == KernelPass::weights) return;
    const std::int64_t reached = std::max<std::int64_t>(1, op.keys / 2);
    const std::int64_t batch = product(op.batch, op.heads);
    const ProductKernel scores{.format = dtype_,
                               .pass = pass_,
                               .m = op.queries,
                               .n = reached,
                               .k = op.size,
                               .batch = batch};
    kernels_.emplace_back(scores);
    if (is_backward()) kernels_.emplace_back(scores);
    const double chosen_of = fp32 / e_;
    moves(MemoryKind::routing, product(op.batch, op.queries), reached, {2 * chosen_of, 2},
          {chosen_of, 1});
  }

  /// The products of its chunks (flops_of(ScanOp) has them), each batched over chunks and heads.
  void operator()(const ScanOp& op) {
    if (pass_ == KernelPass::weights) return;
    const std::int64_t chunk = std::min(op.chunk, op.tokens);
    const std::int64_t chunks = product(op.batch, (op.tokens + chunk - 1) / chunk);
    const std::int64_t n = op.key_size, p = op.value_size;
    const auto launch = [&](std::int64_t heads, std::int64_t rows, std::int64_t columns,
                            std::int64_t depth) {
      const ProductKernel one{.format = dtype_,
                              .pass = pass_,
                              .m = rows,
                              .n = columns,
                              .k = depth,
                              .batch = product(chunks, heads)};
      for (int i = is_backward() ? 3 : 1; i > 0; --i) kernels_.emplace_back(one);
    };
    const std::int64_t of_keys = op.delta ? op.heads : op.key_heads;
    launch(of_keys, chunk, chunk, n);   // scores
    launch(op.heads, chunk, p, chunk);  // their sums
    launch(op.heads, n, p, chunk);      // to the states
    launch(op.heads, chunk, p, n);      // from the states
    if (!op.delta) return;
    launch(op.heads, chunk, chunk, n);  // keys with keys
    launch(op.heads, chunk, n, chunk);  // the inverse of that times keys,
    launch(op.heads, chunk, p, chunk);  // and times values
    launch(op.heads, chunk, p, n);      // what the state holds under the keys
  }

  void operator()(const ConvolutionOp& op) {
    moves(MemoryKind::activation, op.rows, op.columns, {2, 1}, {4, 1});
  }

  void operator()(const NormOp& op) {
    moves(MemoryKind::norm, op.rows, op.columns, {2, 1}, {3, 2});
  }

  void operator()(const RotationOp& op) {
    const Moved moved = op.joins ? Moved{4, 3} : Moved{2, 2};
    moves(MemoryKind::rotation, op.rows, op.columns, moved, moved);
  }

  void operator()(const ActivationOp& op) {
    const Moved forward = !op.gated                 ? Moved{2, 1}
                          : stack_.fuses_activation ? Moved{3, 1}
                                                    : Moved{5, 2};
    const Moved backward = !op.gated                 ? Moved{3, 1}
                           : stack_.fuses_activation ? Moved{5, 1}
                                                     : Moved{8, 3};
    moves(MemoryKind::activation, op.rows, op.columns, forward, backward);
  }

  /// Dropout writes its mask of a byte a number. Its backward is a kernel that reads the mask.
  void operator()(const ResidualOp& op) {
    const double tensors = stack_.fuses_residual ? 2 : 3;
    const double mask = op.drops ? 1 / e_ : 0;
    moves(MemoryKind::residual, op.rows, op.columns, {tensors + mask, 1},
          op.drops ? Moved{tensors + 2 + mask, 2} : Moved{tensors, 1});
  }

  void operator()(const SumOp& op) { moves(MemoryKind::sum, op.rows, op.columns, {3, 1}, {3, 1}); }

  /// Scores in fp32, and what is sorted of them.
  void operator()(const RoutingOp& op) {
    constexpr double fp32_tensors = 16;
    const Moved moved{fp32_tensors / e_, 6};
    moves(MemoryKind::routing, op.rows, op.experts, moved, moved);
  }

  void operator()(const PermuteOp& op) {
    if (pass_ == KernelPass::weights) return;
    const double rows = 2 * real(op.passes) * real(op.rows) + real(op.sums);
    kernels_.emplace_back(MemoryKernel{MemoryKind::permute, pass_, op.rows, op.columns,
                                       e_ * rows * real(op.columns), op.passes, dtype_});
  }

  /// Bytes for each logit. Ops of their own move copies of the logits in fp32.
  void operator()(const LossOp& op) {
    double forward = stack_.loss_forward_bytes, backward = stack_.loss_backward_bytes;
    if (op.fused) {
      forward = *op.fused ? 10 : 14;
      backward = *op.fused ? 6 : 18;
    }
    moves(MemoryKind::loss, op.rows, op.columns, {forward / e_, 3}, {backward / e_, 3});
  }

  void operator()(const LookupOp& op) {
    const Moved dropped = op.drops ? Moved{2 + 1 / e_, 1} : Moved{};
    const Moved rows{op.positions ? 3.0 : 2.0, 1};
    moves(MemoryKind::lookup, op.rows, op.columns,
          {rows.tensors + dropped.tensors, rows.launches + dropped.launches}, dropped);
    if (pass_ != KernelPass::weights) return;
    const double table = stack_.weights_out_bytes * real(op.table_rows) * real(op.columns);
    kernels_.emplace_back(MemoryKernel{MemoryKind::lookup, pass_, op.rows, op.columns,
                                       e_ * real(op.rows) * real(op.columns) + table, 2, dtype_});
  }

  void operator()(const ExchangeOp& op) {
    if (op.devices == 1 || (op.bytes == 0 && op.network_bytes == 0)) return;
    const bool forward = pass_ == KernelPass::forward;
    const bool weights = pass_ == KernelPass::weights;
    using enum CollectiveKind;
    switch (op.kind) {
      case ExchangeKind::gather_tokens:
        if (weights) return sends(op, all_gather, CollectiveUse::tensor_again);
        return sends(op, forward ? all_gather : reduce_scatter, CollectiveUse::tensor);
      case ExchangeKind::scatter_sums:
        if (weights) return;
        return sends(op, forward ? reduce_scatter : all_gather, CollectiveUse::tensor);
      case ExchangeKind::copy_tokens:
        if (pass_ == KernelPass::input) sends(op, all_reduce, CollectiveUse::tensor_gradient);
        return;
      case ExchangeKind::add_sums:
        if (forward) sends(op, all_reduce, CollectiveUse::tensor);
        return;
      case ExchangeKind::scatter_rows:
        if (forward) sends(op, reduce_scatter, CollectiveUse::other);
        if (weights) sends(op, all_gather, CollectiveUse::other);
        return;
      case ExchangeKind::add_rows:
      case ExchangeKind::add_losses:
        if (forward) sends(op, all_reduce, CollectiveUse::other);
        return;
      case ExchangeKind::gather_keys:
        if (weights) return;
        sends(op, all_gather, CollectiveUse::context);
        if (!forward) sends(op, reduce_scatter, CollectiveUse::context);
        return;
      case ExchangeKind::to_experts:
        if (!weights) sends(op, all_to_all, CollectiveUse::experts);
        return;
      case ExchangeKind::gather_rows:
        if (!weights) sends(op, forward ? all_gather : reduce_scatter, CollectiveUse::experts);
        return;
      case ExchangeKind::scatter_parts:
        if (!weights) sends(op, forward ? reduce_scatter : all_gather, CollectiveUse::experts);
        return;
      case ExchangeKind::exchange_heads:
        if (!weights) sends(op, all_to_all, CollectiveUse::context);
        return;
    }
  }

  std::vector<Kernel> take() { return std::move(kernels_); }

 private:
  static constexpr double fp32 = 4;

  /// How often a kernel reads or writes a tensor, and in how many launches; 0 = none.
  struct Moved {
    double tensors = 0;
    std::int64_t launches = 0;
  };

  static double real(std::int64_t number) { return static_cast<double>(number); }
  /// Exact up to 2^53, far above what files and importers accept (largest_bytes).
  static std::int64_t product(std::int64_t a, std::int64_t b) {
    return (SaturatingCount{a} * b).value();
  }
  bool is_backward() const { return pass_ == KernelPass::input; }

  void moves(MemoryKind kind, std::int64_t rows, std::int64_t columns, Moved forward,
             Moved backward) {
    if (pass_ == KernelPass::weights) return;
    const Moved& moved = is_backward() ? backward : forward;
    if (moved.launches == 0) return;
    kernels_.emplace_back(MemoryKernel{kind, pass_, rows, columns,
                                       e_ * moved.tensors * real(rows) * real(columns),
                                       moved.launches, dtype_});
  }

  /// A tensor is read, and written in fp8 twice: as it is, and transposed.
  void cast(std::int64_t rows, std::int64_t columns) {
    kernels_.emplace_back(MemoryKernel{MemoryKind::cast, pass_, rows, columns,
                                       (e_ + 2) * real(rows) * real(columns), 1, dtype_});
  }

  void sends(const ExchangeOp& op, CollectiveKind kind, CollectiveUse use) {
    const bool repeats = stack_.repeats_keys && op.kind == ExchangeKind::gather_keys;
    kernels_.emplace_back(CollectiveKernel{kind, use, op.devices, op.near,
                                           repeats ? product(op.bytes, op.repeated) : op.bytes,
                                           op.network_bytes});
  }

  /// Attention by products, with a softmax and its mask over scores that are kept.
  void with_scores(const AttentionOp& op) {
    const std::int64_t q = op.queries, keys = op.keys, size = op.query_size, value = op.value_size;
    const std::int64_t batch = product(op.batch, op.heads);
    const auto launch = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      kernels_.emplace_back(
          ProductKernel{.format = dtype_, .pass = pass_, .m = m, .n = n, .k = k, .batch = batch});
    };
    if (is_backward()) {
      launch(keys, value, q);  // gradients of values,
      launch(q, keys, value);  // of scores,
      launch(q, size, keys);   // queries
      launch(keys, size, q);   // and keys
    } else {
      launch(q, keys, size);
      launch(q, value, keys);
    }
    const auto scores = [&](Moved forward, Moved backward) {
      moves(MemoryKind::scores, product(batch, q), keys, forward, backward);
    };
    scores({2, 1}, {3, 1});
    const Moved dropped{2 + 1 / e_, 1};
    if (op.drops) scores(dropped, dropped);
    moves(MemoryKind::sum, product(op.batch, q), product(op.heads, value), {2, 1},
          {2, 1});  // heads joined
  }

  NumberFormat dtype_;
  double e_;
  KernelPass pass_;
  const SoftwareStack& stack_;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::vector<Kernel> launches(const LayerOps& ops, KernelPass pass, const SoftwareStack& stack) {
  Launcher launcher(ops.dtype, pass, stack);
  for (const LayerOp& op : ops.ops) std::visit(launcher, op.shape);
  return launcher.take();
}

std::vector<Kernel> launches_again(const LayerOps& ops, const SoftwareStack& stack) {
  Launcher launcher(ops.dtype, KernelPass::forward, stack);
  for (const LayerOp& op : ops.ops) {
    if (op.again) std::visit(launcher, op.shape);
  }
  return launcher.take();
}

std::vector<Kernel> last_product(const LayerOps& ops, const SoftwareStack& stack) {
  Launcher launcher(ops.dtype, KernelPass::forward, stack);
  const auto last = std::find_if(ops.ops.rbegin(), ops.ops.rend(), [](const LayerOp& op) {
    return std::holds_alternative<LinearOp>(op.shape);
  });
  if (last != ops.ops.rend()) launcher(std::get<LinearOp>(last->shape));
  return launcher.take();
}

}  // namespace plumbline
