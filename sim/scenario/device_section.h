// cluster.device of a scenario: the kind of the devices, for times that were not measured.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "models/hardware/device_presets.h"
#include "models/kernels/kernel_model.h"
#include "models/profile/roofline.h"

namespace plumbline {

struct YamlNode;
struct YamlOverride;
class SectionReader;

/// A device as the scenario describes it: a preset, numbers of its own, or a preset with some
/// numbers replaced.
struct DeviceChoice {
  const DevicePreset* preset = nullptr;
  std::optional<FlopsPerSecond> peak;
  std::optional<FlopsPerSecond> fp8_peak;
  std::optional<BytesPerSecond> memory_bandwidth;
  std::optional<Bytes> memory;
  std::optional<BytesPerSecond> link_bandwidth;
  std::optional<BytesPerSecond> network_bandwidth;
  std::string_view assumed_network{};    ///< Where its network is that of the preset; else "".
  const SoftwareStack* stack = nullptr;  ///< Null = not given.
  std::shared_ptr<const MeasuredKernels> kernels;  ///< Null = not given.
  std::string kernels_file;                        ///< As it was written.
  std::optional<double> efficiency;  ///< Given: a roofline for all layers, no kernels.
  std::optional<double> link_overlap;
  std::optional<double> network_overlap;
  Mark mark;
};

/// Reads `device` of the cluster section: the name of a preset, or a map of preset, peak, fp8_peak,
/// memory_bandwidth, efficiency, stack, kernels, memory, link, network and their overlaps. Adds all
/// errors to `problems`.
std::optional<DeviceChoice> read_device(SectionReader& cluster, Diagnostics& problems);

/// Keeps a device's preset when `change` sets a key of the device. If the tree has the device as a
/// name alone, the name becomes its `preset`, and the key stands beside it.
void keep_preset(YamlNode& root, const YamlOverride& change);

/// The roofline of the device for work in `format`; absent = bf16.
/// Errors: a preset that does not offer the format.
Result<DeviceRoofline> roofline_of(const DeviceChoice& device, std::optional<NumberFormat> format);

/// The model of the device's kernels, with `roofline` of it. The device's own traits if it is a
/// preset, else what is usual for its peak; its stack, else the usual one; its measured kernels.
KernelModel kernels_of(const DeviceChoice& device, const DeviceRoofline& roofline);

/// A remark where the device's kernels were obviously measured on another device: one whose name is
/// that of another preset.
std::optional<std::string> other_device_note(const DeviceChoice& device);

}  // namespace plumbline
