// Figures as text.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bill_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"

namespace plumbline {
namespace {

std::string data_cell(const std::optional<double>& figure) {
  return figure ? fmt::format("{}", *figure) : "";
}

}  // namespace

std::string money_text(double amount, const std::string& currency) {
  return fmt::format("{} {}", tokens_text(amount), currency);
}

std::string energy_text(double kwh) {
  if (kwh < 1e3) return fmt::format("{:.4g} kWh", kwh);
  if (kwh < 1e6) return fmt::format("{:.4g} MWh", kwh / 1e3);
  return fmt::format("{:.4g} GWh", kwh / 1e6);
}

std::string days_text(double days) {
  return days < 1e4 ? fmt::format("{:.4g}", days) : fmt::format("{:.0f}", days);
}

std::string bill_sentence(const Outcome& outcome) {
  std::int64_t peak = 0;
  for (const DeviceMemory& device : outcome.memory) peak = std::max(peak, device.peak.sum().count);
  const Bill bill = outcome.bill();
  std::string text = time_text(outcome.iteration_time_s) + " an iteration";
  if (bill.tokens_per_s) text += fmt::format(", {} tokens/s", tokens_text(*bill.tokens_per_s));
  text += fmt::format(", at most {} on a device", to_text(Bytes{peak}));
  if (bill.days) text += fmt::format("; {} days", days_text(*bill.days));
  if (bill.cost) text += ", " + money_text(*bill.cost, bill.currency);
  if (bill.energy_kwh) text += ", " + energy_text(*bill.energy_kwh);
  return text;
}

void add_bill_lines(const Outcome& outcome, Table& table) {
  const Bill bill = outcome.bill();
  const CostRates& rates = outcome.setup.rates;
  if (!bill.tokens_per_s) return;
  table.row({"tokens", tokens_text(*bill.tokens_per_s) + "/s"},
            fmt::format("{}/s on each device; {} a day", tokens_text(*bill.tokens_per_device_per_s),
                        tokens_text(*bill.tokens_per_day())));
  if (!bill.days) return;
  const std::int64_t gpus = outcome.devices_in_all();
  table.row({"training", days_text(*bill.days) + " days"},
            fmt::format("{} tokens; {} GPU-hours of {} GPUs",
                        tokens_text(static_cast<double>(*rates.tokens)),
                        tokens_text(*bill.gpu_hours), gpus));
  if (bill.cost) {
    table.row({"cost", money_text(*bill.cost, bill.currency)},
              fmt::format("{:g} {} an hour for each GPU", rates.price->per_hour, bill.currency));
  }
  if (bill.energy_kwh) {
    table.row({"energy", energy_text(*bill.energy_kwh)},
              fmt::format("{} for each GPU{}", to_text(*rates.power),
                          rates.pue > 1
                              ? fmt::format(", {:g} times that with the building (PUE)", rates.pue)
                              : ""));
  }
}

BillColumns::BillColumns(const std::vector<const SweepNumbers*>& rows) {
  for (const SweepNumbers* row : rows) {
    const Bill& bill = row->bill;
    tokens_ = tokens_ || bill.tokens_per_s;
    days_ = days_ || bill.days;
    cost_ = cost_ || bill.cost;
    energy_ = energy_ || bill.energy_kwh;
  }
}

std::vector<std::string> BillColumns::titles() const {
  std::vector<std::string> titles;
  if (days_) titles.emplace_back("days");
  if (cost_) titles.emplace_back("cost");
  if (energy_) titles.emplace_back("energy");
  return titles;
}

std::vector<std::string> BillColumns::cells(const Bill& bill) const {
  std::vector<std::string> cells;
  if (days_) cells.push_back(bill.days ? days_text(*bill.days) : "-");
  if (cost_) cells.push_back(bill.cost ? money_text(*bill.cost, bill.currency) : "-");
  if (energy_) cells.push_back(bill.energy_kwh ? energy_text(*bill.energy_kwh) : "-");
  return cells;
}

std::vector<std::string> BillColumns::keys() const {
  std::vector<std::string> keys;
  if (tokens_) keys.insert(keys.end(), {"tokens_per_s", "tokens_per_device_per_s"});
  if (days_) keys.insert(keys.end(), {"days", "gpu_hours"});
  if (cost_) keys.insert(keys.end(), {"cost", "currency"});
  if (energy_) keys.emplace_back("energy_kwh");
  return keys;
}

std::vector<std::string> BillColumns::data(const Bill& bill) const {
  std::vector<std::string> cells;
  if (tokens_) {
    cells.push_back(data_cell(bill.tokens_per_s));
    cells.push_back(data_cell(bill.tokens_per_device_per_s));
  }
  if (days_) {
    cells.push_back(data_cell(bill.days));
    cells.push_back(data_cell(bill.gpu_hours));
  }
  if (cost_) {
    cells.push_back(data_cell(bill.cost));
    cells.push_back(bill.currency);
  }
  if (energy_) cells.push_back(data_cell(bill.energy_kwh));
  return cells;
}

}  // namespace plumbline
