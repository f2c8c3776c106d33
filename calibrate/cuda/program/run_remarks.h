// What is worth saying of a run on CUDA devices, beside its times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/program/work.h"
#include "calibrate/runtime/run_record.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Streams beyond the connections to a GPU share them, and then wait for each other. "" = there are
/// no more.
std::string streams_remark(const CudaDevices& devices, std::size_t streams);

/// What the books say beside what was allocated, of the device where they differ the most. "" = it
/// is not known what was.
std::string memory_remark(const OpGraph& graph, const CudaWork& work, const RunRecord& record);

}  // namespace plumbline
