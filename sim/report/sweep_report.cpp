// Rows of cells in three formats.
//
// SPDX-License-Identifier: MIT
#include "sim/report/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/bill_report.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

/// The axes with more than one value.
std::vector<std::size_t> varying(const SweepResult& result) {
  std::vector<std::size_t> axes;
  axes.reserve(result.axes.size());
  for (std::size_t i = 0; i < result.axes.size(); ++i) {
    if (result.axes[i].values.size() > 1) axes.push_back(i);
  }
  return axes;
}

/// The row's values on these axes.
std::vector<std::string> values(const SweepResult& result, const SweepRow& row,
                                const std::vector<std::size_t>& axes) {
  const std::vector<std::size_t> indices = result.values_at(row.point);
  std::vector<std::string> cells;
  cells.reserve(axes.size());
  for (const std::size_t axis : axes) cells.push_back(result.axes[axis].values[indices[axis]]);
  return cells;
}

template <class Test>
bool any_row(const SweepReport& report, Test&& test) {
  return std::any_of(report.result.rows.begin(), report.result.rows.end(),
                     [&](const SweepRow& row) { return row.numbers && test(*row.numbers); });
}

/// The minimum and maximum of a number over all rows; nothing if it is the same in all rows that
/// know it.
template <class Number>
std::optional<std::pair<std::int64_t, std::int64_t>> range(const SweepReport& report,
                                                           Number&& number) {
  std::optional<std::pair<std::int64_t, std::int64_t>> found;
  for (const SweepRow& row : report.result.rows) {
    const std::optional<std::int64_t> own =
        row.numbers ? std::optional<std::int64_t>(number(*row.numbers)) : std::nullopt;
    if (!own) continue;
    if (!found) found.emplace(*own, *own);
    found->first = std::min(found->first, *own);
    found->second = std::max(found->second, *own);
  }
  if (found && found->first == found->second) found.reset();
  return found;
}

auto devices_used(const SweepNumbers& n) { return std::optional(n.devices); }
auto samples_of(const SweepNumbers& n) { return n.samples(); }

/// Whether an axis has this number as its value in every row that knows it.
template <class Number>
bool axis_tells(const SweepResult& result, std::string_view key, Number&& number) {
  const auto axis = std::find_if(result.axes.begin(), result.axes.end(), [&](const SweepAxis& one) {
    return one.values.size() > 1 && one.key == key;
  });
  if (axis == result.axes.end()) return false;
  const auto place = static_cast<std::size_t>(axis - result.axes.begin());
  return std::all_of(result.rows.begin(), result.rows.end(), [&](const SweepRow& row) {
    const std::optional<std::int64_t> own =
        row.numbers ? std::optional<std::int64_t>(number(*row.numbers)) : std::nullopt;
    return !own || axis->values[result.values_at(row.point)[place]] == std::to_string(*own);
  });
}

/// Whether a column shows the mini-batch: it varies, and no axis determines it.
bool has_mini_batches(const SweepReport& report) {
  constexpr std::string_view keys[] = {"schedule.micro_batches", "training.micro_batch_size",
                                       "training.mini_batch_size", "plan.data_parallel"};
  return range(report, samples_of) &&
         std::none_of(std::begin(keys), std::end(keys), [&](std::string_view key) {
           return std::any_of(
               report.result.axes.begin(), report.result.axes.end(),
               [&](const SweepAxis& axis) { return axis.values.size() > 1 && axis.key == key; });
         });
}

/// The differences between reported rows that make their times hard to compare; "" = none.
std::string unlike_text(const SweepReport& report) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, const auto& found, std::string_view unit) {
    if (found)
      parts.push_back(fmt::format("{} ({} to {}{})", what, found->first, found->second, unit));
  };
  add("devices used", range(report, devices_used), "");
  add("mini-batch", range(report, samples_of), " samples");
  const auto flushed = range(report, [](const SweepNumbers& n) {
    return std::optional(std::int64_t{n.steady_bubble_fraction.has_value()});
  });
  if (flushed) parts.emplace_back("flush before each update (not of all schedules)");
  return parts.empty() ? "" : fmt::format("not alike in {}", fmt::join(parts, ", "));
}

/// The columns of what the training costs.
BillColumns bill_columns(const SweepReport& report) {
  std::vector<const SweepNumbers*> rows;
  for (const SweepRow& row : report.result.rows) {
    if (row.numbers) rows.push_back(&*row.numbers);
  }
  return BillColumns(rows);
}

std::string rate_cell(std::optional<double> rate) {
  return rate ? fmt::format("{:.5g}", *rate) : "-";
}

/// The rows for people, below their header. A row may have a remark.
Table table_of(const SweepReport& report) {
  const SweepResult& result = report.result;
  const std::vector<std::size_t> axes = varying(result);
  const bool formula =
      any_row(report, [](const SweepNumbers& n) { return n.formula_bubble_fraction.has_value(); });
  const bool noisy =
      any_row(report, [](const SweepNumbers& n) { return n.iteration_time_p50_s.has_value(); });
  const bool limited = any_row(report, [](const SweepNumbers& n) { return n.fits.has_value(); });
  const bool utilized =
      any_row(report, [](const SweepNumbers& n) { return n.model_flops_utilization.has_value(); });
  const bool apart = range(report, devices_used).has_value();
  const bool raised =
      any_row(report, [](const SweepNumbers& n) { return n.stages_raised_from.has_value(); });
  const bool counted = apart && !axis_tells(report.result, "cluster.devices", devices_used);
  const bool batched = has_mini_batches(report);
  std::vector<std::string> header;
  header.reserve(axes.size() + 16);
  for (const std::size_t axis : axes) header.push_back(printable(result.axes[axis].key));
  if (axes.empty()) header.emplace_back("point");
  if (raised) header.emplace_back("stages");
  if (counted) header.emplace_back("devices");
  if (batched) header.emplace_back("mini-batch");
  header.emplace_back("iteration time");
  for (const char* column : {"p5", "p50", "p95"}) {
    if (noisy) header.emplace_back(column);
  }
  header.emplace_back("samples/s");
  const BillColumns bills = bill_columns(report);
  for (std::string& title : bills.titles()) header.push_back(std::move(title));
  const bool grouped =
      any_row(report, [](const SweepNumbers& n) { return n.sent_in_groups_fraction.has_value(); });
  if (apart) header.emplace_back("per device");
  if (utilized) header.emplace_back("MFU");
  header.emplace_back("bubble");
  if (formula) header.emplace_back("by formula");
  header.emplace_back("network wait");
  if (grouped) header.emplace_back("group comm");
  for (const char* column : {"peak memory", "on device"}) header.emplace_back(column);
  if (limited) header.emplace_back("fits");
  Table table;
  table.row(header);
  table.may_lack({"on device", "network wait", "group comm", "saved every", "by formula",
                  "mini-batch", "p5", "p95", "samples/s"});
  table.repeat(std::max<std::size_t>(axes.size(), 1));
  for (const SweepRow& row : result.rows) {
    std::vector<std::string> cells = values(result, row, axes);
    std::string remark = row.reason;
    for (std::string& value : cells) value = printable(value);
    if (axes.empty()) cells.push_back(std::to_string(row.point));
    if (const auto& n = row.numbers) {
      if (raised) cells.push_back(std::to_string(n->stages));
      if (counted) cells.push_back(std::to_string(n->devices));
      if (batched) cells.push_back(n->samples() ? std::to_string(*n->samples()) : "-");
      cells.push_back(to_text(round_up(n->iteration_time_s * 1e9)));
      for (const auto& time :
           {n->iteration_time_p5_s, n->iteration_time_p50_s, n->iteration_time_p95_s}) {
        if (noisy) cells.push_back(time ? to_text(round_up(*time * 1e9)) : "-");
      }
      cells.push_back(rate_cell(n->throughput_samples_per_s));
      for (std::string& cell : bills.cells(n->bill)) cells.push_back(std::move(cell));
      if (apart) cells.push_back(rate_cell(n->throughput_per_device()));
      if (utilized)
        cells.push_back(n->model_flops_utilization ? percent(*n->model_flops_utilization) : "-");
      cells.push_back(percent(n->bubble()));
      if (formula)
        cells.push_back(n->formula_bubble_fraction ? percent(*n->formula_bubble_fraction) : "-");
      cells.push_back(percent(n->communication_stall_fraction));
      if (grouped)
        cells.push_back(n->sent_in_groups_fraction ? percent(*n->sent_in_groups_fraction) : "-");
      cells.push_back(to_text(Bytes{n->peak_memory_bytes}));
      cells.push_back(std::to_string(n->peak_memory_device));
      if (limited) cells.emplace_back(!n->fits ? "-" : *n->fits ? "yes" : "NO");
    } else {
      cells.resize(header.size(), "-");
    }
    const auto add = [&](const std::string& more) {
      remark += remark.empty() ? more : "; " + more;
    };
    if (row.numbers && row.numbers->stages_raised_from)
      add(fmt::format("plan.stages {} raised", *row.numbers->stages_raised_from));
    if (const std::uint32_t spare = row.numbers ? row.numbers->devices_without_stage : 0; spare > 0)
      add(plural(spare, "device") + " without a stage");
    if (!row.estimated.empty()) add("estimated");
    table.row(std::move(cells), std::move(remark));
  }
  return table;
}

template <class T>
std::string or_empty(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

bool SweepReport::any_feasible() const {
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [](const SweepRow& row) { return row.feasible(); });
}

std::string infeasibility(const SweepReport& report) {
  const std::vector<SweepRow>& rows = report.result.rows;
  if (report.misfits + report.cannot_run < report.done)
    return "no feasible row meets the conditions";
  std::string none = fmt::format("none of the {} is feasible", plural(report.done, "point"));
  if (rows.empty())
    return fmt::format("{}: {} not fit, {} cannot run; without conditions each row says why", none,
                       report.misfits == 1 ? "1 does" : fmt::format("{} do", report.misfits),
                       report.cannot_run);
  return fmt::format("{}; of the first: {}", none, rows.front().reason);
}

std::string question(const SweepReport& report) {
  const SweepResult& result = report.result;
  std::vector<std::string> keys;
  for (const std::size_t axis : varying(result)) keys.push_back(printable(result.axes[axis].key));
  return fmt::format("{}{}, best first by {}", plural(result.points, "point"),
                     keys.empty() ? "" : fmt::format(" over {}", fmt::join(keys, ", ")),
                     name(report.selection.objective));
}

std::vector<std::string> remarks(const SweepReport& report) {
  const SweepResult& result = report.result;
  std::vector<std::string> lines;
  if (std::string unlike = unlike_text(report); !unlike.empty()) lines.push_back(std::move(unlike));
  if (report.done < result.points)
    lines.push_back(fmt::format("done: {} of {}", report.done, plural(result.points, "point")));
  if (report.misfits > 0)
    lines.push_back(
        fmt::format("do not fit: {} of {}", report.misfits, plural(result.points, "point")));
  if (report.cannot_run > 0)
    lines.push_back(
        fmt::format("cannot run: {} of {}", report.cannot_run, plural(result.points, "point")));
  if (result.rows.size() < report.done) {
    std::vector<std::string> why;
    for (const Condition& condition : report.selection.where) why.push_back(condition.text);
    if (report.selection.front != Front::none)
      why.emplace_back(report.selection.front == Front::cost
                           ? "those that no other beats in both cost and days"
                           : "those that no other beats in both throughput and peak memory");
    if (report.selection.top > 0) why.push_back(fmt::format("the best {}", report.selection.top));
    lines.push_back(fmt::format("shown: {} of {}: {}", result.rows.size(),
                                plural(result.points, "point"), fmt::join(why, "; ")));
  }
  const auto raised = std::count_if(
      result.rows.begin(), result.rows.end(),
      [](const SweepRow& row) { return row.numbers && row.numbers->stages_raised_from; });
  if (raised > 0) {
    lines.push_back(
        fmt::format("note: in {} the schedule puts several stages on a device (schedule.chunks): "
                    "plan.stages is raised",
                    plural(raised, "row")));
  }
  std::vector<std::string> estimates;
  for (const SweepRow& row : result.rows)
    estimates.insert(estimates.end(), row.estimated.begin(), row.estimated.end());
  if (std::string line = estimated_line(estimates); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

SweepReport report(SweepResult result, SweepSelection selection) {
  SweepReport report;
  report.done = result.rows.size();
  for (const SweepRow& row : result.rows) {
    if (!row.numbers) {
      ++report.cannot_run;
    } else if (!row.feasible()) {
      ++report.misfits;
    }
  }
  result.rows = select(std::move(result.rows), selection);
  report.result = std::move(result);
  report.selection = std::move(selection);
  return report;
}

Document to_table(const SweepReport& report) {
  Document text;
  text.sentence(fmt::format("{}\n  {}\n\n", printable(report.result.scenario), question(report)));
  if (report.result.rows.empty()) {
    text.sentence("  no row is left");
  } else {
    text.table(table_of(report));
  }
  const std::vector<std::string> lines = remarks(report);
  if (!lines.empty()) text.sentence(fmt::format("\n{}", fmt::join(lines, "\n")));
  return text;
}

std::string to_markdown(const SweepReport& report) {
  std::string text = fmt::format("{}: {}\n\n{}", printable(report.result.scenario),
                                 question(report), table_of(report).markdown());
  const std::vector<std::string> lines = remarks(report);
  if (!lines.empty())
    text += "\n- " + escaped_markdown(fmt::format("{}\n", fmt::join(lines, "\n- ")));
  return text;
}

std::string to_csv(const SweepReport& report) {
  const SweepResult& result = report.result;
  const std::vector<std::size_t> axes = varying(result);
  std::vector<std::string> header = {"point"};
  for (const std::size_t axis : axes) header.push_back(csv_cell(result.axes[axis].key));
  for (const char* column : {"iteration_time_s",
                             "throughput_samples_per_s",
                             "devices_used",
                             "stages",
                             "throughput_per_device_samples_per_s",
                             "model_flops_per_device_per_s",
                             "model_flops_utilization",
                             "iteration_time_p5_s",
                             "iteration_time_p50_s",
                             "iteration_time_p95_s",
                             "bubble_fraction",
                             "bubble_overhead",
                             "steady_bubble_fraction",
                             "formula_bubble_fraction",
                             "communication_stall_fraction",
                             "sent_in_groups_fraction",
                             "peak_memory_bytes",
                             "peak_memory_device",
                             "fits",
                             "devices_without_stage"})
    header.emplace_back(column);
  const BillColumns bills = bill_columns(report);
  for (std::string& key : bills.keys()) header.push_back(std::move(key));
  header.insert(header.end(), {"estimated", "reason"});
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const SweepRow& row : result.rows) {
    std::vector<std::string> line = {std::to_string(row.point)};
    for (const std::string& value : values(result, row, axes)) line.push_back(csv_cell(value));
    if (const auto& n = row.numbers) {
      for (const std::string& cell : {fmt::format("{}", n->iteration_time_s),
                                      or_empty(n->throughput_samples_per_s),
                                      std::to_string(n->devices),
                                      std::to_string(n->stages),
                                      or_empty(n->throughput_per_device()),
                                      or_empty(n->model_flops_per_device_per_s),
                                      or_empty(n->model_flops_utilization),
                                      or_empty(n->iteration_time_p5_s),
                                      or_empty(n->iteration_time_p50_s),
                                      or_empty(n->iteration_time_p95_s),
                                      fmt::format("{}", n->bubble_fraction),
                                      fmt::format("{}", n->bubble_overhead),
                                      or_empty(n->steady_bubble_fraction),
                                      or_empty(n->formula_bubble_fraction),
                                      fmt::format("{}", n->communication_stall_fraction),
                                      or_empty(n->sent_in_groups_fraction),
                                      std::to_string(n->peak_memory_bytes),
                                      std::to_string(n->peak_memory_device),
                                      or_empty(n->fits),
                                      std::to_string(n->devices_without_stage)})
        line.push_back(cell);
      for (std::string& cell : bills.data(n->bill)) line.push_back(csv_cell(cell));
    } else {
      line.resize(line.size() + 20 + bills.keys().size());
    }
    line.emplace_back(row.estimated.empty() ? "false" : "true");
    line.push_back(csv_cell(row.reason));
    text += fmt::format("{}\n", fmt::join(line, ","));
  }
  return text;
}

}  // namespace plumbline
