// A tensor as the kernels see it: rows of columns.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline::cuda {

/// The last extent is the columns; all others together are the rows.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
};

}  // namespace plumbline::cuda
