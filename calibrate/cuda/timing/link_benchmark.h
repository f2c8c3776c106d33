// What it takes to get from one CUDA device to the next.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/libraries/nccl.h"
#include "calibrate/cuda/timing/launch_times.h"
#include "models/profile/profile.h"

namespace plumbline {

/// What tensors of these sizes take between two devices beyond a hand-over, nothing else at work:
/// sent as in a run, on a stream of the sender's own behind an op that made them, and waited for by
/// the receiver's. `launches` is what these ops and a hand-over take. Parts of a GPU hand them on
/// through all of them and back, as a pipeline does; GPUs back and forth between two neighbours.
/// One link "copy" where all devices are parts of one GPU; else one for each two neighbours, "peer
/// 0-1", the slowest first. With NCCL, which the devices then are GPUs for, they are sent and
/// received, on a stream of each end: "nccl 0-1". Then the same as blocking_link(): on the streams
/// of the ops, which a blocking transfer holds at both ends. Then "host": between the first two
/// through pinned memory of the host, which no run does; left out where there is not so much of
/// that. Sizes for which there is no memory are left out; with fewer than two sizes or devices
/// there are no links. Requires: ascending sizes. Errors: CudaError; NcclError.
std::vector<MeasuredLink> measure_cuda_links(CudaDevices& devices, CudaLaunching& launching,
                                             const CudaLaunchTimes& launches, const Nccl* nccl,
                                             const std::vector<Bytes>& sizes);

}  // namespace plumbline
