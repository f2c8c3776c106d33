// The table of a row's numbers.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/row_number.h"

#include <algorithm>
#include <array>

namespace plumbline {
namespace {

using RowUnit = RowNumber::Unit;
using Numbers = SweepNumbers;

std::optional<double> as_number(std::int64_t count) { return static_cast<double>(count); }

constexpr std::array kRowNumbers = {
    RowNumber{"iteration_time_s", "iteration time", RowUnit::seconds,
              [](const Numbers& n) { return std::optional(n.iteration_time_s); }},
    RowNumber{"throughput_samples_per_s", "samples/s", RowUnit::per_second,
              [](const Numbers& n) { return n.throughput_samples_per_s; }},
    RowNumber{"devices_used", "devices used", RowUnit::count,
              [](const Numbers& n) { return as_number(n.devices); }},
    RowNumber{"throughput_per_device_samples_per_s", "samples/s per device", RowUnit::per_second,
              [](const Numbers& n) { return n.throughput_per_device(); }},
    RowNumber{"model_flops_per_device_per_s", "model FLOP/s per device", RowUnit::flops_per_second,
              [](const Numbers& n) { return n.model_flops_per_device_per_s; }},
    RowNumber{"model_flops_utilization", "MFU", RowUnit::fraction,
              [](const Numbers& n) { return n.model_flops_utilization; }},
    RowNumber{"iteration_time_p5_s", "p5 of the iteration time", RowUnit::seconds,
              [](const Numbers& n) { return n.iteration_time_p5_s; }},
    RowNumber{"iteration_time_p50_s", "p50 of the iteration time", RowUnit::seconds,
              [](const Numbers& n) { return n.iteration_time_p50_s; }},
    RowNumber{"iteration_time_p95_s", "p95 of the iteration time", RowUnit::seconds,
              [](const Numbers& n) { return n.iteration_time_p95_s; }},
    RowNumber{"bubble_fraction", "bubble", RowUnit::fraction,
              [](const Numbers& n) { return std::optional(n.bubble_fraction); }},
    RowNumber{"bubble_overhead", "bubble overhead", RowUnit::fraction,
              [](const Numbers& n) { return std::optional(n.bubble_overhead); }},
    RowNumber{"steady_bubble_fraction", "steady bubble", RowUnit::fraction,
              [](const Numbers& n) { return n.steady_bubble_fraction; }},
    RowNumber{"formula_bubble_fraction", "bubble by formula", RowUnit::fraction,
              [](const Numbers& n) { return n.formula_bubble_fraction; }},
    RowNumber{"communication_stall_fraction", "network wait", RowUnit::fraction,
              [](const Numbers& n) { return std::optional(n.communication_stall_fraction); }},
    RowNumber{"sent_in_groups_fraction", "group comm", RowUnit::fraction,
              [](const Numbers& n) { return n.sent_in_groups_fraction; }},
    RowNumber{"peak_memory_bytes", "peak memory", RowUnit::bytes,
              [](const Numbers& n) { return as_number(n.peak_memory_bytes); }},
    RowNumber{"fits", "fits", RowUnit::truth,
              [](const Numbers&
                     n) { return n.fits ? std::optional(*n.fits ? 1.0 : 0.0) : std::nullopt; }},
    RowNumber{"devices_without_stage", "devices without a stage", RowUnit::count,
              [](const Numbers& n) { return as_number(n.devices_without_stage); }},
    RowNumber{"tokens_per_s", "tokens/s", RowUnit::per_second,
              [](const Numbers& n) { return n.bill.tokens_per_s; }},
    RowNumber{"tokens_per_device_per_s", "tokens/s per device", RowUnit::per_second,
              [](const Numbers& n) { return n.bill.tokens_per_device_per_s; }},
    RowNumber{"days", "days", RowUnit::count, [](const Numbers& n) { return n.bill.days; }},
    RowNumber{"gpu_hours", "GPU-hours", RowUnit::count,
              [](const Numbers& n) { return n.bill.gpu_hours; }},
    RowNumber{"cost", "cost", RowUnit::count, [](const Numbers& n) { return n.bill.cost; }},
    RowNumber{"energy_kwh", "energy in kWh", RowUnit::count,
              [](const Numbers& n) { return n.bill.energy_kwh; }},
    RowNumber{"goodput", "goodput", RowUnit::fraction,
              [](const Numbers& n) { return n.bill.goodput; }},
    RowNumber{"goodput_samples_per_s", "samples/s that are kept", RowUnit::per_second,
              [](const Numbers& n) { return n.bill.goodput_samples_per_s; }},
    RowNumber{"checkpoint_interval_s", "training between checkpoints", RowUnit::seconds,
              [](const Numbers& n) { return n.bill.checkpoint_interval_s; }}};

}  // namespace

std::span<const RowNumber> row_numbers() { return kRowNumbers; }

const RowNumber* find_row_number(std::string_view name) {
  const auto* const found = std::find_if(kRowNumbers.begin(), kRowNumbers.end(),
                                         [&](const RowNumber& one) { return one.name == name; });
  return found == kRowNumbers.end() ? nullptr : found;
}

}  // namespace plumbline
