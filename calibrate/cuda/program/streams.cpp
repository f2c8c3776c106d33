// Forking, joining, and kernels that wait for a time.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/streams.h"

#include <map>
#include <utility>

#include "calibrate/cuda/driver/launch.h"

namespace plumbline {
StreamSet::StreamSet(CudaDevices& devices, const CudaProgram& program) : devices_(devices) {
  lanes_.reserve(program.streams.size());
  try {
    for (const CudaProgram::Stream& stream : program.streams) {
      if (stream.sends) {
        add(stream.slot);
      } else {
        const CudaDevice& device = devices.all()[stream.slot];
        push(device, device.compute);
      }
    }
  } catch (...) {
    close();
    throw;
  }
}

StreamSet::~StreamSet() { close(); }

void StreamSet::close() noexcept {
  for (Lane& lane : lanes_) {
    devices_.driver().cuCtxSetCurrent(lane.on->context);
    lane.ended = {};
  }
}

void StreamSet::use(std::size_t lane) const {
  PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, lanes_[lane].on->context);
}

std::size_t StreamSet::add(std::uint32_t slot) {
  CudaUrgentStream own(devices_, slot);
  const CUstream stream = own.get();
  push(devices_.mover(slot), stream, std::move(own));
  return lanes_.size() - 1;
}

void StreamSet::push(const CudaDevice& on, CUstream stream, CudaUrgentStream own) {
  lanes_.push_back({&on, stream, std::move(own), {}});
  use(lanes_.size() - 1);
  lanes_.back().ended = CudaEvents(devices_.driver(), 1, CU_EVENT_DISABLE_TIMING);
}

void StreamSet::start_behind(CUevent event) {
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    use(i);
    PLUMBLINE_CUDA(devices_.driver(), cuStreamWaitEvent, lanes_[i].stream, event, 0);
  }
}

void StreamSet::join() {
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    use(i);
    PLUMBLINE_CUDA(devices_.driver(), cuEventRecord, lanes_[i].ended[0], lanes_[i].stream);
  }
  use(0);
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    PLUMBLINE_CUDA(devices_.driver(), cuStreamWaitEvent, lanes_.front().stream, lanes_[i].ended[0],
                   0);
  }
}

void StreamSet::drain() noexcept {
  for (const Lane& lane : lanes_) {
    devices_.driver().cuCtxSetCurrent(lane.on->context);
    devices_.driver().cuStreamSynchronize(lane.stream);
  }
}

LinkEmulator::LinkEmulator(CudaDevices& devices, const OpGraph& graph, const CudaProgram& program,
                           StreamSet& lanes, bool keeps_links)
    : devices_(devices),
      graph_(graph),
      program_(program),
      lanes_(lanes),
      times_(graph.slots()),
      emulator_(program.steps.size()) {
  if (!keeps_links) return;
  struct HeldNode {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  std::vector<std::vector<HeldNode>> held(graph.slots());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const std::uint32_t last = program.step_of[node];
    if (last == kNone32) continue;
    const CudaStep::Kind kind = program.steps[last].kind;  // a reduce-scatter ends with its sums
    if (kind != CudaStep::Kind::copy && kind != CudaStep::Kind::add_up) continue;
    if (hold(last) == Duration{} && latency(last) == Duration{}) continue;
    const std::uint32_t first = program.first_step_of[node];
    held[program.steps[last].slot].push_back({first == kNone32 ? last : first, last});
  }
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    if (held[slot].empty()) continue;
    const CudaDriver& driver = devices.driver();
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, devices.all()[slot].context);
    times_[slot] = CudaScratch(driver, held[slot].size() * sizeof(std::uint64_t));
    std::map<std::uint32_t, std::size_t> arrivals;  // by the stream that they are sent on
    for (std::size_t i = 0; i < held[slot].size(); ++i) {
      const auto [first, last] = held[slot][i];
      Pace& pace = emulator_[last];
      pace.began = emulator_[first].began = times_[slot].data() + i * sizeof(std::uint64_t);
      emulator_[first].begins = true;
      pace.ends = true;
      pace.flies = latency(last) > Duration{};
      if (!pace.flies) continue;
      const std::uint32_t stream = program.steps[last].stream;
      if (!arrivals.contains(stream)) arrivals[stream] = lanes.add(slot);
      pace.lane = arrivals[stream];
      lanes.use(stream);
      pace.sent = CudaEvents(driver, 1, CU_EVENT_DISABLE_TIMING);
    }
  }
}

void LinkEmulator::begin(std::uint32_t step) {
  if (!emulator_[step].begins) return;
  const std::size_t lane = program_.steps[step].stream;
  cuda::launch(bare_queue(devices_.driver(), lanes_.on(lane), lanes_[lane]), "plumbline_note_time",
               {}, 1, 0, emulator_[step].began);
}

void LinkEmulator::end(std::uint32_t step) {
  const Pace& pace = emulator_[step];
  const std::size_t lane = program_.steps[step].stream;
  if (!pace.ends) return;
  if (hold(step) > Duration{}) wait_on(lane, pace.began, hold(step));
  if (!pace.flies) return;
  PLUMBLINE_CUDA(devices_.driver(), cuEventRecord, pace.sent[0], lanes_[lane]);
  lanes_.use(pace.lane);
  PLUMBLINE_CUDA(devices_.driver(), cuStreamWaitEvent, lanes_[pace.lane], pace.sent[0], 0);
  wait_on(pace.lane, pace.began, hold(step) + latency(step));
}

void LinkEmulator::wait_on(std::size_t lane, CUdeviceptr since, Duration time) const {
  cuda::launch(bare_queue(devices_.driver(), lanes_.on(lane), lanes_[lane]), "plumbline_wait_since",
               {}, 1, 0, since, static_cast<unsigned long long>(time.count()));
}

}  // namespace plumbline
