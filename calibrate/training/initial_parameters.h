// Starting values of parameters.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/training/reference.h"

namespace plumbline {

/// Seeded starting values: matrices and kernels normal with variance 1 / inputs, scales 1, shifts
/// and biases 0, tables of embeddings normal with deviation 0.02.
std::vector<Values> initial_parameters(const NetworkLayer& layer, std::uint64_t seed);

}  // namespace plumbline
