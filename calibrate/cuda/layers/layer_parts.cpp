// Products with a matrix of weights.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {
namespace {

/// The number of elements from its first to its last. `rows` and `columns` are those of the memory.
std::int64_t spanned(const CudaGemm::Operand& operand, std::int64_t rows, std::int64_t columns,
                     std::int64_t batch) {
  return (batch - 1) * operand.step + (rows - 1) * operand.stride + columns;
}

}  // namespace

CudaScratch LayerSite::scratch(std::int64_t elements) const {
  return {*queue.driver, static_cast<std::size_t>(elements * bytes_of(type))};
}

CudaScratch LayerSite::fp32_scratch(std::int64_t floats) const {
  return {*queue.driver, static_cast<std::size_t>(floats) * sizeof(float)};
}

void prepare_gemm(const LayerSite& site, CudaGemm p) {
  // An LSTM layer asks for the same few shapes token by token.
  if (site.queue.products->is_prepared(site.queue, site.type, p)) return;
  const auto operand = [&](CudaGemm::Operand& of, std::int64_t rows, std::int64_t columns) {
    const std::int64_t elements =
        of.turned ? spanned(of, columns, rows, p.batch) : spanned(of, rows, columns, p.batch);
    // Scratch has a larger alignment than any product needs.
    constexpr CUdeviceptr aligned_to = 16;
    const CUdeviceptr behind = of.data % aligned_to;
    CudaScratch memory = site.scratch(elements + static_cast<std::int64_t>(aligned_to));
    of.data = memory.data() + behind;
    noise(site.queue, site.type, of.data, static_cast<std::uint32_t>(elements), elements);
    return memory;
  };
  const CudaScratch a = operand(p.a, p.rows, p.depth);
  const CudaScratch b = operand(p.b, p.depth, p.columns);
  const CudaScratch c = operand(p.c, p.rows, p.columns);
  site.queue.products->prepare(site.queue, site.type, p);
  // Work on the operands must end before they are freed.
  PLUMBLINE_CUDA(*site.queue.driver, cuStreamSynchronize, site.queue.stream);
}

CudaGemm Dense::forward_gemm() const {
  return {rows_, outputs_, inputs_, 1, {0, inputs_}, {0, inputs_, 0, true}, {0, outputs_}};
}

CudaGemm Dense::input_gemm() const {
  return {rows_, inputs_, outputs_, 1, {0, outputs_}, {0, inputs_}, {0, inputs_}};
}

CudaGemm Dense::weight_gemm() const {
  CudaGemm p{outputs_, inputs_, rows_, 1, {0, outputs_, 0, true}, {0, inputs_}, {0, inputs_}};
  p.beta = 1;
  return p;
}

void Dense::prepare(const LayerSite& site, bool bias) const {
  CudaGemm p = forward_gemm();
  p.beta = bias ? 1 : 0;
  prepare_gemm(site, p);
  prepare_gemm(site, input_gemm());
  prepare_gemm(site, weight_gemm());
}

void Dense::forward(const CudaQueue& queue, CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight,
                    CUdeviceptr bias, CUdeviceptr skip) const {
  CudaGemm p = forward_gemm();
  p.a.data = x;
  p.b.data = weight;
  p.c.data = y;
  if (bias != 0 || skip != 0) {
    bias_rows(queue, type_, y, bias, skip, output());
    p.beta = 1;
  }
  queue.products->multiply(queue, type_, p);
}

void Dense::input_gradient(const CudaQueue& queue, CUdeviceptr x_gradient, CUdeviceptr y_gradient,
                           CUdeviceptr weight) const {
  CudaGemm p = input_gemm();
  p.a.data = y_gradient;
  p.b.data = weight;
  p.c.data = x_gradient;
  queue.products->multiply(queue, type_, p);
}

void Dense::weight_gradient(const CudaQueue& queue, CUdeviceptr weight_gradient,
                            CUdeviceptr y_gradient, CUdeviceptr x) const {
  CudaGemm p = weight_gemm();
  p.a.data = y_gradient;
  p.b.data = x;
  p.c.data = weight_gradient;
  queue.products->multiply(queue, type_, p);
}

}  // namespace plumbline::cuda
