// Nothing to choose, so nothing to prepare. SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/builtin_gemm.h"

#include <string_view>

#include "base/bug.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

class OwnProducts : public CudaProducts {
 public:
  void prepare(const CudaQueue&, ElementType, const CudaProduct&) override {}
  bool is_prepared(const CudaQueue&, ElementType, const CudaProduct&) const override {
    return true;
  }
  void multiply(const CudaQueue& queue, ElementType type, const CudaProduct& product) override {
    PLUMBLINE_CHECK(!product.c.turned, product.rows, product.columns);
    cuda::product(queue, type, product);
  }
  std::string_view name() const override { return "own products"; }
};

}  // namespace

std::unique_ptr<CudaProducts> own_products() { return std::make_unique<OwnProducts>(); }

}  // namespace plumbline
