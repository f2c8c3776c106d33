// Remarks on a run on CUDA devices, in addition to its times.
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

/// A remark on more streams than there are connections to a GPU: some streams then share a
/// connection and wait for each other. "" = there are not more.
std::string streams_remark(const CudaDevices& devices, std::size_t streams);

/// The memory by the ledger beside the allocated memory, for the device where they differ the most.
/// "" = the allocated memory is not known.
std::string memory_remark(const OpGraph& graph, const CudaWork& work, const RunRecord& record);

}  // namespace plumbline
