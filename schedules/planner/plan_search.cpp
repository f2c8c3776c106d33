// The search from the last stage to the first, keeping the labels that no other one beats.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/plan_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/bug.h"
#include "schedules/planner/plan_formula.h"
#include "schedules/planner/plan_labels.h"
#include "schedules/stages/stage_costs.h"

namespace plumbline {
namespace {

/// Labels in a pool.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

class Search {
 public:
  Search(const SearchSpace& space, const SearchBounds& bounds,
         const std::function<bool(double)>& progress)
      : space_(space),
        bounds_(bounds),
        progress_(progress),
        frontiers_(*space.frontiers),
        sums_(*space.sums),
        max_replicas_(space.straight ? 1 : space.devices),
        per_op_(static_cast<double>(space.per_op.count())),
        flushed_(bounds.fewest && std::isinf(bounds.period_ns) ? std::nullopt
                                                               : space.residency.micro_batches),
        rules_(bounds, flushed_.has_value(), windows_grow(), space.stages_at_most.has_value()),
        inner_(ns_per_byte(space.inner)),
        outer_(ns_per_byte(space.outer)) {
    const std::uint32_t size = frontiers_.size();
    for (std::uint32_t f = 0; f < size; ++f) {
      const Duration both = sums_.forward[f] + sums_.backward[f];
      work_.push_back((both + sums_.update[f]).count());
      cut_bytes_.push_back(static_cast<double>(sums_.cut_bytes[f].count));
      // A little less, so that rounding skips nothing. No work needs no device, even if a period is
      // zero.
      const double spent = static_cast<double>(both.count()) +
                           count(sums_.update[f]) / space.residency.per_update(1);
      const double min = spent == 0 ? 0 : spent / bounds.period_ns * (1 - 1e-9);
      devices_in_front_.push_back(static_cast<std::uint32_t>(
          std::min(std::ceil(min), static_cast<double>(space.positions) + 1)));
    }
    entries_.resize(size);
    open_.resize(cells());
    closed_.resize(cells());
    for (std::uint32_t r = 1; r <= max_replicas_; ++r) {
      if (space.residency.takes(r))
        max_inputs_ = std::max(max_inputs_, r * space.residency.in_flight(space.devices, r));
    }
    min_in_flight_.assign(space.devices + 1, kManyInputs);
    for (std::uint32_t devices = 0; devices <= space.devices; ++devices) {
      for (std::uint32_t r = 1; r <= max_replicas_; ++r) {
        if (!space.residency.takes(r)) continue;
        const std::uint32_t in_flight = space.residency.in_flight(devices + r, r);
        min_in_flight_[devices] =
            std::min(min_in_flight_[devices], r * space.residency.with_activations(in_flight));
      }
    }
  }

  SearchOutcome run() {
    const std::uint32_t last = frontiers_.size() - 1;
    entries_[last].resize(cells());
    pool_.push_back({});
    for (std::uint32_t r = 1; r <= max_replicas_; ++r) entries_[last][cell(0, r)] = {0, 1};
    for (std::uint32_t k = last; k-- > 0;) {
      if (progress_ && !progress_(1.0 - static_cast<double>(k) / last))
        return {{}, SearchEnd::cancelled};
      if (pool_.size() > kMaxLabels || rules_.is_spent()) return {{}, SearchEnd::too_large};
      if (devices_in_front_[k] > space_.devices) continue;
      for (std::uint32_t j = k + 1; j <= last && !rules_.is_spent(); ++j) {
        if (!entries_[j].empty() && frontiers_.within(k, j)) place_stages(k, j);
      }
      if (k > 0) add_boundaries(k);
    }
    return {roots(), SearchEnd::complete};
  }

 private:
  static double count(Duration time) { return static_cast<double>(time.count()); }
  /// Whether the number of devices behind a stage makes its window larger.
  bool windows_grow() const {
    const auto window = space_.residency.window;
    return flushed_ && window(1, *flushed_) != window(space_.devices, *flushed_);
  }
  static double ns_per_byte(const Link& link) {
    return link.bandwidth ? 1e9 / static_cast<double>(link.bandwidth->count) : 0;
  }
  std::size_t cells() const {
    return (std::size_t{space_.positions} + 1) * (std::size_t{max_replicas_} + 1);
  }
  std::size_t cell(std::uint32_t position, std::uint32_t replicas) const {
    return std::size_t{replicas} * (std::size_t{space_.positions} + 1) + position;
  }
  /// The bytes of a cut at frontier f on links.
  double sent(std::uint32_t f) const { return space_.activation_transfers ? cut_bytes_[f] : 0; }
  double transfer(std::uint32_t f, const Link& link) const {
    return space_.activation_transfers ? transfer_ns(sums_.cut_bytes[f], link) : 0;
  }

  /// Places all stages from frontier k to frontier j in front of all labels behind j.
  void place_stages(std::uint32_t k, std::uint32_t j) {
    const std::int64_t work = work_[j] - work_[k];
    const bool whole = k == 0 && j + 1 == frontiers_.size();
    if (work == 0 && !whole) return;
    FormulaStage stage = stage_between(k, j);
    const double both = stage.forward_ns + stage.backward_ns;
    if (both / max_replicas_ > bounds_.period_ns) return;
    const double before = count(sums_.update_before[j] - sums_.update_before[k]);
    const double update = count(sums_.update[j] - sums_.update[k]) - before;
    for (std::uint32_t r = 1; r <= max_replicas_; ++r) {
      if (both / r > bounds_.period_ns || !space_.residency.takes(r)) continue;
      stage.update_ns = update / (space_.residency.sharded_optimizer ? r : 1) + before + per_op_;
      const double compute = compute_ns(stage, space_.residency, r) / r;
      const double ring = ring_bytes(reduced_bytes(stage, space_.residency), r);
      const double apart = space_.residency.per_reduction(r);
      for (std::uint32_t position = 0; position + r <= space_.positions; ++position) {
        const Range range = entries_[j][cell(position, r)];
        if (range.count == 0) continue;
        if (space_.positions - position - r < devices_in_front_[k]) break;
        const double reduce = all_reduce(position, r, ring);
        const double own = std::max(compute, reduce / apart);
        if (own > bounds_.period_ns) continue;
        for (std::uint32_t i = range.begin; i < range.begin + range.count; ++i) {
          Label label = pool_[i];
          label.next = i;
          label.period = std::max(label.period, own);
          const double again = recompute_ns(stage, label.devices + r, r);
          label.period = std::max(label.period, compute + again / r);
          if (flushed_) {
            const double without = stage.backward_ns;
            stage.backward_ns += again;
            label.chain = with_front(
                label.chain, flush_stage(stage, space_.residency, label.devices + r, r, reduce));
            stage.backward_ns = without;
          }
          if (label.period > bounds_.period_ns) continue;
          place_stage(k, j, stage, r, position, label, ring / apart);
        }
      }
    }
  }

  /// The time of an all-reduce, as all_reduce_ns: 2 (r - 1) latencies and the ring's bytes over its
  /// slowest kind of link.
  double all_reduce(std::uint32_t position, std::uint32_t r, double ring) const {
    if (r == 1 || ring == 0) return 0;
    const std::uint32_t groups = (position + r - 1) / space_.group - position / space_.group + 1;
    const double steps = 2.0 * (r - 1);
    const double inner = steps * static_cast<double>(space_.inner.latency.count()) + ring * inner_;
    const double outer = steps * static_cast<double>(space_.outer.latency.count()) + ring * outer_;
    return groups == 1 ? inner : groups == r ? outer : std::max(inner, outer);
  }

  /// The time to recompute activations on one of r replicas, with `devices` devices from the stage
  /// to the end.
  double recompute_ns(const FormulaStage& stage, std::uint32_t devices, std::uint32_t r) const {
    if (!space_.residency.as_few_as_fit) return 0;
    return recompute_that_fits_ns(stage, space_.residency.in_flight(devices, r), *space_.memory,
                                  space_.residency,
                                  space_.optimizer_state * space_.residency.optimizer_share(r));
  }

  /// The part of a stage that does not depend on its devices.
  FormulaStage stage_between(std::uint32_t k, std::uint32_t j) const {
    FormulaStage stage;
    stage.forward_ns = count(sums_.forward[j] - sums_.forward[k]) + per_op_;
    stage.backward_ns = count(sums_.backward[j] - sums_.backward[k]) + per_op_;
    stage.parameters = sums_.parameters[j] - sums_.parameters[k];
    stage.stepped = sums_.stepped[j] - sums_.stepped[k];
    stage.gradients = gradient_bytes(stage.parameters, space_.gradient_width);
    stage.gathered = sums_.reduced[j] - sums_.reduced[k];
    stage.reduced = gradient_bytes(stage.gathered, space_.gradient_width);
    stage.activation = sums_.activation[j] - sums_.activation[k];
    stage.cut_bytes = sums_.cut_bytes[j];
    stage.entering = sums_.cut_bytes[k];
    stage.recompute_ns = count(sums_.again[j] - sums_.again[k]);
    if (space_.memory && by_layer(space_.residency.recompute))
      stage.checkpoints = space_.checkpoints->between(frontiers_, k, j);
    return stage;
  }

  /// `label` holds the effects of the stage's own times. Each of its replicas sends `each` bytes to
  /// the next one for one micro-batch.
  void place_stage(std::uint32_t k, std::uint32_t j, const FormulaStage& stage, std::uint32_t r,
                   std::uint32_t position, Label label, double each) {
    label.devices += r;
    label.stages += 1;
    if (label.devices + devices_in_front_[k] > space_.devices) return;
    if (space_.stages_at_most && label.stages + (k > 0 ? 1 : 0) > *space_.stages_at_most) return;
    if (space_.memory) {
      // All replicas of a stage in front together hold at least this much, and one version. The
      // shares of a sharded optimizer state add up to one state.
      const double held =
          static_cast<double>(sums_.activation[k].count) * min_in_flight_[label.devices] +
          (1 + space_.gradient_width) * static_cast<double>(sums_.parameters[k].count) +
          space_.optimizer_state * static_cast<double>(sums_.stepped[k].count);
      const double front = std::ceil(held / static_cast<double>(space_.memory->count) * (1 - 1e-9));
      if (label.devices + front > space_.devices) return;
      if (position + r + front > space_.positions) return;
    }
    if (flushed_) {
      // All work in front has to be done before and after.
      const double forward = count(sums_.forward[k]);
      const double min = std::max(label.chain.end() + forward,
                                  label.chain.span + forward + count(sums_.backward[k]));
      label.period = std::max(label.period, min / *flushed_);
    }
    label.last = j;
    label.replicas = r;
    label.position = position;
    label.traffic += each * r;

    // The cards of the groups that the stage reaches. All but the last are full: no stage in front
    // will join them, so all their replicas' inputs enter the group.
    const std::uint32_t group = space_.group;
    const std::uint32_t end = position + r;
    const std::uint32_t first_group = position / group;
    const std::uint32_t last_group = (end - 1) / group;
    if (last_group > first_group) {
      const double in_first = first_group * group + group - position;
      const double first = label.card + each + in_first / r * sent(k);
      label.period = std::max(label.period, first * outer_);
      if (last_group > first_group + 1) {
        const double between = each + static_cast<double>(group) / r * (sent(j) + sent(k));
        label.period = std::max(label.period, between * outer_);
      }
      label.card = each + static_cast<double>(end - last_group * group) / r * sent(j);
    }
    if (end % group == 0) {
      const double in_last = std::min(r, group);
      label.period = std::max(label.period, (label.card + in_last / r * sent(k)) * outer_);
      label.card = 0;
    }
    if (outer_ == 0) label.card = 0;
    if (std::max(label.period, label.card * outer_) > bounds_.period_ns) return;
    if (space_.memory && !fits(k, stage, r, label)) return;
    rules_.keep(open_[cell(end, r)], label);
  }

  /// Whether the stage fits the memory without its inputs; sets the number of inputs for which
  /// there is room.
  bool fits(std::uint32_t k, const FormulaStage& stage, std::uint32_t r, Label& label) const {
    const double held =
        peak_memory(stage, space_.residency.in_flight(label.devices, r), {}, space_.residency,
                    space_.optimizer_state * space_.residency.optimizer_share(r));
    const double left = static_cast<double>(space_.memory->count) - held;
    if (left < 0) return false;
    label.inputs = kManyInputs;
    if (k > 0 && cut_bytes_[k] > 0) {
      label.inputs = static_cast<std::uint32_t>(
          std::min(std::floor(left / cut_bytes_[k]), static_cast<double>(kManyInputs)));
    }
    // More room than any stage in front can fill counts as unlimited.
    if (label.inputs >= max_inputs_) label.inputs = kManyInputs;
    return label.inputs > 0;
  }

  /// Adds a place for the next stage in front of all labels that begin at frontier k.
  void add_boundaries(std::uint32_t k) {
    for (std::uint32_t r = 1; r <= max_replicas_; ++r) {
      for (std::uint32_t end = r; end <= space_.positions; ++end) {
        std::vector<Label>& labels = open_[cell(end, r)];
        if (labels.empty()) continue;
        const std::uint32_t max = std::min(max_replicas_, space_.positions - end);
        for (std::uint32_t front = 1; front <= max; ++front) {
          for (const Label& label : labels) go_on(k, end, front, label);
        }
        if (end % space_.group != 0) {
          const std::uint32_t next = end - end % space_.group + space_.group;
          for (std::uint32_t front = 1;
               next < space_.positions && front <= std::min(max, space_.positions - next);
               ++front) {
            for (const Label& label : labels) skip_to(k, end, next, front, label);
          }
        }
        labels.clear();
      }
    }
    flush(k);
  }

  /// The most of `r` replicas from a position on that are in one group.
  std::uint32_t max_together(std::uint32_t position, std::uint32_t r) const {
    const std::uint32_t first = std::min(r, space_.group - position % space_.group);
    return std::max(first, std::min(r - first, space_.group));
  }
  /// Crosses the link at frontier k, with a flush. One pair of replicas has at most the share
  /// `of_pair` of its traffic, and one card `of_card`. The latter is 0 if no traffic goes from
  /// group to group.
  void cross(std::uint32_t k, double of_pair, double of_card, Label& label) const {
    if (!flushed_ || sent(k) == 0) return;
    FlushLink link{std::numeric_limits<double>::infinity(), 0};
    const auto add = [&](double share, double ns_per_byte, const Link& by) {
      if (share <= 0) return;
      link.transfer = std::min(link.transfer, transfer(k, by));
      link.load = std::max(link.load, *flushed_ * share * sent(k) * ns_per_byte);
    };
    add(of_pair, inner_, space_.inner);
    add(of_card, outer_, space_.outer);
    label.chain = across(label.chain, link);
  }

  /// The next stage begins at the next position.
  void go_on(std::uint32_t k, std::uint32_t end, std::uint32_t front, Label label) {
    const std::uint32_t group = space_.group;
    const std::uint32_t r = label.replicas;
    const std::uint32_t used = end % group;
    if (used == 0) return begin_group(k, end, front, label);
    // Replicas 0..u-1 of the stage behind share the group with the last v of the one in front.
    const std::uint32_t u = std::min(r, used);
    const std::uint32_t v = std::min(front, group - used);
    const double of_behind = static_cast<double>(u) / r;
    const double of_front = static_cast<double>(v) / front;
    const double together = share_together(r, u, front, v);
    label.card += std::max(0.0, of_behind + of_front - 2 * together) * sent(k);
    double pair = 0;
    if (together > 0) {
      pair = 1.0 / static_cast<double>(std::lcm(r, front));
      label.period = std::max(label.period, pair * sent(k) * inner_);
    }
    const double elsewhere = std::max(static_cast<double>(max_together(end - r, r - u)) / r,
                                      static_cast<double>(std::min(front - v, group)) / front);
    cross(k, pair,
          together < 1 ? std::max({of_behind - together, of_front - together, elsewhere}) : 0,
          label);
    enter(k, end, front, label);
  }

  /// The next stage begins at the next group; the rest of this group stays unused.
  void skip_to(std::uint32_t k, std::uint32_t end, std::uint32_t next, std::uint32_t front,
               Label label) {
    const double in_last = std::min(label.replicas, end % space_.group);
    label.period =
        std::max(label.period, (label.card + in_last / label.replicas * sent(k)) * outer_);
    begin_group(k, next, front, label);
  }

  /// The next stage is the first of its group.
  void begin_group(std::uint32_t k, std::uint32_t position, std::uint32_t front, Label& label) {
    const double of_front = static_cast<double>(std::min(front, space_.group)) / front;
    const double of_behind =
        static_cast<double>(max_together(label.position, label.replicas)) / label.replicas;
    label.card = of_front * sent(k);
    cross(k, 0, std::max(of_front, of_behind), label);
    enter(k, position, front, label);
  }

  void enter(std::uint32_t k, std::uint32_t position, std::uint32_t front, Label& label) {
    if (outer_ == 0) label.card = 0;
    if (std::max(label.period, label.card * outer_) > bounds_.period_ns) return;
    if (label.devices + front > space_.devices) return;
    if (space_.memory) {
      const std::uint32_t in_flight = space_.residency.in_flight(label.devices + front, front);
      if (inputs_held(front, in_flight, label.replicas) > label.inputs) return;
      label.inputs = kManyInputs;
    }
    label.traffic += 2 * cut_bytes_[k];
    rules_.keep(closed_[cell(position, front)], label);
  }

  void flush(std::uint32_t k) {
    bool any = false;
    for (std::size_t c = 0; c < closed_.size(); ++c) {
      if (closed_[c].empty()) continue;
      if (!any) entries_[k].assign(cells(), {});
      any = true;
      entries_[k][c] = {static_cast<std::uint32_t>(pool_.size()),
                        static_cast<std::uint32_t>(closed_[c].size())};
      pool_.insert(pool_.end(), closed_[c].begin(), closed_[c].end());
      closed_[c].clear();
    }
  }

  /// The share of micro-batches m with both m mod r < u and m mod front >= front - v.
  static double share_together(std::uint32_t r, std::uint32_t u, std::uint32_t front,
                               std::uint32_t v) {
    if (u == r && v == front) return 1;
    const std::uint32_t common = std::gcd(r, front);
    std::uint64_t pairs = 0;  // each pair with a = b (mod gcd) meets once in lcm micro-batches
    for (std::uint32_t a = 0; a < u; ++a) {
      for (std::uint32_t b = front - v; b < front; ++b) pairs += a % common == b % common ? 1 : 0;
    }
    return static_cast<double>(pairs) / static_cast<double>(std::lcm(r, front));
  }

  std::vector<FoundPlan> roots() const {
    std::vector<const Label*> labels;
    for (const std::vector<Label>& of_cell : open_) {
      for (const Label& label : of_cell) labels.push_back(&label);
    }
    const auto period = [this](const Label& label) {
      return std::max(label.period, label.card * outer_);
    };
    std::vector<FoundPlan> plans;
    if (labels.empty()) return plans;
    std::sort(labels.begin(), labels.end(), [&](const Label* a, const Label* b) {
      if (!bounds_.fewest && period(*a) != period(*b)) return period(*a) < period(*b);
      return is_before(*a, *b);
    });
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> seen;
    for (const Label* label : labels) {
      if (!seen.try_emplace({label->devices, label->replicas}, true).second) continue;
      FoundPlan plan;
      plan.period_ns = period(*label);
      plan.traffic = label->traffic;
      for (const Label* at = label; at->replicas > 0; at = &pool_[at->next]) {
        plan.stages.push_back({at->last, at->replicas, at->position});
      }
      plans.push_back(std::move(plan));
      if (bounds_.fewest) break;
    }
    return plans;
  }

  const SearchSpace& space_;
  const SearchBounds& bounds_;
  const std::function<bool(double)>& progress_;
  const Frontiers& frontiers_;
  const FrontierSums& sums_;
  std::uint32_t max_replicas_;
  double per_op_;
  std::optional<std::uint32_t> flushed_;  ///< Micro-batches between two flushes.
  LabelRules rules_;
  double inner_, outer_;  ///< Nanoseconds per byte.
  std::vector<std::int64_t> work_;
  std::vector<double> cut_bytes_;
  std::vector<std::uint32_t> devices_in_front_;  ///< The least number for the work in front.
  std::uint32_t max_inputs_ = 1;                 ///< The most micro-batches in flight in front.
  /// By the devices behind a stage: the least number of micro-batches in flight on all its replicas
  /// together.
  std::vector<std::uint32_t> min_in_flight_;
  std::vector<Label> pool_;
  /// Labels per frontier, by position and replicas of the stage in front of it; empty = none.
  std::vector<std::vector<Range>> entries_;
  std::vector<std::vector<Label>> open_;  ///< Labels of the present frontier, by end and replicas.
  std::vector<std::vector<Label>> closed_;  ///< The same, by the place of the next stage.
};

}  // namespace

std::uint32_t FoundPlan::devices() const {
  std::uint32_t sum = 0;
  for (const Stage& stage : stages) sum += stage.replicas;
  return sum;
}

SearchOutcome search_plans(const SearchSpace& space, const SearchBounds& bounds,
                           const std::function<bool(double)>& progress) {
  PLUMBLINE_CHECK(space.frontiers->size() >= 2, space.frontiers->size());
  return Search(space, bounds, progress).run();
}

}  // namespace plumbline
