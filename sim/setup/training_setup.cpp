// The memory rules and the graph of a setup.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/training_setup.h"

#include "sim/graph/lower.h"

namespace plumbline {

double TrainingSetup::iteration_time_of(const Metrics& run) const {
  return run.steady ? run.steady->period_s * micro_batches
                    : seconds(run.whole()) / rules.mini_batches;
}

std::optional<std::vector<Bytes>> TrainingSetup::memory_of_slots() const {
  if (!cluster.memory) return std::nullopt;
  std::vector<Bytes> memory;
  for (const DeviceId device : devices)
    memory.push_back(*cluster.memory_of({device.value * copies()}));
  return memory;
}

MemoryRules memory_rules(const TrainingSetup& setup) {
  return {.optimizer_state = setup.optimizer_state,
          .sharing = setup.rules.sharing,
          .recompute = setup.rules.recompute,
          .weight_versions = setup.rules.weight_versions};
}

StageHolders holders_of(const TrainingSetup& setup) {
  const PipelineShape& shape = setup.schedule.shape;
  StageHolders holders;
  for (const std::vector<std::uint32_t>& slots : shape.stage_slots)
    holders.members.push_back(static_cast<std::uint32_t>(slots.size()) * setup.copies());
  if (setup.rules.sharing.state < Sharded::gradients) return holders;
  for (const std::vector<Op>& list : setup.schedule.lists()) {
    std::optional<StagePass> last, last_backward;
    for (const Op& op : list) holders.add(op, last, last_backward);
  }
  return holders;
}

Result<OpGraph> lower(const TrainingSetup& setup, bool first_copy_only) {
  RunRules rules = setup.rules;
  rules.first_copy_only = first_copy_only;
  return lower(setup.schedule, setup.costs, setup.devices, setup.cluster, rules, Mark{});
}

}  // namespace plumbline
