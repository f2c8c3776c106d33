// The choice of the cost model, and the published one.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bug.h"
#include "schedules/planner/calibrated_planner.h"
#include "schedules/planner/frontier_sums.h"
#include "schedules/planner/plan_candidates.h"
#include "schedules/planner/published_planner.h"

namespace plumbline {
namespace {

/// The published plan with the stages' layers. A state that does not contain the cut before it is
/// cut at the union of both. A stage without a layer after that is left out.
PlanCandidate to_candidate(const PlannerInput& input, const PublishedFrontiers& states,
                           const PublishedPlan& found) {
  const Frontiers& frontiers = states.frontiers;
  const auto size = static_cast<std::uint32_t>(frontiers.order.size());
  const auto stages = static_cast<std::uint32_t>(found.stages.size());
  std::vector<std::uint32_t> stage_of(size, 0);
  std::vector<std::uint32_t> position(size, 0);
  for (std::uint32_t i = 0; i < size; ++i) {
    position[frontiers.order[i].value] = i;
    std::uint32_t s = 0;
    while (s < stages && !frontiers.holds(found.stages[s].last, i)) ++s;
    stage_of[i] = s == stages ? (states.counted[i] ? stages - 1 : stages) : s;
  }
  // Layers that are in no state: a layer that nobody consumes goes with its producers, others go
  // last.
  std::vector<bool> consumed(size, false);
  std::vector<std::uint32_t> latest(size, 0);
  for (const LayerEdge& edge : input.graph.edges()) {
    consumed[position[edge.from.value]] = true;
    std::uint32_t& last = latest[position[edge.to.value]];
    last = std::max(last, std::min(stage_of[position[edge.from.value]], stages - 1));
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    if (stage_of[i] == stages) stage_of[i] = consumed[i] ? stages - 1 : latest[i];
  }
  std::vector<std::uint32_t> layers(stages, 0), number(stages, 0);
  for (const std::uint32_t s : stage_of) ++layers[s];
  std::vector<std::vector<DeviceId>> devices;
  for (std::uint32_t s = 0; s < stages; ++s) {
    number[s] = static_cast<std::uint32_t>(devices.size());
    if (layers[s] > 0) devices.push_back(found.stages[s].devices);
  }
  for (std::uint32_t& s : stage_of) s = number[s];
  PlanCandidate plan = cut_plan(input, frontiers.order, stage_of, std::move(devices));
  price(input, plan);
  plan.period_s = found.seconds;
  plan.flush.reset();
  return plan;
}

Result<Plans> plan_published(const PlannerInput& input) {
  const std::vector<PublishedLevel> levels = published_levels(input.cluster, devices_of(input));
  // The table of a lower level takes 4 bytes times the square of the states.
  const std::size_t max = levels.size() > 1 ? 10'000 : kMaxFrontiers;
  const PublishedFrontiers states = published_frontiers(input.graph, input.costs, max);
  const FrontierSums sums = frontier_sums(input.graph, input.costs, states.frontiers);
  const auto found = published_plan(states, sums, levels, input.straight,
                                    input.activation_transfers, input.progress);
  if (!found) return planning_cancelled();
  if (found->seconds == std::numeric_limits<double>::infinity()) {
    return input_error(
        {},
        fmt::format("the published cost model has no {}plan that uses all {} devices",
                    input.straight ? "straight " : "", devices_of(input)),
        "its recurrence leaves none idle: fewer devices, or the calibrated cost model");
  }
  Plans plans;
  PlanCandidate best = to_candidate(input, states, *found);
  if (input.stages_at_most && best.stages.size() > *input.stages_at_most) {
    return input_error(
        {},
        fmt::format("the published cost model plans {} stages, more than the {} allowed",
                    best.stages.size(), *input.stages_at_most),
        "its recurrence knows no limit; the calibrated cost model does");
  }
  plans.best = with_variants(input, {best});
  for (PlanCandidate& plan : plans.best) {
    plan.period_s = found->seconds;
    plan.flush.reset();
  }
  plans.restricted = states.frontiers.restricted;
  plans.frontiers = states.frontiers.size();
  plans.one_device_s = seconds(sums.forward.back() + sums.backward.back());
  add_whole_model(input, plans);
  const auto straight =
      published_plan(states, sums, levels, true, input.activation_transfers, input.progress);
  if (!straight) return planning_cancelled();
  if (straight->seconds < std::numeric_limits<double>::infinity())
    plans.straight = to_candidate(input, states, *straight);
  return plans;
}

}  // namespace

Bytes PlannerInput::temporary() const {
  Bytes most;
  for (const LayerCosts& layer : costs) most = std::max(most, layer.temporary);
  return most;
}

std::optional<Bytes> PlannerInput::memory() const {
  if (!cluster.memory) return std::nullopt;
  return Bytes{std::max<std::int64_t>(1, cluster.memory->count - temporary().count)};
}

std::string to_text(const Bottleneck& bottleneck) {
  std::string text;
  switch (bottleneck.kind) {
    case BottleneckKind::compute:
      text = fmt::format("compute of stage {}", bottleneck.stage);
      break;
    case BottleneckKind::all_reduce:
      text = fmt::format("all-reduce of stage {}", bottleneck.stage);
      break;
    case BottleneckKind::link:
      text = fmt::format("link {}", bottleneck.stage);
      break;
    case BottleneckKind::update:
      text = fmt::format("update of stage {}", bottleneck.stage);
      break;
    case BottleneckKind::round_trip:
      text = fmt::format("round trips of stage {}", bottleneck.stage);
      break;
    case BottleneckKind::flush:
      text = fmt::format("filling and emptying in front of stage {}", bottleneck.stage);
      break;
  }
  if (bottleneck.card) {
    text += fmt::format(" (network card of group {} at level {})", bottleneck.card->group,
                        bottleneck.card->level);
  }
  return text;
}

std::uint32_t PlanCandidate::devices_used() const {
  std::uint32_t sum = 0;
  for (const PlannedStage& stage : stages) sum += stage.replicas;
  return sum;
}

std::string PlanCandidate::config() const {
  std::string text;
  for (const PlannedStage& stage : stages)
    text += fmt::format("{}{}", text.empty() ? "" : "-", stage.replicas);
  return text;
}

Partition PlanCandidate::partition() const {
  Partition result;
  for (std::size_t s = 0; s < stages.size(); ++s)
    result.stages.push_back({stages[s].layers, devices[s]});
  return result;
}

Result<Plans> plan(const PlannerInput& input) {
  PLUMBLINE_CHECK(input.graph.size() > 0 && input.costs.size() == input.graph.size() &&
                      devices_of(input) > 0 && input.stages_at_most.value_or(1) > 0,
                  input.graph.size(), input.costs.size(), devices_of(input));
  return input.cost_model == CostModel::published ? plan_published(input) : plan_calibrated(input);
}

}  // namespace plumbline
