// The plain product. It has no choices, so it prepares nothing.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/builtin_gemm.h"

#include <string_view>

#include "base/bug.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

class BuiltinGemm : public CudaGemms {
 public:
  void prepare(const CudaQueue&, ElementType, const CudaGemm&) override {}
  bool is_prepared(const CudaQueue&, ElementType, const CudaGemm&) const override { return true; }
  void multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) override {
    PLUMBLINE_CHECK(!product.c.turned, product.rows, product.columns);
    cuda::product(queue, type, product);
  }
  std::string_view name() const override { return "own products"; }
};

}  // namespace

std::unique_ptr<CudaGemms> builtin_gemm() { return std::make_unique<BuiltinGemm>(); }

}  // namespace plumbline
