// A planning as a table for people.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

Table stage_table(const Scenario& scenario, const SimulatedPlan& simulated) {
  const PlanCandidate& plan = simulated.candidate;
  Table table;
  table.row({"stage", "layers", "from", "to", "devices", "replicas", "compute", "all-reduce",
             "warm-up", "versions", "peak memory"});
  table.may_lack({"versions", "warm-up", "layers"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlannedStage& stage = plan.stages[s];
    const LayerGraph& graph = scenario.model->graph;
    table.row({std::to_string(s), std::to_string(stage.layers.size()),
               clipped(graph.layer(stage.layers.front()).name),
               clipped(graph.layer(stage.layers.back()).name), ranges(plan.devices[s]),
               std::to_string(stage.replicas), to_text(stage.compute),
               to_text(stage.synchronization), std::to_string(stage.warm_up),
               std::to_string(stage.weight_versions), to_text(simulated.peak_memory[s])});
  }
  return table;
}

/// Shortens the lists of long pipelines: 7,6,5,4,0 as "7..4,0", 2,2,2,1 as "2x3,1", if that saves
/// room.
std::string in_short(const std::vector<std::uint32_t>& values, char separator) {
  constexpr std::size_t few = 8;
  if (values.size() <= few) return fmt::format("{}", fmt::join(values, std::string(1, separator)));
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    const auto run = [&](std::uint32_t step) {
      std::size_t end = i + 1;
      while (end < values.size() && values[end] + step == values[end - 1]) ++end;
      return end;
    };
    const std::size_t same = run(0);
    const std::size_t falling = run(1);
    if (!text.empty()) text += separator;
    text += std::to_string(values[i]);
    if (same - i > 1) {
      text += fmt::format("x{}", same - i);
      i = same;
    } else if (falling - i > 2) {
      text += fmt::format("..{}", values[falling - 1]);
      i = falling;
    } else {
      ++i;
    }
  }
  return text;
}

std::string replicas(const PlanCandidate& plan) {
  std::vector<std::uint32_t> counts;
  for (const PlannedStage& stage : plan.stages) counts.push_back(stage.replicas);
  return in_short(counts, '-');
}

std::string layer_counts(const PlanCandidate& plan) {
  std::vector<std::uint32_t> counts;
  for (const PlannedStage& stage : plan.stages)
    counts.push_back(static_cast<std::uint32_t>(stage.layers.size()));
  return in_short(counts, ',');
}

std::string warm_ups(const PlanCandidate& plan) {
  std::vector<std::uint32_t> depths;
  for (const PlannedStage& stage : plan.stages) depths.push_back(stage.warm_up);
  return in_short(depths, ',');
}

/// The formula's parts of an iteration: "work 20.1 ms, filling and emptying 3 ms".
std::string flush_text(const FlushShares& flush) {
  std::string text = flush.work_kind == BottleneckKind::round_trip ? "round trips "
                     : flush.work_kind == BottleneckKind::link     ? "transfers "
                                                                   : "work ";
  text += time_text(flush.work_s);
  const auto add = [&](const char* name, double time_s) {
    if (time_s >= 1e-9) text += fmt::format(", {} {}", name, time_text(time_s));
  };
  add("filling and emptying", flush.flush_s);
  add("all-reduce", flush.all_reduce_s);
  add("update", flush.update_s);
  return text;
}

std::string against_formula(double simulated_s, double formula_s) {
  const std::string text = fmt::format("{:+.2f} %", 100 * (simulated_s / formula_s - 1));
  return text == "-0.00 %" ? "+0.00 %" : text;
}

Table candidate_table(const Planning& planning) {
  Table table;
  table.row({"config", "layers", "warm-up", "by formula", "simulated", "difference"}, "bottleneck");
  table.repeat(3);
  for (const SimulatedPlan& plan : planning.ranked) {
    const double formula = plan.candidate.period_s;
    table.row({replicas(plan.candidate), layer_counts(plan.candidate), warm_ups(plan.candidate),
               time_text(formula), time_text(plan.time_s),
               formula > 0 ? against_formula(plan.time_s, formula) : "-"},
              to_text(plan.candidate.bottleneck) + (plan.fits ? "" : "; does not fit"));
  }
  return table;
}

/// A comparison of the plan with choices without a planner.
Table comparison(const Scenario& scenario, const Planning& planning) {
  const SimulatedPlan& ours = planning.winner();
  const Plans& plans = planning.plans;
  const auto faster = [](double other_s, double ours_s) {
    return ours_s > 0 ? fmt::format("{:.2f}x", other_s / ours_s) : "-";
  };
  Table table;
  table.row({"beside it", "by formula", "speed-up", "simulated", "speed-up", "peak memory"});
  const auto row = [&](const std::string& name, double time_s, std::optional<double> simulated_s,
                       const std::string& memory) {
    table.row({name, time_text(time_s), faster(time_s, ours.candidate.period_s),
               simulated_s ? time_text(*simulated_s) : "",
               simulated_s ? faster(*simulated_s, ours.time_s) : "", memory});
  };
  const auto fits_text = [](bool fits) { return fits ? "" : ", does not fit"; };
  // The formula's peaks are upper bounds.
  const auto at_most = [](Bytes peak) { return "at most " + to_text(peak); };
  row("one device", plans.one_device_s, std::nullopt,
      at_most(plans.one_device_memory) + fits_text(plans.one_device_fits));
  const auto& simulated = planning.data_parallel_peak;
  const auto& limit = scenario.cluster.memory;
  row(fmt::format("data parallelism on {}", plans.data_parallel.devices),
      plans.data_parallel.period_s, planning.data_parallel_s,
      simulated ? to_text(*simulated) + fits_text(!limit || *simulated <= *limit)
                : at_most(plans.data_parallel.peak_memory) + fits_text(plans.data_parallel.fits));
  if (plans.straight) {
    Bytes peak;
    for (const PlannedStage& stage : plans.straight->stages)
      peak = std::max(peak, stage.peak_memory);
    row(fmt::format("straight pipeline of {}", plans.straight->stages.size()),
        plans.straight->period_s, std::nullopt, at_most(peak));
  }
  return table;
}

/// The remarks below the tables, each behind an empty line.
std::string notes(const Scenario& scenario, const Planning& planning) {
  const SimulatedPlan& winner = planning.winner();
  std::string text;
  for (const std::string& estimate : planning.estimated) text += "\nestimated: " + estimate + '\n';
  if (planning.plans.restricted) {
    text += fmt::format(
        "\nnote: the model has too many cuts to search all of them; those of one topological order "
        "were searched ({} of them)\n",
        planning.plans.frontiers);
  }
  if (planning.plans.sees_two_levels) {
    text +=
        "\nnote: the search saw two levels of links, the innermost and the slowest of the others; "
        "times and simulations are of all\n";
  }
  if (planning.plans.slack > 0) {
    text += fmt::format(
        "\nnote: there are too many plans to compare them all: the search does not distinguish "
        "those within {} % of each other, so a better one may be missing\n",
        100 * planning.plans.slack);
  }
  if (!planning.not_found.empty()) {
    text += fmt::format("\nnote: {}\n", not_found_note(planning));
  }
  if (scenario.plan.stages && !scenario.plan.is_planned()) {
    text +=
        "\nnote: plan.stages is that of the scenario's own partition and no bound here; "
        "plan.partition=pipedream plan.stages=N is one\n";
  }
  const auto& stages = winner.candidate.stages;
  const bool replicated = std::any_of(stages.begin(), stages.end(),
                                      [](const PlannedStage& stage) { return stage.replicas > 1; });
  if (replicated && !scenario.schedule.asynchronous()) {
    text += fmt::format(
        "\nnote: replicas of a stage share the {} micro-batches of a mini-batch; copies of a "
        "pipeline (plan.data_parallel) run as many each\n",
        scenario.schedule.micro_batches);
  }
  for (const std::string& note : scenario.notes) text += "\nnote: " + note + '\n';
  if (!winner.fits) text += "\nnote: by the simulated peaks no candidate fits the memory\n";
  return text;
}

}  // namespace

Document to_table(const Scenario& scenario, const Planning& planning) {
  const SimulatedPlan& winner = planning.winner();
  const bool published = planning.cost_model == CostModel::published;
  std::string text = fmt::format(
      "{}\n  {} on {} of {} devices, cost model {}: {} per micro-batch by the formula, {} "
      "simulated with {}\n  bottleneck by the formula: {}\n",
      scenario.name, replicas(winner.candidate), winner.candidate.devices_used(),
      scenario.cluster.device_count(), published ? "published" : "calibrated",
      time_text(winner.candidate.period_s), time_text(winner.time_s), scenario.schedule.rule->name,
      to_text(winner.candidate.bottleneck));
  if (winner.candidate.flush)
    text += "  an iteration by the formula: " + flush_text(*winner.candidate.flush) + '\n';
  Document document;
  document.sentence(text + '\n');
  document.table(stage_table(scenario, winner));
  document.blank_line();
  document.table(candidate_table(planning));
  document.blank_line();
  document.table(comparison(scenario, planning));
  document.sentence(notes(scenario, planning));
  return document;
}

}  // namespace plumbline
