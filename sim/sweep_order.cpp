// Comparing rows, and reading conditions on them.
// SPDX-License-Identifier: MIT
#include "sim/sweep_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "models/quantity.h"

namespace plumbline {
namespace {

constexpr std::array kObjectives = {Objective::throughput, Objective::memory, Objective::bubble};

double throughput(const SweepNumbers& numbers) {
  return numbers.throughput_samples_per_s.value_or(std::numeric_limits<double>::infinity());
}

/// A number that conditions may bound.
struct Bounded {
  std::string_view name;
  std::optional<double> (*of)(const SweepNumbers&);
};

constexpr std::array kBounded = {
    Bounded{"iteration_time_s",
            [](const SweepNumbers& n) { return std::optional(n.iteration_time_s); }},
    Bounded{"throughput_samples_per_s",
            [](const SweepNumbers& n) { return n.throughput_samples_per_s; }},
    Bounded{"iteration_time_p5_s", [](const SweepNumbers& n) { return n.iteration_time_p5_s; }},
    Bounded{"iteration_time_p50_s", [](const SweepNumbers& n) { return n.iteration_time_p50_s; }},
    Bounded{"iteration_time_p95_s", [](const SweepNumbers& n) { return n.iteration_time_p95_s; }},
    Bounded{"bubble_fraction",
            [](const SweepNumbers& n) { return std::optional(n.bubble_fraction); }},
    Bounded{"bubble_overhead",
            [](const SweepNumbers& n) { return std::optional(n.bubble_overhead); }},
    Bounded{"steady_bubble_fraction",
            [](const SweepNumbers& n) { return n.steady_bubble_fraction; }},
    Bounded{"formula_bubble_fraction",
            [](const SweepNumbers& n) { return n.formula_bubble_fraction; }},
    Bounded{"communication_stall_fraction",
            [](const SweepNumbers& n) { return std::optional(n.communication_stall_fraction); }},
    Bounded{"peak_memory_bytes", [](const SweepNumbers& n) {
              return std::optional(static_cast<double>(n.peak_memory_bytes));
            }}};

std::string without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

bool compare(std::string_view operation, double a, double b) {
  if (operation == "<") return a < b;
  if (operation == "<=") return a <= b;
  if (operation == ">") return a > b;
  if (operation == ">=") return a >= b;
  return a == b;
}

/// The value of a condition in the unit of `name`.
Parsed<double> parse_bound(std::string_view name, const std::string& value) {
  Parsed<double> bare = parse_real(value);
  if (bare.value) return bare;
  if (name.ends_with("_bytes")) {
    const auto bytes = parse_bytes(value);
    if (!bytes.value) return {std::nullopt, bytes.problem};
    return {static_cast<double>(bytes.value->count), ""};
  }
  if (name.ends_with("_time_s")) {
    const auto time = parse_duration(value);
    if (!time.value) return {std::nullopt, time.problem};
    return {seconds(*time.value), ""};
  }
  return bare;
}

}  // namespace

std::string_view name(Objective objective) {
  constexpr std::string_view names[] = {"throughput", "memory", "bubble"};
  return names[static_cast<std::size_t>(objective)];
}

Result<Objective> parse_objective(const std::string& text) {
  std::vector<std::string> names;
  names.reserve(kObjectives.size());
  for (const Objective objective : kObjectives) {
    if (name(objective) == text) return objective;
    names.emplace_back(name(objective));
  }
  Diagnostic wrong;
  wrong.message = fmt::format("--objective is '{}', which is none", clipped(text));
  wrong.help = did_you_mean(text, names);
  if (wrong.help.empty()) wrong.help = fmt::format("one of {}", fmt::join(names, ", "));
  return wrong;
}

Result<Condition> parse_condition(const std::string& text) {
  const auto wrong = [&](std::size_t at, std::size_t length, std::string message,
                         std::string help) {
    const auto source = std::make_shared<const Source>(Source{"--where", text, ""});
    return input_error(
        {source, 1, static_cast<int>(at) + 1, static_cast<int>(std::max<std::size_t>(length, 1))},
        std::move(message), std::move(help));
  };
  const std::size_t at = text.find_first_of("<>=");
  const std::size_t end = text.find_first_not_of("<>=", at);
  const std::string operation = at == std::string::npos ? "" : text.substr(at, end - at);
  constexpr std::array operations = {"<", "<=", ">", ">=", "=="};
  if (std::find(operations.begin(), operations.end(), operation) == operations.end()) {
    return wrong(at == std::string::npos ? 0 : at,
                 operation.empty() ? text.size() : operation.size(),
                 operation.empty() ? fmt::format("'{}' compares nothing", clipped(text))
                                   : fmt::format("'{}' is no comparison", clipped(operation)),
                 "one of < <= > >= ==, such as 'peak_memory_bytes < 80 GB'");
  }
  const std::string key = without_spaces(std::string_view(text).substr(0, at));
  std::vector<std::string> names;
  names.reserve(kBounded.size());
  for (const Bounded& bounded : kBounded) names.emplace_back(bounded.name);
  const auto found = std::find(names.begin(), names.end(), key);
  if (found == names.end()) {
    std::string help = did_you_mean(key, names);
    if (help.empty()) help = fmt::format("one of {}", fmt::join(names, ", "));
    return wrong(0, key.size(), fmt::format("'{}' is no number of a row", clipped(key)), help);
  }
  const std::string value =
      end == std::string::npos ? "" : without_spaces(std::string_view(text).substr(end));
  const Parsed<double> bound = parse_bound(key, value);
  if (!bound.value) {
    return wrong(
        end == std::string::npos ? text.size() : end,
        end == std::string::npos ? 1 : text.size() - end,
        fmt::format("{} is compared with '{}', which {}", key, clipped(value), bound.problem), "");
  }
  const auto* const number = &kBounded[static_cast<std::size_t>(found - names.begin())];
  return Condition{text, [number, operation, bound = *bound.value](const SweepNumbers& numbers) {
                     const auto held = number->of(numbers);
                     return held && compare(operation, *held, bound);
                   }};
}

std::vector<SweepRow> pareto(std::vector<SweepRow> rows) {
  std::erase_if(rows, [](const SweepRow& row) { return !row.feasible(); });
  std::stable_sort(rows.begin(), rows.end(), [](const SweepRow& a, const SweepRow& b) {
    const double of_a = throughput(*a.numbers), of_b = throughput(*b.numbers);
    if (of_a != of_b) return of_a > of_b;
    return a.numbers->peak_memory_bytes < b.numbers->peak_memory_bytes;
  });
  std::vector<SweepRow> kept;
  for (SweepRow& row : rows) {
    if (!kept.empty()) {
      const SweepNumbers& best = *kept.back().numbers;  // no kept row needs less
      const bool equal = throughput(best) == throughput(*row.numbers) &&
                         best.peak_memory_bytes == row.numbers->peak_memory_bytes;
      if (!equal && best.peak_memory_bytes <= row.numbers->peak_memory_bytes) continue;
    }
    kept.push_back(std::move(row));
  }
  return kept;
}

std::vector<SweepRow> select(std::vector<SweepRow> rows, const SweepSelection& selection) {
  std::erase_if(rows, [&](const SweepRow& row) {
    return std::any_of(
        selection.where.begin(), selection.where.end(),
        [&](const Condition& condition) { return !row.numbers || !condition.holds(*row.numbers); });
  });
  if (selection.pareto) rows = pareto(std::move(rows));
  std::sort(rows.begin(), rows.end(), [&](const SweepRow& a, const SweepRow& b) {
    if (a.feasible() != b.feasible()) return a.feasible();
    if (!a.feasible()) return a.point < b.point;
    const SweepNumbers& x = *a.numbers;
    const SweepNumbers& y = *b.numbers;
    if (selection.objective == Objective::throughput && throughput(x) != throughput(y))
      return throughput(x) > throughput(y);
    if (selection.objective == Objective::bubble && x.bubble() != y.bubble())
      return x.bubble() < y.bubble();
    if (x.peak_memory_bytes != y.peak_memory_bytes)
      return x.peak_memory_bytes < y.peak_memory_bytes;
    if (throughput(x) != throughput(y)) return throughput(x) > throughput(y);
    return a.point < b.point;
  });
  if (selection.top > 0 && rows.size() > selection.top) rows.resize(selection.top);
  return rows;
}

}  // namespace plumbline
