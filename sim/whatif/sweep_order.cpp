// Comparing rows, and reading conditions on them.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace plumbline {
namespace {

constexpr std::array kObjectives = {Objective::throughput, Objective::per_device, Objective::memory,
                                    Objective::bubble,     Objective::cost,       Objective::days,
                                    Objective::energy,     Objective::goodput};

double throughput(const SweepNumbers& numbers) {
  return numbers.throughput_samples_per_s.value_or(std::numeric_limits<double>::infinity());
}

double throughput_per_device(const SweepNumbers& numbers) {
  return numbers.throughput_per_device().value_or(std::numeric_limits<double>::infinity());
}

/// The numbers of a front, so that less is better in both.
std::pair<double, double> front_numbers(const SweepNumbers& numbers, Front front) {
  if (front == Front::cost) return {*numbers.bill.days, *numbers.bill.cost};
  return {-throughput(numbers), static_cast<double>(numbers.peak_memory_bytes)};
}

/// The number of the objective where less is better and it may be unknown; nothing for others.
std::optional<double> least(Objective objective, const SweepNumbers& numbers) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (objective == Objective::bubble) return numbers.bubble();
  if (objective == Objective::cost) return numbers.bill.cost.value_or(unknown);
  if (objective == Objective::days) return numbers.bill.days.value_or(unknown);
  if (objective == Objective::energy) return numbers.bill.energy_kwh.value_or(unknown);
  if (objective == Objective::goodput)
    return -numbers.bill.goodput_samples_per_s.value_or(-unknown);
  return std::nullopt;
}

}  // namespace

std::string_view name(Objective objective) {
  constexpr std::string_view names[] = {"throughput", "per-device", "memory", "bubble",
                                        "cost",       "days",       "energy", "goodput"};
  return names[static_cast<std::size_t>(objective)];
}

std::string_view name(Front front) {
  return front == Front::cost ? "cost,days" : "throughput,memory";
}

Result<Front> parse_front(const std::string& text) {
  if (text == "memory" || text == name(Front::memory)) return Front::memory;
  if (text == name(Front::cost)) return Front::cost;
  if (text == "days,cost") return Front::cost;
  if (text == "memory,throughput") return Front::memory;
  Diagnostic wrong;
  wrong.message = fmt::format("--pareto is '{}', which is no pair", clipped(text));
  wrong.help = fmt::format("--pareto={}, or --pareto={}", name(Front::memory), name(Front::cost));
  return wrong;
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

std::vector<SweepRow> pareto(std::vector<SweepRow> rows, Front front) {
  std::erase_if(rows, [&](const SweepRow& row) {
    return !row.feasible() ||
           (front == Front::cost && !(row.numbers->bill.cost && row.numbers->bill.days));
  });
  const auto of = [&](const SweepRow& row) { return front_numbers(*row.numbers, front); };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const SweepRow& a, const SweepRow& b) { return of(a) < of(b); });
  std::vector<SweepRow> kept;
  for (SweepRow& row : rows) {
    // No kept row has less of the second number than the last one.
    if (!kept.empty() && of(kept.back()) != of(row) && of(kept.back()).second <= of(row).second)
      continue;
    kept.push_back(std::move(row));
  }
  return kept;
}

std::vector<SweepRow> select(std::vector<SweepRow> rows, const SweepSelection& selection) {
  std::erase_if(rows, [&](const SweepRow& row) {
    return !std::all_of(selection.where.begin(), selection.where.end(),
                        [&](const Condition& condition) { return condition.holds(row); });
  });
  if (selection.front != Front::none) rows = pareto(std::move(rows), selection.front);
  std::sort(rows.begin(), rows.end(), [&](const SweepRow& a, const SweepRow& b) {
    if (a.feasible() != b.feasible()) return a.feasible();
    if (!a.feasible()) return a.point < b.point;
    const SweepNumbers& x = *a.numbers;
    const SweepNumbers& y = *b.numbers;
    if (selection.objective == Objective::throughput && throughput(x) != throughput(y))
      return throughput(x) > throughput(y);
    if (selection.objective == Objective::per_device &&
        throughput_per_device(x) != throughput_per_device(y))
      return throughput_per_device(x) > throughput_per_device(y);
    const auto of_x = least(selection.objective, x), of_y = least(selection.objective, y);
    if (of_x && *of_x != *of_y) return *of_x < *of_y;
    if (x.peak_memory_bytes != y.peak_memory_bytes)
      return x.peak_memory_bytes < y.peak_memory_bytes;
    if (throughput(x) != throughput(y)) return throughput(x) > throughput(y);
    return a.point < b.point;
  });
  if (selection.top > 0 && rows.size() > selection.top) rows.resize(selection.top);
  return rows;
}

}  // namespace plumbline
