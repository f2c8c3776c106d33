// Our own kernels for pictures and for the cells of an LSTM as functions. Each enqueues one or two
// kernels of calibrate/cuda/kernels/, which have the formulas.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstdint>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"
#include "calibrate/cuda/libraries/convolutions.h"
#include "models/network/network.h"

/// As in builtin_kernels.h.
namespace plumbline::cuda {

// Convolutions: as CudaConvolutions.

void convolution(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                 CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight, bool adds);
void convolution_input_gradient(const CudaQueue& queue, ElementType type,
                                const CudaConvolution& shape, CUdeviceptr x_gradient,
                                CUdeviceptr y_gradient, CUdeviceptr weight, bool adds);
/// The number of fp32 elements that the next function needs as scratch.
std::int64_t weight_partial_floats(const CudaConvolution& shape);
void add_convolution_weight_gradient(const CudaQueue& queue, ElementType type,
                                     const CudaConvolution& shape, CUdeviceptr weight_gradient,
                                     CUdeviceptr y_gradient, CUdeviceptr x, CUdeviceptr partial);

// Pooling.

/// The window is that of a convolution; its `outputs` are not used.
void max_pool(const CudaQueue& queue, ElementType type, const CudaConvolution& window,
              CUdeviceptr y, CUdeviceptr x);
void max_pool_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& window,
                       CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr x);

// Channels.

/// [samples, channels, area].
struct Channels {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t area = 0;

  std::int64_t elements() const { return samples * channels * area; }
};

/// Sets each element to the bias of its channel.
void bias_channels(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr bias,
                   const Channels& shape);
/// Adds the sum of each channel of x.
void add_channel_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums, CUdeviceptr x,
                      const Channels& shape);

/// The trained numbers of a batch norm, or their gradients.
struct ScaleShift {
  CUdeviceptr scale = 0;
  CUdeviceptr shift = 0;
};

/// Writes y and the moments of `normed`. Adds the skip unless that is 0, then applies a relu if
/// wanted.
void batch_norm(const CudaQueue& queue, ElementType type, CUdeviceptr y, const Normed& normed,
                const ScaleShift& parameters, CUdeviceptr skip, bool rectifies,
                const Channels& shape);
/// Adds to the gradients of scale and shift. Writes x_gradient unless that is 0; it may be
/// y_gradient. If there is a gate, y_gradient passes only where the gate is above 0.
void batch_norm_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                         const ScaleShift& gradients, CUdeviceptr y_gradient, CUdeviceptr gate,
                         const Normed& normed, CUdeviceptr scale, const Channels& shape);

// LSTM.

/// [samples, tokens, hidden], and gates of [samples, tokens, 4 hidden].
struct LstmShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;

  Rows rows() const { return {samples * tokens, hidden}; }
};

/// Applies the gates' functions to the gates of one token; writes cells and h.
void lstm_cell(const CudaQueue& queue, ElementType type, CUdeviceptr gates, CUdeviceptr cells,
               CUdeviceptr h, const LstmShape& shape, std::int64_t token);
/// Computes the gradients of one token. `from_after` [samples, hidden] is the share of the next
/// token in the gradient of h. `cell_gradient` has the same shape in fp32 and is passed from token
/// to token.
void lstm_cell_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gates_gradient,
                        CUdeviceptr cell_gradient, CUdeviceptr h_gradient, CUdeviceptr from_after,
                        CUdeviceptr gates, CUdeviceptr cells, const LstmShape& shape,
                        std::int64_t token);
/// Writes the h from which each token starts.
void lstm_previous(const CudaQueue& queue, ElementType type, CUdeviceptr previous, CUdeviceptr h,
                   const LstmShape& shape);

}  // namespace plumbline::cuda
