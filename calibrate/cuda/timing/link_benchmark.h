// The time of transfers from one CUDA device to the next.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/libraries/nccl.h"
#include "calibrate/cuda/timing/launch_times.h"
#include "calibrate/cuda/timing/work_beside.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The time of tensors of these sizes between two devices beyond a hand-over, while nothing else is
/// at work. They are sent as in a run: on a stream of the sender's own, behind an op that made
/// them. The receiver's stream waits for them. `launches` has the times of these ops and of a
/// hand-over. Parts of a GPU pass the tensors on through all devices and back, as a pipeline does;
/// GPUs pass them back and forth between two neighbours. With `others` on parts of a GPU, each link
/// has further tables: the times between the first two devices while one of those others works,
/// two, four and so on, and all. A table is left out where the host is too slow for it, and
/// all of a link where no time differs by a twentieth. The links come in this order.
/// - One link "copy" if all devices are parts of one GPU. Otherwise one for each pair of
///   neighbours, "peer 0-1", the slowest first. With NCCL, which needs whole GPUs, tensors are sent
///   and received, on a stream of each end: "nccl 0-1".
/// - The same links as blocking_link(): on the streams of the ops, which a blocking transfer holds
///   at both ends.
/// - "host": between the first two devices through pinned memory of the host, which no run uses.
///   Left out if the host lacks that memory.
/// Sizes for which there is no memory are left out. With fewer than two sizes or devices there are
/// no links. Requires: ascending sizes. Errors: CudaError; NcclError.
std::vector<MeasuredLink> measure_cuda_links(CudaDevices& devices, CudaLaunching& launching,
                                             const CudaLaunchTimes& launches, const Nccl* nccl,
                                             const std::vector<Bytes>& sizes,
                                             CudaWorkBeside* others = nullptr);

}  // namespace plumbline
