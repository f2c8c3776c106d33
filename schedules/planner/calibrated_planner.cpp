// The plans of the calibrated cost model, from frontiers.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/calibrated_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/bug.h"
#include "base/quantity.h"
#include "schedules/planner/frontier_sums.h"
#include "schedules/planner/plan_candidates.h"
#include "schedules/planner/plan_search.h"

namespace plumbline {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The devices of a plan's stages. Positions count from the end of the pipeline. Devices count from
/// its front, in each group from the group's first, so that unused ones are last in every group.
std::vector<std::vector<DeviceId>> place_devices(const FoundPlan& plan, std::uint32_t group) {
  const std::uint32_t front_group = (plan.stages[0].position + plan.stages[0].replicas - 1) / group;
  std::vector<std::uint32_t> used(front_group + 1, 0);
  std::vector<std::vector<DeviceId>> devices;
  for (const FoundPlan::Stage& stage : plan.stages) {
    devices.emplace_back();
    for (std::uint32_t i = stage.replicas; i-- > 0;) {
      const std::uint32_t at = front_group - (stage.position + i) / group;
      devices.back().push_back({at * group + used[at]++});
    }
  }
  return devices;
}

PlanCandidate to_candidate(const PlannerInput& input, const SearchSpace& space,
                           const FoundPlan& found) {
  const Frontiers& frontiers = *space.frontiers;
  std::vector<std::uint32_t> stage_of(frontiers.order.size(), 0);
  for (std::uint32_t i = 0; i < stage_of.size(); ++i) {
    while (!frontiers.holds(found.stages[stage_of[i]].last, i)) ++stage_of[i];
  }
  PlanCandidate plan =
      cut_plan(input, frontiers.order, stage_of, place_devices(found, space.group));
  price(input, plan);
  return plan;
}

/// Frontiers with the data of the stages between them, to which a SearchSpace points.
struct Cuts {
  Frontiers frontiers;
  FrontierSums sums;
  FrontierCheckpoints checkpoints;
};

Cuts cuts_of(const PlannerInput& input, Frontiers frontiers) {
  FrontierSums sums = frontier_sums(input.graph, input.costs, frontiers);
  return {std::move(frontiers), std::move(sums), {input.graph, input.costs}};
}

/// The cluster as a row of groups. Two levels stay as they are. With more levels, the slowest of
/// the outer ones is taken.
SearchSpace space_of(const PlannerInput& input, const Cuts& cuts) {
  SearchSpace space;
  space.frontiers = &cuts.frontiers;
  space.sums = &cuts.sums;
  space.checkpoints = &cuts.checkpoints;
  space.positions = input.cluster.device_count();
  space.devices = devices_of(input);
  space.group = input.cluster.levels[0].size;
  space.inner = input.cluster.levels[0].link;
  if (input.cluster.levels.size() == 1) {
    space.positions = space.devices;
    space.group = space.devices;
  }
  for (std::size_t l = 1; l < input.cluster.levels.size(); ++l) {
    const Link& link = input.cluster.levels[l].link;
    space.outer.latency = std::max(space.outer.latency, link.latency);
    if (!space.outer.bandwidth || (link.bandwidth && *link.bandwidth < *space.outer.bandwidth))
      space.outer.bandwidth = link.bandwidth;
  }
  space.memory = input.memory();
  space.optimizer_state = input.optimizer_state;
  space.gradient_width = input.gradient_width;
  space.per_op = input.overheads.per_op;
  space.stages_at_most = input.stages_at_most;
  space.straight = input.straight;
  space.activation_transfers = input.activation_transfers;
  space.residency = input.residency;
  return space;
}

/// The space with free links and equal devices. The same plans fit the memory, and the search is
/// much faster.
SearchSpace on_free_links(SearchSpace space) {
  space.inner = {};
  space.outer = {};
  space.positions = space.devices;
  space.group = space.devices;
  return space;
}

/// The effort of a search.
struct Effort {
  double slack = 0;  ///< This and the next ones as in SearchBounds.
  std::size_t alternatives = std::numeric_limits<std::size_t>::max();
  std::uint64_t comparisons = std::numeric_limits<std::uint64_t>::max();

  SearchBounds within(double period_ns, bool fewest = false) const {
    return {period_ns, fewest, slack, alternatives, comparisons};
  }
};

/// A flush makes partial plans hard to compare. If there are too many, those that are nearly as
/// long as others are dropped, and in the end all but the shortest.
constexpr std::array kEfforts = {Effort{0, Effort{}.alternatives, 150'000'000},
                                 Effort{0.01, Effort{}.alternatives, 50'000'000}, Effort{0.02, 4},
                                 Effort{0.05, 1}};

/// Searches with a growing bound, from a period that no plan can beat, until there is a plan. Small
/// bounds are searched fast. A search sees all plans within its bound, so the first plan found is
/// the best. `known_to_fit`: a plan fits the memory; the search may set it.
SearchOutcome search_outwards(const SearchSpace& space, const Effort& effort, bool& known_to_fit,
                              const std::function<bool(double)>& progress) {
  const FrontierSums& sums = *space.sums;
  const auto work =
      static_cast<double>((sums.forward.back() + sums.backward.back() +
                           sums.update.back() / space.residency.per_update(1) + 3 * space.per_op)
                              .count());
  for (const double factor :
       {1.02, 1.1, 1.25, 1.5, 1.8, 2.2, 2.7, 3.5, 5.0, 8.0, 15.0, 40.0, kUnbounded}) {
    const double bound = work > 0 ? work / space.devices * factor : kUnbounded;
    if (!known_to_fit && factor > 1.2) {  // perhaps no plan of any period fits
      SearchOutcome any = search_plans(on_free_links(space), {kUnbounded, true}, progress);
      if (any.end != SearchEnd::complete || any.plans.empty()) return any;
      known_to_fit = true;
    }
    SearchOutcome outcome = search_plans(space, effort.within(bound), progress);
    if (outcome.end != SearchEnd::complete || !outcome.plans.empty() || bound == kUnbounded)
      return outcome;
  }
  return {};
}

/// The same with the effort that it needs; sets `effort` to that.
SearchOutcome search_outwards(const SearchSpace& space, Effort& effort,
                              const std::function<bool(double)>& progress) {
  bool known_to_fit = !space.memory;
  if (!space.residency.micro_batches) return search_outwards(space, effort, known_to_fit, progress);
  SearchOutcome outcome;
  for (const Effort& more : kEfforts) {
    effort = more;
    outcome = search_outwards(space, effort, known_to_fit, progress);
    if (outcome.end != SearchEnd::too_large) break;
  }
  return outcome;
}

Diagnostic infeasible(std::string message, std::string help) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  diagnostic.fault = Fault::infeasible;
  return diagnostic;
}

Diagnostic too_large() {
  return infeasible("there are too many plans to search",
                    "fewer devices (--devices-at-most) or stages (plan.stages) leave fewer");
}

std::string_view held_of_micro_batches(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "activations of micro-batches";
    case Recompute::full:
      return "activations of one micro-batch, inputs of micro-batches";
    case Recompute::layers:
      return "activations of one layer, inputs of its layers of micro-batches";
    case Recompute::selective:
      return "kept activations of micro-batches";
  }
  return "";
}

/// The error if no plan fits: the plan that needs the least memory (of the cuts in `space`), and
/// the lack of memory of its fullest stage. Found by bisection over the memory, on free links, to
/// one part in a thousand.
Diagnostic does_not_fit(const PlannerInput& input, SearchSpace space) {
  space = on_free_links(space);
  std::int64_t too_little = space.memory->count;
  std::int64_t enough = 0;
  std::optional<PlanCandidate> leanest;
  const auto fullest = [](const PlanCandidate& plan) {
    return std::max_element(
        plan.stages.begin(), plan.stages.end(),
        [](const PlannedStage& a, const PlannedStage& b) { return a.peak_memory < b.peak_memory; });
  };
  for (std::int64_t memory = std::max<std::int64_t>(too_little * 2, 1);
       memory < std::numeric_limits<std::int64_t>::max() / 4;) {
    space.memory = Bytes{memory};
    const SearchOutcome outcome = search_plans(space, {kUnbounded, true}, input.progress);
    if (outcome.end == SearchEnd::cancelled) return planning_cancelled();
    if (outcome.plans.empty()) {
      too_little = memory;
    } else {
      leanest = to_candidate(input, space, outcome.plans[0]);
      enough = std::min(memory, fullest(*leanest)->peak_memory.count);
    }
    if (!leanest) {
      memory *= 2;
    } else if (enough - too_little <= std::max<std::int64_t>(1, enough / 1000)) {
      break;
    } else {
      memory = too_little + (enough - too_little) / 2;
    }
  }
  const std::string limit =
      fmt::format("the memory of {} per device", to_text(*input.cluster.memory));
  if (!leanest) return infeasible("no plan fits " + limit, "");
  const auto stage = fullest(*leanest);
  const Bytes temporary = input.temporary();
  const Bytes needed = stage->peak_memory + temporary;
  return infeasible(
      fmt::format("no plan fits {}: in the one that needs least ({}), stage {} (layers '{}' to "
                  "'{}') lacks {}",
                  limit, leanest->config(), stage - leanest->stages.begin(),
                  clipped(input.graph.layer(stage->layers.front()).name),
                  clipped(input.graph.layer(stage->layers.back()).name),
                  to_text(needed - *input.cluster.memory)),
      fmt::format(
          "it needs {}: weight versions: {}, gradients, optimizer state, {}: {}{}; smaller "
          "micro-batches or more devices help",
          to_text(needed), stage->weight_versions, held_of_micro_batches(input.residency.recompute),
          stage->warm_up + 1,
          temporary.count > 0 ? fmt::format(", temporary tensors: {}", to_text(temporary)) : ""));
}

/// The best plans of one space, best first: the exact best, then others.
SearchOutcome best_plans(const SearchSpace& space, const PlannerInput& input, const Effort& effort,
                         SearchOutcome first) {
  if (first.end != SearchEnd::complete || first.plans.empty()) return first;
  const double best = first.plans[0].period_ns;
  if (input.candidates > 1) {
    const double size = space.frontiers->size();
    const double steps = size * size * space.positions * space.positions;
    if (steps < 2e7) {
      SearchOutcome more = search_plans(space, effort.within(best * 1.25), input.progress);
      if (more.end == SearchEnd::cancelled) return more;
      if (!more.plans.empty()) first = std::move(more);
    }
  }
  SearchOutcome tied = search_plans(space, effort.within(best * (1 + 1e-12), true), input.progress);
  if (tied.end == SearchEnd::cancelled) return tied;
  if (!tied.plans.empty()) {
    const auto same = [&](const FoundPlan& plan) {
      return plan.devices() == tied.plans[0].devices() &&
             plan.stages[0].replicas == tied.plans[0].stages[0].replicas;
    };
    first.plans.erase(std::remove_if(first.plans.begin(), first.plans.end(), same),
                      first.plans.end());
    first.plans.insert(first.plans.begin(), tied.plans[0]);
  }
  return first;
}

/// The best plans over all frontiers. A search along one order comes first: it is fast and gives
/// the bound for the full one.
SearchOutcome search_cuts(const PlannerInput& input, bool straight, const Cuts& one_order,
                          Cuts& all, Plans& plans) {
  SearchSpace space = space_of(input, one_order);
  space.straight = straight;
  Effort effort;
  SearchOutcome outcome = search_outwards(space, effort, input.progress);
  if (outcome.end == SearchEnd::cancelled) return outcome;
  if (all.frontiers.size() > one_order.frontiers.size()) {
    SearchSpace wide = space_of(input, all);
    wide.straight = straight;
    Effort wide_effort = effort;
    SearchOutcome full =
        outcome.plans.empty()
            ? search_outwards(wide, wide_effort, input.progress)
            : search_plans(wide, effort.within(outcome.plans[0].period_ns * (1 + 1e-12)),
                           input.progress);
    if (full.end == SearchEnd::cancelled) return full;
    if (!full.plans.empty()) {
      plans.slack = std::max(plans.slack, wide_effort.slack);
      return best_plans(wide, input, wide_effort, std::move(full));
    }
    if (full.end == SearchEnd::complete && outcome.plans.empty()) return full;
    all = one_order;  // too many partial plans: take the result of one order
    plans.restricted = true;
  }
  plans.slack = std::max(plans.slack, effort.slack);
  return best_plans(space, input, effort, std::move(outcome));
}

}  // namespace

Result<Plans> plan_calibrated(const PlannerInput& input) {
  // The cuts.
  FrontierRules rules{
      .memory_counts = input.memory().has_value(),
      .inputs_count = input.memory().has_value() && by_layer(input.residency.recompute)};
  Cuts all = cuts_of(input, all_frontiers(input.graph, input.costs, rules));
  const Cuts one_order = cuts_of(input, one_order_frontiers(input.graph, input.costs, rules));
  Plans plans;
  plans.restricted = all.frontiers.restricted;
  plans.sees_two_levels = input.cluster.levels.size() > 2;

  // The best plans.
  const SearchOutcome found = search_cuts(input, input.straight, one_order, all, plans);
  if (found.end == SearchEnd::cancelled) return planning_cancelled();
  if (found.end == SearchEnd::too_large) return too_large();
  if (found.plans.empty() && input.memory()) {
    constexpr std::size_t few = 150;  // the search has no bound on the period
    if (all.frontiers.size() > few) {
      rules.max_cuts = few;
      all = cuts_of(input, one_order_frontiers(input.graph, input.costs, rules));
    }
    return does_not_fit(input, space_of(input, all));
  }
  PLUMBLINE_CHECK(!found.plans.empty(), input.graph.size(), devices_of(input));
  const SearchSpace space = space_of(input, all);
  std::vector<PlanCandidate> candidates;
  for (const FoundPlan& plan : found.plans) {
    if (candidates.size() == std::max(1U, input.candidates)) break;
    candidates.push_back(to_candidate(input, space, plan));
  }
  if (input.cluster.levels.size() > 2) {  // the search saw two levels, the prices all of them
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const PlanCandidate& a, const PlanCandidate& b) { return a.period_s < b.period_s; });
  }
  plans.best = with_variants(input, candidates);
  plans.frontiers = all.frontiers.size();

  // The comparisons.
  plans.one_device_s = one_device_ns(input) / 1e9;
  add_whole_model(input, plans);
  if (input.straight) {
    plans.straight = plans.best[0];
  } else {
    PlannerInput alone = input;
    alone.candidates = 1;
    const SearchOutcome straight = search_cuts(alone, true, one_order, all, plans);
    if (straight.end == SearchEnd::cancelled) return planning_cancelled();
    if (!straight.plans.empty()) {
      const SearchSpace last = space_of(input, all);
      plans.straight = to_candidate(input, last, straight.plans[0]);
    }
  }
  return plans;
}

}  // namespace plumbline
