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

#include "sim/planning/recomputation_choices.h"
#include "sim/planning/recomputation_trial.h"
#include "sim/prediction/predict_resolved.h"

namespace plumbline {
namespace {

using Counts = RecomputeCounts;

/// The memory of each of the graph's slots.
std::vector<Bytes> memory_of_slots(const Outcome& outcome) {
  std::vector<Bytes> memory;
  for (std::size_t slot = 0; slot < outcome.memory.size(); ++slot)
    memory.push_back(*outcome.memory_limit(slot));
  return memory;
}

/// The search for one scenario.
class Fit {
 public:
  Fit(const Outcome& none, RecomputationChoices choices, RecomputationTrial trial)
      : trial_(std::move(trial)),
        none_(none),
        memory_(memory_of_slots(none)),
        choices_(std::move(choices)),
        groups_(choices_.groups()),
        stages_(choices_.all_layers().size()) {}

  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  const Counts& all_layers() const { return choices_.all_layers(); }
  /// Whether all smaller sums were excluded.
  bool is_exact() const { return is_exact_; }

  /// The numbers found; nothing if none fit.
  Result<std::optional<Counts>> find() {
    // First find the least sum of each group; no group fits with fewer.
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!choices_.may_fit(g)) return std::optional<Counts>();
      is_exact_ = is_exact_ && groups_[g].is_small;
    }
    std::int64_t sum = 0;
    std::int64_t max = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const auto min = choices_.least_sum(g, 0);
      if (!min) return std::optional<Counts>();
      min_.push_back(*min);
      sum += *min;
      max += groups_[g].layers;
    }
    for (; sum <= max && left_ > 0; ++sum) {
      Counts counts(stages_, 0);
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
      for (const Counts& choice : choices_.of(g, own)) {
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
    Counts counts(stages_, 0);
    std::vector<std::int64_t> sums = min_;
    while (true) {
      for (std::size_t g = 0; g < groups_.size(); ++g)
        take(g, choices_.of(g, sums[g]).front(), counts);
      const auto run = tried(counts);
      if (!run) return run.problems();
      if (run->fits(memory_)) return std::optional(counts);
      const auto step = [&](bool all) {
        bool any = false;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
          if (!all && fits(*run, groups_[g])) continue;
          const auto next = choices_.least_sum(g, sums[g] + 1);
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
  RecomputationChoices choices_;
  const std::vector<Sharers>& groups_;
  std::size_t stages_ = 0;
  std::vector<std::int64_t> min_;  ///< The least sum of each group.
  double left_ = kMaxWork;
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
  Fit fit(*none, RecomputationChoices(without, none->setup), *std::move(trial));
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
