// The classes of cost of ops, stage by stage.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/op_classes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bug.h"

namespace plumbline {

StageCosts OpClasses::with_whole_updates(StageCosts costs) const {
  const auto& add_up = options_.overheads.add_up;
  const auto& stash = options_.overheads.stash;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const auto r = static_cast<std::int64_t>(graph_.members(static_cast<std::uint32_t>(s)));
    const bool stashes = !options_.weight_versions.empty() && options_.weight_versions[s] > 1;
    if (r == 1 && !stashes) continue;
    StageCost& stage = costs.stages[s];
    Duration more{};
    const auto shares = std::int64_t{options_.sharing.sharers(static_cast<std::uint32_t>(r))};
    // Of a group's share, the other groups' sums are added, too.
    const std::int64_t others = shares == 1 ? r - 1 : (shares - 1) + (r / shares - 1);
    if (add_up) more += others * transfer_time(stage.reduced, *add_up);
    if (stash && stashes) more += transfer_time(stage.parameters, *stash);
    const auto whole = static_cast<double>((stage.update + more).count());
    const Duration own = stage.update - stage.update_before + more;
    stage.update = stage.update_before + Duration{(own.count() + shares - 1) / shares};
    if (costs.slowdowns.empty() || whole == 0) continue;
    const double left = static_cast<double>(stage.update.count()) / whole;
    for (double& slowed : costs.slowdowns[s].update)
      slowed = (slowed + static_cast<double>(more.count())) * left;
  }
  return costs;
}

std::uint32_t OpClasses::slowdown_of(Duration hold,
                                     const std::vector<const std::vector<double>*>& parts,
                                     double work, Duration rest) {
  if (hold.count() == 0) return 0;
  std::vector<double> factors(parts.front()->size(), static_cast<double>(rest.count()));
  for (const std::vector<double>* part : parts) {
    for (std::size_t k = 0; k < factors.size(); ++k) factors[k] += work * (*part)[k];
  }
  for (double& factor : factors) factor /= static_cast<double>(hold.count());
  graph_.slowdowns.push_back(std::move(factors));
  return static_cast<std::uint32_t>(graph_.slowdowns.size() - 1);
}

void OpClasses::add_compute_class(Duration time, const StageSlowdown* slow,
                                  const std::vector<double> StageSlowdown::*own, Duration again,
                                  double work) {
  const Duration per_op = options_.overheads.per_op;
  Duration hold = time + again;
  if (work != 1) hold = Duration{std::llround(work * static_cast<double>(hold.count()))};
  hold += per_op;
  Cost cost{hold, {}, {}, {}, 0};
  if (slow != nullptr) {
    std::vector<const std::vector<double>*> parts = {&(slow->*own)};
    if (again.count() > 0) parts.push_back(&slow->again);
    cost.slowdown = slowdown_of(hold, parts, work, per_op);
  }
  graph_.costs.push_back(cost);
}

void OpClasses::add_op_classes(const StageCosts& costs, std::size_t stage, double work) {
  const StageCost& cost = costs.stages[stage];
  const StageSlowdown* const slow = costs.slowdowns.empty() ? nullptr : &costs.slowdowns[stage];
  const Duration again = options_.recompute != Recompute::none ? cost.again : Duration{};
  add_compute_class(cost.forward, slow, &StageSlowdown::forward, {}, work);
  add_compute_class(cost.backward, slow, &StageSlowdown::backward, again, work);
  add_compute_class(cost.backward_input, slow, &StageSlowdown::backward_input, again, work);
  add_compute_class(cost.backward_weight, slow, &StageSlowdown::backward_weight, {}, work);
}

void OpClasses::add(const StageCosts& given) {
  const StageCosts costs = with_whole_updates(given);
  lengths_ = costs.lengths;
  graph_.updates_at_once = costs.updates_at_once;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    add_op_classes(costs, s, 1);
    add_compute_class(costs.stages[s].update,
                      costs.slowdowns.empty() ? nullptr : &costs.slowdowns[s],
                      &StageSlowdown::update, {}, 1);
  }
  moment_class_ = static_cast<std::uint32_t>(graph_.costs.size());
  graph_.costs.push_back({});
  graph_.costs.push_back({options_.overheads.per_iteration, {}, {}, {}, 0});
  first_variant_class_ = static_cast<std::uint32_t>(graph_.costs.size());
  const auto costs_of = [&](std::uint32_t variant) -> const StageCosts& {
    return lengths_ ? lengths_->kinds[variant] : costs;
  };
  const bool any_variants = lengths_ || !options_.slice_work.empty();
  for (std::uint32_t variant = 0; any_variants && variant < variants(); ++variant) {
    for (std::size_t s = 0; s < costs.stages.size(); ++s)
      add_op_classes(costs_of(variant), s, work_of(variant));
  }
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    buckets_.push_back(static_cast<std::uint32_t>(costs.stages[s].buckets.size()));
    for (std::uint32_t variant = 0; variant < variants(); ++variant) {
      if (options_.recompute_early) add_early_classes(costs_of(variant), s, variant);
      add_part_classes(costs_of(variant).stages[s], s, variant);
    }
  }
  size_ = graph_.costs.size();
}

void OpClasses::add_early_classes(const StageCosts& costs, std::uint32_t stage,
                                  std::uint32_t variant) {
  first_early_class_.push_back(static_cast<std::uint32_t>(graph_.costs.size()));
  const StageCost& cost = costs.stages[stage];
  const StageSlowdown* const slow = costs.slowdowns.empty() ? nullptr : &costs.slowdowns[stage];
  add_compute_class(cost.again, slow, &StageSlowdown::again, {}, work_of(variant));
  add_compute_class(cost.backward, slow, &StageSlowdown::backward, {}, work_of(variant));
}

void OpClasses::add_part_classes(const StageCost& cost, std::uint32_t stage,
                                 std::uint32_t variant) {
  first_part_class_.push_back(static_cast<std::uint32_t>(graph_.costs.size()));
  const double work = work_of(variant);
  const bool each = by_layer(options_.recompute);
  const bool early = options_.recompute_early;
  const bool at_once = options_.recompute != Recompute::none && !each && !early;
  const auto add = [&](OpKind kind, Duration before, const auto& own) {
    const auto whole = early && kind == OpKind::backward
                           ? first_early_class_[place({stage}, variant)] + 1
                           : of_variant({stage}, static_cast<std::size_t>(kind), variant);
    const auto at = [&](Duration time) {
      return work == 1 ? time : Duration{std::llround(work * static_cast<double>(time.count()))};
    };
    Duration done{};
    Duration up_to = before;
    for (std::size_t part = 0; part < cost.buckets.size(); ++part) {
      up_to += own(part);
      add_part_class(at(up_to) - done, graph_.costs[whole]);
      done = at(up_to);
    }
  };
  const auto& buckets = cost.buckets;
  add(OpKind::forward, {}, [&](std::size_t i) { return buckets[buckets.size() - 1 - i].forward; });
  // The first part recomputes all activations, unless each part recomputes its own layers, or an
  // activity before the first part recomputes them.
  add(OpKind::backward, at_once ? cost.again : Duration{},
      [&](std::size_t i) { return buckets[i].backward + (each ? buckets[i].again : Duration{}); });
  add(OpKind::backward_weight, {}, [&](std::size_t i) { return buckets[i].backward_weight; });
}

void OpClasses::add_part_class(Duration time, const Cost& whole) {
  const Duration per_op = options_.overheads.per_op;  // each part is launched by itself
  Cost cost{time + per_op, {}, {}, {}, whole.slowdown};
  const Duration whole_time = whole.hold - per_op;
  if (whole.slowdown != 0 && per_op.count() > 0 && whole_time.count() > 0) {
    // A part slows down like the whole op beside its neighbours, except for its launch, whose time
    // is fixed.
    const auto ns = [](Duration one) { return static_cast<double>(one.count()); };
    std::vector<double> slowed = graph_.slowdowns[whole.slowdown];
    for (double& factor : slowed) factor = (factor * ns(whole.hold) - ns(per_op)) / ns(whole_time);
    cost.slowdown = slowdown_of(cost.hold, {&slowed}, ns(time), per_op);
  }
  graph_.costs.push_back(cost);
}

std::uint32_t OpClasses::of_part(const Op& op, std::size_t part, std::uint32_t copy) const {
  const std::size_t kind = op.kind == OpKind::forward ? 0 : op.kind == OpKind::backward ? 1 : 2;
  return first_part_class_[place(op.stage, variant(op.micro_batch.value, copy))] +
         static_cast<std::uint32_t>(kind * buckets_[op.stage.value] + part);
}

void set_op_times(const Schedule& schedule, const StageCosts& costs, const RunRules& options,
                  OpGraph& graph) {
  PLUMBLINE_CHECK(graph.pairs.empty(), graph.pairs.size());
  OpGraph other;
  other.stage_slots = graph.stage_slots;
  other.copies_represented = graph.copies_represented;
  OpClasses(schedule.shape, options, other).add(costs);
  PLUMBLINE_CHECK(other.costs.size() <= graph.costs.size(), other.costs.size(), graph.costs.size());
  std::copy(other.costs.begin(), other.costs.end(), graph.costs.begin());
  graph.slowdowns = std::move(other.slowdowns);
  graph.updates_at_once = std::move(other.updates_at_once);
}

}  // namespace plumbline
