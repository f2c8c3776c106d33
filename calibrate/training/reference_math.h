// The arithmetic of the reference layers, each piece written as its definition.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "calibrate/training/reference.h"

/// Sizes that follow from those of the arguments are not passed: a matrix of `inputs` columns has
/// size / inputs rows. Samples and rows are the same thing where rows are independent.
/// A function named `..._gradient` is the backward of the function before it, for the argument in
/// its name.
namespace plumbline::reference {

// Sums.

/// Adds element by element.
void add(Values& sum, const Values& term);
/// Adds `row` to every row of as many columns.
void add_to_rows(Values& values, const Values& row);
/// One sum for each column: the backward of `add_to_rows` for the row.
Values column_sums(const Values& values, std::int64_t columns);
/// Adds one number to each channel of [.., channels, area].
void add_to_channels(Values& values, const Values& channel, std::int64_t area);
/// One sum for each channel of [.., channels, area]: the backward of `add_to_channels`.
Values channel_sums(const Values& values, std::int64_t channels, std::int64_t area);

// Matrix products.

/// x W^T of x [rows, inputs] and W [outputs, inputs].
Values product(const Values& x, const Values& weight, std::int64_t inputs);
Values product_input_gradient(const Values& output_gradient, const Values& weight,
                              std::int64_t inputs);
Values product_weight_gradient(const Values& output_gradient, const Values& x, std::int64_t inputs);

// Element by element.

Values relu(const Values& x);
/// Computed from the output: the gradient passes where the output is above zero.
Values relu_gradient(const Values& output_gradient, const Values& output);
/// The tanh form (Hendrycks and Gimpel 2016).
Values gelu(const Values& x);
Values gelu_gradient(const Values& output_gradient, const Values& x);
Values activated(const Values& x, Activation activation);
Values activated_gradient(const Values& output_gradient, const Values& x, Activation activation);
/// activation(g) u of rows that hold `hidden` numbers g, then as many u.
Values gated(const Values& gate_and_up, std::int64_t hidden, Activation activation);
Values gated_gradient(const Values& output_gradient, const Values& gate_and_up, std::int64_t hidden,
                      Activation activation);

// Norms: scale (x - mean) rstd + shift with rstd = 1 / sqrt(variance + 1e-5), the variance divided
// by the number of elements.

/// The results of a norm.
struct Normalized {
  Values output;
  Values mean;  ///< Empty for an rms norm.
  Values rstd;
};

/// The moments of the input, as the norm computed them.
struct Moments {
  const Values& mean;
  const Values& rstd;
};

/// Each row of x [rows, features] by itself; features = the size of the scale.
Normalized layer_norm(const Values& x, const Values& scale, const Values& shift);
Values layer_norm_input_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 const Values& scale);
/// For the scale. The gradient for the shift is `column_sums` of the output gradient.
Values layer_norm_scale_gradient(const Values& output_gradient, const Values& x, Moments moments);

/// The same with a mean of zero and no shift: scale x rstd.
Normalized rms_norm(const Values& x, const Values& scale);
Values rms_norm_input_gradient(const Values& output_gradient, const Values& x, const Values& rstd,
                               const Values& scale);
Values rms_norm_scale_gradient(const Values& output_gradient, const Values& x, const Values& rstd);

/// Each channel of x [samples, channels, area] by itself, over all samples.
Normalized batch_norm(const Values& x, const Values& scale, const Values& shift, std::int64_t area);
Values batch_norm_input_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 const Values& scale, std::int64_t area);
/// For the scale. The gradient for the shift is `channel_sums` of the output gradient.
Values batch_norm_scale_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 std::int64_t area);

// Pictures.

/// A square window that moves over [samples, channels, height, width].
struct Window {
  std::int64_t samples = 0;
  std::int64_t channels = 0;  ///< Channels of the input picture.
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t places(std::int64_t extent) const {  ///< Output size along height or width.
    return (extent + 2 * padding - kernel) / stride + 1;
  }
};

/// To [samples, outputs, height', width'] with weight [outputs, channels, kernel, kernel].
Values convolution(const Values& x, const Values& weight, const Window& window);
Values convolution_input_gradient(const Values& output_gradient, const Values& weight,
                                  const Window& window);
Values convolution_weight_gradient(const Values& output_gradient, const Values& x,
                                   const Window& window);

/// The largest element under the window, of each channel. Requires: padding < kernel.
Values max_pool(const Values& x, const Window& window);
/// The whole gradient goes to the largest element, the first in row order if there are several.
Values max_pool_gradient(const Values& output_gradient, const Values& x, const Window& window);

// Attention.

/// softmax(Q K^T / sqrt(head size)) V of each head, from qkv [samples, tokens, widths.qkv()]. A row
/// has all of Q, then K, then V. Head j starts in column j x head size of each; head j of queries
/// has head j / widths.sharing() of keys and values.
struct Attention {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  AttentionWidths widths;
  bool causal = true;       ///< A token sees itself and those before it,
  std::int64_t window = 0;  ///< of these the last `window`; 0 = all.
};

struct AttentionForward {
  Values context;    ///< [samples, tokens, widths.queries()].
  Values logsumexp;  ///< Logsumexp of the scores: [samples, heads, tokens].
};

AttentionForward attention(const Values& qkv, const Attention& shape);
/// Recomputes the probabilities from the scores and their logsumexp.
Values attention_gradient(const Values& context_gradient, const Values& qkv,
                          const Values& logsumexp, const Attention& shape);

/// Turns each head of each row: its numbers i and i + size / 2 by the row's position times
/// base^(-2 i / size), backwards if `back`. Positions are rows modulo `tokens`.
void rotate(Values& heads, std::int64_t columns, std::int64_t size, std::int64_t tokens,
            double base, bool back);

/// Some columns of a matrix, and the way back.
Values taken_columns(const Values& matrix, std::int64_t columns, std::int64_t first,
                     std::int64_t taken);
void put_columns(Values& matrix, std::int64_t columns, std::int64_t first, const Values& put);

// Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates), over
// [samples, tokens, ..] from zero states: c = forget x c' + input x cell, h = output x tanh(c).

struct LstmForward {
  Values gates;   ///< After sigmoid (input, forget, output) and tanh (cell): [.., 4 hidden].
  Values cells;   ///< c.
  Values hidden;  ///< h.
};

/// `projected` is the contribution of the input and the bias to the gates, before sigmoid or tanh:
/// [samples, tokens, 4 hidden], in the order input, forget, cell, output. The previous step adds
/// its h times `hidden_weight` [4 hidden, hidden].
LstmForward lstm(const Values& projected, const Values& hidden_weight, std::int64_t tokens,
                 std::int64_t hidden);
/// The gradient of the gates before sigmoid or tanh, from the gradient of h.
Values lstm_gradient(const Values& hidden_gradient, const Values& gates, const Values& cells,
                     const Values& hidden_weight, std::int64_t tokens, std::int64_t hidden);
/// The h that each step starts from: the h of the previous step, zero at the first.
Values lstm_previous(const Values& h, std::int64_t tokens, std::int64_t hidden);

// The loss.

struct CrossEntropy {
  Values loss;           ///< Per sample: the mean of -log p[label] over its rows.
  Values probabilities;  ///< [samples, rows, classes].
};

/// Softmax with cross-entropy of logits [samples, rows, classes] against a label for each row.
CrossEntropy cross_entropy(const Values& logits, const Values& labels, std::int64_t classes,
                           std::int64_t samples);
/// The gradient of the logits. `loss_gradient` has one number for each sample.
Values cross_entropy_gradient(const Values& loss_gradient, const Values& probabilities,
                              const Values& labels);

// Tables.

/// One row of the table for each id.
Values lookup(const Values& ids, const Values& table, std::int64_t features);
/// The gradient of a table with `entries` rows.
Values lookup_gradient(const Values& output_gradient, const Values& ids, std::int64_t entries);

}  // namespace plumbline::reference
