// Compares the layers of the cuda backend with the reference, on the device that runs them.
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

/// The error of one tensor after a pass: the largest difference from the reference, as a share of
/// the reference's largest element. Infinite where an element is not a number.
struct TensorDifference {
  std::string tensor;  ///< "output", "weight gradient".
  double share = 0;
};

/// The way in which a check launches its passes: kernel by kernel, or recorded and replayed as one
/// graph.
enum class CheckedAs { enqueued, graph };

/// Runs F, I and W of a layer for one micro-batch of random numbers and compares all their outputs
/// with reference.h. Gradients are added to the values that are there. A graph is recorded after
/// the same passes have run once. Waits for the queue. Requires: the queue's context is current.
/// Errors: CudaError.
std::vector<TensorDifference> differences_from_reference(const CudaQueue& queue,
                                                         const NetworkLayer& layer,
                                                         ElementType type, std::int64_t batch,
                                                         CheckedAs as = CheckedAs::enqueued);

/// Checks small layers of every kind in every element type, on device 0, in both ways. Adds lines
/// to the check's text, and faults to its failures. The tolerance allows other rounding, but no
/// other computation. A layer that does not run is a failure, too; the other layers are still
/// checked. A layer that cannot be recorded is no failure: its passes are launched kernel by
/// kernel, and the text says so. Attention is fused where possible. `own` as for DeviceLibraries.
/// Errors: the errors of open_cuda_devices.
std::optional<Diagnostic> check_cuda_layers(const CudaDriver& driver, std::uint32_t devices,
                                            bool own, CudaCheck& check);

}  // namespace plumbline
