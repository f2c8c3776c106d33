// The first and the last layer of networks.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>

#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {
namespace {

class EmbeddingLayer : public CudaLayer {
 public:
  EmbeddingLayer(const Embedding& settings, const LayerSite& site)
      : settings_(settings),
        type_(site.type),
        tokens_(site.layer.input.elements()),
        rows_{site.batch * tokens_, settings.features},
        samples_{site.batch, tokens_ * settings.features},
        next_(site.fp32_scratch(2 * rows_.rows)) {
    Names names{{"weight"}};
    if (settings_.positions) {
      names.parameters.push_back("positions");
      partial_ = site.fp32_scratch(partial_floats(samples_));
    }
    check_names(site.layer, names);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    lookup(queue, type_, call.output, call.ids, call.parameters[0],
           at_or_none(call.parameters, 1, settings_.positions), tokens_, rows_);
  }
  void backward_input(const CudaQueue&, const CudaCall&) override {}
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    add_lookup_gradient(queue, type_, call.gradients[0], call.output_gradient, call.ids,
                        next_.data(), rows_);
    if (settings_.positions)
      add_column_sums(queue, type_, call.gradients[1], call.output_gradient, samples_,
                      partial_.data());
  }

 private:
  Embedding settings_;
  ElementType type_;
  std::int64_t tokens_;
  Rows rows_;         ///< One for each token.
  Rows samples_;      ///< One for each sample.
  CudaScratch next_;  ///< Ints.
  CudaScratch partial_;
};

class HeadLayer : public CudaLayer {
 public:
  HeadLayer(const Head& settings, const LayerSite& site)
      : settings_(settings),
        type_(site.type),
        batch_(site.batch),
        rows_(site.rows()),
        rows_at_a_time_(max_rows(settings, site)),
        norm_(site.type, rows_),
        weight_(settings_.norm ? 2 : 0),
        probabilities_(settings_.norm ? 3 : 0),
        logits_gradient_(site.scratch(rows_at_a_time_ * settings_.classes)),
        row_losses_(site.fp32_scratch(rows_.rows)),
        partial_(site.fp32_scratch(std::max(
            partial_floats(rows_), partial_floats({rows_at_a_time_, settings_.classes})))) {
    Names names{{"weight"}, {"probabilities"}};
    if (settings_.norm) {
      names = {{"norm.scale", "norm.shift", "weight"},
               {"norm.mean", "norm.rstd", "norm.output", "probabilities"},
               {"norm.output_gradient"}};
    }
    if (settings_.bias) names.parameters.push_back("bias");
    check_names(site.layer, names);
    for (const std::int64_t rows : {rows_.rows, rows_at_a_time_, rows_.rows % rows_at_a_time_}) {
      if (rows > 0) dense(rows).prepare(site, settings_.bias);
    }
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    if (settings_.norm) norm_.forward(queue, call);
    const CUdeviceptr probabilities = call.kept[probabilities_];
    dense(rows_.rows)
        .forward(queue, probabilities, product_input(call), call.parameters[weight_],
                 at_or_none(call.parameters, weight_ + 1, settings_.bias));
    softmax_loss(queue, type_, probabilities, row_losses_.data(), call.labels,
                 {rows_.rows, settings_.classes});
    sample_losses(queue, call.output, row_losses_.data(), batch_, rows_.rows / batch_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    // The gradient of what the product took.
    const CUdeviceptr gradient = settings_.norm ? call.left[0] : call.input_gradient;
    if (gradient == 0) return;
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      dense(make_logits_gradient(queue, call, first))
          .input_gradient(queue, from_row(gradient, first), logits_gradient_.data(),
                          call.parameters[weight_]);
    }
    if (settings_.norm) norm_.backward_input(queue, call, gradient, 0);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    if (settings_.norm) norm_.backward_weight(queue, call, call.left[0], partial_.data());
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const Dense some = dense(make_logits_gradient(queue, call, first));
      some.weight_gradient(queue, call.gradients[weight_], logits_gradient_.data(),
                           from_row(product_input(call), first));
      if (settings_.bias)
        some.bias_gradient(queue, call.gradients[weight_ + 1], logits_gradient_.data(),
                           partial_.data());
    }
  }

 private:
  /// The gradient of the logits is made for some rows at a time: for all it would be as large as
  /// the probabilities.
  static std::int64_t max_rows(const Head& settings, const LayerSite& site) {
    constexpr std::int64_t kMaxBytes = 64 << 20;
    constexpr std::int64_t kMinRows = 64;  // whole tiles of products
    constexpr std::int64_t kMaxRows = 1024;
    const std::int64_t rows = kMaxBytes / (settings.classes * bytes_of(site.type));
    const std::int64_t whole = std::clamp(rows / kMinRows * kMinRows, kMinRows, kMaxRows);
    return std::min(whole, site.rows().rows);
  }

  Dense dense(std::int64_t rows) const { return {type_, rows, rows_.columns, settings_.classes}; }
  CUdeviceptr product_input(const CudaCall& call) const {
    return settings_.norm ? call.kept[2] : call.input;
  }
  CUdeviceptr from_row(CUdeviceptr data, std::int64_t row) const {
    return advanced(data, row * rows_.columns, type_);
  }
  /// Of the rows from `first` on; returns how many.
  std::int64_t make_logits_gradient(const CudaQueue& queue, const CudaCall& call,
                                    std::int64_t first) const {
    const std::int64_t rows = std::min(rows_at_a_time_, rows_.rows - first);
    logits_gradient(queue, type_, logits_gradient_.data(), call.kept[probabilities_],
                    call.output_gradient, call.labels, {rows, settings_.classes},
                    rows_.rows / batch_, first);
    return rows;
  }

  Head settings_;
  ElementType type_;
  std::int64_t batch_;
  Rows rows_;
  std::int64_t rows_at_a_time_;
  BlockNorm norm_;
  std::size_t weight_;         ///< Among the parameters; the bias follows.
  std::size_t probabilities_;  ///< Among the kept.
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
