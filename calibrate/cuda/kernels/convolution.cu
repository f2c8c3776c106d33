// Plain convolutions of pictures, for use without a library.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"
#include "calibrate/cuda/kernels/tile.h"

namespace plumbline::kernels {

/// x [samples, inputs, height, width], y [samples, outputs, to_height, to_width], weight [outputs,
/// inputs, kernel, kernel].
struct ConvolutionShape {
  long long samples, inputs, height, width;
  long long outputs, to_height, to_width;
  long long kernel, stride, padding;
};

/// A place of the kernel on one input channel: a column of the weights.
struct KernelPlace {
  long long input, down, across;
};

__device__ inline KernelPlace kernel_place(const ConvolutionShape& s, long long k) {
  const long long area = s.kernel * s.kernel;
  return {k / area, k % area / s.kernel, k % s.kernel};
}

/// The input element under such a place if the kernel stands at `place` of the output; 0 in the
/// padding.
template <class T>
__device__ float seen(const ConvolutionShape& s, const T* image, const KernelPlace& at,
                      long long place) {
  const long long row = place / s.to_width * s.stride - s.padding + at.down;
  const long long column = place % s.to_width * s.stride - s.padding + at.across;
  if (row < 0 || row >= s.height || column < 0 || column >= s.width) return 0;
  return to_float(image[(at.input * s.height + row) * s.width + column]);
}

// Each kernel is a product of tiles whose right operand is gathered from pictures. grid.x = tiles
// along its columns, grid.y along its rows. Shared memory: that of a tile.

/// y of each sample (grid.z) [outputs, places] = weight [outputs, inputs x kernel^2] x the input
/// elements that it sees. Adds to y if `adds`.
template <class T>
__device__ void convolution(T* y, const T* x, const T* weight, const ConvolutionShape& s,
                            int adds) {
  const long long places = s.to_height * s.to_width;
  const long long depth = s.inputs * s.kernel * s.kernel;
  for (long long n = blockIdx.z; n < s.samples; n += gridDim.z) {
    const T* const image = x + n * s.inputs * s.height * s.width;
    T* const to = y + n * s.outputs * places;
    multiply_tiles(
        {s.outputs, places, 0, depth, true, false},
        [&](long long row, long long k) { return to_float(weight[row * depth + k]); },
        [&](long long place, long long k) { return seen(s, image, kernel_place(s, k), place); },
        [&](long long row, long long place, float sum) {
          T& at = to[row * places + place];
          store(at, adds == 0 ? sum : to_float(at) + sum);
        });
  }
}

/// The input's gradient of each sample (grid.z) [inputs, height x width] = the weights of one input
/// [outputs x kernel^2] x the gradients of the outputs whose kernel sees the element there. Adds to
/// it if `adds`.
template <class T>
__device__ void convolution_input_gradient(T* x_gradient, const T* y_gradient, const T* weight,
                                           const ConvolutionShape& s, int adds) {
  const long long area = s.kernel * s.kernel;
  const long long places = s.to_height * s.to_width;
  const long long elements = s.height * s.width;
  for (long long n = blockIdx.z; n < s.samples; n += gridDim.z) {
    const T* const from = y_gradient + n * s.outputs * places;
    T* const to = x_gradient + n * s.inputs * elements;
    multiply_tiles(
        {s.inputs, elements, 0, s.outputs * area, true, false},
        [&](long long input, long long k) {
          return to_float(weight[(k / area * s.inputs + input) * area + k % area]);
        },
        [&](long long element, long long k) {
          const KernelPlace at = kernel_place(s, k);  // its `input` is an output here
          const long long down = element / s.width + s.padding - at.down;
          const long long across = element % s.width + s.padding - at.across;
          if (down < 0 || across < 0 || down % s.stride != 0 || across % s.stride != 0) return 0.0F;
          const long long row = down / s.stride;
          const long long column = across / s.stride;
          if (row >= s.to_height || column >= s.to_width) return 0.0F;
          return to_float(from[(at.input * s.to_height + row) * s.to_width + column]);
        },
        [&](long long input, long long element, float sum) {
          T& at = to[input * elements + element];
          store(at, adds == 0 ? sum : to_float(at) + sum);
        });
  }
}

/// Partial sums [chunks, outputs, inputs x kernel^2] of the weight's gradient. The depth is all
/// places of all samples, and each index of grid.z takes `chunk` of them.
template <class T>
__device__ void convolution_weight_partial_sums(float* partial, const T* y_gradient, const T* x,
                                                const ConvolutionShape& s, long long chunk) {
  const long long places = s.to_height * s.to_width;
  const long long columns = s.inputs * s.kernel * s.kernel;
  const long long all = s.samples * places;
  const long long first = blockIdx.z * chunk;
  float* const to = partial + blockIdx.z * s.outputs * columns;
  multiply_tiles(
      {s.outputs, columns, first, first + chunk < all ? first + chunk : all, true, true},
      [&](long long row, long long k) {
        return to_float(y_gradient[(k / places * s.outputs + row) * places + k % places]);
      },
      [&](long long column, long long k) {
        const T* const image = x + k / places * s.inputs * s.height * s.width;
        return seen(s, image, kernel_place(s, column), k % places);
      },
      [&](long long row, long long column, float sum) { to[row * columns + column] = sum; });
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(convolution,
                 (Element * y, const Element* x, const Element* weight, ConvolutionShape shape,
                  int adds),
                 (y, x, weight, shape, adds))
PLUMBLINE_KERNEL(convolution_input_gradient,
                 (Element * x_gradient, const Element* y_gradient, const Element* weight,
                  ConvolutionShape shape, int adds),
                 (x_gradient, y_gradient, weight, shape, adds))
PLUMBLINE_KERNEL(convolution_weight_partial_sums,
                 (float* partial, const Element* y_gradient, const Element* x,
                  ConvolutionShape shape, long long chunk),
                 (partial, y_gradient, x, shape, chunk))
