// From layouts to columns. A value that is the same in all rows has no column.
//
// SPDX-License-Identifier: MIT
#include "sim/report/search_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/quantity.h"
#include "base/table.h"
#include "base/wrap.h"
#include "schedules/generators/generators.h"
#include "sim/planning/predict.h"
#include "sim/report/bill_report.h"
#include "sim/report/report.h"
#include "sim/search/search.h"
#include "sim/search/search_columns.h"
#include "sim/whatif/kept_lines.h"
#include "sim/whatif/sweep_numbers.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

/// The lacking bytes of a row that does not fit.
std::int64_t shortage_of(const SearchRow& row) {
  return row.row.numbers->peak_memory_bytes - *row.row.numbers->memory_limit_bytes;
}

/// The memory in which all reported layouts fit; "" if it is not known, or they differ in it.
std::string memory_text(const SearchReport& report) {
  std::optional<std::int64_t> limit;
  for (const SearchRow& row : report.rows) {
    const auto own = row.row.numbers->memory_limit_bytes;
    if (!own || (limit && *limit != *own)) return "";
    limit = own;
  }
  return limit ? fmt::format("memory limit: {} on each device, after cluster.reserve",
                             to_text(Bytes{*limit}))
               : "";
}

/// A command in lines that a shell takes as one, to fit an ordinary page. Quoted words stay whole.
std::string command_lines(const std::string& command) {
  constexpr std::size_t width = 96;
  std::string text = " ";
  std::size_t used = 1;
  for (std::size_t at = 0; at < command.size();) {
    char quote = '\0';
    std::size_t end = at;
    for (; end < command.size() && (quote != '\0' || command[end] != ' '); ++end) {
      const char c = command[end];
      const bool opens = quote == '\0' && (c == '\'' || c == '"');
      if (opens || c == quote) quote = opens ? c : '\0';
    }
    const std::string word = command.substr(at, end - at);
    const bool fits = used + 1 + characters(word) <= width;
    text += (fits ? " " : " \\\n      ") + word;
    used = (fits ? used + 1 : 6) + characters(word);
    at = end + 1;
  }
  return text;
}

std::string rate(std::optional<double> value) {
  return value ? fmt::format("{:.5g}", *value) : "-";
}

/// The columns of what the training costs.
BillColumns bill_columns(const SearchReport& report) {
  std::vector<const SweepNumbers*> rows;
  rows.reserve(report.rows.size());
  for (const SearchRow& row : report.rows) rows.push_back(&*row.row.numbers);
  return BillColumns(rows);
}

/// The reported rows, below their header.
Table rows_table(const SearchReport& report) {
  std::vector<LayoutColumn> columns;
  for (const LayoutColumn& column : layout_columns()) {
    const bool same =
        !column.usual.empty() &&
        std::all_of(report.rows.begin(), report.rows.end(),
                    [&](const SearchRow& row) { return column.text(row.layout) == column.usual; });
    if (!same) columns.push_back(column);
  }
  const std::vector<std::string>& axes = report.facts.varied_keys;
  const bool utilized = std::any_of(
      report.rows.begin(), report.rows.end(),
      [](const SearchRow& row) { return row.row.numbers->model_flops_utilization.has_value(); });
  const bool sequences =
      std::any_of(report.rows.begin(), report.rows.end(), [](const SearchRow& row) {
        return row.row.numbers->bill.tokens_per_device_per_s.has_value();
      });
  Table table;
  std::vector<std::string> header = {""};
  for (const std::string& key : axes) header.push_back(printable(key));
  for (const LayoutColumn& column : columns) header.emplace_back(column.title);
  header.insert(header.end(), {"iteration time", "samples/s"});
  const BillColumns bills = bill_columns(report);
  for (std::string& title : bills.titles()) header.push_back(std::move(title));
  if (sequences) header.emplace_back("tokens/s/GPU");
  if (utilized) header.emplace_back("MFU");
  const bool grouped = std::any_of(
      report.rows.begin(), report.rows.end(),
      [](const SearchRow& row) { return row.row.numbers->sent_in_groups_fraction.has_value(); });
  header.insert(header.end(), {"bubble", "network wait"});
  if (grouped) header.emplace_back("group comm");
  header.emplace_back("peak memory");
  table.row(header);
  std::vector<std::string> least = {"network wait", "group comm", "bubble", "samples/s",
                                    "micro-batches"};
  if (!bills.titles().empty())
    least.insert(least.end(), {"saved every", "tokens/s/GPU", "MFU", "schedule"});
  table.may_lack(least);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const auto& [layout, row] = report.rows[i];
    const SweepNumbers& n = *row.numbers;
    std::vector<std::string> cells = {std::to_string(i + 1)};
    for (const std::string& key : axes) cells.push_back(printable(value_of(layout, key)));
    for (const LayoutColumn& column : columns) cells.push_back(column.text(layout));
    cells.push_back(to_text(round_up(n.iteration_time_s * 1e9)));
    cells.push_back(rate(n.throughput_samples_per_s));
    for (std::string& cell : bills.cells(n.bill)) cells.push_back(std::move(cell));
    if (sequences) cells.push_back(rate(n.bill.tokens_per_device_per_s));
    if (utilized)
      cells.push_back(n.model_flops_utilization ? percent(*n.model_flops_utilization) : "-");
    cells.push_back(percent(n.bubble()));
    cells.push_back(percent(n.communication_stall_fraction));
    if (grouped)
      cells.push_back(n.sent_in_groups_fraction ? percent(*n.sent_in_groups_fraction) : "-");
    cells.push_back(to_text(Bytes{n.peak_memory_bytes}));
    table.row(std::move(cells));
  }
  return table;
}

std::vector<std::string> estimates_of(const SearchReport& report) {
  std::vector<std::string> estimates;
  for (const SearchRow& row : report.rows) {
    for (const std::string& estimate : row.row.estimated) {
      if (std::find(estimates.begin(), estimates.end(), estimate) == estimates.end())
        estimates.push_back(estimate);
    }
  }
  return estimates;
}

/// A comparison of the first row with the scenario as it stands.
std::string comparison(const SearchReport& report) {
  const StandingScenario& standing = *report.facts.as_it_stands;
  if (!standing.numbers)
    return fmt::format("the scenario as it stands cannot run: {}", standing.reason);
  const SweepNumbers& own = *standing.numbers;
  const bool apart =
      !report.rows.empty() && report.rows.front().row.numbers->devices != own.devices;
  const bool each = apart && report.selection.rows.objective == Objective::per_device;
  const bool kept = report.selection.rows.objective == Objective::goodput;
  const auto of = [&](const SweepNumbers& numbers) {
    if (kept) return numbers.bill.goodput_samples_per_s;
    return each ? numbers.throughput_per_device() : numbers.throughput_samples_per_s;
  };
  std::string text = fmt::format(
      "the scenario as it stands: {} samples/s{}{}{}{}", rate(of(own)), kept ? " are kept" : "",
      each    ? fmt::format(" on each of {} devices", own.devices)
      : apart ? fmt::format(" on {} of {} devices", own.devices,
                            own.devices + own.devices_without_stage)
              : "",
      standing.chosen.empty() ? "" : fmt::format(" with {}", fmt::join(standing.chosen, ", ")),
      own.fits == false ? ", and it does not fit" : "");
  if (report.rows.empty()) return text;
  const auto now = of(*report.rows.front().row.numbers);
  if (now && of(own).value_or(0) > 0)
    text += fmt::format("; the first has {:.2f} times that", *now / *of(own));
  return text;
}

/// The searched keys and the kept keys, a line each.
std::vector<std::string> keys_text(const SearchFacts& facts) {
  std::vector<std::string> lines = {fmt::format("searched: {}", fmt::join(facts.open_keys, ", "))};
  if (!facts.kept_keys.empty())
    lines.push_back(
        fmt::format("kept as given: {}{}", fmt::join(facts.kept_keys, ", "),
                    facts.free ? "" : "; --free searches what the scenario gives, too"));
  return lines;
}

std::string text_of(const Json& json) {
  return json.is_null() ? "" : json.is_string() ? json.get<std::string>() : json.dump();
}

/// The best layouts on other devices. `key` names what they differ in.
Json others_json(const SearchReport& report, std::string_view key) {
  Json others = Json::array();
  for (const OtherDevice& other : report.others) {
    Json json;
    if (!other.part.empty()) json["of"] = other.part;
    json[std::string(key)] = other.share;
    json["first_of_best"] = other.first;
    json["overrides"] = report.best[other.first].layout.overrides;
    json["faster_than_first"] = other.gain;
    others.push_back(std::move(json));
  }
  return others;
}

/// A row as data.
Json row_json(const SearchRow& row, const std::vector<std::string>& varied_keys) {
  const Layout& layout = row.layout;
  Json json = {{"tensor_parallel", layout.tensor},
               {"context_parallel", layout.context},
               {"expert_parallel", layout.expert},
               {"pipeline_parallel", layout.stages / layout.chunks},
               {"chunks", layout.chunks},
               {"stages", layout.stages},
               {"data_parallel", layout.copies},
               {"schedule", layout.schedule},
               {"micro_batch_size", layout.micro_batch_size},
               {"micro_batches_of_a_group", layout.batches},
               {"micro_batches", layout.micro_batches},
               {"made_again", layout.recomputation}};
  add_numbers(row.row.numbers, json);
  if (!json.contains("tokens_per_device_per_s")) json["tokens_per_device_per_s"] = nullptr;
  for (const std::string& key : varied_keys) json[key] = value_of(layout, key);
  json["overrides"] = layout.overrides;
  return json;
}

}  // namespace

std::vector<std::string> remarks(const SearchReport& report) {
  std::vector<std::string> lines;
  const std::string of_all = fmt::format("of {}", plural(report.layouts, "layout"));
  if (report.done < report.layouts && report.slower == 0)
    lines.push_back(fmt::format("done: {} {}", report.done, of_all));
  if (report.slower > 0) {
    lines.push_back(fmt::format(
        "not simulated: {} {}; {}by their bounds they are not among the best {} (--all simulates "
        "them)",
        report.slower, of_all,
        report.selection.layout.empty() ? "" : "they do not meet --where, or ",
        std::max(kBestLayouts, report.selection.rows.top)));
  }
  const char* const maybe_more =
      report.slower > 0 ? ", and maybe some that were not simulated" : "";
  if (report.misfits > 0)
    lines.push_back(fmt::format(
        "do not fit: {} {}{}{}", report.misfits, of_all, maybe_more,
        report.nearest && report.feasible == 0
            ? fmt::format("; the nearest ({}) lacks {}", in_words(report.nearest->layout),
                          to_text(Bytes{shortage_of(*report.nearest)}))
            : ""));
  if (report.cannot_run > 0)
    lines.push_back(fmt::format("cannot run: {} {}{}; the first: {}", report.cannot_run, of_all,
                                maybe_more, report.why_not));
  if (const std::string memory = memory_text(report); !memory.empty()) lines.push_back(memory);
  if (report.rows.size() < report.feasible || report.slower > 0)
    lines.push_back(fmt::format("shown: {} of {} that {}fit{}", report.rows.size(), report.feasible,
                                report.slower > 0 ? "were simulated and " : "",
                                report.selection.distinct
                                    ? ": the best of each tensor, context, expert and pipeline size"
                                    : ""));
  if (report.facts.as_it_stands) lines.push_back(comparison(report));
  for (std::string& doubt : doubts(report)) lines.push_back(std::move(doubt));
  for (const std::string& note : report.facts.notes) lines.push_back("note: " + note);
  if (std::string line = estimated_line(estimates_of(report)); !line.empty())
    lines.push_back(std::move(line));
  return lines;
}

void SearchTally::add(FamilyResult result) {
  done_ += result.rows.size() + result.passed_over;
  misfits_ += result.passed_over;
  slower_ += result.slower;
  for (SearchRow& row : result.rows) {
    if (row.row.feasible()) {
      feasible_.push_back(std::move(row));
    } else if (row.row.numbers) {
      ++misfits_;
      const bool nearer =
          !nearest_ || shortage_of(row) < shortage_of(*nearest_) ||
          (shortage_of(row) == shortage_of(*nearest_) && row.row.point < nearest_->row.point);
      if (nearer) nearest_ = std::move(row);
    } else {
      ++cannot_run_;
      if (!refused_ || row.row.point < refused_->row.point) refused_ = std::move(row);
    }
  }
}

SearchReport SearchTally::report(SearchSelection selection) && {
  SearchReport report;
  report.facts = std::move(facts_);
  report.layouts = report.facts.layouts;
  report.done = done_;
  report.misfits = misfits_;
  report.cannot_run = cannot_run_;
  report.slower = slower_;
  report.nearest = std::move(nearest_);
  if (refused_) report.why_not = refused_->row.reason;

  // A layout that needs no recomputation was found once for each kind of recomputation.
  std::set<std::string> different;
  for (const SearchRow& row : feasible_) different.insert(identity(row.layout));
  // Where some are not predicted, nobody knows how many are equal.
  const std::uint64_t equal = slower_ == 0 ? feasible_.size() - different.size() : 0;
  report.feasible = feasible_.size() - equal;
  report.done -= equal;
  report.layouts -= equal;
  const RankedLayouts ranked = rank(feasible_, selection);
  report.choices = choices_among(ranked.rows, ranked.by_point);
  report.front = front_of(ranked.rows, ranked.by_point);
  const std::size_t top = selection.rows.top;
  for (std::size_t i = 0; i < ranked.best.size(); ++i) {
    if (i < kBestLayouts) report.best.push_back(*ranked.best[i]);
    if (top == 0 || i < top) report.rows.push_back(*ranked.best[i]);
  }
  const auto same_batch = [&](const SearchRow& row) {
    return mini_batch_of(row.layout) == mini_batch_of(report.rows.front().layout);
  };
  if (!report.rows.empty() && std::all_of(report.rows.begin(), report.rows.end(), same_batch))
    report.mini_batch = mini_batch_of(report.rows.front().layout);
  report.selection = std::move(selection);
  return report;
}

SearchReport report(SearchPart part, SearchSelection selection) {
  SearchTally tally(std::move(part.facts));
  for (FamilyResult& result : part.families) tally.add(std::move(result));
  return std::move(tally).report(std::move(selection));
}

std::string question(const SearchReport& report) {
  return fmt::format(
      "{}{}, best first by {}", plural(report.layouts, "layout"),
      report.mini_batch > 0
          ? fmt::format(" for mini-batches of {}",
                        plural(static_cast<std::uint64_t>(report.mini_batch), "sample"))
          : "",
      name(report.selection.rows.objective));
}

Document to_table(const SearchReport& report) {
  Document text;
  text.sentence(fmt::format("{}\n  {}\n  {}\n\n", printable(report.facts.scenario),
                            question(report), fmt::join(keys_text(report.facts), "\n  ")));
  if (report.rows.empty()) {
    text.sentence("  no layout is left");
  } else {
    text.table(rows_table(report));
  }
  const std::vector<std::string> lines = remarks(report);
  if (!lines.empty()) text.sentence(fmt::format("\n{}", fmt::join(lines, "\n")));
  if (!report.command.empty()) text.verbatim("\nthe first:\n" + command_lines(report.command));
  return text;
}

std::string to_markdown(const SearchReport& report) {
  std::string text =
      fmt::format("{}: {}\n\n{}", printable(report.facts.scenario), question(report),
                  report.rows.empty() ? "no layout is left\n" : rows_table(report).markdown());
  std::vector<std::string> lines = keys_text(report.facts);
  for (std::string& line : remarks(report)) lines.push_back(std::move(line));
  text += "\n- " + escaped_markdown(fmt::format("{}\n", fmt::join(lines, "\n- ")));
  if (!report.command.empty()) text += fmt::format("\nThe first:\n\n    {}\n", report.command);
  return text;
}

std::string to_csv(const SearchReport& report) {
  std::vector<std::string> header;
  std::vector<Json> rows;
  Json keys = row_json(SearchRow{}, report.facts.varied_keys);
  for (const SearchRow& row : report.rows) {
    rows.push_back(row_json(row, report.facts.varied_keys));
    for (const auto& [key, value] : rows.back().items()) keys[key];
  }
  for (const auto& [key, value] : keys.items()) header.push_back(key);
  std::vector<std::string> titles;
  titles.reserve(header.size());
  for (const std::string& key : header) titles.push_back(csv_cell(key));
  std::string text = fmt::format("{}\n", fmt::join(titles, ","));
  for (const Json& row : rows) {
    std::vector<std::string> line;
    line.reserve(header.size());
    for (const std::string& key : header)
      line.push_back(row.contains(key) ? csv_cell(text_of(row[key])) : "");
    text += fmt::format("{}\n", fmt::join(line, ","));
  }
  return text;
}

std::string to_json(const SearchReport& report, const std::string& version) {
  std::string text = "{\n";
  const auto line = [&](std::string_view key, const Json& json) {
    text += fmt::format(" \"{}\": {},\n", key, in_a_line(json));
  };
  line("schema_version", 1);
  line("kind", "search");
  line("tool", {{"name", "plumbline"}, {"version", version}});
  line("scenario", report.facts.scenario);
  line("scenario_file", report.facts.file);
  line("open_keys", report.facts.open_keys);
  line("kept_keys", report.facts.kept_keys);
  line("objective", name(report.selection.rows.objective));
  line("distinct", report.selection.distinct);
  line("layouts", report.layouts);
  line("evaluated", report.done);
  line("feasible", report.feasible);
  line("do_not_fit", report.misfits);
  line("cannot_run", report.cannot_run);
  line("slower_by_bounds", report.slower);
  const bool by_parts = !report.others.empty() && !report.others.front().part.empty();
  line("other_efficiencies", by_parts ? Json::array() : others_json(report, "efficiency"));
  if (by_parts || report.too_close)
    line("other_speeds", by_parts ? others_json(report, "speed") : Json::array());
  if (report.too_close) line("too_close_to_first", *report.too_close);
  Json own = nullptr;
  if (const auto& standing = report.facts.as_it_stands) {
    own = Json::object();
    add_numbers(standing->numbers, own);
    own["reason"] = standing->reason.empty() ? Json(nullptr) : Json(standing->reason);
    own["chosen"] = standing->chosen;
  }
  line("as_it_stands", own);
  line("estimated", estimates_of(report));
  line("notes", report.facts.notes);
  text += " \"rows\": [";
  for (const SearchRow& row : report.rows)
    text += (&row == &report.rows.front() ? "\n  " : ",\n  ") +
            in_a_line(row_json(row, report.facts.varied_keys));
  return text + (report.rows.empty() ? "]\n}\n" : "\n ]\n}\n");
}

}  // namespace plumbline
