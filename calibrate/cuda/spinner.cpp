// One launch for each op. SPDX-License-Identifier: MIT
#include "calibrate/cuda/spinner.h"

#include "calibrate/cuda/launch.h"

namespace plumbline {

CudaSpinner::CudaSpinner(CudaDevices& devices, const OpGraph& graph)
    : devices_(devices), graph_(graph), times_(graph.slots()) {
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_part(graph.activities[node].kind)) of_parts_[place_of(node)] += graph.cost(node).hold;
  }
}

/// Slot, stage and micro-batch.
CudaSpinner::Place CudaSpinner::place_of(std::uint32_t node) const {
  const Activity& activity = graph_.activities[node];
  return {graph_.nodes[node].resource, activity.stage.value, activity.micro_batch.value};
}

void CudaSpinner::prepare(std::uint32_t slot) {
  times_[slot] = CudaScratch(devices_.driver(), 2 * sizeof(std::uint64_t));
}

void CudaSpinner::enqueue(const CudaStep& step, CUstream stream) {
  if (is_moving(step.kind) || step.kind == CudaStep::Kind::add_up) return;
  Duration time = graph_.cost(step.node).hold;
  if (step.kind == CudaStep::Kind::backward || step.kind == CudaStep::Kind::backward_weight) {
    if (const auto parts = of_parts_.find(place_of(step.node)); parts != of_parts_.end())
      time += parts->second;
  }
  const CudaDevice& device = devices_.all()[step.slot];
  cuda::launch(bare_queue(devices_.driver(), device, stream), "plumbline_spin", {device.sms}, 64, 0,
               static_cast<unsigned long long>(time.count()), times_[step.slot].data());
}

}  // namespace plumbline
