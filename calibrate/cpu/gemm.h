// Products of fp32 matrices on one CPU core: the one place that knows oneDNN.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace plumbline {

/// A matrix whose rows stand `stride` elements apart.
struct Operand {
  const float* values = nullptr;
  std::int64_t stride = 0;  ///< Of what stands in memory, before it is transposed.
  bool transposed = false;
};

/// Where a product goes: what is there counts `keep` times, the product `factor` times.
struct Target {
  float* values = nullptr;
  std::int64_t stride = 0;
  float keep = 0;  ///< With 0 what is there is not read.
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

/// "oneDNN 2.6.3"; "" where the build has none: then `multiply` is a bug.
std::string matrix_library();

/// To be called once by every thread before its first product: the library keeps to the calling
/// thread, and numbers too small for a normal fp32 count as zero, as they do on GPUs. Otherwise
/// they would make single ops many times slower.
void use_one_thread();

}  // namespace plumbline
