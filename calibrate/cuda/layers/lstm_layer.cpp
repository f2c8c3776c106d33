// LSTM: one product for the inputs of all tokens, then a product and the cells for one token after
// the other.
//
// SPDX-License-Identifier: MIT
#include <memory>

#include "base/bug.h"
#include "calibrate/cuda/layers/layer_parts.h"
#include "calibrate/cuda/libraries/image_kernels.h"

namespace plumbline::cuda {
namespace {

class LstmLayer : public CudaLayer {
 public:
  LstmLayer(const Lstm& settings, const LayerSite& site)
      : slots_(lstm_slots(site.layer)),
        type_(site.type),
        shape_{site.batch, site.layer.input.extents.front(), settings.hidden},
        from_input_(site.type, site.rows().rows, site.rows().columns, 4 * settings.hidden),
        from_hidden_(site.type, site.rows().rows, settings.hidden, 4 * settings.hidden),
        from_after_(site.scratch(site.batch * settings.hidden)),
        cell_gradient_(site.fp32_scratch(site.batch * settings.hidden)),
        previous_(site.scratch(shape_.rows().elements())),
        partial_(site.fp32_scratch(partial_floats(from_input_.output()))) {
    PLUMBLINE_CHECK(site.layer.input.extents.size() == 2, site.layer.name);
    from_input_.prepare(site, /*bias=*/true);
    from_hidden_.prepare_weight(site);
    // One product per token, as each token's start has its own alignment.
    for (std::int64_t token = 1; token < shape_.tokens; ++token) {
      prepare_gemm(site, hidden_gemm(token, 0, 0, 0));
      prepare_gemm(site, after_product(token, 0, 0));
    }
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr gates = call.kept[slots_.gates];
    const CUdeviceptr h = hidden(call);
    from_input_.forward(queue, gates, call.input, call.parameters[slots_.input_weight],
                        call.parameters[slots_.bias]);
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      if (token > 0) {
        queue.products->multiply(
            queue, type_, hidden_gemm(token, gates, h, call.parameters[slots_.hidden_weight]));
      }
      lstm_cell(queue, type_, gates, call.kept[slots_.cells], h, shape_, token);
    }
    if (!has_residual()) return;
    const std::int64_t count = shape_.rows().elements();
    PLUMBLINE_CUDA(*queue.driver, cuMemcpyDtoDAsync, call.output, h,
                   static_cast<std::size_t>(count * bytes_of(type_)), queue.stream);
    add(queue, type_, call.output, call.input, count);
  }

  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr gates_gradient = call.left[slots_.gates_gradient];
    for (std::int64_t token = shape_.tokens - 1; token >= 0; --token) {
      if (token + 1 < shape_.tokens) {
        queue.products->multiply(
            queue, type_,
            after_product(token + 1, gates_gradient, call.parameters[slots_.hidden_weight]));
      }
      lstm_cell_gradient(queue, type_, gates_gradient, cell_gradient_.data(), call.output_gradient,
                         from_after_.data(), call.kept[slots_.gates], call.kept[slots_.cells],
                         shape_, token);
    }
    if (call.input_gradient == 0) return;
    from_input_.input_gradient(queue, call.input_gradient, gates_gradient,
                               call.parameters[slots_.input_weight]);
    if (has_residual())
      add(queue, type_, call.input_gradient, call.output_gradient, shape_.rows().elements());
  }

  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr gates_gradient = call.left[slots_.gates_gradient];
    lstm_previous(queue, type_, previous_.data(), hidden(call), shape_);
    from_input_.weight_gradient(queue, call.gradients[slots_.input_weight], gates_gradient,
                                call.input);
    from_hidden_.weight_gradient(queue, call.gradients[slots_.hidden_weight], gates_gradient,
                                 previous_.data());
    from_input_.bias_gradient(queue, call.gradients[slots_.bias], gates_gradient, partial_.data());
  }

 private:
  bool has_residual() const { return slots_.hidden != kNoSlot; }
  CUdeviceptr hidden(const CudaCall& call) const {
    return has_residual() ? call.kept[slots_.hidden] : call.output;
  }

  /// The gates of one token += h of the token before x W^T, over the samples.
  CudaGemm hidden_gemm(std::int64_t token, CUdeviceptr gates, CUdeviceptr h,
                       CUdeviceptr weight) const {
    const std::int64_t size = shape_.hidden;
    CudaGemm p{shape_.samples,
               4 * size,
               size,
               1,
               {advanced(h, (token - 1) * size, type_), shape_.tokens * size},
               {weight, size, 0, true},
               {advanced(gates, token * 4 * size, type_), shape_.tokens * 4 * size}};
    p.beta = 1;
    return p;
  }

  /// One token's part of the gradient of the h before it: its gates' gradient x W.
  CudaGemm after_product(std::int64_t token, CUdeviceptr gates_gradient, CUdeviceptr weight) const {
    const std::int64_t size = shape_.hidden;
    return {shape_.samples,
            size,
            4 * size,
            1,
            {advanced(gates_gradient, token * 4 * size, type_), shape_.tokens * 4 * size},
            {weight, size},
            {from_after_.data(), size}};
  }

  LstmSlots slots_;
  ElementType type_;
  LstmShape shape_;
  Dense from_input_;
  Dense from_hidden_;          ///< For the gradient of its weight.
  CudaScratch from_after_;     ///< [samples, hidden]
  CudaScratch cell_gradient_;  ///< The same, fp32.
  CudaScratch previous_;       ///< The h from which each token starts.
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const Lstm& settings, const LayerSite& site) {
  return std::make_unique<LstmLayer>(settings, site);
}

}  // namespace plumbline::cuda
