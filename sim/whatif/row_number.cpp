// The table of a row's numbers.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/row_number.h"

#include <algorithm>
#include <array>

namespace plumbline {
namespace {

using Unit = RowNumber::Unit;
using Numbers = SweepNumbers;

std::optional<double> as_number(std::int64_t count) { return static_cast<double>(count); }

constexpr std::array kRowNumbers = {
    RowNumber{"iteration_time_s", "iteration time", Unit::seconds,
              [](const Numbers& n) { return std::optional(n.iteration_time_s); }},
    RowNumber{"throughput_samples_per_s", "samples/s", Unit::per_second,
              [](const Numbers& n) { return n.throughput_samples_per_s; }},
    RowNumber{"devices_used", "devices used", Unit::count,
              [](const Numbers& n) { return as_number(n.devices); }},
    RowNumber{"throughput_per_device_samples_per_s", "samples/s per device", Unit::per_second,
              [](const Numbers& n) { return n.throughput_per_device(); }},
    RowNumber{"model_flops_per_device_per_s", "model FLOP/s per device", Unit::flops_per_second,
              [](const Numbers& n) { return n.model_flops_per_device_per_s; }},
    RowNumber{"model_flops_utilization", "MFU", Unit::fraction,
              [](const Numbers& n) { return n.model_flops_utilization; }},
    RowNumber{"iteration_time_p5_s", "p5 of the iteration time", Unit::seconds,
              [](const Numbers& n) { return n.iteration_time_p5_s; }},
    RowNumber{"iteration_time_p50_s", "p50 of the iteration time", Unit::seconds,
              [](const Numbers& n) { return n.iteration_time_p50_s; }},
    RowNumber{"iteration_time_p95_s", "p95 of the iteration time", Unit::seconds,
              [](const Numbers& n) { return n.iteration_time_p95_s; }},
    RowNumber{"bubble_fraction", "bubble", Unit::fraction,
              [](const Numbers& n) { return std::optional(n.bubble_fraction); }},
    RowNumber{"bubble_overhead", "bubble overhead", Unit::fraction,
              [](const Numbers& n) { return std::optional(n.bubble_overhead); }},
    RowNumber{"steady_bubble_fraction", "steady bubble", Unit::fraction,
              [](const Numbers& n) { return n.steady_bubble_fraction; }},
    RowNumber{"formula_bubble_fraction", "bubble by formula", Unit::fraction,
              [](const Numbers& n) { return n.formula_bubble_fraction; }},
    RowNumber{"communication_stall_fraction", "network wait", Unit::fraction,
              [](const Numbers& n) { return std::optional(n.communication_stall_fraction); }},
    RowNumber{"sent_in_groups_fraction", "group comm", Unit::fraction,
              [](const Numbers& n) { return n.sent_in_groups_fraction; }},
    RowNumber{"peak_memory_bytes", "peak memory", Unit::bytes,
              [](const Numbers& n) { return as_number(n.peak_memory_bytes); }},
    RowNumber{"fits", "fits", Unit::truth,
              [](const Numbers&
                     n) { return n.fits ? std::optional(*n.fits ? 1.0 : 0.0) : std::nullopt; }},
    RowNumber{"devices_without_stage", "devices without a stage", Unit::count,
              [](const Numbers& n) { return as_number(n.devices_without_stage); }}};

}  // namespace

std::span<const RowNumber> row_numbers() { return kRowNumbers; }

const RowNumber* find_row_number(std::string_view name) {
  const auto* const found = std::find_if(kRowNumbers.begin(), kRowNumbers.end(),
                                         [&](const RowNumber& one) { return one.name == name; });
  return found == kRowNumbers.end() ? nullptr : found;
}

}  // namespace plumbline
