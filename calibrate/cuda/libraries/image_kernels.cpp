// Shapes and grids of the kernels for pictures and cells.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/image_kernels.h"

#include <algorithm>

#include "calibrate/cuda/driver/launch.h"

namespace plumbline::cuda {
namespace {

/// As in kernels/convolution.cu.
struct ConvolutionShape {
  Count samples, inputs, height, width;
  Count outputs, to_height, to_width;
  Count kernel, stride, padding;
};

ConvolutionShape told(const CudaConvolution& c) {
  return {c.samples,          c.inputs,          c.height, c.width,  c.outputs,
          c.places(c.height), c.places(c.width), c.kernel, c.stride, c.padding};
}

/// As in kernels/image.cu.
struct WindowShape {
  Count images, height, width;
  Count to_height, to_width;
  Count kernel, stride, padding;
};

WindowShape window_shape(const CudaConvolution& c) {
  return {c.samples * c.inputs, c.height, c.width,  c.places(c.height),
          c.places(c.width),    c.kernel, c.stride, c.padding};
}

/// Rows and columns of the weights.
Rows weight_rows(const CudaConvolution& c) { return {c.outputs, c.inputs * c.kernel * c.kernel}; }

/// The number of parts of the depth of a weight's gradient, so that small weights also fill a
/// device. The shape alone decides it, and so the order of a sum.
std::int64_t weight_chunks(const CudaConvolution& c) {
  constexpr std::int64_t kEnoughTiles = 512;
  constexpr std::int64_t kMinPlaces = 256;
  const Rows weights = weight_rows(c);
  const std::int64_t tiles = divided_up(weights.rows, 64) * divided_up(weights.columns, 64);
  const std::int64_t places = c.samples * c.places(c.height) * c.places(c.width);
  return std::clamp<std::int64_t>(divided_up(kEnoughTiles, tiles), 1,
                                  divided_up(places, kMinPlaces));
}

/// Launches one block per channel, with a float of shared memory per thread.
template <class... Arguments>
void launch_channels(const CudaQueue& queue, std::string_view kernel, const Channels& shape,
                     Arguments... arguments) {
  const std::int64_t threads =
      std::min(divided_up(shape.samples * shape.area, 32) * 32, 2 * kThreads);
  launch(queue, kernel, {shape.channels}, threads, threads, arguments...);
}

}  // namespace

void convolution(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                 CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight, bool adds) {
  const std::int64_t places = shape.places(shape.height) * shape.places(shape.width);
  launch_tiles(queue, named("convolution", type), {shape.outputs, places}, shape.samples, y, x,
               weight, told(shape), int(adds));
}

void convolution_input_gradient(const CudaQueue& queue, ElementType type,
                                const CudaConvolution& shape, CUdeviceptr x_gradient,
                                CUdeviceptr y_gradient, CUdeviceptr weight, bool adds) {
  launch_tiles(queue, named("convolution_input_gradient", type),
               {shape.inputs, shape.height * shape.width}, shape.samples, x_gradient, y_gradient,
               weight, told(shape), int(adds));
}

std::int64_t weight_partial_floats(const CudaConvolution& shape) {
  return weight_chunks(shape) * shape.weights();
}

void add_convolution_weight_gradient(const CudaQueue& queue, ElementType type,
                                     const CudaConvolution& shape, CUdeviceptr weight_gradient,
                                     CUdeviceptr y_gradient, CUdeviceptr x, CUdeviceptr partial) {
  const std::int64_t chunks = weight_chunks(shape);
  const std::int64_t places =
      shape.samples * shape.places(shape.height) * shape.places(shape.width);
  launch_tiles(queue, named("convolution_weight_partial_sums", type), weight_rows(shape), chunks,
               partial, y_gradient, x, told(shape), Count(divided_up(places, chunks)));
  launch_over(queue, named("add_partial_sums", type), shape.weights(), weight_gradient, partial,
              Count(chunks), Count(shape.weights()));
}

void max_pool(const CudaQueue& queue, ElementType type, const CudaConvolution& window,
              CUdeviceptr y, CUdeviceptr x) {
  const WindowShape shape = window_shape(window);
  launch_over(queue, named("max_pool", type), shape.images * shape.to_height * shape.to_width, y, x,
              shape);
}

void max_pool_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& window,
                       CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr x) {
  launch_over(queue, named("max_pool_gradient", type), window.input_elements(), x_gradient,
              y_gradient, x, window_shape(window));
}

void bias_channels(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr bias,
                   const Channels& shape) {
  launch_over(queue, named("bias_channels", type), shape.elements(), y, bias, Count(shape.channels),
              Count(shape.area), Count(shape.elements()));
}

void add_channel_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums, CUdeviceptr x,
                      const Channels& shape) {
  launch_channels(queue, named("add_channel_sums", type), shape, sums, x, Count(shape.samples),
                  Count(shape.area));
}

void batch_norm(const CudaQueue& queue, ElementType type, CUdeviceptr y, const Normed& normed,
                const ScaleShift& parameters, CUdeviceptr skip, bool rectifies,
                const Channels& shape) {
  launch_channels(queue, named("batch_norm", type), shape, y, normed.mean, normed.rstd,
                  normed.input, parameters.scale, parameters.shift, skip, Count(shape.samples),
                  Count(shape.area), int(rectifies));
}

void batch_norm_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                         const ScaleShift& gradients, CUdeviceptr y_gradient, CUdeviceptr gate,
                         const Normed& normed, CUdeviceptr scale, const Channels& shape) {
  launch_channels(queue, named("batch_norm_gradient", type), shape, x_gradient, gradients.scale,
                  gradients.shift, y_gradient, gate, normed.input, normed.mean, normed.rstd, scale,
                  Count(shape.samples), Count(shape.area));
}

void lstm_cell(const CudaQueue& queue, ElementType type, CUdeviceptr gates, CUdeviceptr cells,
               CUdeviceptr h, const LstmShape& shape, std::int64_t token) {
  launch_over(queue, named("lstm_cell", type), shape.samples * shape.hidden, gates, cells, h,
              Count(shape.samples), Count(shape.tokens), Count(shape.hidden), Count(token));
}

void lstm_cell_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gates_gradient,
                        CUdeviceptr cell_gradient, CUdeviceptr h_gradient, CUdeviceptr from_after,
                        CUdeviceptr gates, CUdeviceptr cells, const LstmShape& shape,
                        std::int64_t token) {
  launch_over(queue, named("lstm_cell_gradient", type), shape.samples * shape.hidden,
              gates_gradient, cell_gradient, h_gradient, from_after, gates, cells,
              Count(shape.samples), Count(shape.tokens), Count(shape.hidden), Count(token));
}

void lstm_previous(const CudaQueue& queue, ElementType type, CUdeviceptr previous, CUdeviceptr h,
                   const LstmShape& shape) {
  launch_over(queue, named("lstm_previous", type), shape.rows().elements(), previous, h,
              Count(shape.samples), Count(shape.tokens), Count(shape.hidden));
}

}  // namespace plumbline::cuda
