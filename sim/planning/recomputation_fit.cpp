// Numbers of recomputed layers, ordered by their sum, the least first. Numbers within the lower
// bounds of the memory are simulated.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/recomputation_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/planning/memory_floor.h"
#include "sim/planning/recomputation_trial.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/recomputation.h"
#include "sim/setup/setup_costs.h"

namespace plumbline {
namespace {

using Counts = std::vector<std::int64_t>;  ///< One number per stage.

/// A group of stages connected by shared devices. Their numbers are chosen together.
struct Sharers {
  std::vector<std::uint32_t> stages;
  std::vector<std::uint32_t> slots;   ///< Slots of the schedule.
  std::int64_t layers = 0;            ///< The sum over all of them.
  std::vector<std::uint32_t> evenly;  ///< The stage of each layer, equal shares first.
  bool is_small = true;  ///< Whether all numbers are tried; else only equal shares of layers.
};

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

std::vector<Sharers> sharers_of(const Outcome& outcome) {
  const PipelineShape& shape = outcome.setup.schedule.shape;
  std::vector<std::vector<std::uint32_t>> stages_of_slot(shape.slots);
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    for (const std::uint32_t slot : shape.stage_slots[s]) stages_of_slot[slot].push_back(s);
  }
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
  for (Sharers& sharers : all) count_layers(outcome.setup.partition, sharers);
  return all;
}

/// The memory of each of the graph's slots.
std::vector<Bytes> memory_of_slots(const Outcome& outcome) {
  std::vector<Bytes> memory;
  for (std::size_t slot = 0; slot < outcome.memory.size(); ++slot)
    memory.push_back(*outcome.memory_limit(slot));
  return memory;
}

std::vector<LayerCosts> costs_of_layers(const Scenario& scenario, const Outcome& none) {
  if (!scenario.unlike.empty()) {
    TrainingSetup setup;  // gets notes, which nobody reads
    return on_their_devices(scenario, *layer_costs(scenario, setup), none.setup.partition);
  }
  std::vector<LayerCosts> layers =
      costs_at(scenario.model->profile, scenario.micro_batch_size).layers;
  if (scenario.schedule.slices.count > 1) cut_into_slices(layers, scenario.schedule.slices.count);
  return layers;
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
    const StageCosts costs = stage_costs(scenario.model->graph, kept, setup.partition);
    by_count.push_back(
        stage_memory(costs, setup.schedule.shape.positions, scenario.schedule.recompute.kind));
  }
  return by_count;
}

/// The search for one scenario.
class Fit {
 public:
  Fit(const Scenario& scenario, const Outcome& none, RecomputationTrial trial)
      : trial_(std::move(trial)),
        none_(none),
        memory_(memory_of_slots(none)),
        groups_(sharers_of(none)),
        costs_(costs_of_layers(scenario, none)),
        floor_(none, memory_by_count(scenario, none.setup, costs_)) {
    for (const Stage& stage : none_.setup.partition.stages)
      layers_.push_back(static_cast<std::int64_t>(stage.layers.size()));
    choices_.resize(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      choices_[g].resize(static_cast<std::size_t>(groups_[g].layers) + 1);
    left_ = kMaxWork;
  }

  const Counts& all_layers() const { return layers_; }
  /// Whether all smaller sums were excluded.
  bool is_exact() const { return is_exact_; }

  /// The numbers found; nothing if none fit.
  Result<std::optional<Counts>> find() {
    // First find the least sum of each group; no group fits with fewer.
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!may_fit(groups_[g], Counts(layers_.size(), -1))) return std::optional<Counts>();
      is_exact_ = is_exact_ && groups_[g].is_small;
    }
    std::int64_t sum = 0;
    std::int64_t max = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const auto min = min_of(g, 0);
      if (!min) return std::optional<Counts>();
      min_.push_back(*min);
      sum += *min;
      max += groups_[g].layers;
    }
    for (; sum <= max && left_ > 0; ++sum) {
      Counts counts(layers_.size(), 0);
      if (auto problems = try_groups(0, sum, counts)) return *problems;
      if (best_) return best_;
    }
    if (sum > max && left_ > 0) return std::optional<Counts>();
    is_exact_ = false;
    return step_up();
  }

 private:
  /// The most nodes that are simulated in total. Each run counts as kRun more nodes.
  static constexpr double kMaxWork = 4e5;
  static constexpr double kRun = 1000;

  /// The numbers of a group that add up to `sum` and are within the lower bounds, the fastest
  /// first.
  const std::vector<Counts>& choices(std::size_t g, std::int64_t sum) {
    auto& known = choices_[g][static_cast<std::size_t>(sum)];
    if (known) return *known;
    std::vector<Counts> found;
    Counts counts(layers_.size(), -1);
    if (groups_[g].is_small) {
      add_choices(groups_[g], 0, sum, counts, found);
    } else {
      add_equal_shares(groups_[g], sum, counts, found);
    }
    std::stable_sort(found.begin(), found.end(), [&](const Counts& a, const Counts& b) {
      return time_of(groups_[g], a) < time_of(groups_[g], b);
    });
    return known.emplace(std::move(found));
  }

  /// Whether the group can fit by the lower bounds, with the numbers that are set in `counts`.
  bool may_fit(const Sharers& group, const Counts& counts) const {
    const std::uint32_t copies = none_.graph.slots() / none_.setup.schedule.shape.slots;
    return std::all_of(group.slots.begin(), group.slots.end(), [&](std::uint32_t slot) {
      return floor_.of(slot, counts) <= memory_[std::size_t{slot} * copies];
    });
  }

  void add_equal_shares(const Sharers& group, std::int64_t sum, Counts& counts,
                        std::vector<Counts>& found) const {
    for (const std::uint32_t stage : group.stages) counts[stage] = 0;
    for (std::int64_t i = 0; i < sum; ++i) ++counts[group.evenly[static_cast<std::size_t>(i)]];
    if (may_fit(group, counts)) found.push_back(counts);
  }

  void add_choices(const Sharers& group, std::size_t place, std::int64_t sum, Counts& counts,
                   std::vector<Counts>& found) const {
    if (place == group.stages.size()) {
      if (sum == 0) found.push_back(counts);
      return;
    }
    const std::uint32_t stage = group.stages[place];
    std::int64_t behind = 0;
    for (std::size_t i = place + 1; i < group.stages.size(); ++i)
      behind += layers_[group.stages[i]];
    const std::int64_t to = std::min(sum, layers_[stage]);
    for (std::int64_t n = std::max<std::int64_t>(0, sum - behind); n <= to; ++n) {
      counts[stage] = n;
      if (may_fit(group, counts)) add_choices(group, place + 1, sum - n, counts, found);
    }
    counts[stage] = -1;
  }

  /// The time of the recompute of one micro-batch.
  Duration time_of(const Sharers& group, const Counts& counts) const {
    Duration sum{};
    for (const std::uint32_t s : group.stages) {
      const std::vector<LayerId>& held = none_.setup.partition.stages[s].layers;
      for (std::int64_t i = 0; i < counts[s]; ++i)
        sum += costs_[held[static_cast<std::size_t>(i)].value].again().mean;
    }
    return sum;
  }

  /// The least sum from `from` on with numbers within the lower bounds.
  std::optional<std::int64_t> min_of(std::size_t g, std::int64_t from) {
    for (std::int64_t sum = from; sum <= groups_[g].layers; ++sum) {
      if (!choices(g, sum).empty()) return sum;
    }
    return std::nullopt;
  }

  void take(std::size_t g, const Counts& choice, Counts& counts) const {
    for (const std::uint32_t s : groups_[g].stages) counts[s] = choice[s];
  }

  Result<RecomputationTrial::Run> tried(const Counts& counts) {
    left_ -= kRun + none_.graph.size();
    return trial_.run(counts);
  }

  /// Tries all numbers of the groups from `g` on that add up to `sum`.
  std::optional<Diagnostics> try_groups(std::size_t g, std::int64_t sum, Counts& counts) {
    if (left_ <= 0) return std::nullopt;
    if (g == groups_.size()) {
      if (sum > 0) return std::nullopt;
      const auto run = tried(counts);
      if (!run) return run.problems();
      if (!run->fits(memory_)) return std::nullopt;
      if (!best_ || run->iteration_time_s < time_s_) {
        best_ = counts;
        time_s_ = run->iteration_time_s;
      }
      return std::nullopt;
    }
    std::int64_t min_behind = 0;
    std::int64_t max_behind = 0;
    for (std::size_t i = g + 1; i < groups_.size(); ++i) {
      min_behind += min_[i];
      max_behind += groups_[i].layers;
    }
    const std::int64_t to = std::min(groups_[g].layers, sum - min_behind);
    for (std::int64_t own = std::max(min_[g], sum - max_behind); own <= to; ++own) {
      for (const Counts& choice : choices(g, own)) {
        take(g, choice, counts);
        if (auto problems = try_groups(g + 1, sum - own, counts)) return problems;
      }
    }
    return std::nullopt;
  }

  bool fits(const RecomputationTrial::Run& run, const Sharers& group) const {
    const std::uint32_t copies = none_.graph.slots() / none_.setup.schedule.shape.slots;
    for (const std::uint32_t slot : group.slots) {
      for (std::uint32_t copy = 0; copy < copies; ++copy) {
        if (run.peaks[slot * copies + copy] > memory_[slot * copies + copy]) return false;
      }
    }
    return true;
  }

  /// Starts from the least sums, and takes the next sum of each group that does not fit. If these
  /// groups have reached their maximum, it takes the next sum of the other groups.
  Result<std::optional<Counts>> step_up() {
    Counts counts(layers_.size(), 0);
    std::vector<std::int64_t> sums = min_;
    while (true) {
      for (std::size_t g = 0; g < groups_.size(); ++g) take(g, choices(g, sums[g]).front(), counts);
      const auto run = tried(counts);
      if (!run) return run.problems();
      if (run->fits(memory_)) return std::optional(counts);
      const auto step = [&](bool all) {
        bool any = false;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
          if (!all && fits(*run, groups_[g])) continue;
          const auto next = min_of(g, sums[g] + 1);
          if (next) sums[g] = *next;
          any = any || next;
        }
        return any;
      };
      if (!step(false) && !step(true)) return std::optional<Counts>();
    }
  }

  RecomputationTrial trial_;
  const Outcome& none_;        ///< The prediction without any recompute.
  std::vector<Bytes> memory_;  ///< What the device of each of the graph's slots has.
  std::vector<Sharers> groups_;
  std::vector<LayerCosts> costs_;
  MemoryFloor floor_;
  Counts layers_;  ///< One number per stage.
  /// Choices by group and sum.
  std::vector<std::vector<std::optional<std::vector<Counts>>>> choices_;
  std::vector<std::int64_t> min_;  ///< The least sum of each group.
  double left_ = 0;
  bool is_exact_ = true;
  std::optional<Counts> best_;
  double time_s_ = 0;
};

}  // namespace

Result<FittedRecomputation> fit_and_predict(Scenario scenario) {
  RecomputeChoice& choice = scenario.schedule.recompute;
  if (!choice.as_few_as_fit()) return FittedRecomputation{std::move(scenario), std::nullopt};
  if (!scenario.cluster.memory) {
    return input_error(choice.layers_mark,
                       "schedule.recompute_layers is 'fit', but the devices' memory is not given",
                       "cluster.memory, or a cluster.device that has one");
  }
  Scenario without = scenario;
  without.noise.reset();
  without.schedule.recompute.layers = std::int64_t{0};
  auto none = predict_resolved(without, Evaluation::fastest);
  if (!none) return none.problems();
  const auto settled = [&](Counts chosen, std::string_view why) {
    scenario.notes.push_back(fmt::format(
        "{} of {} layers are recomputed (recompute: {}), {}: schedule.recompute_layers=[{}]",
        std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0}),
        scenario.model->graph.size(), name(choice.kind), why, fmt::join(chosen, ",")));
    choice.layers = std::move(chosen);
    return FittedRecomputation{scenario, std::nullopt};
  };
  constexpr std::string_view fewest = "the fewest with which each device fits";
  if (none->fits().value_or(true)) {
    FittedRecomputation fitted = settled(Counts(none->setup.partition.stages.size(), 0), fewest);
    if (scenario.noise) return fitted;
    // The notes of a setup begin with those of its scenario.
    std::vector<std::string>& notes = none->setup.notes;
    notes.insert(notes.begin() + static_cast<std::ptrdiff_t>(without.notes.size()),
                 fitted.scenario.notes.back());
    fitted.outcome = *std::move(none);
    return fitted;
  }
  auto trial = RecomputationTrial::of(without, *none);
  if (!trial) return trial.problems();
  Fit fit(without, *none, *std::move(trial));
  const auto found = fit.find();
  if (!found) return found.problems();
  if (!*found) return settled(fit.all_layers(), "all that there are, which do not suffice");
  return settled(**found, fit.is_exact()
                              ? fewest
                              : "the fewest found with which each device fits (there are too many "
                                "to try all that are fewer)");
}

Result<Scenario> fit_recomputation(Scenario scenario) {
  auto fitted = fit_and_predict(std::move(scenario));
  if (!fitted) return fitted.problems();
  return std::move(fitted->scenario);
}

}  // namespace plumbline
