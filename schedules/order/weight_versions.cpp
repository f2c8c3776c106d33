// Counting versions along the ops of each replica.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/weight_versions.h"

#include <algorithm>
#include <set>

#include "base/bug.h"

namespace plumbline {
namespace {

/// The ops of one stage on one of its replicas.
using ReplicaOps = std::vector<Op>;

std::vector<std::vector<ReplicaOps>> ops_by_replica(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  std::vector<std::vector<ReplicaOps>> ops(shape.stages());
  for (std::size_t s = 0; s < ops.size(); ++s) ops[s].resize(shape.stage_slots[s].size());
  for (const Op& op : schedule.issue_order) {
    auto& replicas = ops[op.stage.value];
    replicas[op.micro_batch.value % replicas.size()].push_back(op);
  }
  return ops;
}

/// The versions of one replica during the walk over its ops.
class Replica {
 public:
  Replica(const UpdateRule& rule, std::uint32_t replicas, StageVersions& stage)
      : rule_(rule), replicas_(replicas), stage_(stage) {}

  /// `wanted` = the version that the rule prescribes for each micro-batch; empty = the newest one.
  void walk(const ReplicaOps& ops, const std::vector<std::uint32_t>& wanted) {
    for (const Op& op : ops) {
      const std::uint32_t m = op.micro_batch.value;
      VersionUse& use = stage_.uses[m];
      if (op.kind == OpKind::forward) {
        use.forward = wanted.empty() ? newest_ : wanted[m];
        if (use.forward > newest_ && rule_.weights == WeightRule::vertical_sync)
          use.forward = newest_;
        if (use.forward > newest_ && !stage_.missing) stage_.missing = m;
        needed_.insert(use.forward);
        count_kept();
        continue;
      }
      if (op.kind != OpKind::backward_weight)
        use.backward = rule_.weights == WeightRule::none ? newest_ : use.forward;
      if (op.kind == OpKind::backward_input) continue;
      use.applied_to = m / rule_.round_length(replicas_);
      needed_.erase(needed_.find(use.forward));
      if (round_of_update(rule_, replicas_, backwards_++)) ++newest_;
      count_kept();
    }
  }

  /// Versions must also be kept for micro-batches that are on their way here: stage 0 has given
  /// them a version, and they have had no backward here yet.
  void keep_what_comes(const ReplicaOps& ops) {
    const auto version = [&](const Op& op) { return stage_.uses[op.micro_batch.value].forward; };
    std::multiset<std::uint32_t> coming;
    for (const Op& op : ops) {
      if (op.kind == OpKind::forward) coming.insert(version(op));
    }
    std::uint32_t newest = 0;
    std::uint32_t backwards = 0;
    for (const Op& op : ops) {
      if (op.kind == OpKind::forward || op.kind == OpKind::backward_input) continue;
      coming.erase(coming.find(version(op)));
      if (round_of_update(rule_, replicas_, backwards++)) ++newest;
      if (!coming.empty() && *coming.begin() <= newest)
        stage_.kept = std::max(stage_.kept, newest - *coming.begin() + 1);
    }
  }

 private:
  void count_kept() {
    if (rule_.weights == WeightRule::none) return;
    const std::uint32_t oldest = needed_.empty() ? newest_ : *needed_.begin();
    if (oldest <= newest_) stage_.kept = std::max(stage_.kept, newest_ - oldest + 1);
  }

  const UpdateRule& rule_;
  std::uint32_t replicas_;
  StageVersions& stage_;
  std::multiset<std::uint32_t> needed_;
  std::uint32_t newest_ = 0;
  std::uint32_t backwards_ = 0;
};

/// The version of each micro-batch on one stage; empty = the newest one.
std::vector<std::uint32_t> prescribed(const Schedule& schedule, const UpdateRule& rule,
                                      std::uint32_t stage,
                                      const std::vector<VersionUse>& on_first_stage) {
  std::vector<std::uint32_t> wanted;
  const std::uint32_t n = schedule.shape.micro_batches;
  if (rule.weights == WeightRule::two) {
    for (std::uint32_t m = 0; m < n; ++m) {
      const std::uint32_t mini_batch = m / rule.accumulated;
      wanted.push_back(mini_batch == 0 ? 0 : mini_batch - 1);
    }
  } else if (rule.weights == WeightRule::vertical_sync && stage > 0) {
    const auto r0 = static_cast<std::uint32_t>(schedule.shape.stage_slots.front().size());
    const auto r = static_cast<std::uint32_t>(schedule.shape.stage_slots[stage].size());
    for (std::uint32_t m = 0; m < n; ++m) wanted.push_back(on_first_stage[m].forward * r0 / r);
  }
  return wanted;
}

}  // namespace

std::optional<std::uint32_t> round_of_update(const UpdateRule& rule, std::uint32_t replicas,
                                             std::uint32_t backward) {
  const std::uint32_t own = rule.round_length(replicas) / replicas;  // backwards of a round
  if (replicas == 1 || rule.lag == 0) {
    if ((backward + 1) % own != 0) return std::nullopt;
    return backward / own;
  }
  if (backward % own != 0 || backward / own < rule.lag) return std::nullopt;
  return backward / own - rule.lag;
}

std::vector<StageVersions> weight_versions(const Schedule& schedule, const UpdateRule& rule) {
  const PipelineShape& shape = schedule.shape;
  std::vector<StageVersions> stages(shape.stages());
  for (StageVersions& stage : stages) stage.uses.resize(shape.micro_batches);
  if (!schedule.asynchronous) return stages;
  const auto ops = ops_by_replica(schedule);
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    const auto replicas = static_cast<std::uint32_t>(ops[s].size());
    PLUMBLINE_CHECK(rule.round_length(replicas) % replicas == 0, rule.accumulated, replicas);
    const auto wanted = prescribed(schedule, rule, s, stages.front().uses);
    for (const ReplicaOps& list : ops[s]) {
      Replica(rule, replicas, stages[s]).walk(list, wanted);
      if (rule.weights == WeightRule::vertical_sync)
        Replica(rule, replicas, stages[s]).keep_what_comes(list);
    }
  }
  return stages;
}

}  // namespace plumbline
