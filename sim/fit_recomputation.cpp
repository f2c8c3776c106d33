// A binary search on every device at once, each trial a simulation.
// SPDX-License-Identifier: MIT
#include "sim/fit_recomputation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

#include "models/bug.h"
#include "sim/predict.h"

namespace plumbline {
namespace {

/// Stages that share devices, with all that have any of them: they choose together.
struct Sharers {
  std::vector<std::uint32_t> slots;
  /// The stage of each layer, in the order in which layers are taken: evenly from all stages.
  std::vector<std::uint32_t> order;
  std::size_t least = 0;  ///< Fewer do not fit.
  std::size_t most = 0;   ///< As many fit, unless these are all.

  std::size_t trial() const { return least + (most - least) / 2; }
};

std::uint32_t root_of(std::vector<std::uint32_t>& parents, std::uint32_t stage) {
  while (parents[stage] != stage) stage = parents[stage] = parents[parents[stage]];
  return stage;
}

std::vector<Sharers> sharers_of(const Outcome& outcome) {
  const std::vector<Stage>& stages = outcome.pipeline.partition.stages;
  const auto stages_of_slot = outcome.graph.stages_by_slot();
  std::vector<std::uint32_t> parents(stages.size());
  std::iota(parents.begin(), parents.end(), 0U);
  for (const auto& held : stages_of_slot) {
    for (const std::uint32_t stage : held)
      parents[root_of(parents, stage)] = root_of(parents, held.front());
  }
  std::vector<Sharers> all(stages.size());
  for (std::uint32_t slot = 0; slot < stages_of_slot.size(); ++slot)
    all[root_of(parents, stages_of_slot[slot].front())].slots.push_back(slot);
  std::vector<std::vector<std::tuple<double, std::uint32_t>>> shares(stages.size());
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    const std::size_t layers = stages[s].layers.size();
    for (std::size_t i = 0; i < layers; ++i) {
      const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(layers);
      shares[root_of(parents, s)].emplace_back(place, s);
    }
  }
  for (std::size_t root = 0; root < all.size(); ++root) {
    std::sort(shares[root].begin(), shares[root].end());
    for (const auto& share : shares[root]) all[root].order.push_back(std::get<1>(share));
    all[root].most = all[root].order.size();
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Sharers& sharers) { return sharers.slots.empty(); }),
            all.end());
  return all;
}

/// The numbers of all stages, of each group as many layers as `taken` says.
template <class Taken>
std::vector<std::int64_t> numbers(const std::vector<Sharers>& groups, std::size_t stages,
                                  Taken&& taken) {
  std::vector<std::int64_t> counts(stages, 0);
  for (const Sharers& sharers : groups) {
    for (std::size_t i = 0; i < taken(sharers); ++i) ++counts[sharers.order[i]];
  }
  return counts;
}

bool fits(const Outcome& outcome, const Sharers& sharers) {
  return std::all_of(sharers.slots.begin(), sharers.slots.end(),
                     [&](std::uint32_t slot) { return outcome.fits(slot).value_or(true); });
}

}  // namespace

Result<Scenario> fit_recomputation(Scenario scenario) {
  RecomputeChoice& choice = scenario.schedule.recompute;
  if (!choice.as_few_as_fit()) return scenario;
  if (!scenario.cluster.memory) {
    return input_error(choice.layers_mark,
                       "schedule.recompute_layers is 'fit', but the devices' memory is not given",
                       "cluster.memory, or a cluster.device that has one");
  }
  Scenario trial = scenario;
  trial.noise.reset();
  const auto predicted = [&](RecomputedLayers layers) {
    trial.schedule.recompute.layers = std::move(layers);
    return predict(trial, Evaluation::fastest);
  };
  const auto settled = [&](std::vector<std::int64_t> chosen, std::string_view why) {
    scenario.notes.push_back(
        fmt::format("schedule.recompute_layers: [{}] {}", fmt::join(chosen, ", "), why));
    choice.layers = std::move(chosen);
    return scenario;
  };

  // None of them, and all: who is where, and who needs any.
  auto outcome = predicted(std::int64_t{0});
  if (!outcome) return outcome.problems();
  const std::size_t stages = outcome->pipeline.partition.stages.size();
  std::vector<Sharers> groups = sharers_of(*outcome);
  for (Sharers& sharers : groups) {
    if (fits(*outcome, sharers)) sharers.most = 0;
    sharers.least = std::min<std::size_t>(1, sharers.most);
  }
  if (!outcome->fits().value_or(true)) {
    const auto all = predicted(std::monostate());
    if (!all) return all.problems();
    if (!all->fits().value_or(true)) {
      return settled(numbers(groups, stages, [](const Sharers& s) { return s.order.size(); }),
                     "are all that there are, and do not suffice");
    }
  }

  // Half of what is left, on all at once.
  const auto is_open = [](const Sharers& sharers) { return sharers.least < sharers.most; };
  while (std::any_of(groups.begin(), groups.end(), is_open)) {
    outcome = predicted(numbers(groups, stages, [](const Sharers& s) { return s.trial(); }));
    if (!outcome) return outcome.problems();
    for (Sharers& sharers : groups) {
      if (!is_open(sharers)) continue;
      const std::size_t tried = sharers.trial();
      if (fits(*outcome, sharers)) {
        sharers.most = tried;
      } else {
        sharers.least = tried + 1;
      }
    }
  }

  // Others took other numbers meanwhile, and buffers are held for as long as ops take: once more,
  // all together. Where one does not fit with all of its layers, it is for the others to take more.
  std::vector<std::int64_t> chosen;
  for (bool is_done = false; !is_done;) {
    chosen = numbers(groups, stages, [](const Sharers& sharers) { return sharers.most; });
    outcome = predicted(chosen);
    if (!outcome) return outcome.problems();
    const auto lacks = [&](const Sharers& sharers) { return !fits(*outcome, sharers); };
    const auto may_take = [](const Sharers& sharers) {
      return sharers.most < sharers.order.size();
    };
    const bool by_others = std::any_of(groups.begin(), groups.end(), lacks) &&
                           std::none_of(groups.begin(), groups.end(), [&](const Sharers& sharers) {
                             return lacks(sharers) && may_take(sharers);
                           });
    PLUMBLINE_CHECK(outcome->pipeline.partition.stages.size() == stages, stages);
    is_done = true;
    for (Sharers& sharers : groups) {
      if (!may_take(sharers) || !(by_others || lacks(sharers))) continue;
      ++sharers.most;
      is_done = false;
    }
  }
  return settled(std::move(chosen), "are the fewest with which each device fits");
}

}  // namespace plumbline
