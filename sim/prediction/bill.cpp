// Products of rates.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/bill.h"

namespace plumbline {
namespace {

constexpr double kHoursOfDay = 24;

}  // namespace

std::optional<double> Bill::tokens_per_day() const {
  return tokens_per_s ? std::optional(*tokens_per_s * goodput.value_or(1) * kSecondsOfDay)
                      : std::nullopt;
}

Bill bill_of(const CostRates& rates, std::optional<double> samples_per_s, BilledDevices devices,
             const std::optional<Goodput>& goodput) {
  Bill bill;
  if (!samples_per_s || *samples_per_s <= 0) return bill;
  if (goodput) {
    bill.goodput = goodput->fraction;
    bill.goodput_samples_per_s = *samples_per_s * goodput->fraction;
    bill.checkpoint_interval_s = goodput->interval_s();
  }
  if (!rates.per_sample) return bill;
  bill.tokens_per_s = *samples_per_s * static_cast<double>(*rates.per_sample);
  bill.tokens_per_device_per_s = *bill.tokens_per_s / static_cast<double>(devices.used);
  if (!rates.tokens || bill.goodput.value_or(1) < kLeastGoodput) return bill;
  bill.days = static_cast<double>(*rates.tokens) / *bill.tokens_per_day();
  bill.gpu_hours = *bill.days * kHoursOfDay * static_cast<double>(devices.in_all);
  if (rates.price) {
    bill.cost = *bill.gpu_hours * rates.price->per_hour;
    bill.currency = rates.price->currency;
  }
  if (rates.power)
    bill.energy_kwh =
        *bill.gpu_hours * static_cast<double>(rates.power->milliwatts) / 1e6 * rates.pue;
  return bill;
}

}  // namespace plumbline
