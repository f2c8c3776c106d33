// The bill of a training: tokens, days, GPU-hours, money and energy.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/prediction/goodput.h"
#include "sim/scenario/cost_rates.h"

namespace plumbline {

/// What follows from a throughput and the rates of a scenario. A figure is nothing where one that
/// it needs is missing. Money and energy are two figures: the price is that of a GPU as it is
/// rented, and holds its power or not as the contract says.
struct Bill {
  std::optional<double> tokens_per_s{};             ///< Of all devices.
  std::optional<double> tokens_per_device_per_s{};  ///< Of each device that holds a stage.
  std::optional<double> days{};                     ///< Until all tokens are trained on.
  std::optional<double> gpu_hours{};                ///< Of all GPUs of the cluster, spare ones too.
  std::optional<double> cost{};                     ///< In `currency`.
  std::string currency{};                           ///< "" = no cost.
  std::optional<double> energy_kwh{};               ///< GPUs at cluster.power, times cluster.pue.

  std::optional<double> goodput{};  ///< The share of the throughput that failures leave.
  std::optional<double> goodput_samples_per_s{};  ///< That share of it.
  std::optional<double> checkpoint_interval_s{};  ///< Of training, between two checkpoints.

  /// What is kept of a day.
  std::optional<double> tokens_per_day() const;
  friend bool operator==(const Bill&, const Bill&) = default;
};

/// The devices of a run, all devices of a group counted.
struct BilledDevices {
  std::int64_t used = 1;    ///< Those that hold a stage.
  std::int64_t in_all = 1;  ///< Those of the cluster.
};

/// The bill at this throughput; all figures are missing where it is unknown. `goodput` is what is
/// kept of it over weeks; nothing = all. Below kLeastGoodput, the training never ends: it has no
/// days, and nothing that follows from them.
Bill bill_of(const CostRates& rates, std::optional<double> samples_per_s, BilledDevices devices,
             const std::optional<Goodput>& goodput = std::nullopt);

}  // namespace plumbline
