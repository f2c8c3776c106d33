// Exact texts of quantities, with a unit: a reader of the file gets the same number back.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/units.h"

namespace plumbline {

/// "1.2345 ms". Requires: in [0, kLargestQuantity].
std::string exact_text(Duration time);

/// "12.5 GB/s". Requires: in [1, kLargestQuantity].
std::string exact_text(BytesPerSecond rate);

/// "3.2 TFLOP". Requires: in [0, kMaxFlops].
std::string exact_text(Flops work);

/// A whole number with the largest unit that divides the size. Units are powers of 1024, or else of
/// 1000: "3 MiB". Requires: in [0, kLargestQuantity].
std::string exact_text(Bytes size);

}  // namespace plumbline
