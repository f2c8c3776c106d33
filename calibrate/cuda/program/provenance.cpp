// Names and versions.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/provenance.h"

#include <fmt/format.h>

namespace plumbline {

std::string cuda_driver_version(const CudaDriver& driver) {
  int version = 0;
  PLUMBLINE_CUDA(driver, cuDriverGetVersion, &version);
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::map<std::string, std::string> cuda_provenance(CudaDevices& devices,
                                                   const DeviceLibraries& libraries,
                                                   const CudaLaunching& launching) {
  std::map<std::string, std::string> all = {{"backend", "cuda"},
                                            {"device", printable(devices.name())},
                                            {"sms", std::to_string(devices.all().front().sms)},
                                            {"driver", cuda_driver_version(devices.driver())},
                                            {"library", libraries.name()},
                                            {"busy_devices", std::to_string(devices.all().size())}};
  all["split"] = devices.split() ? "SMs of one GPU; memory and its bandwidth are shared" : "none";
  all["launches"] =
      launching.replays ? "a graph for each pass" : printable("one by one: " + launching.why_not);
  all["transfers"] = libraries.nccl() == nullptr ? "copies" : name_of(*libraries.nccl());
  for (const std::string& one : libraries.missing()) {
    std::string& text = all["library_missing"];
    text += text.empty() ? printable(one) : "; " + printable(one);
  }
  return all;
}

}  // namespace plumbline
