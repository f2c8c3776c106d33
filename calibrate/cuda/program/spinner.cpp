// One launch for each op.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/spinner.h"

#include "calibrate/cuda/driver/launch.h"

namespace plumbline {

CudaSpinner::CudaSpinner(CudaDevices& devices, const OpGraph& graph)
    : devices_(devices), graph_(graph), times_(graph.slots()) {}

void CudaSpinner::prepare(std::uint32_t slot) {
  times_[slot] = CudaScratch(devices_.driver(), 2 * sizeof(std::uint64_t));
}

void CudaSpinner::enqueue(const CudaStep& step, CUstream stream) {
  if (is_moving(step.kind) || step.kind == CudaStep::Kind::add_up) return;
  const Duration time = graph_.cost(step.node).hold;
  const CudaDevice& device = devices_.all()[step.slot];
  cuda::launch(bare_queue(devices_.driver(), device, stream), "plumbline_spin", {device.sms}, 64, 0,
               static_cast<unsigned long long>(time.count()), times_[step.slot].data());
}

}  // namespace plumbline
