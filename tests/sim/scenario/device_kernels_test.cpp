// Which kernels a device of a scenario has.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/scenario/device_section.h"

namespace plumbline {
namespace {

KernelModel model_of(const DeviceChoice& device) {
  const auto roofline = roofline_of(device, NumberFormat::bf16);
  REQUIRE(roofline);
  return kernels_of(device, *roofline);
}

DeviceChoice of_preset(const char* name) {
  DeviceChoice device;
  device.preset = find_device_preset(name);
  device.memory_bandwidth = device.preset->memory_bandwidth;
  return device;
}

DeviceChoice of_numbers(std::int64_t peak) {
  DeviceChoice device;
  device.peak = FlopsPerSecond{peak};
  device.memory_bandwidth = BytesPerSecond{2'000'000'000'000};
  return device;
}

TEST_CASE("a device's kernels are those of its preset, whatever peak is given beside it") {
  DeviceChoice device = of_preset("l40s");
  CHECK(model_of(device).device().traits.device == "l40s");
  CHECK(model_of(device).device().traits.multiprocessors == 142);
  device.peak = FlopsPerSecond{181'000'000'000'000};
  CHECK(model_of(device).device().traits.multiprocessors == 142);
  CHECK(model_of(device).device().peak == 181e12);
}

TEST_CASE("a device given by numbers has what is usual for its peak") {
  CHECK(model_of(of_numbers(100'000'000'000'000)).device().traits.multiprocessors == 108);
  CHECK(model_of(of_numbers(900'000'000'000'000)).device().traits.multiprocessors == 132);
  CHECK(model_of(of_numbers(5'000'000'000'000'000)).device().traits.multiprocessors == 148);
}

TEST_CASE("a device has the stack that is named, else the usual one") {
  DeviceChoice device = of_preset("h100-sxm");
  CHECK(model_of(device).stack().name == "megatron-core");
  device.stack = find_software_stack("torch-compile");
  CHECK(model_of(device).stack().name == "torch-compile");
}

}  // namespace
}  // namespace plumbline
