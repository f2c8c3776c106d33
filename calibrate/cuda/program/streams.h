// The streams of a program, and links that keep their set speed.
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

/// Streams that begin together and end together. The streams of a program come first, in its order;
/// the compute streams are the devices' own. Requires: nothing is enqueued on them at destruction.
class StreamSet {
 public:
  /// The arguments outlive them. Errors: CudaError.
  StreamSet(CudaDevices& devices, const CudaProgram& program);
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  CUstream operator[](std::size_t lane) const { return lanes_[lane].stream; }
  /// The device whose context and kernels the lane has: a slot's device or its mover.
  const CudaDevice& on(std::size_t lane) const { return *lanes_[lane].on; }
  /// Makes its context current. Errors: CudaError.
  void use(std::size_t lane) const;
  std::size_t size() const { return lanes_.size(); }
  /// Adds a lane on a slot's mover. Errors: CudaError.
  std::size_t add(std::uint32_t slot);

  /// All but lane 0 wait for the event.
  void start_behind(CUevent event);
  /// Lane 0 waits for all others.
  void join();
  /// Waits for the end of all; errors are not reported.
  void drain() noexcept;

 private:
  struct Lane {
    const CudaDevice* on = nullptr;
    CUstream stream = nullptr;
    CudaUrgentStream own;  ///< Set unless it is the compute stream.
    CudaEvents ended;
  };

  void push(const CudaDevice& on, CUstream stream, CudaUrgentStream own = {});
  void close() noexcept;

  CudaDevices& devices_;
  std::vector<Lane> lanes_;
};

/// Emulates the set bandwidth or latency of links, for transfers and hops of all-reduces. A kernel
/// notes the time before the first copy. A second kernel ends when the link would be free for the
/// next transfer. A third one, on a lane for arrivals, ends when this transfer would have arrived.
/// Copies that take longer than their link says are not sped up. Each kernel is one thread, where
/// the copy runs.
class LinkEmulator {
 public:
  /// The arguments outlive it. Without `keeps_links` no link is emulated. Errors: CudaError.
  LinkEmulator(CudaDevices& devices, const OpGraph& graph, const CudaProgram& program,
               StreamSet& lanes, bool keeps_links);

  /// To be called before the step's work on its stream. Errors: CudaError, as the next.
  void begin(std::uint32_t step);
  /// To be called after that work. Leaves the context of arrival_of() current.
  void end(std::uint32_t step);
  /// The lane whose end is the step's arrival.
  std::size_t arrival_of(std::uint32_t step) const {
    return emulator_[step].flies ? emulator_[step].lane : program_.steps[step].stream;
  }

 private:
  struct Pace {
    CUdeviceptr began = 0;  ///< Address of the noted time, in ns; 0 = not emulated.
    bool begins = false;    ///< It is the first copy of a transfer; `ends`: the last.
    bool ends = false;
    bool flies = false;    ///< It arrives after the link is free for the next one.
    std::size_t lane = 0;  ///< If `flies`, the lane of its arrival.
    CudaEvents sent;       ///< Used if `flies`.
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
  std::vector<CudaScratch> times_;  ///< By slot: all times noted there.
  std::vector<Pace> emulator_;      ///< By step.
};

}  // namespace plumbline
