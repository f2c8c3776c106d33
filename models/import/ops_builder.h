// The ops of a layer as they come: products, norms, and what tensor-parallel devices send each
// other.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/saturating_count.h"
#include "models/import/transformer_options.h"
#include "models/ops/layer_op.h"

namespace plumbline {

/// The sizes on one device.
struct DeviceSizes {
  DeviceSizes(const TransformerShape& shape, const TransformerOptions& options)
      : tensor(options.tensor_parallel),
        tokens(options.own_tokens()),
        between(tokens / (options.sequence_parallel ? tensor : 1)),
        to_experts(options.expert_parallel > 1 ? between : tokens),
        hidden(shape.hidden),
        heads(shape.heads / tensor),
        key_heads(std::max<std::int64_t>(1, shape.key_value_heads / tensor)),
        head(shape.head_dim),
        vocabulary((shape.vocabulary + tensor - 1) / tensor) {}

  std::int64_t tensor;      ///< Devices that share each layer's matrices.
  std::int64_t tokens;      ///< Of the micro-batch, for products.
  std::int64_t between;     ///< Of the micro-batch, between products.
  std::int64_t to_experts;  ///< That the device sends to experts.
  std::int64_t hidden;
  std::int64_t heads, key_heads;
  std::int64_t head;
  std::int64_t vocabulary;
};

/// Collects the ops of one layer. A class that knows the kinds of layers derives from it.
class OpsBuilder {
 public:
  OpsBuilder(const TransformerShape& shape, const TransformerOptions& options)
      : shape_(shape), options_(options), dropout_(dropout_of(shape, options)), n_(shape, options) {
    layer_.dtype = options.dtype;
  }

  LayerOps take() { return std::move(layer_); }

 protected:
  static constexpr std::int64_t fp32 = 4;

  bool by_tokens() const { return options_.sequence_parallel; }
  std::int64_t bytes(SaturatingCount numbers) const {
    return (SaturatingCount{bytes_of(options_.dtype)} * numbers).value();
  }
  std::int64_t token_bytes() const { return bytes(SaturatingCount{n_.tokens} * n_.hidden); }

  void add(LayerOp::Shape shape, const LayerPart& part = layer_part::kNone) {
    layer_.ops.push_back({shape, options_.makes_again(part)});
  }

  void linear(std::int64_t rows, std::int64_t outputs, std::int64_t inputs,
              const LayerPart& part = layer_part::kNone) {
    add(LinearOp{options_.fp8_linear ? NumberFormat::fp8 : options_.dtype, rows, outputs, inputs},
        part);
  }
  void norm(const LayerPart& part) { add(NormOp{n_.between, n_.hidden}, part); }
  /// Within latent attention.
  void norm(std::int64_t rows, std::int64_t columns) {
    add(NormOp{rows, columns}, layer_part::kOtherNorm);
  }

  void residual() { add(ResidualOp{n_.between, n_.hidden, dropout_.residual.value_or(0) > 0}); }

  /// In front of the products that a tensor-parallel group shares, and behind them.
  void tokens_in(const LayerPart& part = layer_part::kNone) {
    exchange(by_tokens() ? ExchangeKind::gather_tokens : ExchangeKind::copy_tokens, token_bytes(),
             part);
  }
  void tokens_out(const LayerPart& part = layer_part::kNone) {
    exchange(by_tokens() ? ExchangeKind::scatter_sums : ExchangeKind::add_sums, token_bytes(),
             part);
  }

  /// Between the devices of a tensor-parallel group, which are neighbours.
  void exchange(ExchangeKind kind, std::int64_t bytes, const LayerPart& part = layer_part::kNone) {
    if (n_.tensor == 1) return;
    const std::int64_t in_server = options_.devices_per_server.value_or(n_.tensor);
    add(ExchangeOp{.kind = kind,
                   .devices = n_.tensor,
                   .near = std::min(n_.tensor, in_server),
                   .bytes = bytes},
        part);
  }

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  DropoutRates dropout_;
  DeviceSizes n_;
  LayerOps layer_;
};

}  // namespace plumbline
