// One formula for each class of ops.
//
// SPDX-License-Identifier: MIT
#include "models/hardware/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumbline {
namespace {

struct Tile {
  double rows, columns;
  bool is_small;
};
constexpr Tile kTiles[] = {{128, 256, false}, {256, 128, false}, {128, 128, true}};

/// Rows that the tiles of each expert lose, in the mean (SimuMax's grouped products).
constexpr double kGroupRows = 170;

constexpr double kQueriesPerBlock = 128;

double real(std::int64_t number) { return static_cast<double>(number); }

/// A value of a head's size: on a line between two sizes, else that of the nearest.
template <class Get>
double at_size(const AttentionTraits& traits, double size, Get&& get) {
  const AttentionTraits::AtSize* before = nullptr;
  for (const AttentionTraits::AtSize& at : traits.at) {
    if (at.size == 0) break;
    if (size <= at.size) {
      if (!before || size == at.size) return get(at);
      const double way = (size - before->size) / (at.size - before->size);
      return get(*before) + way * (get(at) - get(*before));
    }
    before = &at;
  }
  return get(*before);
}

}  // namespace

double KernelModel::product(const ProductOp& op) const {
  const KernelTraits& kernels = device_.traits;
  const bool in_fp8 = op.format == NumberFormat::fp8;
  const ProductTraits& traits = in_fp8 && kernels.fp8 ? *kernels.fp8 : kernels.bf16;
  const double peak = in_fp8 ? device_.fp8_peak : device_.peak;
  const double multiprocessors = real(kernels.multiprocessors);
  const double m = real(op.m), n = real(op.n), k = real(op.k), batch = real(op.batch);
  double computing = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double waves =
        std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch / multiprocessors;
    const double paid = waves + traits.tail * (std::ceil(waves) - waves);
    const double flops = paid * multiprocessors * tile.rows * tile.columns * 2 * (k + traits.depth);
    computing = std::min(computing, flops * (tile.is_small ? traits.small : 1) /
                                        (peak * traits.ceiling * kernels.sustained));
  }
  const bool for_weights = op.pass == OpPass::weights;
  if (for_weights) computing *= kernels.weights_factor;
  if (op.grouped) computing *= 1 + kGroupRows / (for_weights ? k : m);
  const double in_bytes = real(bytes_of(op.format));
  const double out_bytes = for_weights ? stack_.weights_out_bytes : 2;
  const double moving = batch * (in_bytes * (m * k + k * n) + out_bytes * m * n) /
                        (device_.memory_bandwidth * traits.memory_share);
  return stack_.product_closure * (std::max(computing, moving) + kernels.launch_s);
}

double KernelModel::attention(const AttentionOp& op) const {
  const KernelTraits& kernels = device_.traits;
  const AttentionKernels both = attention_kernels(kernels, stack_.attention, device_.peak);
  const AttentionTraits& traits = op.backward ? both.backward : both.forward;
  const double size = real(op.query_size);
  const double share = at_size(traits, size, [](const auto& at) { return at.share; });
  const double half = at_size(traits, size, [](const auto& at) { return at.keys; });
  const double blocks =
      real(op.batch) * real(op.heads) * std::ceil(real(op.queries) / kQueriesPerBlock);
  const double computing = flops_of(op) / (device_.peak * share) * (1 + half / real(op.keys)) *
                           (1 + traits.fill * real(kernels.multiprocessors) / blocks);
  const bool in_ring = op.queries < op.keys;
  const double launches = op.backward ? 3 : 1;
  return computing * (in_ring ? stack_.ring_attention : 1) + launches * kernels.launch_s;
}

double KernelModel::memory(const MemoryOp& op) const {
  const KernelTraits& kernels = device_.traits;
  double bytes = real(op.bytes);
  double share = kernels.memory_share;
  if (op.kind == MemoryKind::permute) share = kernels.permute_share;
  if (op.kind == MemoryKind::scores) bytes /= stack_.scores_share;
  if (op.kind == MemoryKind::cast) bytes *= stack_.cast_passes;
  return bytes / (device_.memory_bandwidth * share) + real(op.kernels) * kernels.memory_start_s;
}

double KernelModel::collective(const CollectiveOp& op) const {
  if (op.kind == CollectiveKind::all_to_all) return to_experts(op);
  const KernelTraits& kernels = device_.traits;
  const CollectiveTraits& traits = kernels.collectives;
  const double devices = real(op.devices);
  const bool is_all_reduce = op.kind == CollectiveKind::all_reduce;
  const double rounds = is_all_reduce ? 2 : 1;
  const double sent = rounds * real(op.bytes) * (devices - 1) / devices;
  const double share = is_all_reduce                           ? traits.all_reduce
                       : op.kind == CollectiveKind::all_gather ? traits.all_gather
                                                               : traits.reduce_scatter;
  const double on_link = device_.link > 0 ? sent / (device_.link * share) : 0;
  const double root = traits.root * std::sqrt(sent);
  const std::int64_t per_server = device_.per_server;
  if (per_server == 0 || op.devices <= per_server)
    return traits.start_s + traits.step_s * rounds * (devices - 1) + on_link + root;
  const double servers = std::ceil(devices / real(per_server));
  const double cards = std::min(devices, real(per_server));
  const double on_network = sent / cards / (device_.network * kernels.network_share);
  return traits.start_s + kernels.network_step_s * rounds * (servers - 1) +
         std::max(on_network, on_link) + root;
}

double KernelModel::to_experts(const CollectiveOp& op) const {
  const KernelTraits& kernels = device_.traits;
  const CollectiveTraits& traits = kernels.collectives;
  const double link = real(op.link_bytes), network = real(op.network_bytes);
  const double on_link = (device_.link > 0 ? link / (device_.link * traits.all_to_all) : 0) +
                         traits.root * std::sqrt(link);
  const double on_network =
      device_.network > 0 ? network / (device_.network * kernels.network_share) : 0;
  return traits.start_s + traits.step_s * real(op.devices - 1) + std::max(on_link, on_network);
}

double KernelModel::hidden_share(CollectiveUse use, bool overlaps, bool has_chunks) const {
  switch (use) {
    case CollectiveUse::tensor:
      return overlaps ? stack_.hides_tensor : 0;
    case CollectiveUse::tensor_again:
      return overlaps || stack_.hides_tensor == 0 ? 1 : 0;
    case CollectiveUse::tensor_gradient:
      return stack_.hides_tensor_gradient;
    case CollectiveUse::context:
      return stack_.hides_context;
    case CollectiveUse::experts:
      return overlaps && has_chunks ? stack_.hides_experts : 0;
    case CollectiveUse::other:
      break;
  }
  return 0;
}

double KernelModel::seconds(const Op& op) const {
  if (const auto* product_op = std::get_if<ProductOp>(&op)) return product(*product_op);
  if (const auto* attention_op = std::get_if<AttentionOp>(&op)) return attention(*attention_op);
  if (const auto* memory_op = std::get_if<MemoryOp>(&op)) return memory(*memory_op);
  return collective(std::get<CollectiveOp>(op));
}

PassTime KernelModel::seconds(const std::vector<Op>& ops, bool overlaps, bool has_chunks) const {
  PassTime pass;
  double launches = 0;
  for (const Op& op : ops) {
    const double time = seconds(op);
    if (const auto* sent = std::get_if<CollectiveOp>(&op)) {
      pass.sent_s += time;
      pass.hidden_s += time * hidden_share(sent->use, overlaps, has_chunks);
      launches += 2;
      continue;
    }
    pass.computing_s += time;
    const auto* moved = std::get_if<MemoryOp>(&op);
    launches += moved ? real(moved->kernels) : 1;
  }
  pass.hidden_s = std::min(pass.hidden_s, pass.computing_s);
  const double host = launches * stack_.host_per_op_s;
  pass.computing_s = std::max(pass.computing_s, host - pass.sent_s + pass.hidden_s);
  return pass;
}

}  // namespace plumbline
