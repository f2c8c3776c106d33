// One note for each. SPDX-License-Identifier: MIT
#include "sim/forgotten_keys.h"

#include <fmt/format.h>

namespace plumbline {

std::vector<std::string> forgotten_keys(const ClusterChoice& cluster, const DeviceGroup& group,
                                        const OptimizerKeys& optimizer) {
  std::vector<std::string> notes;
  if (!optimizer.state)
    notes.emplace_back(
        "training.optimizer_state is not given: no optimizer state is counted (of Adam in mixed "
        "precision 6 bytes for each byte of bf16 weights)");
  if (!optimizer.gradients)
    notes.emplace_back(
        "training.gradients is not given: gradients take as much as the weights (in fp32 beside "
        "bf16 weights 2)");
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
        "cluster.link is not given: transfers between devices take no time (link: device or "
        "network takes the device's own)");
  if (cluster.cluster.memory && !cluster.reserve_given)
    notes.emplace_back(
        "cluster.reserve is not given: what drivers, libraries and an allocator's gaps take of "
        "each device's memory is counted as free");
  return notes;
}

}  // namespace plumbline
