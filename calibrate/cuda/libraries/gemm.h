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

/// C = A' B' + beta C over `batch` products, row-major: A' is [rows, depth], B' is [depth,
/// columns], each stored turned where said. Sums are fp32. A, B and C have the network's element
/// type; a row of each lies `stride` elements behind the one before, a product `step` elements.
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

/// The products of one device; one thread at a time uses it. The same product gives the same bits.
class CudaGemms {
 public:
  virtual ~CudaGemms() = default;

  /// Makes ready whatever this shape needs (a choice among algorithms, timed on the queue's
  /// device), so that multiply() only enqueues. Pointers are those of real operands, whose content
  /// is lost.
  virtual void prepare(const CudaQueue& queue, ElementType type, const CudaGemm& product) = 0;
  /// Whether that was done for this shape: then operands need not be there. Of pointers only the
  /// alignment counts.
  virtual bool is_prepared(const CudaQueue& queue, ElementType type,
                           const CudaGemm& product) const = 0;
  virtual void multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) = 0;
  /// What was chosen, for provenance: "cublasLt 13.1.0, algorithm 66 ...".
  virtual std::string_view name() const = 0;
  /// The library's first error where a plain kernel stands in for it, other than that it does not
  /// support a shape; empty = none.
  virtual std::string_view trouble() const { return {}; }
};

}  // namespace plumbline
