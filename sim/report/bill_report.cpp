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

/// "42 iterations (22.1 min)": the training between two checkpoints.
std::string interval_text(const Goodput& goodput) {
  return fmt::format("{} ({})", plural(goodput.iterations, "iteration"),
                     long_time_text(goodput.interval_s()));
}

std::string choice_text(const Goodput& goodput) {
  if (goodput.waits_for_write) return ", as often as writing them allows";
  return goodput.is_best ? ", the best interval"
                         : fmt::format("; the best interval is {}",
                                       interval_text(goodput_of(goodput.job, std::nullopt)));
}

void add_goodput_lines(const Goodput& goodput, Table& table) {
  const FailingJob& job = goodput.job;
  table.row({"goodput", percent(goodput.fraction)},
            fmt::format("of the throughput is kept over weeks; the job fails every {} on average",
                        long_time_text(1 / job.failures_per_s)));
  table.row({"checkpoints", percent(goodput.checkpoint_fraction)},
            fmt::format("of all time: each stops the training for {}, after {}{}",
                        long_time_text(job.pause_s), interval_text(goodput), choice_text(goodput)));
  table.row({"lost work", percent(goodput.lost_fraction)},
            fmt::format("is done again: {} for each failure", long_time_text(goodput.lost_s())));
  table.row({"restarts", percent(goodput.restart_fraction)},
            fmt::format("each takes {}", long_time_text(job.restart_s)));
}

/// A line of sampled trainings.
void add_sampled_line(const Outcome& outcome, Table& table) {
  const auto sampled = outcome.sampled_goodput();
  const CostRates& rates = outcome.setup.rates;
  if (!sampled) {
    if (rates.goodput && rates.goodput->samples > 0)
      table.row({"with failures", "-"},
                "no sampled trainings: one may take centuries, fails more than a million times, or "
                "has a stop of more than 30 days");
    return;
  }
  table.row(
      {"with failures", days_text(sampled->at(0.5)) + " days"},
      fmt::format("the median of {}; 90 % of them take {} to {}, with {:.4g} failures on "
                  "average",
                  plural(static_cast<std::int64_t>(sampled->days.size()), "sampled training"),
                  days_text(sampled->at(0.05)), days_text(sampled->at(0.95)), sampled->failures));
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
  if (bill.goodput) text += fmt::format("; goodput {}", percent(*bill.goodput));
  if (bill.days) text += fmt::format("; {} days", days_text(*bill.days));
  if (bill.cost) text += ", " + money_text(*bill.cost, bill.currency);
  if (bill.energy_kwh) text += ", " + energy_text(*bill.energy_kwh);
  return text;
}

void add_bill_lines(const Outcome& outcome, Table& table) {
  const Bill bill = outcome.bill();
  const CostRates& rates = outcome.setup.rates;
  if (bill.tokens_per_s) {
    table.row(
        {"tokens", tokens_text(*bill.tokens_per_s) + "/s"},
        fmt::format("{}/s on each device; {} a day", tokens_text(*bill.tokens_per_device_per_s),
                    tokens_text(*bill.tokens_per_day())));
  }
  if (const auto goodput = outcome.goodput()) add_goodput_lines(*goodput, table);
  if (!bill.days) {
    if (rates.tokens) table.row({"training", "-"}, "it never ends at this rate of failures");
    return;
  }
  const std::int64_t gpus = outcome.devices_in_all();
  table.row({"training", days_text(*bill.days) + " days"},
            fmt::format("{} tokens; {} GPU-hours of {} GPUs",
                        tokens_text(static_cast<double>(*rates.tokens)),
                        tokens_text(*bill.gpu_hours), gpus));
  add_sampled_line(outcome, table);
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
    goodput_ = goodput_ || bill.goodput;
    tokens_ = tokens_ || bill.tokens_per_s;
    days_ = days_ || bill.days;
    cost_ = cost_ || bill.cost;
    energy_ = energy_ || bill.energy_kwh;
  }
}

std::vector<std::string> BillColumns::titles() const {
  std::vector<std::string> titles;
  if (goodput_) titles.insert(titles.end(), {"goodput", "kept samples/s", "saved every"});
  if (days_) titles.emplace_back("days");
  if (cost_) titles.emplace_back("cost");
  if (energy_) titles.emplace_back("energy");
  return titles;
}

std::vector<std::string> BillColumns::cells(const Bill& bill) const {
  std::vector<std::string> cells;
  if (goodput_) {
    const auto of = [](const std::optional<double>& figure, const auto& text) {
      return figure ? text(*figure) : "-";
    };
    cells.push_back(of(bill.goodput, percent));
    cells.push_back(
        of(bill.goodput_samples_per_s, [](double rate) { return fmt::format("{:.5g}", rate); }));
    cells.push_back(of(bill.checkpoint_interval_s, long_time_text));
  }
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
  if (goodput_)
    keys.insert(keys.end(), {"goodput", "goodput_samples_per_s", "checkpoint_interval_s"});
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
  if (goodput_) {
    for (const auto& figure :
         {bill.goodput, bill.goodput_samples_per_s, bill.checkpoint_interval_s})
      cells.push_back(data_cell(figure));
  }
  return cells;
}

}  // namespace plumbline
