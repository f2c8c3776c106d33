// The layers of transformers.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <optional>

#include "base/bug.h"
#include "calibrate/cpu/attention.h"
#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer_kinds.h"

namespace plumbline {
namespace {

using cpu::Dense;
using cpu::Rows;
using cpu::Scratch;

std::int64_t checked_index(std::int32_t index, std::int64_t limit) {
  PLUMBLINE_CHECK(index >= 0 && index < limit, index, limit);
  return index;
}

/// The norm at the start of a block.
class BlockNorm {
 public:
  BlockNorm(const BlockNormSlots& slots, const Rows& rows) : slots_(slots), rows_(rows) {}

  void forward(const CpuCall& call) const {
    cpu::layer_norm(output(call), call.kept[slots_.norm.mean], call.kept[slots_.norm.rstd],
                    call.input, affine(call, slots_.norm), rows_);
  }
  float* output(const CpuCall& call) const { return call.kept[slots_.output]; }
  float* output_gradient(const CpuCall& call) const { return call.left[slots_.output_gradient]; }
  /// Adds `skip` where there is one. It does nothing where the gradient is not wanted.
  void backward_input(const CpuCall& call, const float* skip) const {
    if (call.input_gradient == nullptr) return;
    cpu::layer_norm_input_gradient(call.input_gradient, output_gradient(call), skip,
                                   normed(call, call.input, slots_.norm),
                                   call.parameters[slots_.norm.scale], rows_);
  }
  void backward_weight(const CpuCall& call) const {
    cpu::layer_norm_parameter_gradients(affine_gradients(call, slots_.norm), output_gradient(call),
                                        normed(call, call.input, slots_.norm), rows_);
  }

 private:
  BlockNormSlots slots_;
  Rows rows_;
};

class AttentionLayer : public CpuLayer {
 public:
  explicit AttentionLayer(const CpuLayerOf<AttentionBlock>& made)
      : slots_(attention_slots(made.layer)),
        norm_(slots_.norm, made.rows()),
        qkv_{made.rows().rows, made.rows().columns, 3 * made.rows().columns},
        projection_{made.rows().rows, made.rows().columns, made.rows().columns},
        attention_({made.batch, made.layer.input.extents.front(), made.rows().columns,
                    made.settings.heads, made.settings.causal}),
        context_gradient_(made.input_elements()) {}

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    float* qkv = call.kept[slots_.qkv_output];
    float* context = call.kept[slots_.context];
    qkv_.forward(qkv, norm_.output(call), call.parameters[slots_.qkv.weight],
                 call.parameters[slots_.qkv.bias]);
    attention_.forward(context, call.kept[slots_.logsumexp], qkv);
    projection_.forward(call.output, context, call.parameters[slots_.projection.weight],
                        call.parameters[slots_.projection.bias], call.input);
  }
  void backward_input(const CpuCall& call) override {
    float* qkv_gradient = call.left[slots_.qkv_gradient];
    projection_.input_gradient(context_gradient_.data(), call.output_gradient,
                               call.parameters[slots_.projection.weight]);
    attention_.backward(qkv_gradient, context_gradient_.data(), call.kept[slots_.qkv_output],
                        call.kept[slots_.logsumexp]);
    qkv_.input_gradient(norm_.output_gradient(call), qkv_gradient,
                        call.parameters[slots_.qkv.weight]);
    norm_.backward_input(call, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call);
    qkv_.weight_gradient(call.gradients[slots_.qkv.weight], call.gradients[slots_.qkv.bias],
                         call.left[slots_.qkv_gradient], norm_.output(call));
    projection_.weight_gradient(call.gradients[slots_.projection.weight],
                                call.gradients[slots_.projection.bias], call.output_gradient,
                                call.kept[slots_.context]);
  }

 private:
  AttentionSlots slots_;
  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  cpu::Attention attention_;
  Scratch context_gradient_;
};

class MlpLayer : public CpuLayer {
 public:
  explicit MlpLayer(const CpuLayerOf<MlpBlock>& made)
      : slots_(mlp_slots(made.layer)),
        norm_(slots_.norm, made.rows()),
        up_{made.rows().rows, made.rows().columns, made.settings.hidden},
        down_{made.rows().rows, made.settings.hidden, made.rows().columns} {}

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    float* hidden = call.kept[slots_.hidden];
    float* gelu = call.kept[slots_.gelu];
    up_.forward(hidden, norm_.output(call), call.parameters[slots_.up.weight],
                call.parameters[slots_.up.bias]);
    cpu::gelu(gelu, hidden, up_.rows * up_.outputs);
    down_.forward(call.output, gelu, call.parameters[slots_.down.weight],
                  call.parameters[slots_.down.bias], call.input);
  }
  void backward_input(const CpuCall& call) override {
    float* hidden_gradient = call.left[slots_.hidden_gradient];
    down_.input_gradient(hidden_gradient, call.output_gradient,
                         call.parameters[slots_.down.weight]);
    cpu::gelu_gradient(hidden_gradient, call.kept[slots_.hidden], up_.rows * up_.outputs);
    up_.input_gradient(norm_.output_gradient(call), hidden_gradient,
                       call.parameters[slots_.up.weight]);
    norm_.backward_input(call, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call);
    up_.weight_gradient(call.gradients[slots_.up.weight], call.gradients[slots_.up.bias],
                        call.left[slots_.hidden_gradient], norm_.output(call));
    down_.weight_gradient(call.gradients[slots_.down.weight], call.gradients[slots_.down.bias],
                          call.output_gradient, call.kept[slots_.gelu]);
  }

 private:
  MlpSlots slots_;
  BlockNorm norm_;
  Dense up_;
  Dense down_;
};

class EmbeddingLayer : public CpuLayer {
 public:
  explicit EmbeddingLayer(const CpuLayerOf<Embedding>& made)
      : slots_(embedding_slots(made.layer)),
        settings_(made.settings),
        batch_(made.batch),
        tokens_(made.layer.input.elements()) {}

  void forward(const CpuCall& call) override {
    const std::int64_t features = settings_.features;
    const float* positions = at_or_null(call.parameters, slots_.positions);
    for (std::int64_t r = 0; r < batch_ * tokens_; ++r) {
      const float* entry = call.parameters[slots_.weight] + id(call, r) * features;
      if (positions != nullptr) {
        cpu::add_row(call.output + r * features, entry, positions + r % tokens_ * features,
                     {1, features});
      } else {
        std::copy_n(entry, features, call.output + r * features);
      }
    }
  }
  void backward_input(const CpuCall&) override {}
  void backward_weight(const CpuCall& call) override {
    const std::int64_t features = settings_.features;
    for (std::int64_t r = 0; r < batch_ * tokens_; ++r)
      cpu::add(call.gradients[slots_.weight] + id(call, r) * features,
               call.output_gradient + r * features, features);
    if (float* positions = at_or_null(call.gradients, slots_.positions))
      cpu::add_column_sums(positions, call.output_gradient, {batch_, tokens_ * features});
  }

 private:
  std::int64_t id(const CpuCall& call, std::int64_t row) const {
    return checked_index(call.ids[row], settings_.vocabulary);
  }

  EmbeddingSlots slots_;
  Embedding settings_;
  std::int64_t batch_;
  std::int64_t tokens_;
};

class HeadLayer : public CpuLayer {
 public:
  explicit HeadLayer(const CpuLayerOf<Head>& made)
      : slots_(head_slots(made.layer)),
        settings_(made.settings),
        batch_(made.batch),
        rows_(made.rows()),
        rows_at_a_time_(std::min(rows_.rows, kMaxRows)),
        logits_gradient_(rows_at_a_time_ * settings_.classes) {
    if (slots_.norm) norm_.emplace(*slots_.norm, rows_);
  }

  void forward(const CpuCall& call) override {
    if (norm_) norm_->forward(call);
    float* probabilities = call.kept[slots_.probabilities];
    dense(rows_.rows)
        .forward(probabilities, product_input(call), call.parameters[slots_.product.weight],
                 at_or_null(call.parameters, slots_.product.bias));
    const std::int64_t rows_of_sample = rows_.rows / batch_;
    for (std::int64_t s = 0; s < batch_; ++s) {
      double loss = 0;
      for (std::int64_t r = s * rows_of_sample; r < (s + 1) * rows_of_sample; ++r) {
        float* row = probabilities + r * settings_.classes;
        const float of_label = row[label(call, r)];
        loss += cpu::softmax(row, settings_.classes) - of_label;
      }
      call.output[s] = static_cast<float>(loss / static_cast<double>(rows_of_sample));
    }
  }
  void backward_input(const CpuCall& call) override {
    // The gradient of the product's input.
    float* gradient = norm_ ? norm_->output_gradient(call) : call.input_gradient;
    if (gradient == nullptr) return;
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const std::int64_t end = logits_gradient(call, first);
      dense(end - first)
          .input_gradient(gradient + first * rows_.columns, logits_gradient_.data(),
                          call.parameters[slots_.product.weight]);
    }
    if (norm_) norm_->backward_input(call, nullptr);
  }
  void backward_weight(const CpuCall& call) override {
    if (norm_) norm_->backward_weight(call);
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const std::int64_t end = logits_gradient(call, first);
      dense(end - first)
          .weight_gradient(call.gradients[slots_.product.weight],
                           at_or_null(call.gradients, slots_.product.bias), logits_gradient_.data(),
                           product_input(call) + first * rows_.columns);
    }
  }

 private:
  /// The gradient of the logits is computed for some rows at a time. For all rows it would be as
  /// large as the probabilities.
  static constexpr std::int64_t kMaxRows = 256;

  Dense dense(std::int64_t rows) const { return {rows, rows_.columns, settings_.classes}; }
  const float* product_input(const CpuCall& call) const {
    return norm_ ? norm_->output(call) : call.input;
  }
  std::int64_t label(const CpuCall& call, std::int64_t row) const {
    return checked_index(call.labels[row], settings_.classes);
  }
  /// Computes it for some rows from `first` on; returns their end.
  std::int64_t logits_gradient(const CpuCall& call, std::int64_t first) {
    const std::int64_t end = std::min(first + rows_at_a_time_, rows_.rows);
    const std::int64_t rows_of_sample = rows_.rows / batch_;
    for (std::int64_t r = first; r < end; ++r) {
      const float weight =
          call.output_gradient[r / rows_of_sample] / static_cast<float>(rows_of_sample);
      cpu::cross_entropy_gradient(logits_gradient_.data() + (r - first) * settings_.classes,
                                  call.kept[slots_.probabilities] + r * settings_.classes, weight,
                                  label(call, r), settings_.classes);
    }
    return end;
  }

  HeadSlots slots_;
  Head settings_;
  std::int64_t batch_;
  Rows rows_;
  std::int64_t rows_at_a_time_;
  std::optional<BlockNorm> norm_;
  Scratch logits_gradient_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<AttentionBlock>& made) {
  return std::make_unique<AttentionLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MlpBlock>& made) {
  return std::make_unique<MlpLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Embedding>& made) {
  return std::make_unique<EmbeddingLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Head>& made) {
  return std::make_unique<HeadLayer>(made);
}

}  // namespace plumbline
