// The table of devices.
//
// SPDX-License-Identifier: MIT
#include "models/hardware/device_presets.h"

#include <algorithm>

namespace plumbline {
namespace {

/// `n` GiB, with two decimal places, as PyTorch prints it.
constexpr Bytes gib(double n) { return {static_cast<std::int64_t>(n * (1 << 30))}; }
constexpr BytesPerSecond gb_per_second(std::int64_t n) { return {n * 1'000'000'000}; }

constexpr std::string_view kA100 =
    "NVIDIA A100 Tensor Core GPU data sheet (1758950-r4), as quoted by "
    "glennklockwood.com/garden/processors/A100";
constexpr std::string_view kH100 =
    "NVIDIA H100 Tensor Core GPU data sheet, as reprinted by "
    "archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html";

constexpr std::string_view kDgxA100 = "ConnectX-6 of 200 Gbit/s for each GPU, as in a DGX A100";
constexpr std::string_view kDgxH100 = "ConnectX-7 of 400 Gbit/s for each GPU, as in a DGX H100";
constexpr std::string_view kDgxH200 = "ConnectX-7 of 400 Gbit/s for each GPU, as in a DGX H200";
constexpr std::string_view kDgxH800 = "ConnectX-7 of 400 Gbit/s for each GPU, as in a DGX H800";
constexpr std::string_view kDgxB200 = "ConnectX-7 of 400 Gbit/s for each GPU, as in a DGX B200";
constexpr std::string_view kDgxB300 = "ConnectX-8 of 800 Gbit/s for each GPU, as in a DGX B300";
constexpr std::string_view kGb200 = "ConnectX-7 of 400 Gbit/s for each GPU, as in a GB200 NVL72";
constexpr std::string_view kGb300 = "ConnectX-8 of 800 Gbit/s for each GPU, as in a GB300 NVL72";

// The fp32 peak is that of the plain cores. PyTorch uses these unless it is allowed to round to
// TF32. The table is over 80 lines long because every device is a row.
constexpr std::array kPresets = {
    DevicePreset{
        .name = "a100-sxm-40gb",
        .peak_gflops = {19'500, 312'000, 312'000, 0},
        .memory_bandwidth = gb_per_second(1'555),
        .memory = gib(39.50),
        .memory_source = "github.com/TianheWu/CoSeR/issues/10; 39.38 to 39.59 GiB by driver",
        .link_bandwidth = gb_per_second(300),
        .link = "NVLink 3",
        .source = kA100,
        .host_bandwidth = gb_per_second(32),
        .network_bandwidth = gb_per_second(25),
        .network = kDgxA100},
    DevicePreset{
        .name = "a100-sxm-80gb",
        .peak_gflops = {19'500, 312'000, 312'000, 0},
        .memory_bandwidth = gb_per_second(2'039),
        .memory = gib(79.25),
        .memory_source = "github.com/levihsu/OOTDiffusion/issues/235; 79.14 to 79.33 GiB by driver",
        .link_bandwidth = gb_per_second(300),
        .link = "NVLink 3",
        .source = kA100,
        .host_bandwidth = gb_per_second(32),
        .network_bandwidth = gb_per_second(25),
        .network = kDgxA100},
    DevicePreset{.name = "b200-sxm",
                 .peak_gflops = {80'000, 2'250'000, 2'250'000, 4'500'000},
                 .memory_bandwidth = gb_per_second(8'000),
                 .memory = gib(178.35),
                 .memory_source = "github.com/pytorch/ao/pull/4002",
                 .link_bandwidth = gb_per_second(900),
                 .link = "NVLink 5",
                 .source = "NVIDIA Blackwell data sheet (HGX, 1000 W), as quoted by "
                           "glennklockwood.com/garden/processors/B200",
                 .host_bandwidth = gb_per_second(64),
                 .network_bandwidth = gb_per_second(50),
                 .network = kDgxB200},
    DevicePreset{
        .name = "b300-sxm",
        .peak_gflops = {75'000, 2'250'000, 2'250'000, 4'500'000},
        .memory_bandwidth = gb_per_second(8'000),
        .memory = gib(267.69),
        .memory_source = "out-of-memory messages of PyTorch on B300s, as public notes quote them",
        .link_bandwidth = gb_per_second(900),
        .link = "NVLink 5",
        .source = "NVIDIA HGX B300 data sheet, as quoted by "
                  "glennklockwood.com/garden/processors/B300; memory up to 8 TB/s there, 7.7 at "
                  "verda.com/blog/gb300-nvl72-architecture",
        .network_bandwidth = gb_per_second(100),
        .network = kDgxB300},
    DevicePreset{
        .name = "gb200",
        .peak_gflops = {90'000, 2'500'000, 2'500'000, 5'000'000},
        .memory_bandwidth = gb_per_second(8'000),
        .memory = gib(184.31),
        .memory_source = "out-of-memory messages of PyTorch on GB200s, as public notes quote them",
        .link_bandwidth = gb_per_second(900),
        .link = "NVLink 5",
        .source = "NVIDIA Blackwell data sheet (GB200, 1200 W), as quoted by "
                  "glennklockwood.com/garden/processors/B200",
        .network_bandwidth = gb_per_second(50),
        .network = kGb200},
    DevicePreset{.name = "gb300",
                 .peak_gflops = {80'000, 2'500'000, 2'500'000, 5'000'000},
                 .memory_bandwidth = gb_per_second(8'000),
                 .memory = gib(276.50),
                 .memory_source = "out-of-memory message of PyTorch on a GB300, in "
                                  "github.com/stas00/ml-engineering/blob/master/debug/pytorch.md",
                 .link_bandwidth = gb_per_second(900),
                 .link = "NVLink 5",
                 .source = "NVIDIA GB300 NVL72 data sheet (1400 W), as quoted by "
                           "verda.com/blog/gb300-nvl72-architecture",
                 .network_bandwidth = gb_per_second(100),
                 .network = kGb300},
    DevicePreset{
        .name = "h100-pcie",
        .peak_gflops = {51'000, 756'500, 756'500, 1'513'000},
        .memory_bandwidth = gb_per_second(2'000),
        .memory = gib(79.11),
        .memory_source = "public output of torch.cuda.get_device_properties: total_memory=81008MB",
        .link_bandwidth = gb_per_second(64),
        .link = "PCIe 5 x16",
        .source = kH100,
        .host_bandwidth = gb_per_second(64)},
    DevicePreset{
        .name = "h100-sxm",
        .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
        .memory_bandwidth = gb_per_second(3'350),
        .memory = gib(79.11),
        .memory_source = "github.com/vllm-project/vllm/issues/27508; 79.10 to 79.19 GiB by driver",
        .link_bandwidth = gb_per_second(450),
        .link = "NVLink 4",
        .source = kH100,
        .host_bandwidth = gb_per_second(64),
        .network_bandwidth = gb_per_second(50),
        .network = kDgxH100},
    DevicePreset{
        .name = "h20-sxm",
        .peak_gflops = {44'000, 148'000, 148'000, 296'000},
        .memory_bandwidth = gb_per_second(4'000),
        .memory = gib(95.00),
        .memory_source = "public output of torch.cuda.get_device_properties: total_memory=97285MB",
        .link_bandwidth = gb_per_second(450),
        .link = "NVLink 4",
        .source = "NVIDIA's sheet for HGX H20, as quoted by zangshuxian.com/new/"
                  "674733024499207168; fp8, memory and NVLink as quoted by www.tweaktown.com/news/"
                  "95224"},
    DevicePreset{
        .name = "h200-sxm",
        .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
        .memory_bandwidth = gb_per_second(4'800),
        .memory = gib(139.80),
        .memory_source = "public output of torch.cuda.get_device_properties: total_memory=143156MB",
        .link_bandwidth = gb_per_second(450),
        .link = "NVLink 4",
        .source =
            "as h100-sxm, with the memory bandwidth of the NVIDIA H200 data sheet, as quoted by "
            "aiwiki.ai/wiki/nvidia_h200",
        .host_bandwidth = gb_per_second(64),
        .network_bandwidth = gb_per_second(50),
        .network = kDgxH200},
    DevicePreset{
        .name = "h800-sxm",
        .peak_gflops = {67'000, 989'500, 989'500, 1'979'000},
        .memory_bandwidth = gb_per_second(3'350),
        .memory = gib(79.11),
        .memory_source = "as h100-sxm",
        .link_bandwidth = gb_per_second(200),
        .link = "NVLink 4",
        .source = "as h100-sxm, with the NVLink of 400 GB/s, both ways together, as stated by "
                  "www.philisun.com/technical-analysis/nvidia-h800-vs-h100-a-technical-deep-dive-"
                  "into-politically-defined-ai-chips",
        .host_bandwidth = gb_per_second(64),
        .network_bandwidth = gb_per_second(50),
        .network = kDgxH800},
    DevicePreset{.name = "l40s",
                 .peak_gflops = {91'600, 362'050, 362'050, 733'000},
                 .memory_bandwidth = gb_per_second(864),
                 .memory = gib(44.42),
                 .memory_source =
                     "github.com/stepfun-ai/Step-Video-T2V/issues/8; 44.39 to 44.42 GiB by driver",
                 .link_bandwidth = gb_per_second(32),
                 .link = "PCIe 4 x16",
                 .source = "NVIDIA L40S data sheet, as reprinted by "
                           "www.mullet.se/product.html?product_id=355414",
                 .host_bandwidth = gb_per_second(32)},
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
