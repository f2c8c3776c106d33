// The tables for people.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

/// "+12 us", "-3.4 ms", "0 s".
std::string difference_text(double time_s) {
  const double size = std::abs(time_s);
  if (size < 0.5e-9) return "0 s";
  return (time_s < 0 ? "-" : "+") + time_text(size);
}

/// "-0.18 %".
std::string signed_percent(double fraction) { return fmt::format("{:+.2f} %", 100 * fraction); }

std::string per_op_hand_over(const RealRun& run) { return time_text(run.hand_over_per_op_s()); }

std::string backend_text(const RealRun& run) {
  if (run.cores == 0) return fmt::format("{} ({})", run.backend, run.device);
  return fmt::format("{} ({}) with {} core{}", run.backend, run.device, run.cores,
                     run.cores == 1 ? "" : "s");
}

/// "20 of 21 iterations".
std::string of_iterations(const RealRun& run) {
  return fmt::format("{} of {} iteration{}", run.clean, run.iterations.size(),
                     run.iterations.size() == 1 ? "" : "s");
}

std::string how_measured(const RealRun& run) {
  const Statistics& time = run.time_s;
  std::string text = fmt::format(
      "\nhow it was measured\n"
      "  backend      {}\n"
      "  iterations   {} clean of {}; shown is the one in the middle\n"
      "  a mini-batch {} in the median, quartiles {} to {}, from {} to {}\n"
      "  hand-over    {} from the release of an op to its begin, on average\n",
      backend_text(run), run.clean, run.iterations.size(), time_text(time.median),
      time_text(time.q1), time_text(time.q3), time_text(time.min), time_text(time.max),
      per_op_hand_over(run));
  for (const std::string& remark : run.remarks) text += fmt::format("  remark       {}\n", remark);
  if (run.clean == 0) {
    text +=
        "note: no iteration was clean: other work kept the devices from running, so the times tell "
        "little\n";
  }
  return text;
}

/// "nothing clean was measured in 6 iterations: other work kept the devices from running".
std::string nothing_clean(const RealRun& run) {
  return fmt::format(
      "nothing clean was measured in {} iteration{}: other work kept the devices from running",
      run.iterations.size(), run.iterations.size() == 1 ? "" : "s");
}

/// "this machine is 12.00 % slower than when it was calibrated"; "" where that is unknown.
std::string change_text(const Validation& v) {
  const auto change = v.machine_change();
  if (!change) return "";
  return fmt::format("this machine is {} {} than when it was calibrated",
                     percent(std::abs(*change)), *change < 0 ? "faster" : "slower");
}

/// A sentence on what the verdict means here, and another one on how the machine has changed.
std::string verdict_text(const Validation& v) {
  if (!v.clean())
    return "INCONCLUSIVE: " + nothing_clean(v.measured) +
           "; stop other programs, or run it again with more --iterations";
  const double error = v.own_error();
  const std::string off =
      fmt::format("predicted {:.2f} % too {}{}", 100 * std::abs(error), error < 0 ? "fast" : "slow",
                  v.again_s ? " from the layers' times beside the run" : "");
  const std::string change = v.again_s ? "\n" + change_text(v) : "";
  switch (v.verdict) {
    case Verdict::same:
      return fmt::format("SAME: {}; the measurement's own noise is {}{}", off, percent(v.noise()),
                         change);
    case Verdict::close:
      return fmt::format("CLOSE: {}, within the tolerance of {}{}", off, percent(v.tolerance),
                         change);
    case Verdict::off:
      return fmt::format("OFF: {}, beyond the tolerance of {}{}", off, percent(v.tolerance),
                         change);
    case Verdict::inconclusive:
      if (std::abs(error) > v.tolerance && 2 * v.measured.clean >= v.measured.iterations.size()) {
        return v.noise() >= std::abs(v.machine_change().value_or(0))
                   ? fmt::format("INCONCLUSIVE: {}, but the measurement's own noise is {}{}", off,
                                 percent(v.noise()), change)
                   : fmt::format("INCONCLUSIVE: {}, but {}", off, change_text(v));
      }
      return fmt::format("INCONCLUSIVE: {} clean: other work kept the devices from running",
                         of_iterations(v.measured));
  }
  return "";
}

/// The title of the columns of measured values. The values of a run without a clean iteration show
/// what happened, but are no measurement.
std::string measured_title(const Validation& v) { return v.clean() ? "measured" : "disturbed"; }

Table comparison(const Validation& v) {
  const Outcome& p = v.predicted;
  const Outcome& m = v.measured.outcome;
  Table table;
  table.row(v.clean() ? std::vector<std::string>{"", "predicted", "measured", "error"}
                      : std::vector<std::string>{"", "predicted", measured_title(v)});
  const auto row = [&](std::string name, std::string predicted, std::string measured,
                       std::string error) {
    std::vector<std::string> cells = {std::move(name), std::move(predicted), std::move(measured)};
    if (v.clean()) cells.push_back(std::move(error));
    table.row(std::move(cells));
  };
  row("iteration time", time_text(v.predicted_s()), time_text(v.measured_s()),
      signed_percent(v.error));
  if (p.throughput_samples_per_s && m.throughput_samples_per_s) {
    row("samples/s", fmt::format("{:.5g}", *p.throughput_samples_per_s),
        fmt::format("{:.5g}", *m.throughput_samples_per_s),
        signed_percent(*p.throughput_samples_per_s / *m.throughput_samples_per_s - 1));
  }
  const auto share = [&](std::string name, double predicted, double measured) {
    row(std::move(name), percent(predicted), percent(measured),
        fmt::format("{:+.2f} points", 100 * (predicted - measured)));
  };
  if (p.metrics.steady && m.metrics.steady) {
    share("steady bubble", p.metrics.steady->bubble_fraction, m.metrics.steady->bubble_fraction);
  }
  share("bubble fraction", p.metrics.bubble_fraction(), m.metrics.bubble_fraction());
  share("communication", p.metrics.communication_stall_fraction(),
        m.metrics.communication_stall_fraction());
  row("busy", to_text(p.metrics.busy()), to_text(m.metrics.busy()),
      difference_text(seconds(p.metrics.busy() - m.metrics.busy())));
  for (const IdleCause cause : kIdleCauses) {
    const Duration predicted = p.metrics.idle_for(cause);
    const Duration measured = m.metrics.idle_for(cause);
    if (predicted.count() == 0 && measured.count() == 0) continue;
    std::string label(name(cause));
    std::replace(label.begin(), label.end(), '_', '-');
    row("idle, " + label, to_text(predicted), to_text(measured),
        difference_text(seconds(predicted - measured)));
  }
  return table;
}

Table devices(const Validation& v) {
  const Outcome& p = v.predicted;
  const Outcome& m = v.measured.outcome;
  Table table;
  const std::string title = measured_title(v);
  table.row({"device", "busy", title, "idle", title, "peak memory", title});
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    table.row({std::to_string(p.graph.devices[slot].value), to_text(p.metrics.devices[slot].busy),
               to_text(m.metrics.devices[slot].busy), to_text(p.metrics.devices[slot].idle),
               to_text(m.metrics.devices[slot].idle), to_text(p.memory[slot].peak.sum()),
               v.measured.knows_memory ? to_text(m.memory[slot].peak.sum()) : "-"});
  }
  return table;
}

Table causes(const Validation& v) {
  Table table;
  const auto row = [&](std::string_view name, double part_s, std::string_view meaning) {
    table.row({std::string(name), difference_text(part_s), signed_percent(part_s / v.measured_s())},
              std::string(meaning));
  };
  if (v.again_s) {
    row("profile", v.shares.profile_s, "layers take another time now than the profile says");
    row("compute", v.shares.compute_s, "ops took another time than their layers now");
  } else {
    row("compute", v.shares.compute_s, "ops took another time than predicted");
  }
  row("transfer", v.shares.transfer_s, "transfers and all-reduces did");
  row("hand-over", v.shares.hand_over_s, "ops began later than they could");
  row("waiting", v.shares.waiting_s, "the order of events on shared links");
  if (v.measured.traced_s) row("tracing", v.shares.telling_s, "looking at each op took time");
  return table;
}

/// The notes of the predictions. Of those that differ in numbers only, the first.
std::string notes(const std::vector<ValidationPoint>& points) {
  const auto without_numbers = [](std::string note) {
    std::erase_if(note, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    return note;
  };
  std::vector<std::string> kinds;
  std::vector<std::string> shown;
  std::vector<bool> differ;
  for (const ValidationPoint& point : points) {
    for (const std::string& note : point.validation.predicted.setup.notes) {
      const std::string kind = without_numbers(note);
      const auto place = std::find(kinds.begin(), kinds.end(), kind);
      if (place != kinds.end()) {
        const auto at = static_cast<std::size_t>(place - kinds.begin());
        differ[at] = differ[at] || shown[at] != note;
        continue;
      }
      kinds.push_back(kind);
      shown.push_back(note);
      differ.push_back(false);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < shown.size(); ++i)
    text += fmt::format("note: {}{}\n", shown[i],
                        differ[i] ? " (in the first row; other rows differ)" : "");
  return text;
}

/// The causes of the error, the errors of the starts, and the noise of the measurement.
Document where_and_how(const Validation& v) {
  Document document;
  document.sentence("\nwhere the error comes from");
  document.table(causes(v));
  std::string text = fmt::format(
      "\nops start {} from where they were predicted in the median, {} at the 95th percentile, {} "
      "at most ({}); {} of the measured critical path is critical in the prediction too\n",
      time_text(v.starts.median_s), time_text(v.starts.p95_s), time_text(v.starts.max_s),
      v.starts.worst, percent(v.critical_path_agreement));
  const RealRun& run = v.measured;
  const Statistics& time = run.time_s;
  if (v.again_s) {
    text += fmt::format("by the layers' times beside the run it takes {}: an error of {}\n",
                        time_text(*v.again_s), signed_percent(*v.again_error()));
  }
  if (run.rounds_s.size() > 1) {
    const auto [min, max] = std::minmax_element(run.rounds_s.begin(), run.rounds_s.end());
    text +=
        fmt::format("{} rounds, {} to {}\n", run.rounds_s.size(), time_text(*min), time_text(*max));
  }
  text += fmt::format("{} clean, {} to {} in the middle half, hand-over {} an op\n",
                      of_iterations(v.measured), time_text(time.q1), time_text(time.q3),
                      per_op_hand_over(v.measured));
  document.sentence(std::move(text));
  return document;
}

/// Why the measured peak memory is not the predicted one; "" if it is.
std::string memory_note(const Validation& v) {
  const auto memory = v.memory_verdict();
  if (!v.clean() || !memory) return "";
  switch (*memory) {
    case MemoryVerdict::ties:
      return "note: what the prediction puts at one instant came one after the other: a buffer "
             "more "
             "was held\n";
    case MemoryVerdict::order:
      return "note: ops and transfers came in another order than predicted, of which the same "
             "rules "
             "say the measured peak memory\n";
    case MemoryVerdict::differs:
      return "note: the measured peak memory is not the predicted one on every device\n";
    default:
      return "";
  }
}

Document one_point(const std::vector<ValidationPoint>& points) {
  const Validation& v = points.front().validation;
  Document text;
  text.sentence(headline(v.predicted) + ", on " + backend_text(v.measured) + "\n\n");
  if (!v.clean()) text.sentence(nothing_clean(v.measured) + "; nothing is compared\n\n");
  text.table(comparison(v));
  text.blank_line();
  text.table(devices(v));
  text.sentence(notes(points));
  text.sentence(memory_note(v));
  for (const std::string& estimate : v.predicted.setup.estimated)
    text.sentence("\npredicted from estimates: " + estimate);
  if (v.clean()) {
    text.append(where_and_how(v));
  } else {
    text.sentence('\n' + of_iterations(v.measured) + " clean");
  }
  for (const std::string& remark : v.measured.remarks) text.sentence(remark);
  text.sentence('\n' + verdict_text(v));
  return text;
}

std::string ranking_text(const std::vector<ValidationPoint>& points) {
  const Ranking ranking = rank(points);
  const std::string equal =
      ranking.equal == 0 ? "" : fmt::format("{} of them predicted as equal and ", ranking.equal);
  std::string text = fmt::format("ranking: {} pairs, {}{}{} within the noise", ranking.pairs, equal,
                                 ranking.ties, equal.empty() ? " of them" : "");
  if (const auto tau = ranking.tau()) {
    text +=
        fmt::format("; of the others {} in the predicted order and {} not (Kendall's tau {:.2f})",
                    ranking.right, ranking.wrong, *tau);
  }
  return text + '\n';
}

/// The overrides that the table does not show in a column of their own.
std::string other_overrides(const ValidationPoint& point) {
  std::vector<std::string> others;
  for (const std::string& one : point.overrides) {
    if (!one.starts_with("schedule.name=") && !one.starts_with("schedule.micro_batches="))
      others.push_back(one);
  }
  return fmt::format("{}", fmt::join(others, " "));
}

/// The number of runs without a clean iteration.
std::string disturbed_text(std::size_t measured, std::size_t runs) {
  if (measured == runs) return "";
  return fmt::format(
      "nothing clean was measured in {} of {} runs: other work kept the devices from running\n"
      "* disturbed: the median of iterations in which it did, and no measurement\n",
      runs - measured, runs);
}

/// "2.40 % in the median, 4.90 % at worst", of errors in any order, without their signs.
std::string median_and_worst(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  return fmt::format("{} in the median, {} at worst", percent(quantile(errors, 0.5)),
                     percent(errors.back()));
}

/// The text above the table: the errors, and how this machine has changed since it was calibrated.
/// Where the layers were timed again, the prediction's own error comes first.
std::string errors_text(const std::vector<ValidationPoint>& points) {
  std::vector<double> own, by_profile, changes;
  for (const ValidationPoint& point : points) {
    const Validation& v = point.validation;
    if (!v.clean()) continue;
    by_profile.push_back(v.error);
    if (!v.again_s) continue;
    own.push_back(*v.again_error());
    changes.push_back(*v.machine_change());
  }
  if (by_profile.empty()) return "";
  const std::string tolerance = percent(points.front().validation.tolerance);
  if (own.empty())
    return fmt::format("error {}; tolerance {}\n", median_and_worst(by_profile), tolerance);
  const auto [min, max] = std::minmax_element(changes.begin(), changes.end());
  return fmt::format(
      "the prediction's own error, from the layers' times beside the runs: {}; tolerance {}\n"
      "this machine since it was calibrated: {} to {} in the time of a run; with that the error is "
      "{}\n",
      median_and_worst(own), tolerance, signed_percent(*min), signed_percent(*max),
      median_and_worst(by_profile));
}

/// The parts of the predictions that nobody has measured, and in which runs.
std::string estimates_text(const std::vector<ValidationPoint>& points) {
  std::map<std::string, std::size_t> rows;
  for (const ValidationPoint& point : points) {
    for (const std::string& estimate : point.validation.predicted.setup.estimated) ++rows[estimate];
  }
  std::string text;
  for (const auto& [estimate, count] : rows)
    text += fmt::format("predicted from estimates in {} of {} rows: {}\n", count, points.size(),
                        estimate);
  return text.empty() ? "" : '\n' + text;
}

/// The largest range of the rounds of one run, where there are several.
std::string rounds_text(const std::vector<ValidationPoint>& points) {
  double max = 0;
  std::size_t rounds = 0;
  for (const ValidationPoint& point : points) {
    if (!point.validation.clean()) continue;
    max = std::max(max, point.validation.measured.range_of_rounds());
    rounds = std::max(rounds, point.validation.measured.rounds_s.size());
  }
  return rounds > 1 ? fmt::format("rounds of one run differ by {} at most\n", percent(max)) : "";
}

/// A sentence that sums up the verdicts on several runs.
std::string verdict_text(const std::vector<ValidationPoint>& points) {
  const auto count = [&](Verdict verdict) {
    return static_cast<std::size_t>(std::count_if(
        points.begin(), points.end(),
        [&](const ValidationPoint& point) { return point.validation.verdict == verdict; }));
  };
  const std::size_t all = points.size();
  const std::size_t off = count(Verdict::off);
  const std::size_t open = count(Verdict::inconclusive);
  const std::string tolerance =
      fmt::format("the tolerance of {}", percent(points.front().validation.tolerance));
  const std::string_view verdict = name(verdict_on(points));
  const auto runs = [&](std::size_t some) {
    return some == all ? fmt::format("all {} runs", all) : fmt::format("{} of {} runs", some, all);
  };
  if (off > 0) {
    return fmt::format("{}: beyond {}: {}{}\n", verdict, tolerance, runs(off),
                       open > 0 ? fmt::format("; inconclusive: {}", open) : "");
  }
  if (open > 0) {
    return fmt::format("{}: nothing can be said of {}{}\n", verdict, runs(open),
                       open < all ? fmt::format("; within {}: {}", tolerance, all - open) : "");
  }
  return fmt::format("{}: within {}: {}\n", verdict, tolerance, runs(all));
}

Document many_points(const std::vector<ValidationPoint>& points) {
  const std::string& scenario = points.front().validation.predicted.setup.name;
  const bool one_scenario = std::all_of(points.begin(), points.end(), [&](const auto& point) {
    return point.validation.predicted.setup.name == scenario;
  });
  Table table;
  std::vector<std::string> header = {one_scenario ? "schedule" : "scenario"};
  if (!one_scenario) header.emplace_back("schedule");
  const bool any_again = std::any_of(points.begin(), points.end(), [](const auto& point) {
    return point.validation.again_s.has_value();
  });
  for (const std::string_view title : {"micro-batches", "devices", "predicted", "measured",
                                       "own error", "error", "hand-over", "memory", "clean"}) {
    if (any_again || title != "own error") header.emplace_back(title);
  }
  header.emplace_back("verdict");
  table.row(std::move(header));
  table.may_lack({"hand-over", "memory", "devices", "own error"});
  std::size_t measured_runs = 0;
  for (const ValidationPoint& point : points) {
    const Validation& v = point.validation;
    if (v.clean()) ++measured_runs;
    const auto if_clean = [&](std::string text) { return v.clean() ? std::move(text) : "-"; };
    const auto memory = v.memory_verdict();
    const std::string measured = time_text(v.measured_s()) + (v.clean() ? "" : "*");
    std::vector<std::string> row;
    if (!one_scenario) row.push_back(v.predicted.setup.name);
    for (std::string cell :
         {v.predicted.setup.schedule.name, std::to_string(v.predicted.setup.micro_batches),
          std::to_string(v.predicted.graph.slots()), time_text(v.predicted_s()), measured})
      row.push_back(std::move(cell));
    if (any_again) row.push_back(v.again_s ? if_clean(signed_percent(*v.again_error())) : "-");
    for (std::string cell :
         {if_clean(signed_percent(v.error)), if_clean(per_op_hand_over(v.measured)),
          memory ? if_clean(std::string(name(*memory))) : "-",
          fmt::format("{} of {}", v.measured.clean, v.measured.iterations.size())})
      row.push_back(std::move(cell));
    row.emplace_back(name(v.verdict));
    table.row(std::move(row), other_overrides(point));
  }
  Document text;
  text.sentence(fmt::format("{}on {}\n", one_scenario ? scenario + ", " : "",
                            backend_text(points.front().validation.measured)) +
                errors_text(points) + '\n');
  text.table(std::move(table));
  text.sentence(notes(points) + estimates_text(points) + '\n' +
                disturbed_text(measured_runs, points.size()) + rounds_text(points) +
                verdict_text(points) + ranking_text(points));
  return text;
}

}  // namespace

Document to_table(const RealRun& run, const std::optional<TimelineStyle>& style) {
  Document text = to_table(run.outcome, style);
  text.sentence(how_measured(run));
  return text;
}

Document to_table(const std::vector<ValidationPoint>& points) {
  return points.size() == 1 ? one_point(points) : many_points(points);
}

std::vector<ReportFigure> report_figures(const Validation& v) {
  if (!v.clean()) {
    return {{"Predicted", time_text(v.predicted_s()), "iteration time"},
            {"Disturbed", time_text(v.measured_s()) + "*", nothing_clean(v.measured), true}};
  }
  const auto part = [](double time_s) { return difference_text(time_s); };
  return {{"Predicted", time_text(v.predicted_s()), "iteration time"},
          {"Measured", time_text(v.measured_s()),
           fmt::format("iteration time, the median of {}", of_iterations(v.measured)), true},
          {"Error", signed_percent(v.error),
           fmt::format("predicted / measured - 1; the noise is {}", percent(v.noise())), true},
          {v.again_s ? "From the profile and compute" : "From compute",
           part(v.shares.profile_s + v.shares.compute_s), "ops took another time"},
          {"From transfers", part(v.shares.transfer_s), "transfers took another time"},
          {"From hand-over", part(v.shares.hand_over_s), "ops began later than they could"},
          {"From waiting", part(v.shares.waiting_s), "the order of events"},
          {"Start of an op", time_text(v.starts.median_s),
           fmt::format("off in the median, {} at most ({})", time_text(v.starts.max_s),
                       v.starts.worst)}};
}

std::vector<std::string> report_remarks(const RealRun& run) {
  std::vector<std::string> remarks = {
      fmt::format("Measured with {}: {} clean; shown is the iteration in the middle.",
                  backend_text(run), of_iterations(run)),
      fmt::format("From the release of an op to its begin it took {} on average.",
                  per_op_hand_over(run))};
  remarks.insert(remarks.end(), run.remarks.begin(), run.remarks.end());
  return remarks;
}

std::vector<std::string> report_remarks(const Validation& v) {
  std::vector<std::string> remarks = {verdict_text(v)};
  const auto measured = report_remarks(v.measured);
  remarks.insert(remarks.end(), measured.begin(), measured.end());
  return remarks;
}

Verdict verdict_on(const std::vector<ValidationPoint>& points) {
  const auto any = [&](Verdict verdict) {
    return std::any_of(points.begin(), points.end(), [&](const ValidationPoint& point) {
      return point.validation.verdict == verdict;
    });
  };
  for (const Verdict verdict : {Verdict::off, Verdict::inconclusive, Verdict::close}) {
    if (any(verdict)) return verdict;
  }
  return Verdict::same;
}

}  // namespace plumbline
