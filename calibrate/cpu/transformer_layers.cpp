// The layers of transformers.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <optional>
#include <vector>

#include "base/bug.h"
#include "calibrate/cpu/attention.h"
#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer_kinds.h"
#include "calibrate/cpu/row_norm.h"
#include "calibrate/training/rotary_angles.h"

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
  BlockNorm(const BlockNormSlots& slots, const Rows& rows)
      : slots_(slots), norm_(slots.norm, rows) {}

  void forward(const CpuCall& call) const { norm_.forward(call, output(call)); }
  float* output(const CpuCall& call) const { return call.kept[slots_.output]; }
  float* output_gradient(const CpuCall& call) const { return call.left[slots_.output_gradient]; }
  /// Adds `skip` where there is one. It does nothing where the gradient is not wanted.
  void backward_input(const CpuCall& call, const float* skip) const {
    norm_.backward_input(call, output_gradient(call), skip);
  }
  void backward_weight(const CpuCall& call) const {
    norm_.backward_weight(call, output_gradient(call));
  }

 private:
  BlockNormSlots slots_;
  cpu::RowNorm norm_;
};

/// Queries and keys between their product and attention: each head normalized, then turned to its
/// position, where the block does so.
class HeadSteps {
 public:
  HeadSteps(const AttentionBlock& block, const AttentionWidths& widths, std::int64_t rows,
            std::int64_t tokens, const std::optional<HeadNormSlots>& slots)
      : widths_(widths), rows_(rows), tokens_(tokens), slots_(slots) {
    if (block.rotary > 0) angles_ = rotary_angles(tokens, widths.head_size, block.rotary);
  }

  void forward(const CpuCall& call, float* qkv) {
    if (slots_) {
      for (const HeadPart& part : head_parts(widths_, *slots_)) {
        cpu::norm_heads(qkv + part.column, input(call, part), inputs(), rstd(call, part),
                        all_heads(), call.parameters[part.scale], rows_of(part.heads));
      }
    }
    turn(qkv, false);
  }
  void backward(const CpuCall& call, float* qkv_gradient) {
    turn(qkv_gradient, true);
    if (!slots_) return;
    for (const HeadPart& part : head_parts(widths_, *slots_)) {
      cpu::norm_heads_gradient(qkv_gradient + part.column, call.gradients[part.scale],
                               input(call, part), inputs(), rstd(call, part), all_heads(),
                               call.parameters[part.scale], rows_of(part.heads));
    }
  }

 private:
  std::int64_t all_heads() const { return widths_.heads + widths_.kv_heads; }
  std::int64_t inputs() const { return all_heads() * widths_.head_size; }
  float* input(const CpuCall& call, const HeadPart& part) const {
    return call.kept[slots_->input] + part.column;
  }
  float* rstd(const CpuCall& call, const HeadPart& part) const {
    return call.kept[slots_->rstd] + part.first_head;
  }
  cpu::HeadRows rows_of(std::int64_t heads) const {
    return {rows_, widths_.qkv(), heads, widths_.head_size};
  }
  void turn(float* qkv, bool back) {
    if (!angles_.empty()) cpu::turn_heads(qkv, angles_.data(), back, tokens_, rows_of(all_heads()));
  }

  AttentionWidths widths_;
  std::int64_t rows_;
  std::int64_t tokens_;
  std::optional<HeadNormSlots> slots_;
  std::vector<float> angles_;  ///< Empty without rotary positions.
};

class AttentionLayer : public CpuLayer {
 public:
  explicit AttentionLayer(const CpuLayerOf<AttentionBlock>& made)
      : AttentionLayer(made, attention_widths(made.settings, made.rows().columns)) {}

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    float* qkv = call.kept[slots_.qkv_output];
    float* context = call.kept[slots_.context];
    qkv_.forward(qkv, norm_.output(call), call.parameters[slots_.qkv.weight],
                 at_or_null(call.parameters, slots_.qkv.bias));
    heads_.forward(call, qkv);
    attention_.forward(context, call.kept[slots_.logsumexp], qkv);
    projection_.forward(call.output, context, call.parameters[slots_.projection.weight],
                        at_or_null(call.parameters, slots_.projection.bias), call.input);
  }
  void backward_input(const CpuCall& call) override {
    float* qkv_gradient = call.left[slots_.qkv_gradient];
    projection_.input_gradient(context_gradient_.data(), call.output_gradient,
                               call.parameters[slots_.projection.weight]);
    attention_.backward(qkv_gradient, context_gradient_.data(), call.kept[slots_.qkv_output],
                        call.kept[slots_.logsumexp]);
    heads_.backward(call, qkv_gradient);
    qkv_.input_gradient(norm_.output_gradient(call), qkv_gradient,
                        call.parameters[slots_.qkv.weight]);
    norm_.backward_input(call, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call);
    qkv_.weight_gradient(call.gradients[slots_.qkv.weight],
                         at_or_null(call.gradients, slots_.qkv.bias),
                         call.left[slots_.qkv_gradient], norm_.output(call));
    projection_.weight_gradient(call.gradients[slots_.projection.weight],
                                at_or_null(call.gradients, slots_.projection.bias),
                                call.output_gradient, call.kept[slots_.context]);
  }

 private:
  AttentionLayer(const CpuLayerOf<AttentionBlock>& made, const AttentionWidths& widths)
      : slots_(attention_slots(made.layer)),
        norm_(slots_.norm, made.rows()),
        qkv_{made.rows().rows, made.rows().columns, widths.qkv()},
        projection_{made.rows().rows, widths.queries(), made.rows().columns},
        heads_(made.settings, widths, made.rows().rows, made.layer.input.extents.front(),
               slots_.head_norm),
        attention_({made.batch, made.layer.input.extents.front(), widths, made.settings.causal,
                    made.settings.window}),
        context_gradient_(made.rows().rows * widths.queries()) {}

  AttentionSlots slots_;
  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  HeadSteps heads_;
  cpu::Attention attention_;
  Scratch context_gradient_;
};

class MlpLayer : public CpuLayer {
 public:
  explicit MlpLayer(const CpuLayerOf<MlpBlock>& made)
      : slots_(mlp_slots(made.layer)),
        settings_(made.settings),
        norm_(slots_.norm, made.rows()),
        up_{made.rows().rows, made.rows().columns, made.settings.up()},
        down_{made.rows().rows, made.settings.hidden, made.rows().columns},
        gated_gradient_(made.settings.gated ? down_.rows * down_.inputs : 0) {}

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    float* hidden = call.kept[slots_.hidden];
    float* activated = call.kept[slots_.activated];
    up_.forward(hidden, norm_.output(call), call.parameters[slots_.up.weight],
                at_or_null(call.parameters, slots_.up.bias));
    if (settings_.gated) {
      cpu::gate(activated, hidden, settings_.activation, middle());
    } else {
      cpu::activate(activated, hidden, settings_.activation, up_.rows * up_.outputs);
    }
    down_.forward(call.output, activated, call.parameters[slots_.down.weight],
                  at_or_null(call.parameters, slots_.down.bias), call.input);
  }
  void backward_input(const CpuCall& call) override {
    const float* hidden = call.kept[slots_.hidden];
    float* hidden_gradient = call.left[slots_.hidden_gradient];
    float* gradient = settings_.gated ? gated_gradient_.data() : hidden_gradient;
    down_.input_gradient(gradient, call.output_gradient, call.parameters[slots_.down.weight]);
    if (settings_.gated) {
      cpu::gate_gradient(hidden_gradient, gradient, hidden, settings_.activation, middle());
    } else {
      cpu::activate_gradient(gradient, hidden, settings_.activation, up_.rows * up_.outputs);
    }
    up_.input_gradient(norm_.output_gradient(call), hidden_gradient,
                       call.parameters[slots_.up.weight]);
    norm_.backward_input(call, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call);
    up_.weight_gradient(call.gradients[slots_.up.weight],
                        at_or_null(call.gradients, slots_.up.bias),
                        call.left[slots_.hidden_gradient], norm_.output(call));
    down_.weight_gradient(call.gradients[slots_.down.weight],
                          at_or_null(call.gradients, slots_.down.bias), call.output_gradient,
                          call.kept[slots_.activated]);
  }

 private:
  Rows middle() const { return {down_.rows, down_.inputs}; }

  MlpSlots slots_;
  MlpBlock settings_;
  BlockNorm norm_;
  Dense up_;
  Dense down_;
  Scratch gated_gradient_;  ///< The gradient of what goes down; empty without a gate.
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
