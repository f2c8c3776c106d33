// Products of fp32 matrices on one CPU core: the only place that calls oneDNN.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace plumbline {

/// A matrix whose rows are `stride` elements apart.
struct Operand {
  const float* values = nullptr;
  std::int64_t stride = 0;  ///< In memory, before the transpose.
  bool transposed = false;
};

/// The target of a product: keep x old values + factor x product.
struct Target {
  float* values = nullptr;
  std::int64_t stride = 0;
  float keep = 0;  ///< With 0 the old values are not read.
  float factor = 1;
};

/// The target has `rows` x `columns` elements, each a sum of `depth` products.
struct GemmSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

/// Target = keep x target + factor x a b. The target does not overlap with a or b.
/// Requires: sizes >= 1, a build with oneDNN.
void multiply(const GemmSize& size, const Operand& a, const Operand& b, const Target& target);

/// "oneDNN 2.6.3"; "" where the build has none; calling `multiply` is then a bug.
std::string matrix_library();

/// Every thread calls this once before its first product. The library then uses only the calling
/// thread. Subnormal fp32 numbers count as zero, as on GPUs; otherwise they would make single ops
/// many times slower.
void use_one_thread();

}  // namespace plumbline
