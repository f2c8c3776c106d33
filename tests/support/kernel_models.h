// Models of kernels on the devices that have a preset.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "models/hardware/device_presets.h"
#include "models/kernels/kernel_model.h"

namespace plumbline::test {

/// A device with its preset's numbers, and a network card of 50 GB/s of its own.
inline KernelDevice kernel_device(std::string_view preset) {
  const DevicePreset& device = *find_device_preset(preset);
  const auto fp8 = device.peak(NumberFormat::fp8);
  return {.traits = kernel_traits(preset),
          .peak = static_cast<double>(device.peak(NumberFormat::bf16)->count),
          .fp8_peak = fp8 ? static_cast<double>(fp8->count) : 0,
          .memory_bandwidth = static_cast<double>(device.memory_bandwidth.count),
          .link = static_cast<double>(device.link_bandwidth.count),
          .network = 50e9};
}

inline KernelModel kernel_model(std::string_view preset, std::string_view stack = "megatron-core") {
  return {kernel_device(preset), *find_software_stack(stack)};
}

}  // namespace plumbline::test
