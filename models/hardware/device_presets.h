// Devices with the peak rates that their makers publish.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_format.h"
#include "base/units.h"

namespace plumbline {

/// The published data of one device. Peaks are for dense matrix products: half of the number
/// published "with sparsity".
struct DevicePreset {
  std::string_view name;
  std::array<std::int64_t, 4> peak_gflops;  ///< By NumberFormat, in GFLOP/s; 0 = not offered.
  BytesPerSecond memory_bandwidth;
  Bytes memory;  ///< As a driver shows it (cudaDeviceProp::totalGlobalMem); less than advertised.
  std::string_view memory_source;
  BytesPerSecond link_bandwidth;  ///< One way: half of the number published for both ways.
  std::string_view link;          ///< The name of the link: "NVLink 3".
  std::string_view source;
  /// To the host's memory, one way; 0 = not known. PCIe 4 x16: 32 GB/s, PCIe 5 x16: 64 GB/s, as
  /// the same data sheets say, half of the number for both ways.
  BytesPerSecond host_bandwidth{};
  /// Between servers, of each GPU's own card, one way, in the system that its maker builds of it;
  /// 0 = not known.
  BytesPerSecond network_bandwidth{};
  std::string_view network{};  ///< The card and the system, with the source.

  /// Nothing where the device does not offer the format.
  std::optional<FlopsPerSecond> peak(NumberFormat format) const;
};

/// All presets, in the order of their names.
std::span<const DevicePreset> device_presets();

/// The preset of this name, or nullptr.
const DevicePreset* find_device_preset(std::string_view name);

std::vector<std::string> device_preset_names();

}  // namespace plumbline
