// The streams that a program runs on, and links that keep their set speed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/program/program.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Streams that begin together and end together. Those of a program come first, in its order; the
/// compute streams are the devices' own. Nothing is enqueued on them when they are destroyed.
class StreamSet {
 public:
  /// What is given outlives them. Errors: CudaError.
  StreamSet(CudaDevices& devices, const CudaProgram& program);
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  CUstream operator[](std::size_t lane) const { return lanes_[lane].stream; }
  /// Whose context and kernels it has: a device, or what moves its tensors.
  const CudaDevice& on(std::size_t lane) const { return *lanes_[lane].on; }
  /// Makes its context current. Errors: CudaError.
  void use(std::size_t lane) const;
  std::size_t size() const { return lanes_.size(); }
  /// One more, on a device. Errors: CudaError.
  std::size_t add(std::uint32_t slot);

  /// All but lane 0 wait for the event.
  void start_behind(CUevent event);
  /// Lane 0 waits for all others.
  void join();
  /// Waits for the end of all; errors are not told.
  void drain() noexcept;

 private:
  struct Lane {
    const CudaDevice* on = nullptr;
    CUstream stream = nullptr;
    CudaUrgentStream own;  ///< Where it is not the compute stream.
    CudaEvents ended;
  };

  void push(const CudaDevice& on, CUstream stream, CudaUrgentStream own = {});
  void close() noexcept;

  CudaDevices& devices_;
  std::vector<Lane> lanes_;
};

/// Transfers, and hops of all-reduces, whose links have a set bandwidth or latency: a kernel notes
/// the time before the first copy, another one ends when the link would have let the next one in,
/// and a third, on a lane for arrivals, when this one would have arrived. Copies that take longer
/// than their link says are not sped up. The kernels are one thread each, where the copy runs.
class LinkEmulator {
 public:
  /// What is given outlives them. Without `keeps_links` nothing is held. Errors: CudaError.
  LinkEmulator(CudaDevices& devices, const OpGraph& graph, const CudaProgram& program,
               StreamSet& lanes, bool keeps_links);

  /// Before the step's work on its stream. Errors: CudaError, as the next.
  void begin(std::uint32_t step);
  /// Behind it. The context of arrival_of() is current then.
  void end(std::uint32_t step);
  /// The lane on which the step has arrived when it has ended.
  std::size_t arrival_of(std::uint32_t step) const {
    return emulator_[step].flies ? emulator_[step].lane : program_.steps[step].stream;
  }

 private:
  struct Pace {
    CUdeviceptr began = 0;  ///< Where the time is noted, in ns; 0 = it is not held.
    bool begins = false;    ///< The first copy of what is held; `ends`: the last.
    bool ends = false;
    bool flies = false;    ///< It arrives later than it lets the next one in.
    std::size_t lane = 0;  ///< Then: of its arrival.
    CudaEvents sent;       ///< Then.
  };

  Duration hold(std::uint32_t step) const { return graph_.cost(program_.steps[step].node).hold; }
  Duration latency(std::uint32_t step) const {
    return graph_.cost(program_.steps[step].node).latency;
  }
  void wait_on(std::size_t lane, CUdeviceptr since, Duration time) const;

  CudaDevices& devices_;
  const OpGraph& graph_;
  const CudaProgram& program_;
  StreamSet& lanes_;
  std::vector<CudaScratch> times_;  ///< By slot: all that are noted there.
  std::vector<Pace> emulator_;      ///< By step.
};

}  // namespace plumbline
