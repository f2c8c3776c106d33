// The first and the last layer of networks.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <optional>

#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {
namespace {

class EmbeddingLayer : public CudaLayer {
 public:
  EmbeddingLayer(const Embedding& settings, const LayerSite& site)
      : slots_(embedding_slots(site.layer)),
        type_(site.type),
        tokens_(site.layer.input.elements()),
        rows_{site.batch * tokens_, settings.features},
        samples_{site.batch, tokens_ * settings.features},
        next_(site.fp32_scratch(2 * rows_.rows)) {
    if (has_positions()) partial_ = site.fp32_scratch(partial_floats(samples_));
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    lookup(queue, type_, call.output, call.ids, call.parameters[slots_.weight],
           at_or_none(call.parameters, slots_.positions), tokens_, rows_);
  }
  void backward_input(const CudaQueue&, const CudaCall&) override {}
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    add_lookup_gradient(queue, type_, call.gradients[slots_.weight], call.output_gradient, call.ids,
                        next_.data(), rows_);
    if (has_positions())
      add_column_sums(queue, type_, call.gradients[slots_.positions], call.output_gradient,
                      samples_, partial_.data());
  }

 private:
  bool has_positions() const { return slots_.positions != kNoSlot; }

  EmbeddingSlots slots_;
  ElementType type_;
  std::int64_t tokens_;
  Rows rows_;         ///< One row per token.
  Rows samples_;      ///< One row per sample.
  CudaScratch next_;  ///< Ints.
  CudaScratch partial_;
};

class HeadLayer : public CudaLayer {
 public:
  HeadLayer(const Head& settings, const LayerSite& site)
      : slots_(head_slots(site.layer)),
        settings_(settings),
        type_(site.type),
        batch_(site.batch),
        rows_(site.rows()),
        rows_at_a_time_(max_rows(settings, site)),
        logits_gradient_(site.scratch(rows_at_a_time_ * settings_.classes)),
        row_losses_(site.fp32_scratch(rows_.rows)),
        partial_(site.fp32_scratch(std::max(
            partial_floats(rows_), partial_floats({rows_at_a_time_, settings_.classes})))) {
    if (slots_.norm) norm_.emplace(*slots_.norm, site.type, rows_);
    for (const std::int64_t rows : {rows_.rows, rows_at_a_time_, rows_.rows % rows_at_a_time_}) {
      if (rows > 0) dense(rows).prepare(site, has_bias());
    }
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    if (norm_) norm_->forward(queue, call);
    const CUdeviceptr probabilities = call.kept[slots_.probabilities];
    dense(rows_.rows)
        .forward(queue, probabilities, product_input(call), call.parameters[slots_.product.weight],
                 at_or_none(call.parameters, slots_.product.bias));
    softmax_loss(queue, type_, probabilities, row_losses_.data(), call.labels,
                 {rows_.rows, settings_.classes});
    sample_losses(queue, call.output, row_losses_.data(), batch_, rows_.rows / batch_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    // The gradient of the product's input.
    const CUdeviceptr gradient = norm_ ? norm_->output_gradient(call) : call.input_gradient;
    if (gradient == 0) return;
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      dense(make_logits_gradient(queue, call, first))
          .input_gradient(queue, from_row(gradient, first), logits_gradient_.data(),
                          call.parameters[slots_.product.weight]);
    }
    if (norm_) norm_->backward_input(queue, call, 0);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    if (norm_) norm_->backward_weight(queue, call, partial_.data());
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const Dense some = dense(make_logits_gradient(queue, call, first));
      some.weight_gradient(queue, call.gradients[slots_.product.weight], logits_gradient_.data(),
                           from_row(product_input(call), first));
      if (has_bias())
        some.bias_gradient(queue, call.gradients[slots_.product.bias], logits_gradient_.data(),
                           partial_.data());
    }
  }

 private:
  /// The gradient of the logits is computed for some rows at a time. For all rows it would be as
  /// large as the probabilities.
  static std::int64_t max_rows(const Head& settings, const LayerSite& site) {
    constexpr std::int64_t kMaxBytes = 64 << 20;
    constexpr std::int64_t kMinRows = 64;  // whole tiles of products
    constexpr std::int64_t kMaxRows = 1024;
    const std::int64_t rows = kMaxBytes / (settings.classes * bytes_of(site.type));
    const std::int64_t whole = std::clamp(rows / kMinRows * kMinRows, kMinRows, kMaxRows);
    return std::min(whole, site.rows().rows);
  }

  bool has_bias() const { return slots_.product.bias != kNoSlot; }
  Dense dense(std::int64_t rows) const { return {type_, rows, rows_.columns, settings_.classes}; }
  CUdeviceptr product_input(const CudaCall& call) const {
    return norm_ ? norm_->output(call) : call.input;
  }
  CUdeviceptr from_row(CUdeviceptr data, std::int64_t row) const {
    return advanced(data, row * rows_.columns, type_);
  }
  /// Computes the gradient of the rows from `first` on; returns their number.
  std::int64_t make_logits_gradient(const CudaQueue& queue, const CudaCall& call,
                                    std::int64_t first) const {
    const std::int64_t rows = std::min(rows_at_a_time_, rows_.rows - first);
    logits_gradient(queue, type_, logits_gradient_.data(), call.kept[slots_.probabilities],
                    call.output_gradient, call.labels, {rows, settings_.classes},
                    rows_.rows / batch_, first);
    return rows;
  }

  HeadSlots slots_;
  Head settings_;
  ElementType type_;
  std::int64_t batch_;
  Rows rows_;
  std::int64_t rows_at_a_time_;
  std::optional<BlockNorm> norm_;
  CudaScratch logits_gradient_;
  CudaScratch row_losses_;
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const Embedding& settings, const LayerSite& site) {
  return std::make_unique<EmbeddingLayer>(settings, site);
}
std::unique_ptr<CudaLayer> make_layer(const Head& settings, const LayerSite& site) {
  return std::make_unique<HeadLayer>(settings, site);
}

}  // namespace plumbline::cuda
