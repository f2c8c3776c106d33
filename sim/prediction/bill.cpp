// Products of rates.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/bill.h"

namespace plumbline {
namespace {

constexpr double kSecondsOfDay = 86'400;
constexpr double kHoursOfDay = 24;

}  // namespace

std::optional<double> Bill::tokens_per_day() const {
  return tokens_per_s ? std::optional(*tokens_per_s * kSecondsOfDay) : std::nullopt;
}

Bill bill_of(const CostRates& rates, std::optional<double> samples_per_s, BilledDevices devices) {
  Bill bill;
  if (!samples_per_s || *samples_per_s <= 0 || !rates.per_sample) return bill;
  bill.tokens_per_s = *samples_per_s * static_cast<double>(*rates.per_sample);
  bill.tokens_per_device_per_s = *bill.tokens_per_s / static_cast<double>(devices.used);
  if (!rates.tokens) return bill;
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
