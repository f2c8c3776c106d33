// Gradients by rounds, losses by iterations, and weights by stages.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/run_store.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {

RunStore::RunStore(const RunPlan& plan, const CpuOptions& options)
    : network_(plan.setup.network),
      plan_(plan),
      options_(options),
      batch_(plan.setup.micro_batch_size),
      copies_(plan.setup.copies()),
      micro_batches_(
          plan.graph.asynchronous() ? 1 : plan.graph.micro_batches / plan.setup.rules.mini_batches),
      updates_(plan.setup.rules.updates),
      optimizer_(optimizer_for(plan.setup.optimizer_state)),
      recompute_(plan.setup.rules.recompute),
      data_(
          *network_, batch_,
          std::min(plan.graph.asynchronous() ? plan.graph.micro_batches : micro_batches_ * copies_,
                   kMaxDifferentMicroBatches),
          options.seed) {
  const auto stages = plan.graph.stage_slots.size();
  inputs_.resize(stages * plan.graph.micro_batches * copies_);
  output_gradients_.resize(inputs_.size());
  rounds_.resize(stages);
  round_mutexes_ = std::vector<std::mutex>(stages);
  first_weights_.resize(stages);
  common_weights_.resize(stages);
}

std::uint32_t RunStore::round_length(std::uint32_t stage) const {
  if (!plan_.graph.asynchronous()) return micro_batches_;
  return updates_.round_length(static_cast<std::uint32_t>(plan_.graph.stage_slots[stage].size()));
}

float RunStore::loss_weight(std::uint32_t stage) const {
  return 1.0F / static_cast<float>(batch_ * round_length(stage) * copies_);
}

SharedBuffer RunStore::gradients(std::uint32_t stage, std::uint32_t iteration,
                                 std::uint32_t micro_batch, std::uint32_t slot,
                                 SharedBuffer fresh) {
  const std::lock_guard lock(round_mutexes_[stage]);
  auto& rounds = rounds_[stage];
  while (!rounds.empty() && rounds.begin()->first.first < iteration) rounds.erase(rounds.begin());
  const auto& members = plan_.graph.stage_slots[stage];
  Round& round = rounds[{iteration, micro_batch / round_length(stage)}];
  round.of_member.resize(members.size());
  SharedBuffer& own = round.of_member[member(stage, slot)];
  if (!own) own = std::move(fresh);
  return own;
}

std::vector<SharedBuffer> RunStore::round_of(std::uint32_t stage, std::uint32_t iteration,
                                             std::uint32_t micro_batch) {
  const std::lock_guard lock(round_mutexes_[stage]);
  const auto found = rounds_[stage].find({iteration, micro_batch / round_length(stage)});
  PLUMBLINE_CHECK(found != rounds_[stage].end(), stage, micro_batch);
  std::vector<SharedBuffer> gradients = found->second.of_member;
  if (++found->second.updated == gradients.size()) rounds_[stage].erase(found);
  return gradients;
}

void RunStore::add_losses(std::uint32_t iteration, const float* losses) {
  double sum = 0;
  for (std::int64_t i = 0; i < batch_; ++i) sum += losses[i];
  const std::lock_guard lock(mutex_);
  if (iteration >= losses_.size()) losses_.resize(iteration + 1, {0.0, 0});
  losses_[iteration].first += sum;
  losses_[iteration].second += batch_;
}

ParameterRange RunStore::updated_by(std::uint32_t stage, std::uint32_t slot,
                                    std::size_t floats) const {
  if (plan_.setup.rules.sharing.state == Sharded::nothing) return {0, floats};
  constexpr std::size_t line = 16;
  const std::size_t members = plan_.graph.stage_slots[stage].size();
  const std::size_t share = (floats + members * line - 1) / (members * line) * line;
  const std::size_t self = member(stage, slot);
  return {std::min(floats, self * share), std::min(floats, (self + 1) * share)};
}

void RunStore::tell_weights(std::uint32_t stage, std::uint32_t slot, const SharedBuffer& weights,
                            std::size_t floats) {
  if (plan_.graph.stage_slots[stage].front() != slot) return;
  const std::lock_guard lock(mutex_);
  first_weights_[stage] = {weights, floats};
}

CpuResults RunStore::results() {
  const std::lock_guard lock(mutex_);
  CpuResults results;
  results.losses.reserve(losses_.size());
  for (const auto& [sum, samples] : losses_)
    results.losses.push_back(samples > 0 ? sum / static_cast<double>(samples) : 0);
  for (const auto& [weights, floats] : first_weights_) {
    const float* const data = weights ? weights->data() : nullptr;
    results.parameters.emplace_back(data, data ? data + floats : data);
  }
  return results;
}

std::size_t RunStore::place(std::uint32_t stage, std::uint32_t micro_batch,
                            std::uint32_t copy) const {
  return (std::size_t{stage} * plan_.graph.micro_batches + micro_batch) * copies_ + copy;
}

std::size_t RunStore::member(std::uint32_t stage, std::uint32_t slot) const {
  const auto& members = plan_.graph.stage_slots[stage];
  return static_cast<std::size_t>(std::find(members.begin(), members.end(), slot) -
                                  members.begin());
}

}  // namespace plumbline
