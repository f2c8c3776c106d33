// One note per missing key.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/omissions.h"

#include <fmt/format.h>

#include "models/profile/estimate.h"

namespace plumbline {

std::optional<std::string> assumed_optimizer(const OptimizerKeys& given, NumberFormat weights) {
  if (given.state && given.gradients) return std::nullopt;
  const OptimizerBytes adam = usual_adam(weights);
  const std::string_view numbers = name_of(weights);
  const std::string_view precision = weights == NumberFormat::fp32 ? "fp32" : "mixed precision";
  if (given.state)
    return fmt::format(
        "training.gradients is not given: gradients in fp32 are counted, {:g} bytes for each byte "
        "of {} weights",
        adam.gradients, numbers);
  if (given.gradients)
    return fmt::format(
        "training.optimizer_state is not given: Adam in {} is counted, {:g} bytes for each byte of "
        "{} weights",
        precision, adam.state, numbers);
  return fmt::format(
      "training.optimizer_state and training.gradients are not given: Adam in {} is counted, {:g} "
      "bytes and {:g} for each byte of {} weights",
      precision, adam.state, adam.gradients, numbers);
}

std::vector<std::string> omissions(const ClusterChoice& cluster, const DeviceGroup& group) {
  std::vector<std::string> notes;
  constexpr std::int64_t usual_server = 8;
  if (cluster.gpus && cluster.gpus->value > usual_server && !cluster.gpus_per_server &&
      !cluster.link_given) {
    notes.push_back(fmt::format(
        "cluster.gpus_per_server is not given: all {} GPUs are taken to share one server",
        cluster.gpus->value));
  }
  const std::int64_t devices = cluster.cluster.device_count();
  if (cluster.given && !cluster.gpus && group.devices > 1) {
    notes.push_back(
        fmt::format("cluster.devices counts groups of {}: {} of them are {} GPUs (cluster.gpus "
                    "counts GPUs)",
                    group.devices, devices, devices * group.devices));
  }
  const bool free_links = !cluster.link_given && !cluster.gpus && !cluster.measured_link &&
                          cluster.cluster.levels.size() == 1 && cluster.device;
  if (free_links && devices > 1)
    notes.emplace_back(
        cluster.cluster.has_own_links()
            ? "cluster.link is not given: transfers between devices without a link of their own "
              "take no time"
            : "cluster.link is not given: transfers between devices take no time (link: device or "
              "network takes the device's own)");
  if (cluster.cluster.memory && !cluster.reserve_given)
    notes.emplace_back(
        "cluster.reserve is not given: what drivers, libraries and an allocator's gaps take of "
        "each device's memory is counted as free");
  return notes;
}

}  // namespace plumbline
