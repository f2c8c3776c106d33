// Longest paths over tables in which one integer holds a time and its derivative.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/lever_evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/engine/critical.h"

namespace plumbline {

IndexedGraph critical_part(const Outcome& outcome, const CostIndex& index) {
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
  IndexedGraph part;
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

LeverEvaluator::LeverEvaluator(const OpGraph& graph, const CostIndex& index,
                               const IterationClock& clock)
    : clock_(clock), compiled_(graph, index, clock.watched()) {
  plain_ = compiled_.tables();
  compiled_.evaluate(plain_, workspace_, rows_);
  end_ = std::max<std::int64_t>(rows_[0], 1);
  scale_ = DualScale(end_);
  for (const auto& [entries, counts] :
       {std::pair{&index.hold, &holds_}, std::pair{&index.latency, &latencies_}}) {
    for (const std::uint32_t entry : *entries) {
      if (entry >= counts->size()) counts->resize(std::size_t{entry} + 1);
      ++(*counts)[entry];
    }
  }
}

std::vector<TimedEnds> LeverEvaluator::at(const std::vector<const Lever*>& levers,
                                          const std::vector<double>& x, DualSide side) {
  CompiledGraph::Tables tables = plain_;
  for (std::int64_t& time : tables.hold) time = scale_.pack({time, 0}, side);
  for (std::int64_t& time : tables.latency) time = scale_.pack({time, 0}, side);
  std::vector<double> steps;
  steps.reserve(levers.size());
  for (std::size_t lane = 0; lane < levers.size(); ++lane) {
    const Lever& lever = *levers[lane];
    steps.push_back(step_of(lever));
    for (const LeverPart& part : lever.parts) {
      std::int64_t& time =
          (part.is_latency ? tables.latency
                           : tables.hold)[part.entry * CompiledGraph::kLanes + lane];
      const auto less = std::llround(x[lane] * static_cast<double>(part.weight));
      time += scale_.pack({-less, steps_in(part.weight, steps[lane])}, side);
    }
  }
  compiled_.evaluate(tables, workspace_, rows_);
  std::vector<TimedEnds> ends;
  ends.reserve(levers.size());
  const auto row = [&](std::size_t index, std::size_t lane) {
    return read(rows_[index * CompiledGraph::kLanes + lane], side, steps[lane]);
  };
  for (std::size_t lane = 0; lane < levers.size(); ++lane) {
    if (clock_.watched().empty()) {
      ends.push_back({{}, row(0, lane)});
    } else {
      ends.push_back({row(1, lane), row(2, lane)});
    }
  }
  return ends;
}

double LeverEvaluator::missed_by_steps(const Lever& lever) const {
  const double step = step_of(lever);
  double max = 0;
  for (const LeverPart& part : lever.parts) {
    const double counted = step * static_cast<double>(steps_in(part.weight, step));
    max = std::max(max, std::abs(counted - static_cast<double>(part.weight)));
  }
  return max;
}

std::int64_t LeverEvaluator::steps_in(std::int64_t weight, double step) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(weight) / step));
}

double LeverEvaluator::step_of(const Lever& lever) const {
  double all = 0;
  std::int64_t largest = lever.unit;
  for (const LeverPart& part : lever.parts) {
    const auto& counts = part.is_latency ? latencies_ : holds_;
    const std::uint32_t nodes = part.entry < counts.size() ? counts[part.entry] : 0;
    largest = std::max(largest, part.weight);
    all += static_cast<double>(part.weight) * nodes;
  }
  const double max = std::min(all, static_cast<double>(end_));
  const double min = max / (0.9 * static_cast<double>(scale_.scale()));
  const auto unit = static_cast<double>(lever.unit);
  return min <= unit ? unit : std::min(min, static_cast<double>(largest));
}

TimedEnd LeverEvaluator::read(std::int64_t packed, DualSide side, double per_step) const {
  const DualTime dual = scale_.unpack(packed, side);
  return {static_cast<double>(dual.time), static_cast<double>(dual.steps) * per_step};
}

}  // namespace plumbline
