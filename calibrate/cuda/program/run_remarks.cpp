// Remarks, a sentence each.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/run_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumbline {

std::string streams_remark(const CudaDevices& devices, std::size_t streams) {
  constexpr std::size_t kConnections = 32;  // as load_cuda_driver asks for
  if (!devices.split() || streams <= kConnections) return "";
  return fmt::format(
      "{} streams share the {} connections to the GPU: some wait for others although they need "
      "not; fewer devices, or links without a latency, take fewer",
      streams, kConnections);
}

std::string memory_remark(const OpGraph& graph, const CudaWork& work, const RunRecord& record) {
  double worst = -1;
  std::string text;
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    const auto booked =
        static_cast<double>(record.iterations.front().memory[slot].peak.sum().count);
    const auto bytes = work.allocated(slot);
    if (!bytes) return "";
    const auto allocated = static_cast<double>(*bytes);
    const double off = std::abs(allocated - booked) / std::max(booked, 1.0);
    if (off <= worst) continue;
    worst = off;
    text = fmt::format("device {} allocated {:.1f} MiB for tensors of which its books hold {:.1f}",
                       graph.devices[slot].value, allocated / 0x1p20, booked / 0x1p20);
  }
  return text;
}

}  // namespace plumbline
