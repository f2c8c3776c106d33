// Every layer in plain loops and double precision: the numerical truth that backends are checked
// against.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/network/network.h"

namespace plumbline {

/// The elements of a tensor of a micro-batch, samples outermost, rows in order. Token ids and
/// labels are whole numbers.
using Values = std::vector<double>;

/// The results of a forward.
struct ReferenceForward {
  Values output;             ///< For a head: the loss of each sample.
  std::vector<Values> kept;  ///< Parallel to NetworkLayer::kept.
};

/// The results of the backward for the input.
struct ReferenceBackward {
  Values input_gradient;     ///< Empty for an embedding: ids have none.
  std::vector<Values> left;  ///< Parallel to NetworkLayer::left_for_weights.
  /// Parallel to NetworkLayer::parameters; empty except for those that come `with_input`.
  std::vector<Values> parameter_gradients;
};

/// One micro-batch on its way through one layer: the arguments of all passes.
struct ReferenceCall {
  const NetworkLayer& layer;
  std::int64_t batch;                     ///< Samples.
  const std::vector<Values>& parameters;  ///< Parallel to NetworkLayer::parameters.
  const Values& input;
  const Values& labels;  ///< One for each row of each sample; used by heads only.
};

/// F.
ReferenceForward reference_forward(const ReferenceCall& call);

/// I. `output_gradient` has the extents of the output; for a head it is the weight of each sample's
/// loss.
ReferenceBackward reference_backward_input(const ReferenceCall& call,
                                           const ReferenceForward& forward,
                                           const Values& output_gradient);

/// W: parallel to the parameters; empty for those that come `with_input`.
std::vector<Values> reference_backward_weight(const ReferenceCall& call,
                                              const ReferenceForward& forward,
                                              const ReferenceBackward& backward,
                                              const Values& output_gradient);

}  // namespace plumbline
