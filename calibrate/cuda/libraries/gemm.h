// Matrix products on a CUDA device: by cuBLASLt, or by a plain kernel of our own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "models/network/network.h"

namespace plumbline {

struct CudaQueue;

/// C = alpha A' B' + beta C over `batch` products, row-major. A' is [rows, depth] and B' is [depth,
/// columns]; each is stored as its transpose where `turned`. Sums are fp32. A, B and C have the
/// network's element type. Rows lie `stride` elements apart, products `step` elements.
struct CudaGemm {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t batch = 1;
  struct Operand {
    CUdeviceptr data = 0;
    std::int64_t stride = 0;
    std::int64_t step = 0;
    bool turned = false;  ///< Stored as its transpose.
  };
  Operand a;
  Operand b;
  Operand c;  ///< Not turned.
  float alpha = 1;
  float beta = 0;
};

/// The matrix products of one device. One thread at a time uses it. The same product gives the same
/// bits.
class CudaGemms {
 public:
  virtual ~CudaGemms() = default;

  /// Prepares this shape, so that multiply() only enqueues: chooses an algorithm, timed on the
  /// queue's device. Requires: pointers to real operands; their content is lost.
  virtual void prepare(const CudaQueue& queue, ElementType type, const CudaGemm& product) = 0;
  /// Whether this shape is prepared: then prepare() needs no operands. Only the alignment of the
  /// pointers counts here.
  virtual bool is_prepared(const CudaQueue& queue, ElementType type,
                           const CudaGemm& product) const = 0;
  virtual void multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) = 0;
  /// The choice, for provenance: "cublasLt 13.1.0, algorithm 66 ...".
  virtual std::string_view name() const = 0;
  /// The library's first error for which a plain kernel stands in, except unsupported shapes; empty
  /// = none.
  virtual std::string_view trouble() const { return {}; }
};

}  // namespace plumbline
