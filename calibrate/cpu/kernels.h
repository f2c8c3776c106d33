// Loops over fp32 tensors: element by element, norms, softmax, steps of an lstm.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/network/network.h"

/// Results come first among the parameters. Tensors do not overlap, except where one is changed in
/// place. A function named `..._gradient` is the backward of the function before it.
namespace plumbline::cpu {

/// Temporary memory of one pass, aligned to cache lines.
class Scratch {
 public:
  explicit Scratch(std::int64_t elements = 0)
      : lines_((elements + kElementsOfLine - 1) / kElementsOfLine) {}
  float* data() { return lines_.empty() ? nullptr : lines_.front().values; }

 private:
  static constexpr std::int64_t kElementsOfLine = 16;
  struct alignas(64) Line {
    float values[kElementsOfLine];
  };
  std::vector<Line> lines_;
};

/// Rows of columns, one after the other.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// [samples, channels, area].
struct Images {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t area = 0;

  std::int64_t elements() const { return samples * channels * area; }
};

// Sums.

/// Adds in place.
void add(float* sum, const float* term, std::int64_t count);
/// Sets every row to `row`.
void fill_rows(float* y, const float* row, const Rows& shape);
/// Sets every row to the row of x plus `row`.
void add_row(float* y, const float* x, const float* row, const Rows& shape);
/// Adds the sum of each column.
void add_column_sums(float* sums, const float* x, const Rows& shape);
/// Fills every channel with its number.
void fill_channels(float* y, const float* channel, const Images& shape);
/// Adds the sum of each channel.
void add_channel_sums(float* sums, const float* x, const Images& shape);

// Element by element.

void relu(float* y, const float* x, std::int64_t count);
/// relu(sum + term), in place.
void add_and_relu(float* sum, const float* term, std::int64_t count);
void relu_gradient(float* x_gradient, const float* y_gradient, const float* y, std::int64_t count);
/// The same, in place.
void relu_gradient(float* gradient, const float* y, std::int64_t count);
/// Gelu in its tanh form, as x sigmoid(2 u).
void activate(float* y, const float* x, Activation activation, std::int64_t count);
void activate_gradient(float* x_gradient, const float* y_gradient, const float* x,
                       Activation activation, std::int64_t count);
/// The same, in place.
void activate_gradient(float* gradient, const float* x, Activation activation, std::int64_t count);
/// activation(g) u of rows that hold `y_shape.columns` numbers g, then as many u.
void gate(float* y, const float* gate_and_up, Activation activation, const Rows& y_shape);
void gate_gradient(float* gate_and_up_gradient, const float* y_gradient, const float* gate_and_up,
                   Activation activation, const Rows& y_shape);

// Norms.

/// The input of a norm, and the moments that it kept.
struct Normed {
  const float* x = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
};

/// The parameters of a norm.
struct ScaleAndShift {
  const float* scale = nullptr;
  const float* shift = nullptr;
};

/// The gradients of the same, to which functions add.
struct ScaleAndShiftGradients {
  float* scale = nullptr;
  float* shift = nullptr;
};

/// Also writes mean and rstd of each row.
void layer_norm(float* y, float* mean, float* rstd, const float* x, const ScaleAndShift& affine,
                const Rows& shape);
/// Adds `skip` where there is one.
void layer_norm_input_gradient(float* x_gradient, const float* y_gradient, const float* skip,
                               const Normed& normed, const float* scale, const Rows& shape);
void layer_norm_parameter_gradients(const ScaleAndShiftGradients& gradients,
                                    const float* y_gradient, const Normed& normed,
                                    const Rows& shape);

/// Also writes the rstd of each row.
void rms_norm(float* y, float* rstd, const float* x, const float* scale, const Rows& shape);
/// Adds `skip` where there is one.
void rms_norm_input_gradient(float* x_gradient, const float* y_gradient, const float* skip,
                             const float* x, const float* rstd, const float* scale,
                             const Rows& shape);
/// Adds to the gradient of the scale.
void rms_norm_scale_gradient(float* scale_gradient, const float* y_gradient, const float* x,
                             const float* rstd, const Rows& shape);

// Heads of queries and keys.

/// Heads of `size` numbers that lie in rows, `stride` apart, one after the other.
struct HeadRows {
  std::int64_t rows = 0;
  std::int64_t stride = 0;
  std::int64_t heads = 0;
  std::int64_t size = 0;
};

/// An rms norm of each head, in place, with one scale. `input` gets what it was, [rows, heads x
/// size] `input_stride` apart; `rstd` the factor of each head, rows `rstd_stride` apart.
void norm_heads(float* heads, float* input, std::int64_t input_stride, float* rstd,
                std::int64_t rstd_stride, const float* scale, const HeadRows& shape);
/// Turns the gradient of the output into that of the input, in place; adds to that of the scale.
void norm_heads_gradient(float* gradient, float* scale_gradient, const float* input,
                         std::int64_t input_stride, const float* rstd, std::int64_t rstd_stride,
                         const float* scale, const HeadRows& shape);
/// Turns each head to the position of its row, modulo `tokens`, in place; back = the other way.
/// `angles` are those of rotary_angles().
void turn_heads(float* heads, const float* angles, bool back, std::int64_t tokens,
                const HeadRows& shape);

// Norms of images.

/// The mean and the rstd of each channel.
void batch_moments(float* mean, float* rstd, const float* x, const Images& shape);
void batch_norm(float* y, const Normed& normed, const ScaleAndShift& affine, const Images& shape);
/// relu of the same.
void batch_norm_relu(float* y, const Normed& normed, const ScaleAndShift& affine,
                     const Images& shape);
/// Adds to the gradients of the parameters. `x_gradient` may be null.
void batch_norm_gradients(float* x_gradient, const ScaleAndShiftGradients& gradients,
                          const float* y_gradient, const Normed& normed, const float* scale,
                          const Images& shape);

// Softmax.

/// Softmax of one row, in place. Returns the logarithm of the sum of exponentials.
double softmax(float* row, std::int64_t count);
/// The same from that logarithm.
void recompute_softmax(float* row, float logsumexp, std::int64_t count);
/// Replaces the gradient of the probabilities by factor x the gradient of the scores.
void softmax_gradient(float* gradient, const float* probabilities, float factor,
                      std::int64_t count);
/// weight x (probabilities - 1 at the label).
void cross_entropy_gradient(float* gradient, const float* probabilities, float weight,
                            std::int64_t label, std::int64_t count);

// One step of an lstm for one sample. Gates are [4, hidden], in the order input, forget, cell,
// output.

struct LstmStep {
  const float* cell_before = nullptr;
  const float* cell = nullptr;
  const float* gates = nullptr;  ///< After sigmoid and tanh.
};

/// Applies sigmoid and tanh to the gates in place.
void lstm_step(float* gates, float* cell, float* h, const float* cell_before, std::int64_t hidden);
/// Writes the gradient of the gates before sigmoid and tanh. `cell_gradient` comes from the next
/// step and becomes the gradient for the previous step. The gradient of h is the sum of
/// `h_gradient` and `h_from_after`.
void lstm_step_gradient(float* gates_gradient, float* cell_gradient, const LstmStep& step,
                        const float* h_gradient, const float* h_from_after, std::int64_t hidden);

// Tables.

/// to [columns, rows] = from [rows, columns].
void transpose(float* to, const float* from, const Rows& shape);

}  // namespace plumbline::cpu
