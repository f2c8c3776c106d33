// Sums over kernels.
//
// SPDX-License-Identifier: MIT
#include "models/profile/kernel_times.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/launches.h"

namespace plumbline {
namespace {

/// The time in which copies gather a layer's weights, or scatter its gradients, in seconds.
double exposed_s(Bytes parameters, const KernelSetting& setting) {
  if (setting.weights.copies == 1 || parameters.count == 0) return 0;
  const double share = setting.model.stack().exposed_weights;
  if (share == 0) return 0;
  const SharedWeights& weights = setting.weights;
  const KernelRing ring{weights.copies, weights.near, weights.link, weights.network};
  return share * setting.model.ring_seconds(static_cast<double>(parameters.count), ring);
}

PassParts parts_of(const std::vector<Kernel>& kernels, const KernelSetting& setting,
                   KernelSums* sums = nullptr) {
  const PassTime time = setting.model.seconds(kernels, setting.overlap);
  if (sums) *sums += time.kernels;
  return {.own_s = time.computing_s,
          .sent_s = time.sent_s - time.hidden_s,
          .free_s = time.computing_s - time.hidden_s};
}

void add_weights(LayerParts& parts, double each_s, const SharedWeights& weights) {
  parts.forward.own_s += weights.forward * each_s;
  parts.input.own_s += weights.backward * each_s;
  parts.skipped_s += weights.forward * each_s;
}

void scale(PassParts& parts, double factor) {
  parts.own_s *= factor;
  parts.sent_s *= factor;
  parts.free_s *= factor;
}

}  // namespace

double wait_for_slowest(const SoftwareStack& stack, std::int64_t devices) {
  constexpr double usual_server = 8;
  const double doublings = std::log2(static_cast<double>(devices) / usual_server);
  return 1 + stack.per_doubling * std::max(0.0, doublings);
}

KernelParts kernel_parts(const LayerOps& ops, Bytes parameters, const KernelSetting& setting) {
  const SoftwareStack& stack = setting.model.stack();
  KernelParts parts;
  const auto of_pass = [&](KernelPass pass) {
    return parts_of(launches(ops, pass, stack), setting, &parts.kernels);
  };
  parts.forward = of_pass(KernelPass::forward);
  parts.input = of_pass(KernelPass::input);
  parts.weights = of_pass(KernelPass::weights);
  parts.again = parts_of(launches_again(ops, stack), setting);
  if (stack.skips_last_product && setting.recomputes_blocks && ops.is_block())
    parts.skipped_s = parts_of(last_product(ops, stack), setting).own_s;
  add_weights(parts, exposed_s(parameters, setting), setting.weights);
  const double factor = wait_for_slowest(stack, setting.devices);
  for (PassParts* pass : {&parts.forward, &parts.input, &parts.weights, &parts.again})
    scale(*pass, factor);
  parts.skipped_s *= factor;
  return parts;
}

}  // namespace plumbline
