// One formula for each class of kernels.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/ops/layer_op.h"

namespace plumbline {
namespace {

struct Tile {
  double rows, columns;
  bool is_small;
};
constexpr Tile kTiles[] = {{128, 256, false}, {256, 128, false}, {128, 128, true}};

/// Rows that the tiles of each expert lose, on average (SimuMax's grouped products).
constexpr double kGroupRows = 170;

constexpr double kQueriesPerBlock = 128;

double as_real(std::int64_t number) { return static_cast<double>(number); }

/// A value for a head's size: on a line between two sizes, else that of the nearest.
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

void KernelSums::add(const KernelTime& time) {
  switch (time.origin) {
    case KernelOrigin::measured:
      measured_s += time.seconds;
      return;
    case KernelOrigin::interpolated:
      interpolated_s += time.seconds;
      return;
    case KernelOrigin::modelled:
      modelled_s += time.seconds;
      return;
  }
}

KernelSums& KernelSums::operator+=(const KernelSums& other) {
  measured_s += other.measured_s;
  interpolated_s += other.interpolated_s;
  modelled_s += other.modelled_s;
  return *this;
}

KernelModel::KernelModel(const KernelDevice& device, const SoftwareStack& stack,
                         std::shared_ptr<const MeasuredKernels> measured)
    : device_(device),
      stack_(stack),
      attention_(attention_rates(device.traits, stack.attention, device.peak)),
      measured_(std::move(measured)) {
  if (measured_ && measured_->table().launch)
    stack_.host_per_op_s = measured_->table().launch->seconds();
}

double KernelModel::of(const ProductKernel& kernel) const {
  const KernelTraits& device = device_.traits;
  const bool in_fp8 = kernel.format == NumberFormat::fp8;
  const ProductTraits& traits = in_fp8 && device.fp8 ? *device.fp8 : device.bf16;
  const double peak = in_fp8 ? device_.fp8_peak : device_.peak;
  const double multiprocessors = as_real(device.multiprocessors);
  const double m = as_real(kernel.m), n = as_real(kernel.n), k = as_real(kernel.k);
  const double batch = as_real(kernel.batch);
  double computing = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double waves =
        std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch / multiprocessors;
    const double paid = waves + traits.tail * (std::ceil(waves) - waves);
    const double flops = paid * multiprocessors * tile.rows * tile.columns * 2 * (k + traits.depth);
    computing = std::min(computing, flops * (tile.is_small ? traits.small : 1) /
                                        (peak * traits.ceiling * device.sustained));
  }
  const bool for_weights = kernel.pass == KernelPass::weights;
  if (for_weights) computing *= device.weights_factor;
  if (kernel.grouped) computing *= 1 + kGroupRows / (for_weights ? k : m);
  const double in_bytes = as_real(bytes_of(kernel.format));
  const double out_bytes = std::max(for_weights ? stack_.weights_out_bytes : 2, in_bytes);
  const double moving = batch * (in_bytes * (m * k + k * n) + out_bytes * m * n) /
                        (device_.memory_bandwidth * traits.memory_share);
  return stack_.product_closure * (std::max(computing, moving) + device.launch_s);
}

double KernelModel::of(const AttentionKernel& kernel) const {
  const KernelTraits& device = device_.traits;
  const AttentionTraits& traits = kernel.backward ? attention_.backward : attention_.forward;
  const double size = as_real(kernel.query_size);
  const double share = at_size(traits, size, [](const auto& at) { return at.share; });
  const double half = at_size(traits, size, [](const auto& at) { return at.keys; });
  const double blocks = as_real(kernel.batch) * as_real(kernel.heads) *
                        std::ceil(as_real(kernel.queries) / kQueriesPerBlock);
  const double keys = kernel.is_limited()
                          ? 2 * mean_reach(kernel.keys, kernel.window, kernel.by_chunk)
                          : as_real(kernel.keys);
  const double computing = flops_of(kernel) / (device_.peak * share) * (1 + half / keys) *
                           (1 + traits.fill * as_real(device.multiprocessors) / blocks);
  const bool in_ring = kernel.queries < kernel.keys;
  const double launches = kernel.backward ? 3 : 1;
  return computing * (in_ring ? stack_.ring_attention : 1) + launches * device.launch_s;
}

double KernelModel::of(const MemoryKernel& kernel) const {
  const KernelTraits& device = device_.traits;
  double bytes = kernel.bytes;
  double share = device.memory_share;
  if (kernel.kind == MemoryKind::permute) share = device.permute_share;
  if (kernel.kind == MemoryKind::scores) bytes /= stack_.scores_share;
  if (kernel.kind == MemoryKind::cast) bytes *= stack_.cast_passes;
  return bytes / (device_.memory_bandwidth * share) +
         as_real(kernel.launches) * device.memory_start_s;
}

double KernelModel::of(const CollectiveKernel& kernel) const {
  if (kernel.kind == CollectiveKind::all_to_all) return all_to_all(kernel);
  const KernelTraits& device = device_.traits;
  const CollectiveTraits& traits = device.collectives;
  const double devices = as_real(kernel.devices);
  const bool is_all_reduce = kernel.kind == CollectiveKind::all_reduce;
  const double rounds = is_all_reduce ? 2 : 1;
  const double sent = rounds * as_real(kernel.bytes) * (devices - 1) / devices;
  const double share = is_all_reduce                               ? traits.all_reduce
                       : kernel.kind == CollectiveKind::all_gather ? traits.all_gather
                                                                   : traits.reduce_scatter;
  const double on_link = device_.link > 0 ? sent / (device_.link * share) : 0;
  const double root = traits.root * std::sqrt(sent);
  if (kernel.in_server())
    return traits.start_s + traits.step_s * rounds * (devices - 1) + on_link + root;
  const double near = as_real(kernel.near);
  const double servers = std::ceil(devices / near);
  const double on_network = sent / near / (device_.network * device.network_share);
  return traits.start_s + device.network_step_s * rounds * (servers - 1) +
         std::max(on_network, near > 1 ? on_link : 0) + root;
}

double KernelModel::all_to_all(const CollectiveKernel& kernel) const {
  const KernelTraits& device = device_.traits;
  const CollectiveTraits& traits = device.collectives;
  const double link = as_real(kernel.bytes);
  const double network = as_real(kernel.network_bytes);
  const double on_link = (device_.link > 0 ? link / (device_.link * traits.all_to_all) : 0) +
                         traits.root * std::sqrt(link);
  const double on_network =
      device_.network > 0 ? network / (device_.network * device.network_share) : 0;
  return traits.start_s + traits.step_s * as_real(kernel.devices - 1) +
         std::max(on_link, on_network);
}

double KernelModel::hidden_share(const CollectiveKernel& kernel,
                                 const KernelOverlap& overlap) const {
  if (kernel.use == CollectiveUse::other) return 0;
  if (const auto& given = kernel.in_server() ? overlap.link : overlap.network) return *given;
  switch (kernel.use) {
    case CollectiveUse::tensor:
      return overlap.on ? stack_.hides_tensor : 0;
    // Megatron-LM's own linear layers gather it beside the product for the input's gradient. Those
    // of Transformer Engine, in megatron-core, are taken to do so with overlap alone: eleven dense
    // runs of SimuMax on B200 are predicted to 2.2 % with that, and to 2.9 % otherwise.
    case CollectiveUse::tensor_again:
      return overlap.on || stack_.hides_tensor == 0 ? 1 : 0;
    case CollectiveUse::tensor_gradient:
      return stack_.hides_tensor_gradient;
    case CollectiveUse::context:  // tokens for heads come before attention, or behind it
      return kernel.kind == CollectiveKind::all_to_all ? 0 : stack_.hides_context;
    case CollectiveUse::experts:
      return overlap.on && overlap.has_chunks ? stack_.hides_experts : 0;
    case CollectiveUse::other:
      break;
  }
  return 0;
}

double KernelModel::ring_seconds(double bytes, const KernelRing& ring) const {
  const KernelTraits& device = device_.traits;
  const CollectiveTraits& traits = device.collectives;
  const double others = as_real(ring.devices - 1);
  const double sent = bytes * others / as_real(ring.devices);
  const double link = ring.link > 0 ? ring.link : device_.link;
  double bandwidth = std::numeric_limits<double>::infinity();
  if (link > 0) bandwidth = link * traits.all_gather;
  const double cards = ring.network > 0 ? ring.network : as_real(ring.near) * device_.network;
  if (ring.devices > ring.near && cards > 0)
    bandwidth = std::min(bandwidth, cards * device.network_share);
  return traits.start_s + others * device.ring_step_s + sent / bandwidth +
         traits.root * std::sqrt(sent);
}

double KernelModel::modelled_seconds(const Kernel& kernel) const {
  return std::visit([&](const auto& own) { return of(own); }, kernel);
}

std::optional<KernelTime> KernelModel::measured_time(const Kernel& kernel,
                                                     Accumulation accumulation) const {
  const auto key = key_of(kernel, accumulation);
  if (!key) return std::nullopt;
  const KernelFinding& found = measured_->find(*key);
  const double factor = closure(key->group.kernels);
  if (found.row) {
    return KernelTime{factor * plumbline::seconds(found.row->time), KernelOrigin::measured, factor};
  }
  if (found.near.empty()) return std::nullopt;
  double ratio = 0;
  for (const KernelFinding::Neighbour& near : found.near) {
    ratio += near.weight * plumbline::seconds(near.row->time) /
             modelled_seconds(resized(kernel, near.row->key));
  }
  return KernelTime{factor * ratio * modelled_seconds(kernel), KernelOrigin::interpolated, factor};
}

double KernelModel::closure(KernelClass kernels) const {
  if (const auto given = measured_->table().closure.of(kernels)) return *given;
  return is_product(kernels) ? stack_.product_closure : 1;
}

std::optional<KernelTime> KernelModel::by_fewer_heads(const AttentionKernel& kernel) const {
  const std::int64_t devices = kernel.keys / kernel.queries;
  if (devices * kernel.queries != kernel.keys || kernel.heads % devices != 0) return std::nullopt;
  AttentionKernel whole = kernel;
  whole.queries = kernel.keys;
  whole.heads = kernel.heads / devices;
  whole.key_heads = std::max<std::int64_t>(1, kernel.key_heads / devices);
  if (whole.heads % whole.key_heads != 0) return std::nullopt;  // nobody measures that
  const auto time = measured_time(whole, Accumulation::none);
  if (!time) return std::nullopt;
  return KernelTime{time->seconds * modelled_seconds(kernel) / modelled_seconds(whole),
                    KernelOrigin::interpolated, time->closure};
}

std::optional<KernelTime> KernelModel::measured_time(const Kernel& kernel) const {
  if (const auto* attention = std::get_if<AttentionKernel>(&kernel)) {
    const auto own = measured_time(kernel, Accumulation::none);
    return own || attention->queries == attention->keys ? own : by_fewer_heads(*attention);
  }
  const auto* product = std::get_if<ProductKernel>(&kernel);
  if (!product || product->pass != KernelPass::weights)
    return measured_time(kernel, Accumulation::none);
  // Rows with the sums that the stack makes go before those with others.
  const Accumulation sum = stack_.accumulation(product->format);
  const auto other = sum == Accumulation::fp32 ? Accumulation::none : Accumulation::fp32;
  for (const Accumulation accumulation : {sum, other, Accumulation::bf16}) {
    if (auto time = measured_time(kernel, accumulation)) return time;
  }
  return std::nullopt;
}

KernelTime KernelModel::time_of(const Kernel& kernel) const {
  if (measured_) {
    if (const auto time = measured_time(kernel)) return *time;
  }
  const double closure = std::holds_alternative<ProductKernel>(kernel) ? stack_.product_closure : 1;
  return {modelled_seconds(kernel), KernelOrigin::modelled, closure};
}

PassTime KernelModel::seconds(const std::vector<Kernel>& kernels,
                              const KernelOverlap& overlap) const {
  constexpr double launches_per_collective = 2;
  PassTime pass;
  double launched = 0;
  for (const Kernel& kernel : kernels) {
    const KernelTime found = time_of(kernel);
    const double time = found.seconds;
    pass.kernels.add(found);
    if (const auto* sent = std::get_if<CollectiveKernel>(&kernel)) {
      pass.sent_s += time;
      pass.hidden_s += time * hidden_share(*sent, overlap);
      launched += launches_per_collective;
      continue;
    }
    pass.computing_s += time;
    const auto* moved = std::get_if<MemoryKernel>(&kernel);
    launched += moved ? as_real(moved->launches) : 1;
  }
  pass.hidden_s = std::min(pass.hidden_s, pass.computing_s);
  const double exposed_s = pass.sent_s - pass.hidden_s;
  pass.computing_s = std::max(pass.computing_s, launched * stack_.host_per_op_s - exposed_s);
  return pass;
}

}  // namespace plumbline
