// The table of devices.
// SPDX-License-Identifier: MIT
#include "models/device_presets.h"

#include <algorithm>

namespace plumbline {
namespace {

constexpr Bytes gib(std::int64_t n) { return {n << 30}; }
constexpr BytesPerSecond gb_per_second(std::int64_t n) { return {n * 1'000'000'000}; }

constexpr std::string_view kA100 =
    "NVIDIA A100 Tensor Core GPU data sheet (1758950-r4), as quoted by "
    "glennklockwood.com/garden/processors/A100";
constexpr std::string_view kH100 =
    "NVIDIA H100 Tensor Core GPU data sheet, as reprinted by "
    "archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html";

// fp32 is that of the plain cores, which PyTorch uses unless it is told to round to TF32.
constexpr std::array kPresets = {
    DevicePreset{.name = "a100-sxm-40gb",
                 .peak_gflops = {19'500, 312'000, 312'000, 0},
                 .memory_bandwidth = gb_per_second(1'555),
                 .memory = gib(40),
                 .link_bandwidth = gb_per_second(300),
                 .link = "NVLink 3",
                 .source = kA100},
    DevicePreset{.name = "a100-sxm-80gb",
                 .peak_gflops = {19'500, 312'000, 312'000, 0},
                 .memory_bandwidth = gb_per_second(2'039),
                 .memory = gib(80),
                 .link_bandwidth = gb_per_second(300),
                 .link = "NVLink 3",
                 .source = kA100},
    DevicePreset{.name = "b200-sxm",
                 .peak_gflops = {80'000, 2'250'000, 2'250'000, 4'500'000},
                 .memory_bandwidth = gb_per_second(8'000),
                 .memory = gib(180),
                 .link_bandwidth = gb_per_second(900),
                 .link = "NVLink 5",
                 .source =
                     "NVIDIA Blackwell data sheet (HGX, 1000 W), as quoted by "
                     "glennklockwood.com/garden/processors/B200; an eighth of the memory of a DGX "
                     "B200, as quoted by brent-newsom-nvidia.github.io/AIPS-Boom/wiki"},
    DevicePreset{.name = "gb200",
                 .peak_gflops = {90'000, 2'500'000, 2'500'000, 5'000'000},
                 .memory_bandwidth = gb_per_second(8'000),
                 .memory = gib(186),
                 .link_bandwidth = gb_per_second(900),
                 .link = "NVLink 5",
                 .source = "NVIDIA Blackwell data sheet (GB200, 1200 W), as quoted by "
                           "glennklockwood.com/garden/processors/B200; a 72nd of the memory of a "
                           "GB200 NVL72, as quoted by aiwiki.ai/wiki/nvidia_gb200_nvl72"},
    DevicePreset{.name = "h100-pcie",
                 .peak_gflops = {51'000, 756'500, 756'500, 1'513'000},
                 .memory_bandwidth = gb_per_second(2'000),
                 .memory = gib(80),
                 .link_bandwidth = gb_per_second(64),
                 .link = "PCIe 5 x16",
                 .source = kH100},
    DevicePreset{.name = "h100-sxm",
                 .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
                 .memory_bandwidth = gb_per_second(3'350),
                 .memory = gib(80),
                 .link_bandwidth = gb_per_second(450),
                 .link = "NVLink 4",
                 .source = kH100},
    DevicePreset{.name = "h200-sxm",
                 .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
                 .memory_bandwidth = gb_per_second(4'800),
                 .memory = gib(141),
                 .link_bandwidth = gb_per_second(450),
                 .link = "NVLink 4",
                 .source =
                     "as h100-sxm, with the memory of the NVIDIA H200 data sheet, as quoted by "
                     "aiwiki.ai/wiki/nvidia_h200"},
    DevicePreset{
        .name = "h800-sxm",
        .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
        .memory_bandwidth = gb_per_second(3'350),
        .memory = gib(80),
        .link_bandwidth = gb_per_second(200),
        .link = "NVLink 4",
        .source = "as h100-sxm, with the NVLink of 400 GB/s, both ways together, that is told by "
                  "www.philisun.com/technical-analysis/nvidia-h800-vs-h100-a-technical-deep-dive-"
                  "into-politically-defined-ai-chips"},
    DevicePreset{.name = "l40s",
                 .peak_gflops = {91'600, 362'050, 362'050, 733'000},
                 .memory_bandwidth = gb_per_second(864),
                 .memory = gib(48),
                 .link_bandwidth = gb_per_second(32),
                 .link = "PCIe 4 x16",
                 .source = "NVIDIA L40S data sheet, as reprinted by "
                           "www.mullet.se/product.html?product_id=355414"},
};

}  // namespace

std::optional<FlopsPerSecond> DevicePreset::peak(NumberFormat format) const {
  const std::int64_t gflops = peak_gflops[static_cast<std::size_t>(format)];
  if (gflops == 0) return std::nullopt;
  return FlopsPerSecond{gflops * 1'000'000'000};
}

std::span<const DevicePreset> device_presets() { return kPresets; }

const DevicePreset* find_device_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const DevicePreset& preset) { return preset.name == name; });
  return found == kPresets.end() ? nullptr : &*found;
}

std::vector<std::string> device_preset_names() {
  std::vector<std::string> names;
  names.reserve(kPresets.size());
  for (const DevicePreset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace plumbline
