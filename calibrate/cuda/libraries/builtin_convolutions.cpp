// The plain kernels, and the scratch of their sums.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/builtin_convolutions.h"

#include <algorithm>
#include <cstddef>

#include "base/bug.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/libraries/image_kernels.h"

namespace plumbline {
namespace {

class OwnConvolutions : public CudaConvolutions {
 public:
  void prepare(const CudaQueue& queue, ElementType, const CudaConvolution& shape) override {
    const auto bytes = static_cast<std::size_t>(cuda::weight_partial_floats(shape)) * sizeof(float);
    if (bytes <= partial_bytes_) return;
    partial_ = CudaScratch(*queue.driver, bytes);
    partial_bytes_ = bytes;
  }

  void forward(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
               CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight, bool adds) override {
    cuda::convolution(queue, type, shape, y, x, weight, adds);
  }
  void input_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                      CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr weight,
                      bool adds) override {
    cuda::convolution_input_gradient(queue, type, shape, x_gradient, y_gradient, weight, adds);
  }
  void weight_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                       CUdeviceptr weight_gradient, CUdeviceptr y_gradient,
                       CUdeviceptr x) override {
    PLUMBLINE_CHECK(static_cast<std::size_t>(cuda::weight_partial_floats(shape)) * sizeof(float) <=
                        partial_bytes_,
                    "a convolution that was not prepared");
    cuda::add_convolution_weight_gradient(queue, type, shape, weight_gradient, y_gradient, x,
                                          partial_.data());
  }
  std::string_view name() const override { return "own convolutions"; }

 private:
  CudaScratch partial_;
  std::size_t partial_bytes_ = 0;
};

}  // namespace

std::unique_ptr<CudaConvolutions> builtin_convolutions() {
  return std::make_unique<OwnConvolutions>();
}

}  // namespace plumbline
