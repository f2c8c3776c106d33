// The groups of stages, and the numbers of each group within the floor of its devices' memory.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/recomputation_choices.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/scenario/recomputation.h"
#include "sim/setup/setup_costs.h"

namespace plumbline {
namespace {

std::uint32_t root_of(std::vector<std::uint32_t>& parents, std::uint32_t stage) {
  while (parents[stage] != stage) stage = parents[stage] = parents[parents[stage]];
  return stage;
}

/// The most choices of numbers for which all choices of a group are tried.
constexpr double kMaxChoices = 4096;

void count_layers(const Partition& partition, Sharers& sharers) {
  std::vector<std::pair<double, std::uint32_t>> shares;
  double choices = 1;
  for (const std::uint32_t s : sharers.stages) {
    const std::size_t layers = partition.stages[s].layers.size();
    choices *= static_cast<double>(layers + 1);
    for (std::size_t i = 0; i < layers; ++i)
      shares.emplace_back((static_cast<double>(i) + 0.5) / static_cast<double>(layers), s);
  }
  std::sort(shares.begin(), shares.end());
  for (const auto& share : shares) sharers.evenly.push_back(share.second);
  sharers.layers = static_cast<std::int64_t>(shares.size());
  sharers.is_small = sharers.stages.size() == 1 || choices <= kMaxChoices;
}

std::vector<Sharers> sharers_of(const TrainingSetup& setup) {
  const PipelineShape& shape = setup.schedule.shape;
  const auto stages_of_slot = stages_of_slots(shape.stage_slots, shape.slots);
  std::vector<std::uint32_t> parents(shape.stages());
  std::iota(parents.begin(), parents.end(), 0U);
  for (const auto& held : stages_of_slot) {
    for (const std::uint32_t stage : held)
      parents[root_of(parents, stage)] = root_of(parents, held.front());
  }
  std::vector<Sharers> all(shape.stages());
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot)
    all[root_of(parents, stages_of_slot[slot].front())].slots.push_back(slot);
  for (std::uint32_t s = 0; s < shape.stages(); ++s) all[root_of(parents, s)].stages.push_back(s);
  std::erase_if(all, [](const Sharers& sharers) { return sharers.slots.empty(); });
  for (Sharers& sharers : all) count_layers(setup.partition, sharers);
  return all;
}

/// The costs of the layers, all recomputed. Of micro-batches of unlike length, those of the
/// shortest: which are in flight together is not known, and bounds stay bounds.
std::vector<LayerCosts> costs_of_layers(const Scenario& scenario, const TrainingSetup& none) {
  const auto costs_of = [&](const Scenario& one) {
    TrainingSetup unread;  // gets notes, which nobody reads
    return on_their_devices(one, *layer_costs(one, unread), none.partition);
  };
  return scenario.lengths ? costs_of(with_length(scenario, 0)) : costs_of(scenario);
}

/// The memory that stages reserve with 0, 1, ... recomputed layers each.
std::vector<std::vector<StageMemory>> memory_by_count(const Scenario& scenario,
                                                      const TrainingSetup& setup,
                                                      const std::vector<LayerCosts>& layers) {
  std::size_t max = 0;
  for (const Stage& stage : setup.partition.stages) max = std::max(max, stage.layers.size());
  std::vector<std::vector<StageMemory>> by_count;
  for (std::size_t count = 0; count <= max; ++count) {
    std::vector<std::uint32_t> counts;
    for (const Stage& stage : setup.partition.stages)
      counts.push_back(static_cast<std::uint32_t>(std::min(count, stage.layers.size())));
    std::vector<LayerCosts> kept = layers;
    keep_others(setup.partition, counts, kept);
    const StageCosts costs = stage_costs(setup.model->graph, kept, setup.partition);
    by_count.push_back(
        stage_memory(costs, setup.schedule.shape.positions, scenario.schedule.recompute.kind));
  }
  return by_count;
}

}  // namespace

RecomputationChoices::RecomputationChoices(const Scenario& scenario, const TrainingSetup& none)
    : partition_(none.partition),
      memory_(*none.memory_of_slots()),
      groups_(sharers_of(none)),
      costs_(costs_of_layers(scenario, none)),
      floor_(none, memory_by_count(scenario, none, costs_)) {
  for (const Stage& stage : partition_.stages)
    layers_.push_back(static_cast<std::int64_t>(stage.layers.size()));
  choices_.resize(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g)
    choices_[g].resize(static_cast<std::size_t>(groups_[g].layers) + 1);
}

const std::vector<RecomputeCounts>& RecomputationChoices::of(std::size_t group, std::int64_t sum) {
  auto& known = choices_[group][static_cast<std::size_t>(sum)];
  if (known) return *known;
  const Sharers& sharers = groups_[group];
  std::vector<RecomputeCounts> found;
  RecomputeCounts counts(layers_.size(), -1);
  if (sharers.is_small) {
    add_all(sharers, 0, sum, counts, found);
  } else {
    add_equal_shares(sharers, sum, counts, found);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](const RecomputeCounts& a, const RecomputeCounts& b) {
                     return time_of(sharers, a) < time_of(sharers, b);
                   });
  return known.emplace(std::move(found));
}

std::int64_t RecomputationChoices::least_by_floor(std::size_t group) const {
  std::int64_t least = 0;
  for (const std::uint32_t slot : groups_[group].slots)
    least = std::max(least, floor_.least_layers(slot, memory_[slot]));
  return least;
}

std::optional<std::int64_t> RecomputationChoices::least_sum(std::size_t group, std::int64_t from) {
  from = std::max(from, least_by_floor(group));
  for (std::int64_t sum = from; sum <= groups_[group].layers; ++sum) {
    if (!of(group, sum).empty()) return sum;
  }
  return std::nullopt;
}

bool RecomputationChoices::may_fit(std::size_t group) const {
  return may_fit(groups_[group], RecomputeCounts(layers_.size(), -1));
}

Duration RecomputationChoices::least_time(std::size_t group, std::int64_t sum) const {
  std::vector<Duration> times;
  for (const std::uint32_t s : groups_[group].stages) {
    for (const LayerId layer : partition_.stages[s].layers)
      times.push_back(costs_[layer.value].again().mean);
  }
  std::sort(times.begin(), times.end());
  return std::accumulate(times.begin(), times.begin() + sum, Duration{});
}

bool RecomputationChoices::may_fit(const Sharers& group, const RecomputeCounts& counts) const {
  return std::all_of(group.slots.begin(), group.slots.end(),
                     [&](std::uint32_t slot) { return floor_.of(slot, counts) <= memory_[slot]; });
}

void RecomputationChoices::add_equal_shares(const Sharers& group, std::int64_t sum,
                                            RecomputeCounts& counts,
                                            std::vector<RecomputeCounts>& found) const {
  for (const std::uint32_t stage : group.stages) counts[stage] = 0;
  for (std::int64_t i = 0; i < sum; ++i) ++counts[group.evenly[static_cast<std::size_t>(i)]];
  if (may_fit(group, counts)) found.push_back(counts);
}

void RecomputationChoices::add_all(const Sharers& group, std::size_t place, std::int64_t sum,
                                   RecomputeCounts& counts,
                                   std::vector<RecomputeCounts>& found) const {
  if (place == group.stages.size()) {
    if (sum == 0) found.push_back(counts);
    return;
  }
  const std::uint32_t stage = group.stages[place];
  std::int64_t behind = 0;
  for (std::size_t i = place + 1; i < group.stages.size(); ++i) behind += layers_[group.stages[i]];
  const std::int64_t to = std::min(sum, layers_[stage]);
  for (std::int64_t n = std::max<std::int64_t>(0, sum - behind); n <= to; ++n) {
    counts[stage] = n;
    if (may_fit(group, counts)) add_all(group, place + 1, sum - n, counts, found);
  }
  counts[stage] = -1;
}

Duration RecomputationChoices::time_of(const Sharers& group, const RecomputeCounts& counts) const {
  Duration sum{};
  for (const std::uint32_t s : group.stages) {
    const std::vector<LayerId>& held = partition_.stages[s].layers;
    for (std::int64_t i = 0; i < counts[s]; ++i)
      sum += costs_[held[static_cast<std::size_t>(i)].value].again().mean;
  }
  return sum;
}

}  // namespace plumbline
