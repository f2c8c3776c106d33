// Sensitivities are evaluated side by side; where their gain ends is found by Newton's method on a
// convex function.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sensitivity.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "sim/engine/compiled_graph.h"
#include "sim/engine/critical.h"
#include "sim/engine/simulate.h"
#include "sim/prediction/iteration_clock.h"

namespace plumbline {
namespace {

/// An entry of the tables that a sensitivity makes shorter, and by how much at most.
struct Part {
  bool is_latency = false;
  std::uint32_t entry = 0;
  std::int64_t weight = 0;
};

/// A sensitivity with what it moves.
struct Handle {
  Sensitivity sensitivity;
  std::vector<Part> parts;
  std::int64_t unit = 1;  ///< The greatest number that divides all weights.
};

/// The tables of a graph with an entry for each kind of op of each stage and for each link, and the
/// handles on them.
class Handles {
 public:
  explicit Handles(const Outcome& outcome)
      : graph_(outcome.graph),
        cluster_(outcome.setup.cluster),
        copies_(outcome.setup.copies()),
        index_(index_by_class(outcome.graph)) {
    const OpGraph& graph = graph_;
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const ActivityKind kind = graph.activities[node].kind;
      if (is_compute(kind)) {
        add_op(node);
      } else if (is_transfer(kind) || is_collective(kind)) {
        add_transfer(node);
      } else if (kind == ActivityKind::overhead) {
        add({SensitivityKind::overhead, 0, 0}, false, index_.hold[node], graph.cost(node).hold);
      }
    }
    count_links();
    drop_only_ones();
    for (Handle& handle : handles_) {
      if (handle.sensitivity.kind < SensitivityKind::update)
        handle.sensitivity.now = whole_op(handle);
      handle.unit = 0;
      for (const Part& part : handle.parts) handle.unit = std::gcd(handle.unit, part.weight);
    }
  }

  const CostIndex& index() const { return index_; }
  std::vector<Handle>& all() { return handles_; }

  /// The handles that an activity hangs on.
  std::vector<std::size_t> of(std::uint32_t node) const {
    std::vector<std::size_t> found;
    for (const bool is_latency : {false, true}) {
      const auto& entries = is_latency ? index_.latency : index_.hold;
      const auto range = by_entry_.equal_range({is_latency, entries[node]});
      for (auto at = range.first; at != range.second; ++at) found.push_back(at->second);
    }
    return found;
  }

 private:
  /// Kind, stage or sender, receiver; kEvery for all of a kind.
  using Key = std::tuple<SensitivityKind, std::uint32_t, std::uint32_t>;
  static constexpr std::uint32_t kEvery = ~std::uint32_t{0};

  void add_op(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    constexpr SensitivityKind kinds[] = {
        SensitivityKind::forward,        SensitivityKind::backward,
        SensitivityKind::backward_input, SensitivityKind::backward_weight,
        SensitivityKind::backward,       SensitivityKind::backward_weight,
        SensitivityKind::forward,        SensitivityKind::update};
    add({kinds[static_cast<std::size_t>(activity.kind)], activity.stage.value, 0}, false,
        index_.hold[node], graph_.cost(node).hold);
  }

  void count_links() {
    for (const auto& place : alike_) {
      for (Handle& handle : handles_) {
        const Sensitivity& sensitivity = handle.sensitivity;
        const bool is_link = sensitivity.kind == SensitivityKind::latency ||
                             sensitivity.kind == SensitivityKind::bandwidth;
        const std::pair link{sensitivity.from.value, sensitivity.to.value};
        if (is_link && !sensitivity.every && link == place.second.front())
          handle.sensitivity.links = static_cast<std::uint32_t>(place.second.size());
      }
    }
  }

  /// Every F of a run with one stage is that of the stage.
  void drop_only_ones() {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      if (!handles_[i].sensitivity.every) continue;
      const SensitivityKind kind = handles_[i].sensitivity.kind;
      const auto alike = std::count_if(handles_.begin(), handles_.end(), [&](const Handle& other) {
        return other.sensitivity.kind == kind;
      });
      if (alike == 2) handles_[i].parts.clear();
    }
  }

  /// Ops may be cut into buckets, a part each; slices may differ from their mean.
  Duration whole_op(const Handle& handle) const {
    const auto kind = static_cast<std::size_t>(handle.sensitivity.kind);  // as the class of cost
    Duration longest{};
    for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s) {
      if (handle.sensitivity.every || handle.sensitivity.stage.value == s)
        longest = std::max(longest, graph_.cost_of({s}, kind).hold);
    }
    return longest;
  }

  /// Links share classes of cost where they cost the same: each gets entries of its own.
  void add_transfer(std::uint32_t node) {
    const std::uint32_t from = graph_.sender(node);
    const std::uint32_t to = graph_.receiver(node);
    const Cost& cost = graph_.cost(node);
    const auto own = [&](std::vector<std::uint32_t>& entries, std::vector<Duration>& table,
                         std::size_t which) {
      const auto [found, is_new] = own_entries_[which].try_emplace(
          {from, to, graph_.nodes[node].cost}, static_cast<std::uint32_t>(table.size()));
      if (is_new) table.push_back(which == 0 ? cost.hold : cost.latency);
      entries[node] = found->second;
    };
    own(index_.hold, index_.holds, 0);
    own(index_.latency, index_.latencies, 1);
    const auto [a, b] = link_for(graph_.devices[from].value, graph_.devices[to].value);
    add({SensitivityKind::latency, a, b}, true, index_.latency[node], cost.latency);
    // A blocking transfer holds its streams through the latency too.
    add({SensitivityKind::latency, a, b}, false, index_.hold[node], cost.lead);
    add({SensitivityKind::bandwidth, a, b}, false, index_.hold[node], cost.hold - cost.lead);
  }

  /// The first link that was seen of those in the same place; see Sensitivity::links.
  std::pair<std::uint32_t, std::uint32_t> link_for(std::uint32_t a, std::uint32_t b) {
    if (copies_ == 1) return {a, b};
    std::size_t level = 0;  // the innermost that both are in
    for (std::uint32_t size = cluster_.levels[0].size; a / size != b / size; ++level)
      size *= cluster_.levels[level + 1].size;
    const bool within = a % copies_ == b % copies_;  // a copy, or a ring between them
    auto& links = alike_[{a / copies_, b / copies_, level, within}];
    if (std::find(links.begin(), links.end(), std::pair{a, b}) == links.end())
      links.emplace_back(a, b);
    return links.front();
  }

  void add(const Key& key, bool is_latency, std::uint32_t entry, Duration time) {
    if (time.count() == 0) return;
    const auto kind = std::get<0>(key);
    add_to(key, is_latency, entry, time);
    if (kind != SensitivityKind::overhead) add_to({kind, kEvery, kEvery}, is_latency, entry, time);
  }

  void add_to(const Key& key, bool is_latency, std::uint32_t entry, Duration time) {
    const auto [found, is_new] = by_key_.try_emplace(key, handles_.size());
    if (is_new) {
      Handle handle;
      handle.sensitivity.kind = std::get<0>(key);
      handle.sensitivity.every = std::get<1>(key) == kEvery;
      handle.sensitivity.stage = {std::get<1>(key)};
      handle.sensitivity.from = {std::get<1>(key)};
      handle.sensitivity.to = {std::get<2>(key)};
      handles_.push_back(std::move(handle));
    }
    Handle& handle = handles_[found->second];
    const auto same = [&](const Part& part) {
      return part.entry == entry && part.is_latency == is_latency;
    };
    if (std::any_of(handle.parts.begin(), handle.parts.end(), same)) return;
    handle.parts.push_back({is_latency, entry, time.count()});
    by_entry_.insert({{is_latency, entry}, found->second});
    handle.sensitivity.now = std::max(handle.sensitivity.now, time);
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  std::uint32_t copies_ = 1;
  CostIndex index_;
  /// By the devices in a copy of sender and receiver, the level that joins them, and whether they
  /// are of one copy.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t, bool>,
           std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      alike_;
  std::vector<Handle> handles_;
  std::map<Key, std::size_t> by_key_;
  std::multimap<std::pair<bool, std::uint32_t>, std::size_t> by_entry_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> own_entries_[2];
};

/// What one evaluation tells at a point x of an end: when it is, and by how much later as x goes
/// down from there (or earlier as x goes up), both in nanoseconds.
struct Point {
  double length = 0;
  double slope = 0;
};

/// The ends between which the clock times: each is a convex function of x, being the longest of
/// many paths; what lies between them need not be.
struct Ends {
  Point first;  ///< The begin of the run, which nothing moves, or that of the steady state.
  Point last;

  Point between() const { return {last.length - first.length, last.slope - first.slope}; }
};

/// Which way the times are moved by an infinitely small step.
enum class Side : std::int64_t { shorter = -1, longer = 1 };

/// A graph with the places of its times in a table.
struct Indexed {
  OpGraph graph;
  CostIndex index;
};

/// What lies on any longest path. What is infinitely little shorter moves its end as it moves that
/// of the whole: whatever a node on a longest path had to wait for to the end lies on one too.
Indexed critical_part(const Outcome& outcome, const CostIndex& index) {
  const OpGraph& graph = outcome.graph;
  const std::vector<Duration> slacks = slack(graph, outcome.trace);
  std::vector<std::uint32_t> place(std::size_t{graph.size()} + 1);
  std::uint32_t size = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (slacks[node].count() == 0) place[node] = size++;
  }
  const auto is_critical = [&](std::uint32_t node) {
    return node != graph.size() && slacks[node].count() == 0;
  };
  Indexed part;
  part.graph.devices = graph.devices;
  part.graph.channels = graph.channels;
  part.graph.moments = graph.moments;
  part.graph.costs = graph.costs;
  part.index.holds = index.holds;
  part.index.latencies = index.latencies;
  auto join = graph.joins.begin();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const bool joins = join != graph.joins.end() && join->node == node;
    if (is_critical(node)) {
      Node copy = graph.nodes[node];
      copy.input = is_critical(copy.input) ? place[copy.input] : size;
      part.graph.nodes.push_back(copy);
      part.graph.activities.push_back(graph.activities[node]);
      part.index.hold.push_back(index.hold[node]);
      part.index.latency.push_back(index.latency[node]);
      if (joins) {
        Join kept{place[node], {}};
        for (const std::uint32_t producer : join->inputs) {
          if (is_critical(producer)) kept.inputs.push_back(place[producer]);
        }
        part.graph.joins.push_back(std::move(kept));
      }
    }
    if (joins) ++join;
  }
  return part;
}

/// Evaluates sensitivities at points, 16 at a time.
class Evaluator {
 public:
  Evaluator(const OpGraph& graph, const CostIndex& index, const IterationClock& clock)
      : clock_(clock), compiled_(graph, index, clock.watched()) {
    plain_ = compiled_.tables();
    compiled_.evaluate(plain_, workspace_, rows_);
    end_ = std::max<std::int64_t>(rows_[0], 1);
    constexpr std::int64_t max = std::int64_t{1} << 62;
    scale_ = max / end_;
    for (const auto& [entries, counts] :
         {std::pair{&index.hold, &holds_}, std::pair{&index.latency, &latencies_}}) {
      for (const std::uint32_t entry : *entries) {
        if (entry >= counts->size()) counts->resize(std::size_t{entry} + 1);
        ++(*counts)[entry];
      }
    }
  }

  /// `handles[i]` made shorter by the share `x[i]`, for each i; at most 16 of them.
  std::vector<Ends> at(const std::vector<const Handle*>& handles, const std::vector<double>& x,
                       Side side) {
    CompiledGraph::Tables tables = plain_;
    for (std::int64_t& time : tables.hold) time *= scale_;
    for (std::int64_t& time : tables.latency) time *= scale_;
    std::vector<double> steps;
    steps.reserve(handles.size());
    for (std::size_t lane = 0; lane < handles.size(); ++lane) {
      const Handle& handle = *handles[lane];
      steps.push_back(step_of(handle));
      for (const Part& part : handle.parts) {
        std::int64_t& time =
            (part.is_latency ? tables.latency
                             : tables.hold)[part.entry * CompiledGraph::kLanes + lane];
        const auto less = std::llround(x[lane] * static_cast<double>(part.weight));
        time +=
            -less * scale_ + static_cast<std::int64_t>(side) * steps_in(part.weight, steps[lane]);
      }
    }
    compiled_.evaluate(tables, workspace_, rows_);
    std::vector<Ends> ends;
    ends.reserve(handles.size());
    const auto row = [&](std::size_t index, std::size_t lane) {
      return read(rows_[index * CompiledGraph::kLanes + lane], side, steps[lane]);
    };
    for (std::size_t lane = 0; lane < handles.size(); ++lane) {
      if (clock_.watched().empty()) {
        ends.push_back({{}, row(0, lane)});
      } else {
        ends.push_back({row(1, lane), row(2, lane)});
      }
    }
    return ends;
  }

  /// How much of an op's part of a slope the steps may miss.
  double missed_by_steps(const Handle& handle) const {
    const double step = step_of(handle);
    double max = 0;
    for (const Part& part : handle.parts) {
      const double counted = step * static_cast<double>(steps_in(part.weight, step));
      max = std::max(max, std::abs(counted - static_cast<double>(part.weight)));
    }
    return max;
  }

 private:
  static std::int64_t steps_in(std::int64_t weight, double step) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(weight) / step));
  }

  /// Weights are counted in steps of the unit, which keeps their ratio; in longer ones where those
  /// on one path could add up to more than what times are multiplied by. No path has more than its
  /// end holds, nor more than all nodes together.
  double step_of(const Handle& handle) const {
    double all = 0;
    std::int64_t largest = handle.unit;
    for (const Part& part : handle.parts) {
      const auto& counts = part.is_latency ? latencies_ : holds_;
      const std::uint32_t nodes = part.entry < counts.size() ? counts[part.entry] : 0;
      largest = std::max(largest, part.weight);
      all += static_cast<double>(part.weight) * nodes;
    }
    const double max = std::min(all, static_cast<double>(end_));
    const double min = max / (0.9 * static_cast<double>(scale_));
    const auto unit = static_cast<double>(handle.unit);
    return min <= unit ? unit : std::min(min, static_cast<double>(largest));
  }

  /// `value` is time x scale +- steps.
  Point read(std::int64_t value, Side side, double per_step) const {
    const std::int64_t time = side == Side::longer ? value / scale_ : (value + scale_ - 1) / scale_;
    const std::int64_t steps = side == Side::longer ? value - time * scale_ : time * scale_ - value;
    return {static_cast<double>(time), static_cast<double>(steps) * per_step};
  }

  const IterationClock& clock_;
  CompiledGraph compiled_;
  CompiledGraph::Tables plain_;
  CompiledGraph::Workspace workspace_;
  std::vector<std::int64_t> rows_;
  std::int64_t end_ = 1;
  std::int64_t scale_ = 1;
  std::vector<std::uint32_t> holds_;  ///< How many nodes have each entry.
  std::vector<std::uint32_t> latencies_;
};

void settle(Sensitivity& sensitivity, double slope, const IterationClock& clock) {
  sensitivity.gain_s = clock.iteration_time_s(slope);
  sensitivity.derivative = sensitivity.gain_s / seconds(sensitivity.now);
}

/// An end is at T(x) = T(0) - slope x until another path takes over; how far that is, for each
/// handle. Newton's method from x = 1 towards 0: the next x is where the line through the current
/// point meets that line. `end` is one of those at `near`, which are at x = 0.
std::vector<double> line_ends(Evaluator& evaluator, const std::vector<Handle*>& followed,
                              const std::vector<Ends>& near, Point Ends::*end) {
  constexpr int max_rounds = 40;
  std::vector<const Handle*> handles(followed.begin(), followed.end());
  std::vector<double> x(followed.size(), 1);
  std::vector<bool> found(followed.size(), false);
  for (int round = 0; round < max_rounds; ++round) {
    const std::vector<Ends> ends = evaluator.at(handles, x, Side::longer);
    for (std::size_t i = 0; i < followed.size(); ++i) {
      if (found[i]) continue;
      const Point& start = near[i].*end;
      const Point& point = ends[i].*end;
      const double above = point.length - (start.length - start.slope * x[i]);
      // Times are whole nanoseconds: half of one for each of the ops in a row is no difference, nor
      // is what the slope has missed of it.
      const double ops = start.slope / static_cast<double>(followed[i]->sensitivity.now.count());
      const double rounding = ops * (0.5 + evaluator.missed_by_steps(*followed[i])) + 1;
      const double steeper = start.slope - point.slope;
      found[i] = above <= rounding;
      if (!found[i]) x[i] = steeper > 0 ? std::clamp(x[i] - above / steeper, 0.0, x[i]) : 0;
    }
    if (std::all_of(found.begin(), found.end(), [](bool f) { return f; })) break;
  }
  return x;
}

/// How far each gain holds: as far as both ends that are timed are on their lines.
void follow(Evaluator& evaluator, const IterationClock& clock, const std::vector<Handle*>& followed,
            const std::vector<Ends>& near) {
  const std::vector<const Handle*> handles(followed.begin(), followed.end());
  const std::vector<double> all(followed.size(), 1);
  const std::vector<Ends> far = evaluator.at(handles, all, Side::longer);
  std::vector<double> until = line_ends(evaluator, followed, near, &Ends::last);
  if (!clock.watched().empty()) {
    const std::vector<double> first = line_ends(evaluator, followed, near, &Ends::first);
    for (std::size_t i = 0; i < until.size(); ++i) until[i] = std::min(until[i], first[i]);
  }
  for (std::size_t i = 0; i < followed.size(); ++i) {
    followed[i]->sensitivity.min_s = clock.iteration_time_s(far[i].between().length);
    followed[i]->sensitivity.until = until[i];
  }
}

void evaluate_exactly(const Outcome& outcome, const CostIndex& index,
                      std::vector<Handle*>& handles) {
  const IterationClock clock(outcome);
  // The steady state of an asynchronous run has two ends, so all of its graph matters.
  const bool steady = !clock.watched().empty();
  const Indexed part = steady ? Indexed{outcome.graph, index} : critical_part(outcome, index);
  Evaluator near(part.graph, part.index, clock);
  std::map<const Handle*, Ends> near_ends;
  for (std::size_t first = 0; first < handles.size(); first += CompiledGraph::kLanes) {
    const std::size_t count = std::min(CompiledGraph::kLanes, handles.size() - first);
    const std::vector<const Handle*> some(
        handles.begin() + static_cast<std::ptrdiff_t>(first),
        handles.begin() + static_cast<std::ptrdiff_t>(first + count));
    const std::vector<Ends> ends = near.at(some, std::vector<double>(count, 0), Side::shorter);
    for (std::size_t i = 0; i < count; ++i) {
      near_ends[some[i]] = ends[i];
      settle(handles[first + i]->sensitivity, ends[i].between().slope, clock);
    }
  }
  std::stable_sort(handles.begin(), handles.end(), [](const Handle* a, const Handle* b) {
    return a->sensitivity.gain_s > b->sensitivity.gain_s;
  });
  std::vector<Handle*> followed;
  std::vector<Ends> their_ends;
  for (const bool every : {true, false}) {
    for (Handle* handle : handles) {
      if (followed.size() == kSensitivitiesFollowed || handle->sensitivity.gain_s <= 0) break;
      if (handle->sensitivity.every != every) continue;
      followed.push_back(handle);
      their_ends.push_back(near_ends[handle]);
    }
  }
  if (followed.empty()) return;
  Evaluator far(outcome.graph, index, clock);
  follow(far, clock, followed, their_ends);
}

/// Simulations of a graph with something made shorter.
class Trials {
 public:
  Trials(const Outcome& outcome, const CostIndex& index)
      : index_(index), clock_(outcome), graph_(outcome.graph) {
    // A class of cost for each node, so that a link can be changed by itself.
    graph_.costs.clear();
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      graph_.costs.push_back(outcome.graph.cost(node));
      graph_.nodes[node].cost = node;
    }
    costs_ = graph_.costs;
    before_ = static_cast<double>(clock_.length(outcome.trace));
  }

  const IterationClock& clock() const { return clock_; }

  /// How much less the run takes with the handle made shorter by this share.
  double saved(const Handle& handle, double share) {
    graph_.costs = costs_;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      Cost& cost = graph_.costs[node];
      for (const Part& part : handle.parts) {
        if ((part.is_latency ? index_.latency : index_.hold)[node] != part.entry) continue;
        const Duration less(std::llround(share * static_cast<double>(part.weight)));
        if (part.is_latency) {
          cost.latency -= less;
        } else {
          cost.hold -= less;
          if (handle.sensitivity.kind == SensitivityKind::latency) cost.lead -= less;
        }
        if (handle.sensitivity.kind == SensitivityKind::bandwidth)
          cost.bytes = {std::llround((1 - share) * static_cast<double>(cost.bytes.count))};
      }
    }
    return before_ - static_cast<double>(clock_.length(simulate(graph_)));
  }

 private:
  const CostIndex& index_;
  IterationClock clock_;
  OpGraph graph_;
  std::vector<Cost> costs_;
  double before_ = 0;
};

/// Settles each handle by the straight line from 0 that is nearest to what these shares of it save
/// (least squares). On all cores, each with a graph of its own, as far as memory allows.
void try_each(const Outcome& outcome, const CostIndex& index, const std::vector<Handle*>& handles,
              const std::vector<double>& shares) {
  constexpr std::size_t max_nodes = 20'000'000;
  const std::size_t room = max_nodes / std::max<std::size_t>(outcome.graph.size(), 1);
  const auto jobs = static_cast<unsigned>(
      std::clamp<std::size_t>(std::min(room, handles.size()), 1, available_cores()));
  const std::atomic<bool> never{false};
  for_each_parallel(jobs, jobs, never, [&](std::uint64_t job) {
    Trials trials(outcome, index);
    for (std::size_t i = job; i < handles.size(); i += jobs) {
      double products = 0;
      double squares = 0;
      for (const double share : shares) {
        products += share * trials.saved(*handles[i], share);
        squares += share * share;
      }
      settle(handles[i]->sensitivity, products / squares, trials.clock());
    }
  });
}

/// Where rates change under way, a small step may let transfers meet that did not, or part others,
/// and change more than it is itself worth. So all are tried with one step, and those that save the
/// most with several.
void evaluate_by_events(const Outcome& outcome, const CostIndex& index,
                        std::vector<Handle*>& handles) {
  try_each(outcome, index, handles, {0.05});
  std::stable_sort(handles.begin(), handles.end(), [](const Handle* a, const Handle* b) {
    return a->sensitivity.gain_s > b->sensitivity.gain_s;
  });
  std::vector<Handle*> first;
  for (Handle* handle : handles) {
    if (handle->sensitivity.every || first.size() < kSensitivitiesFollowed) first.push_back(handle);
  }
  try_each(outcome, index, first, {0.02, 0.04, 0.06, 0.08, 0.1});
}

}  // namespace

Sensitivities sensitivities(const Outcome& outcome) {
  Handles handles(outcome);
  std::vector<Handle>& all = handles.all();
  // What does not lie on one longest path gains nothing. An asynchronous run is timed between two
  // ends, each with a path of its own; and an op off the path may slow down one on it.
  std::vector<bool> matters(all.size(),
                            outcome.graph.asynchronous() || outcome.graph.has_slowdowns());
  for (const std::uint32_t node : critical_path(outcome.trace)) {
    for (const std::size_t handle : handles.of(node)) matters[handle] = true;
  }
  std::vector<Handle*> asked;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (matters[i] && !all[i].parts.empty()) asked.push_back(&all[i]);
  }
  Sensitivities result;
  result.exact = !outcome.graph.rates_change();
  if (result.exact) {
    evaluate_exactly(outcome, handles.index(), asked);
  } else {
    evaluate_by_events(outcome, handles.index(), asked);
  }
  result.all.reserve(all.size());
  for (const Handle& handle : all) {
    if (!handle.parts.empty()) result.all.push_back(handle.sensitivity);
  }
  std::stable_sort(result.all.begin(), result.all.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.gain_s > b.gain_s; });
  return result;
}

}  // namespace plumbline
