// Each kind of layer put together from its kernels.
// SPDX-License-Identifier: MIT
#include "calibrate/cpu_layer.h"

#include <algorithm>
#include <string_view>

#include "calibrate/cpu_attention.h"
#include "calibrate/cpu_dense.h"
#include "calibrate/cpu_kernels.h"
#include "calibrate/cpu_lstm.h"
#include "calibrate/cpu_pictures.h"
#include "calibrate/matrix_product.h"
#include "models/bug.h"

namespace plumbline {
namespace {

using cpu::Dense;
using cpu::Normed;
using cpu::Pictures;
using cpu::Rows;
using cpu::Scratch;
using cpu::Window;

/// What each kind sees of its layer.
template <class Kind>
struct Made {
  const Kind& settings;
  const NetworkLayer& layer;
  std::int64_t batch;

  std::int64_t input_elements() const { return batch * layer.input.elements(); }
  std::int64_t output_elements() const { return batch * layer.output.elements(); }
  /// All extents of the input but the last are rows.
  Rows rows() const {
    const std::int64_t columns = layer.input.extents.back();
    return {input_elements() / columns, columns};
  }
};

// Tensors are found by their places in the lists of the layer: each kind gives its places the
// names, and the layer is held to them.

template <class Tensors>
void check_names(const Tensors& tensors, const std::vector<std::string_view>& names) {
  PLUMBLINE_CHECK(tensors.size() == names.size(), tensors.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    PLUMBLINE_CHECK(tensors[i].name == names[i], tensors[i].name, names[i]);
}

struct Names {
  std::vector<std::string_view> parameters;
  std::vector<std::string_view> kept{};
  std::vector<std::string_view> left{};
};

void check_names(const NetworkLayer& layer, const Names& names) {
  check_names(layer.parameters, names.parameters);
  check_names(layer.kept, names.kept);
  check_names(layer.left_for_weights, names.left);
}

/// The element of a list, or nothing where it is not there.
template <class Pointer>
Pointer at_or_null(const std::vector<Pointer>& list, std::size_t i, bool there) {
  return there ? list[i] : nullptr;
}

std::int64_t checked_index(std::int32_t index, std::int64_t limit) {
  PLUMBLINE_CHECK(index >= 0 && index < limit, index, limit);
  return index;
}

class LinearLayer : public CpuLayer {
 public:
  explicit LinearLayer(const Made<Linear>& made)
      : dense_{made.rows().rows, made.rows().columns, made.settings.features},
        bias_(made.settings.bias) {
    Names names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    dense_.forward(call.output, call.input, call.parameters[0],
                   at_or_null(call.parameters, 1, bias_));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      dense_.input_gradient(call.input_gradient, call.output_gradient, call.parameters[0]);
  }
  void backward_weight(const CpuCall& call) override {
    dense_.weight_gradient(call.gradients[0], at_or_null(call.gradients, 1, bias_),
                           call.output_gradient, call.input);
  }

 private:
  Dense dense_;
  bool bias_;
};

class ReluLayer : public CpuLayer {
 public:
  explicit ReluLayer(const Made<Relu>& made) : count_(made.input_elements()) {
    check_names(made.layer, Names{});
  }

  void forward(const CpuCall& call) override { cpu::relu(call.output, call.input, count_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::relu_gradient(call.input_gradient, call.output_gradient, call.output, count_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class GeluLayer : public CpuLayer {
 public:
  explicit GeluLayer(const Made<Gelu>& made) : count_(made.input_elements()) {
    check_names(made.layer, Names{});
  }

  void forward(const CpuCall& call) override { cpu::gelu(call.output, call.input, count_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::gelu_gradient(call.input_gradient, call.output_gradient, call.input, count_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class LayerNormLayer : public CpuLayer {
 public:
  explicit LayerNormLayer(const Made<LayerNorm>& made) : rows_(made.rows()) {
    check_names(made.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CpuCall& call) override {
    cpu::layer_norm(call.output, call.kept[0], call.kept[1], call.input,
                    {call.parameters[0], call.parameters[1]}, rows_);
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient == nullptr) return;
    cpu::layer_norm_input_gradient(call.input_gradient, call.output_gradient, nullptr, normed(call),
                                   call.parameters[0], rows_);
  }
  void backward_weight(const CpuCall& call) override {
    cpu::layer_norm_parameter_gradients({call.gradients[0], call.gradients[1]},
                                        call.output_gradient, normed(call), rows_);
  }

 private:
  static Normed normed(const CpuCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  Rows rows_;
};

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
  explicit AttentionLayer(const Made<AttentionBlock>& made)
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
  explicit MlpLayer(const Made<MlpBlock>& made)
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
  explicit EmbeddingLayer(const Made<Embedding>& made)
      : settings_(made.settings), batch_(made.batch), tokens_(made.layer.input.elements()) {
    Names names{{"weight"}};
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
  explicit HeadLayer(const Made<Head>& made)
      : settings_(made.settings),
        batch_(made.batch),
        rows_(made.rows()),
        rows_at_a_time_(std::min(rows_.rows, kMostRows)),
        norm_(rows_),
        weight_(settings_.norm ? 2 : 0),
        probabilities_(settings_.norm ? 3 : 0),
        logits_gradient_(rows_at_a_time_ * settings_.classes) {
    Names names{{"weight"}, {"probabilities"}};
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
  static constexpr std::int64_t kMostRows = 256;

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

// Pictures.

Window window_over(const Shape& picture, std::int64_t samples, std::int64_t kernel,
                   std::int64_t stride, std::int64_t padding) {
  PLUMBLINE_CHECK(picture.extents.size() == 3, picture.extents.size());
  return {samples, picture.extents[0], picture.extents[1], picture.extents[2], kernel, stride,
          padding};
}

Pictures pictures_of(const Shape& picture, std::int64_t samples) {
  PLUMBLINE_CHECK(picture.extents.size() == 3, picture.extents.size());
  return {samples, picture.extents[0], picture.extents[1] * picture.extents[2]};
}

class ConvolutionLayer : public CpuLayer {
 public:
  explicit ConvolutionLayer(const Made<Conv2d>& made)
      : input_elements_(made.input_elements()),
        bias_(made.settings.bias),
        convolution_(window_over(made.layer.input, made.batch, made.settings.kernel,
                                 made.settings.stride, made.settings.padding),
                     made.settings.channels) {
    Names names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    convolution_.forward(call.output, call.input, call.parameters[0],
                         at_or_null(call.parameters, 1, bias_));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient == nullptr) return;
    std::fill_n(call.input_gradient, input_elements_, 0.0F);
    convolution_.add_input_gradient(call.input_gradient, call.output_gradient, call.parameters[0]);
  }
  void backward_weight(const CpuCall& call) override {
    convolution_.weight_gradient(call.gradients[0], at_or_null(call.gradients, 1, bias_),
                                 call.output_gradient, call.input);
  }

 private:
  std::int64_t input_elements_;
  bool bias_;
  cpu::Convolution convolution_;
};

class MaxPoolLayer : public CpuLayer {
 public:
  explicit MaxPoolLayer(const Made<MaxPool>& made)
      : window_(window_over(made.layer.input, made.batch, made.settings.kernel,
                            made.settings.stride, made.settings.padding)) {
    check_names(made.layer, Names{});
  }

  void forward(const CpuCall& call) override { cpu::max_pool(call.output, call.input, window_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::max_pool_gradient(call.input_gradient, call.output_gradient, call.input, window_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  Window window_;
};

class BatchNormLayer : public CpuLayer {
 public:
  explicit BatchNormLayer(const Made<BatchNorm>& made)
      : pictures_(pictures_of(made.layer.input, made.batch)) {
    check_names(made.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CpuCall& call) override {
    cpu::batch_moments(call.kept[0], call.kept[1], call.input, pictures_);
    cpu::batch_norm(call.output, normed(call), {call.parameters[0], call.parameters[1]}, pictures_);
  }
  void backward_input(const CpuCall& call) override {
    cpu::batch_norm_gradients(call.input_gradient, {call.gradients[0], call.gradients[1]},
                              call.output_gradient, normed(call), call.parameters[0], pictures_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  static Normed normed(const CpuCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  Pictures pictures_;
};

class FlattenLayer : public CpuLayer {
 public:
  explicit FlattenLayer(const Made<Flatten>& made) : count_(made.input_elements()) {
    check_names(made.layer, Names{});
  }

  void forward(const CpuCall& call) override { std::copy_n(call.input, count_, call.output); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      std::copy_n(call.output_gradient, count_, call.input_gradient);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class ResidualLayer : public CpuLayer {
 public:
  explicit ResidualLayer(const Made<ResidualBlock>& made)
      : changes_(made.settings.stride != 1 ||
                 made.settings.channels != made.layer.input.extents.front()),
        input_elements_(made.input_elements()),
        out_(pictures_of(made.layer.output, made.batch)),
        conv1_(window_over(made.layer.input, made.batch, 3, made.settings.stride, 1),
               out_.channels),
        conv2_(window_over(made.layer.output, made.batch, 3, 1, 1), out_.channels),
        shortcut_(window_over(made.layer.input, made.batch, 1, made.settings.stride, 0),
                  out_.channels),
        sum_gradient_(out_.elements()),
        relu1_gradient_(out_.elements()) {
    Names names{{"conv1.weight", "norm1.scale", "norm1.shift", "conv2.weight", "norm2.scale",
                 "norm2.shift"},
                {"conv1", "norm1.mean", "norm1.rstd", "relu1", "conv2", "norm2.mean", "norm2.rstd"},
                {"conv1.gradient", "conv2.gradient"}};
    if (changes_) {
      for (const auto* name : {"shortcut.weight", "shortcut_norm.scale", "shortcut_norm.shift"})
        names.parameters.emplace_back(name);
      for (const auto* name : {"shortcut", "shortcut_norm.mean", "shortcut_norm.rstd"})
        names.kept.emplace_back(name);
      names.left.emplace_back("shortcut.gradient");
    }
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    conv1_.forward(call.kept[kConv1], call.input, call.parameters[kConv1Weight], nullptr);
    moments(call, kConv1, kNorm1Moments);
    cpu::batch_norm_relu(call.kept[kRelu1], normed(call, kConv1, kNorm1Moments),
                         affine(call, kNorm1), out_);
    conv2_.forward(call.kept[kConv2], call.kept[kRelu1], call.parameters[kConv2Weight], nullptr);
    moments(call, kConv2, kNorm2Moments);
    cpu::batch_norm(call.output, normed(call, kConv2, kNorm2Moments), affine(call, kNorm2), out_);
    const float* skip = call.input;
    if (changes_) {
      shortcut_.forward(call.kept[kShortcut], call.input, call.parameters[kShortcutWeight],
                        nullptr);
      moments(call, kShortcut, kShortcutMoments);
      cpu::batch_norm(sum_gradient_.data(), normed(call, kShortcut, kShortcutMoments),
                      affine(call, kShortcutNorm), out_);
      skip = sum_gradient_.data();  // which a forward does not need for itself
    }
    cpu::add_and_relu(call.output, skip, out_.elements());
  }

  void backward_input(const CpuCall& call) override {
    float* conv1_gradient = call.left[0];
    float* conv2_gradient = call.left[1];
    cpu::relu_gradient(sum_gradient_.data(), call.output_gradient, call.output, out_.elements());
    cpu::batch_norm_gradients(conv2_gradient, norm_gradients(call, kNorm2), sum_gradient_.data(),
                              normed(call, kConv2, kNorm2Moments), call.parameters[kNorm2], out_);
    std::fill_n(relu1_gradient_.data(), out_.elements(), 0.0F);
    conv2_.add_input_gradient(relu1_gradient_.data(), conv2_gradient,
                              call.parameters[kConv2Weight]);
    cpu::relu_gradient(relu1_gradient_.data(), call.kept[kRelu1], out_.elements());
    cpu::batch_norm_gradients(conv1_gradient, norm_gradients(call, kNorm1), relu1_gradient_.data(),
                              normed(call, kConv1, kNorm1Moments), call.parameters[kNorm1], out_);
    if (changes_) {
      cpu::batch_norm_gradients(call.left[2], norm_gradients(call, kShortcutNorm),
                                sum_gradient_.data(), normed(call, kShortcut, kShortcutMoments),
                                call.parameters[kShortcutNorm], out_);
    }
    if (call.input_gradient == nullptr) return;
    if (changes_) {
      std::fill_n(call.input_gradient, input_elements_, 0.0F);
      shortcut_.add_input_gradient(call.input_gradient, call.left[2],
                                   call.parameters[kShortcutWeight]);
    } else {
      std::copy_n(sum_gradient_.data(), input_elements_, call.input_gradient);
    }
    conv1_.add_input_gradient(call.input_gradient, conv1_gradient, call.parameters[kConv1Weight]);
  }

  void backward_weight(const CpuCall& call) override {
    conv1_.weight_gradient(call.gradients[kConv1Weight], nullptr, call.left[0], call.input);
    conv2_.weight_gradient(call.gradients[kConv2Weight], nullptr, call.left[1], call.kept[kRelu1]);
    if (changes_)
      shortcut_.weight_gradient(call.gradients[kShortcutWeight], nullptr, call.left[2], call.input);
  }

 private:
  // Among the parameters; the shift of a norm follows its scale.
  static constexpr std::size_t kConv1Weight = 0;
  static constexpr std::size_t kNorm1 = 1;
  static constexpr std::size_t kConv2Weight = 3;
  static constexpr std::size_t kNorm2 = 4;
  static constexpr std::size_t kShortcutWeight = 6;
  static constexpr std::size_t kShortcutNorm = 7;
  // Among the kept; the rstd of a norm follows its mean.
  static constexpr std::size_t kConv1 = 0;
  static constexpr std::size_t kNorm1Moments = 1;
  static constexpr std::size_t kRelu1 = 3;
  static constexpr std::size_t kConv2 = 4;
  static constexpr std::size_t kNorm2Moments = 5;
  static constexpr std::size_t kShortcut = 7;
  static constexpr std::size_t kShortcutMoments = 8;

  void moments(const CpuCall& call, std::size_t x, std::size_t to) const {
    cpu::batch_moments(call.kept[to], call.kept[to + 1], call.kept[x], out_);
  }
  static Normed normed(const CpuCall& call, std::size_t x, std::size_t moments) {
    return {call.kept[x], call.kept[moments], call.kept[moments + 1]};
  }
  static cpu::ScaleAndShift affine(const CpuCall& call, std::size_t norm) {
    return {call.parameters[norm], call.parameters[norm + 1]};
  }
  static cpu::ScaleAndShiftGradients norm_gradients(const CpuCall& call, std::size_t norm) {
    return {call.gradients[norm], call.gradients[norm + 1]};
  }

  bool changes_;
  std::int64_t input_elements_;
  Pictures out_;
  cpu::Convolution conv1_;
  cpu::Convolution conv2_;
  cpu::Convolution shortcut_;
  Scratch sum_gradient_;  ///< Of what the last relu takes.
  Scratch relu1_gradient_;
};

class LstmLayer : public CpuLayer {
 public:
  explicit LstmLayer(const Made<Lstm>& made)
      : residual_(made.settings.residual),
        elements_(made.output_elements()),
        lstm_({made.batch, made.layer.input.extents.front(), made.rows().columns,
               made.settings.hidden}) {
    Names names{{"input.weight", "hidden.weight", "bias"}, {"gates", "cells"}, {"gates.gradient"}};
    if (residual_) names.kept.push_back("hidden");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    float* h = residual_ ? call.kept[2] : call.output;
    lstm_.forward(call.kept[0], call.kept[1], h, call.input, weights(call));
    if (residual_) cpu::add_row(call.output, h, call.input, {1, elements_});
  }
  void backward_input(const CpuCall& call) override {
    lstm_.backward_input(call.left[0], call.input_gradient, call.output_gradient, call.kept[0],
                         call.kept[1], weights(call));
    if (residual_ && call.input_gradient != nullptr)
      cpu::add(call.input_gradient, call.output_gradient, elements_);
  }
  void backward_weight(const CpuCall& call) override {
    lstm_.backward_weight({call.gradients[0], call.gradients[1], call.gradients[2]}, call.left[0],
                          call.input, residual_ ? call.kept[2] : call.output);
  }

 private:
  static cpu::Lstm::Weights weights(const CpuCall& call) {
    return {call.parameters[0], call.parameters[1], call.parameters[2]};
  }

  bool residual_;
  std::int64_t elements_;
  cpu::Lstm lstm_;
};

// Which class stands for which kind.

template <class Kind>
struct ClassOf;
template <>
struct ClassOf<Linear> {
  using Type = LinearLayer;
};
template <>
struct ClassOf<Relu> {
  using Type = ReluLayer;
};
template <>
struct ClassOf<Gelu> {
  using Type = GeluLayer;
};
template <>
struct ClassOf<LayerNorm> {
  using Type = LayerNormLayer;
};
template <>
struct ClassOf<AttentionBlock> {
  using Type = AttentionLayer;
};
template <>
struct ClassOf<MlpBlock> {
  using Type = MlpLayer;
};
template <>
struct ClassOf<Embedding> {
  using Type = EmbeddingLayer;
};
template <>
struct ClassOf<Head> {
  using Type = HeadLayer;
};
template <>
struct ClassOf<Conv2d> {
  using Type = ConvolutionLayer;
};
template <>
struct ClassOf<MaxPool> {
  using Type = MaxPoolLayer;
};
template <>
struct ClassOf<BatchNorm> {
  using Type = BatchNormLayer;
};
template <>
struct ClassOf<Flatten> {
  using Type = FlattenLayer;
};
template <>
struct ClassOf<ResidualBlock> {
  using Type = ResidualLayer;
};
template <>
struct ClassOf<Lstm> {
  using Type = LstmLayer;
};

}  // namespace

std::unique_ptr<CpuLayer> cpu_layer(const NetworkLayer& layer, std::int64_t batch) {
  PLUMBLINE_CHECK(!cpu_library().empty(), layer.name, "needs a build with oneDNN");
  PLUMBLINE_CHECK(batch >= 1, layer.name, batch);
  return std::visit(
      [&]<class Kind>(const Kind& settings) -> std::unique_ptr<CpuLayer> {
        return std::make_unique<typename ClassOf<Kind>::Type>(Made<Kind>{settings, layer, batch});
      },
      layer.settings);
}

std::string cpu_library() { return matrix_library(); }

}  // namespace plumbline
