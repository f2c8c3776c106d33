// A preset's numbers as a scenario would choose them.
//
// SPDX-License-Identifier: MIT
#include "cli/preset_kernels.h"

#include <utility>

#include "models/hardware/device_presets.h"
#include "sim/scenario/device_section.h"

namespace plumbline {

Result<KernelModel> preset_kernels(const std::string& preset, const std::string& stack,
                                   NumberFormat format,
                                   std::shared_ptr<const MeasuredKernels> measured) {
  DeviceChoice device;
  device.preset = find_device_preset(preset);
  device.fp8_peak = device.preset->peak(NumberFormat::fp8);
  device.memory_bandwidth = device.preset->memory_bandwidth;
  device.link_bandwidth = device.preset->link_bandwidth;
  device.stack = find_software_stack(stack);
  device.kernels = std::move(measured);
  const auto roofline = roofline_of(device, format);
  if (!roofline) return roofline.problems();
  return kernels_of(device, *roofline);
}

}  // namespace plumbline
