// The layers of transformers.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/bug.h"
#include "calibrate/cpu/attention.h"
#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer_kinds.h"

namespace plumbline {
namespace {

using cpu::Dense;
using cpu::Normed;
using cpu::Rows;
using cpu::Scratch;

std::int64_t checked_index(std::int32_t index, std::int64_t limit) {
  PLUMBLINE_CHECK(index >= 0 && index < limit, index, limit);
  return index;
}

/// The norm at the start of a block: the first two parameters, and mean, rstd and output the first
/// three kept.
class BlockNorm {
 public:
  explicit BlockNorm(const Rows& rows) : rows_(rows) {}

  void forward(const CpuCall& call) const {
    cpu::layer_norm(call.kept[2], call.kept[0], call.kept[1], call.input,
                    {call.parameters[0], call.parameters[1]}, rows_);
  }
  /// Adds `skip` where there is one. Nothing to do where the gradient is not wanted.
  void backward_input(const CpuCall& call, const float* output_gradient, const float* skip) const {
    if (call.input_gradient == nullptr) return;
    cpu::layer_norm_input_gradient(call.input_gradient, output_gradient, skip, normed(call),
                                   call.parameters[0], rows_);
  }
  void backward_weight(const CpuCall& call, const float* output_gradient) const {
    cpu::layer_norm_parameter_gradients({call.gradients[0], call.gradients[1]}, output_gradient,
                                        normed(call), rows_);
  }

 private:
  static Normed normed(const CpuCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  Rows rows_;
};

class AttentionLayer : public CpuLayer {
 public:
  explicit AttentionLayer(const CpuLayerOf<AttentionBlock>& made)
      : norm_(made.rows()),
        qkv_{made.rows().rows, made.rows().columns, 3 * made.rows().columns},
        projection_{made.rows().rows, made.rows().columns, made.rows().columns},
        attention_({made.batch, made.layer.input.extents.front(), made.rows().columns,
                    made.settings.heads, made.settings.causal}),
        context_gradient_(made.input_elements()) {
    check_names(made.layer,
                {{"norm.scale", "norm.shift", "qkv.weight", "qkv.bias", "projection.weight",
                  "projection.bias"},
                 {"norm.mean", "norm.rstd", "norm.output", "qkv", "logsumexp", "context"},
                 {"qkv.gradient", "norm.output_gradient"}});
  }

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    qkv_.forward(call.kept[kQkv], call.kept[kNormOutput], call.parameters[kQkvWeight],
                 call.parameters[kQkvBias]);
    attention_.forward(call.kept[kContext], call.kept[kLogsumexp], call.kept[kQkv]);
    projection_.forward(call.output, call.kept[kContext], call.parameters[kProjectionWeight],
                        call.parameters[kProjectionBias], call.input);
  }
  void backward_input(const CpuCall& call) override {
    float* qkv_gradient = call.left[0];
    float* norm_output_gradient = call.left[1];
    projection_.input_gradient(context_gradient_.data(), call.output_gradient,
                               call.parameters[kProjectionWeight]);
    attention_.backward(qkv_gradient, context_gradient_.data(), call.kept[kQkv],
                        call.kept[kLogsumexp]);
    qkv_.input_gradient(norm_output_gradient, qkv_gradient, call.parameters[kQkvWeight]);
    norm_.backward_input(call, norm_output_gradient, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call, call.left[1]);
    qkv_.weight_gradient(call.gradients[kQkvWeight], call.gradients[kQkvBias], call.left[0],
                         call.kept[kNormOutput]);
    projection_.weight_gradient(call.gradients[kProjectionWeight], call.gradients[kProjectionBias],
                                call.output_gradient, call.kept[kContext]);
  }

 private:
  static constexpr std::size_t kQkvWeight = 2;
  static constexpr std::size_t kQkvBias = 3;
  static constexpr std::size_t kProjectionWeight = 4;
  static constexpr std::size_t kProjectionBias = 5;
  static constexpr std::size_t kNormOutput = 2;
  static constexpr std::size_t kQkv = 3;
  static constexpr std::size_t kLogsumexp = 4;
  static constexpr std::size_t kContext = 5;

  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  cpu::Attention attention_;
  Scratch context_gradient_;
};

class MlpLayer : public CpuLayer {
 public:
  explicit MlpLayer(const CpuLayerOf<MlpBlock>& made)
      : norm_(made.rows()),
        up_{made.rows().rows, made.rows().columns, made.settings.hidden},
        down_{made.rows().rows, made.settings.hidden, made.rows().columns} {
    check_names(made.layer,
                {{"norm.scale", "norm.shift", "up.weight", "up.bias", "down.weight", "down.bias"},
                 {"norm.mean", "norm.rstd", "norm.output", "hidden", "gelu"},
                 {"hidden.gradient", "norm.output_gradient"}});
  }

  void forward(const CpuCall& call) override {
    norm_.forward(call);
    up_.forward(call.kept[kHidden], call.kept[kNormOutput], call.parameters[kUpWeight],
                call.parameters[kUpBias]);
    cpu::gelu(call.kept[kGelu], call.kept[kHidden], up_.rows * up_.outputs);
    down_.forward(call.output, call.kept[kGelu], call.parameters[kDownWeight],
                  call.parameters[kDownBias], call.input);
  }
  void backward_input(const CpuCall& call) override {
    float* hidden_gradient = call.left[0];
    float* norm_output_gradient = call.left[1];
    down_.input_gradient(hidden_gradient, call.output_gradient, call.parameters[kDownWeight]);
    cpu::gelu_gradient(hidden_gradient, call.kept[kHidden], up_.rows * up_.outputs);
    up_.input_gradient(norm_output_gradient, hidden_gradient, call.parameters[kUpWeight]);
    norm_.backward_input(call, norm_output_gradient, call.output_gradient);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call, call.left[1]);
    up_.weight_gradient(call.gradients[kUpWeight], call.gradients[kUpBias], call.left[0],
                        call.kept[kNormOutput]);
    down_.weight_gradient(call.gradients[kDownWeight], call.gradients[kDownBias],
                          call.output_gradient, call.kept[kGelu]);
  }

 private:
  static constexpr std::size_t kUpWeight = 2;
  static constexpr std::size_t kUpBias = 3;
  static constexpr std::size_t kDownWeight = 4;
  static constexpr std::size_t kDownBias = 5;
  static constexpr std::size_t kNormOutput = 2;
  static constexpr std::size_t kHidden = 3;
  static constexpr std::size_t kGelu = 4;

  BlockNorm norm_;
  Dense up_;
  Dense down_;
};

class EmbeddingLayer : public CpuLayer {
 public:
  explicit EmbeddingLayer(const CpuLayerOf<Embedding>& made)
      : settings_(made.settings), batch_(made.batch), tokens_(made.layer.input.elements()) {
    CpuLayerNames names{{"weight"}};
    if (settings_.positions) names.parameters.push_back("positions");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    const std::int64_t features = settings_.features;
    for (std::int64_t r = 0; r < batch_ * tokens_; ++r) {
      const float* entry = call.parameters[0] + id(call, r) * features;
      if (settings_.positions) {
        cpu::add_row(call.output + r * features, entry, call.parameters[1] + r % tokens_ * features,
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
      cpu::add(call.gradients[0] + id(call, r) * features, call.output_gradient + r * features,
               features);
    if (settings_.positions)
      cpu::add_column_sums(call.gradients[1], call.output_gradient, {batch_, tokens_ * features});
  }

 private:
  std::int64_t id(const CpuCall& call, std::int64_t row) const {
    return checked_index(call.ids[row], settings_.vocabulary);
  }

  Embedding settings_;
  std::int64_t batch_;
  std::int64_t tokens_;
};

class HeadLayer : public CpuLayer {
 public:
  explicit HeadLayer(const CpuLayerOf<Head>& made)
      : settings_(made.settings),
        batch_(made.batch),
        rows_(made.rows()),
        rows_at_a_time_(std::min(rows_.rows, kMaxRows)),
        norm_(rows_),
        weight_(settings_.norm ? 2 : 0),
        probabilities_(settings_.norm ? 3 : 0),
        logits_gradient_(rows_at_a_time_ * settings_.classes) {
    CpuLayerNames names{{"weight"}, {"probabilities"}};
    if (settings_.norm) {
      names = {{"norm.scale", "norm.shift", "weight"},
               {"norm.mean", "norm.rstd", "norm.output", "probabilities"},
               {"norm.output_gradient"}};
    }
    if (settings_.bias) names.parameters.push_back("bias");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    if (settings_.norm) norm_.forward(call);
    float* probabilities = call.kept[probabilities_];
    dense(rows_.rows)
        .forward(probabilities, product_input(call), call.parameters[weight_],
                 at_or_null(call.parameters, weight_ + 1, settings_.bias));
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
    // The gradient of what the product took.
    float* gradient = settings_.norm ? call.left[0] : call.input_gradient;
    if (gradient == nullptr) return;
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const std::int64_t end = logits_gradient(call, first);
      dense(end - first)
          .input_gradient(gradient + first * rows_.columns, logits_gradient_.data(),
                          call.parameters[weight_]);
    }
    if (settings_.norm) norm_.backward_input(call, gradient, nullptr);
  }
  void backward_weight(const CpuCall& call) override {
    if (settings_.norm) norm_.backward_weight(call, call.left[0]);
    for (std::int64_t first = 0; first < rows_.rows; first += rows_at_a_time_) {
      const std::int64_t end = logits_gradient(call, first);
      dense(end - first)
          .weight_gradient(call.gradients[weight_],
                           at_or_null(call.gradients, weight_ + 1, settings_.bias),
                           logits_gradient_.data(), product_input(call) + first * rows_.columns);
    }
  }

 private:
  /// The gradient of the logits is made for some rows at a time: for all it would be as large as
  /// the probabilities.
  static constexpr std::int64_t kMaxRows = 256;

  Dense dense(std::int64_t rows) const { return {rows, rows_.columns, settings_.classes}; }
  const float* product_input(const CpuCall& call) const {
    return settings_.norm ? call.kept[2] : call.input;
  }
  std::int64_t label(const CpuCall& call, std::int64_t row) const {
    return checked_index(call.labels[row], settings_.classes);
  }
  /// Of the rows from `first` on; returns their end.
  std::int64_t logits_gradient(const CpuCall& call, std::int64_t first) {
    const std::int64_t end = std::min(first + rows_at_a_time_, rows_.rows);
    const std::int64_t rows_of_sample = rows_.rows / batch_;
    for (std::int64_t r = first; r < end; ++r) {
      const float weight =
          call.output_gradient[r / rows_of_sample] / static_cast<float>(rows_of_sample);
      cpu::cross_entropy_gradient(logits_gradient_.data() + (r - first) * settings_.classes,
                                  call.kept[probabilities_] + r * settings_.classes, weight,
                                  label(call, r), settings_.classes);
    }
    return end;
  }

  Head settings_;
  std::int64_t batch_;
  Rows rows_;
  std::int64_t rows_at_a_time_;
  BlockNorm norm_;
  std::size_t weight_;         ///< Among the parameters; the bias follows.
  std::size_t probabilities_;  ///< Among the kept.
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
