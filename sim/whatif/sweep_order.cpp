// Comparing rows, and reading conditions on them.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace plumbline {
namespace {

constexpr std::array kObjectives = {Objective::throughput, Objective::per_device, Objective::memory,
                                    Objective::bubble};

double throughput(const SweepNumbers& numbers) {
  return numbers.throughput_samples_per_s.value_or(std::numeric_limits<double>::infinity());
}

double throughput_per_device(const SweepNumbers& numbers) {
  return numbers.throughput_per_device().value_or(std::numeric_limits<double>::infinity());
}

}  // namespace

std::string_view name(Objective objective) {
  constexpr std::string_view names[] = {"throughput", "per-device", "memory", "bubble"};
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
      const SweepNumbers& best = *kept.back().numbers;  // no kept row needs less memory
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
    return !std::all_of(selection.where.begin(), selection.where.end(),
                        [&](const Condition& condition) { return condition.holds(row); });
  });
  if (selection.pareto) rows = pareto(std::move(rows));
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
