// Convolutions of pictures on a CUDA device: by cuDNN, or by plain kernels of our own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <compare>
#include <cstdint>
#include <string_view>

#include "models/network/network.h"

namespace plumbline {

struct CudaQueue;

/// A convolution from x [samples, inputs, height, width] to y [samples, outputs, height', width']
/// with weight [outputs, inputs, kernel, kernel]; a cross-correlation, as usual. Tensors are dense,
/// of the network's element type; sums are fp32.
struct CudaConvolution {
  std::int64_t samples = 0;
  std::int64_t inputs = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t outputs = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t places(std::int64_t extent) const {  ///< Outputs along height or width.
    return (extent + 2 * padding - kernel) / stride + 1;
  }
  std::int64_t input_elements() const { return samples * inputs * height * width; }
  std::int64_t output_elements() const {
    return samples * outputs * places(height) * places(width);
  }
  std::int64_t weights() const { return outputs * inputs * kernel * kernel; }

  friend auto operator<=>(const CudaConvolution&, const CudaConvolution&) = default;
};

/// The convolutions of one device. One thread at a time uses it, on one stream. The same call gives
/// the same bits.
class CudaConvolutions {
 public:
  virtual ~CudaConvolutions() = default;

  /// Prepares all three passes, so that they only enqueue: chooses algorithms, timed on the queue's
  /// device, and allocates scratch.
  virtual void prepare(const CudaQueue& queue, ElementType type, const CudaConvolution& shape) = 0;

  /// Writes y, or adds to it if `adds`.
  virtual void forward(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                       CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight, bool adds) = 0;
  /// Writes x_gradient, or adds to it if `adds`.
  virtual void input_gradient(const CudaQueue& queue, ElementType type,
                              const CudaConvolution& shape, CUdeviceptr x_gradient,
                              CUdeviceptr y_gradient, CUdeviceptr weight, bool adds) = 0;
  /// Adds to weight_gradient.
  virtual void weight_gradient(const CudaQueue& queue, ElementType type,
                               const CudaConvolution& shape, CUdeviceptr weight_gradient,
                               CUdeviceptr y_gradient, CUdeviceptr x) = 0;

  /// The name for provenance: "cuDNN 9.19.0".
  virtual std::string_view name() const = 0;
  /// The library's first error for which a plain kernel stands in, except unsupported shapes; empty
  /// = none.
  virtual std::string_view trouble() const { return {}; }
};

}  // namespace plumbline
