// The layers of the cuda backend held against the reference, on the device that runs them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cuda/check/check.h"
#include "calibrate/cuda/driver/queue.h"
#include "models/network/network.h"

namespace plumbline {

/// What a pass made of one tensor: the largest difference from what the reference makes, as a share
/// of the largest element there; infinite where something is not a number.
struct TensorDifference {
  std::string tensor;  ///< "output", "weight gradient".
  double share = 0;
};

/// How a check hands its passes to the device: as they are enqueued, or recorded and replayed as
/// one graph.
enum class CheckedAs { enqueued, graph };

/// Runs F, I and W of a layer for one micro-batch of random numbers, gradients being added to what
/// is there, and compares all that they write with reference.h. A graph is recorded where the same
/// passes have run before. Waits for the queue. Requires: its context current. Errors: CudaError.
std::vector<TensorDifference> differences_from_reference(const CudaQueue& queue,
                                                         const NetworkLayer& layer,
                                                         ElementType type, std::int64_t batch,
                                                         CheckedAs as = CheckedAs::enqueued);

/// The same for small layers of every kind in every element type, on device 0, both ways: adds
/// lines to the check's text and what is wrong to its failures. So much is allowed that only what
/// is computed otherwise is wrong, not what is rounded otherwise; a layer that does not run is a
/// failure, too, and the others are still looked at. One that cannot be recorded is none: its
/// passes are launched kernel by kernel, which the text tells. Attention is fused where it can be.
/// `own` as for DeviceLibraries. Errors: those of open_cuda_devices.
std::optional<Diagnostic> check_cuda_layers(const CudaDriver& driver, std::uint32_t devices,
                                            bool own, CudaCheck& check);

}  // namespace plumbline
