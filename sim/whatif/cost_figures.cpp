// Options and the figures that they need.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/cost_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace plumbline {
namespace {

/// A figure that an option asks for.
struct WantedFigure {
  std::string option;     ///< "--objective is 'cost'".
  std::string_view name;  ///< As a number of a row: "cost".
};

constexpr std::string_view kFigures[] = {"days",
                                         "gpu_hours",
                                         "cost",
                                         "energy_kwh",
                                         "goodput",
                                         "goodput_samples_per_s",
                                         "checkpoint_interval_s"};

bool is_goodput(std::string_view figure) {
  return figure.starts_with("goodput") || figure == "checkpoint_interval_s";
}

std::vector<WantedFigure> figures_of(const SweepSelection& selection) {
  std::vector<WantedFigure> wanted;
  const Objective objective = selection.objective;
  const std::string option = fmt::format("--objective is '{}'", name(objective));
  if (objective == Objective::days) wanted.push_back({option, "days"});
  if (objective == Objective::cost) wanted.push_back({option, "cost"});
  if (objective == Objective::energy) wanted.push_back({option, "energy_kwh"});
  if (objective == Objective::goodput) wanted.push_back({option, "goodput"});
  if (selection.front == Front::cost) wanted.push_back({"--pareto is 'cost,days'", "cost"});
  for (const Condition& condition : selection.where) {
    const auto figure = std::find(std::begin(kFigures), std::end(kFigures), condition.number);
    if (figure != std::end(kFigures))
      wanted.push_back({fmt::format("--where is '{}'", clipped(condition.text)), *figure});
  }
  return wanted;
}

std::optional<double> figure_in(const Bill& bill, std::string_view name) {
  if (name == "days") return bill.days;
  if (name == "gpu_hours") return bill.gpu_hours;
  if (is_goodput(name)) return bill.goodput;
  return name == "cost" ? bill.cost : bill.energy_kwh;
}

Diagnostic unknown(const WantedFigure& wanted, std::string_view why) {
  Diagnostic wrong;
  wrong.message = fmt::format("{}, but {}", wanted.option, why);
  const std::string_view more = wanted.name == "cost"         ? " and cluster.price='2.5 USD/h'"
                                : wanted.name == "energy_kwh" ? " and cluster.power='700 W'"
                                                              : "";
  wrong.help = is_goodput(wanted.name)
                   ? "such as goodput.device_mtbf='50000 h' goodput.restart='10 min' "
                     "goodput.checkpoint.pause='30 s'"
                   : fmt::format("such as training.tokens=15T{}", more);
  return wrong;
}

}  // namespace

std::optional<Diagnostic> check_figures(const SweepSelection& selection, const CostRates& rates) {
  for (const WantedFigure& wanted : figures_of(selection)) {
    std::vector<std::string_view> missing;
    if (is_goodput(wanted.name)) {
      if (!rates.goodput) missing.emplace_back("goodput");
    } else if (!rates.tokens) {
      missing.emplace_back("training.tokens");
    }
    if (wanted.name == "cost" && !rates.price) missing.emplace_back("cluster.price");
    if (wanted.name == "energy_kwh" && !rates.power) missing.emplace_back("cluster.power");
    if (!missing.empty())
      return unknown(wanted, fmt::format("{} {} not given", fmt::join(missing, " and "),
                                         missing.size() > 1 ? "are" : "is"));
  }
  return std::nullopt;
}

std::optional<Diagnostic> check_figures(const SweepSelection& selection,
                                        const std::vector<SweepRow>& rows) {
  for (const WantedFigure& wanted : figures_of(selection)) {
    std::vector<std::string_view> currencies;
    bool any = false;
    for (const SweepRow& row : rows) {
      if (!row.numbers) continue;
      const Bill& bill = row.numbers->bill;
      any = any || figure_in(bill, wanted.name);
      if (!bill.currency.empty() &&
          std::find(currencies.begin(), currencies.end(), bill.currency) == currencies.end())
        currencies.push_back(bill.currency);
    }
    const bool has_numbers = std::any_of(
        rows.begin(), rows.end(), [](const SweepRow& row) { return row.numbers.has_value(); });
    if (has_numbers && !any) return unknown(wanted, "no row knows it");
    if (wanted.name == "cost" && currencies.size() > 1) {
      Diagnostic wrong;
      wrong.message = fmt::format("{}, but the rows' costs are in {}", wanted.option,
                                  fmt::join(currencies, " and "));
      wrong.help = "cluster.price in one currency";
      return wrong;
    }
  }
  return std::nullopt;
}

}  // namespace plumbline
