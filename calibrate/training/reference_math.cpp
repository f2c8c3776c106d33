// Plain loops: the definition of each piece of a layer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/reference_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/bug.h"
#include "calibrate/training/reference_sizes.h"

namespace plumbline::reference {
namespace {

constexpr double kEpsilon = 1e-5;  // of the norms

}  // namespace

// Sums.

void add(Values& sum, const Values& term) {
  check_size(term, count(sum));
  for (std::int64_t i = 0; i < count(sum); ++i) sum[i] += term[i];
}

void add_to_rows(Values& values, const Values& row) { add_to_channels(values, row, 1); }

Values column_sums(const Values& values, std::int64_t columns) {
  return channel_sums(values, columns, 1);
}

void add_to_channels(Values& values, const Values& channel, std::int64_t area) {
  const std::int64_t samples = parts(values, count(channel) * area);
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t c = 0; c < count(channel); ++c) {
      for (std::int64_t i = 0; i < area; ++i)
        values[(s * count(channel) + c) * area + i] += channel[c];
    }
  }
}

Values channel_sums(const Values& values, std::int64_t channels, std::int64_t area) {
  const std::int64_t samples = parts(values, channels * area);
  Values sums(channels, 0.0);
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < area; ++i) sums[c] += values[(s * channels + c) * area + i];
    }
  }
  return sums;
}

// Matrix products.

Values product(const Values& x, const Values& weight, std::int64_t inputs) {
  const std::int64_t rows = parts(x, inputs);
  const std::int64_t outputs = parts(weight, inputs);
  Values y(rows * outputs, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i)
        y[r * outputs + o] += x[r * inputs + i] * weight[o * inputs + i];
    }
  }
  return y;
}

Values product_input_gradient(const Values& output_gradient, const Values& weight,
                              std::int64_t inputs) {
  const std::int64_t outputs = parts(weight, inputs);
  const std::int64_t rows = parts(output_gradient, outputs);
  Values gradient(rows * inputs, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i)
        gradient[r * inputs + i] += output_gradient[r * outputs + o] * weight[o * inputs + i];
    }
  }
  return gradient;
}

Values product_weight_gradient(const Values& output_gradient, const Values& x,
                               std::int64_t inputs) {
  const std::int64_t rows = parts(x, inputs);
  PLUMBLINE_CHECK(rows > 0 && count(output_gradient) % rows == 0, rows, count(output_gradient));
  const std::int64_t outputs = count(output_gradient) / rows;
  Values gradient(outputs * inputs, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i)
        gradient[o * inputs + i] += output_gradient[r * outputs + o] * x[r * inputs + i];
    }
  }
  return gradient;
}

// Element by element.

Values relu(const Values& x) {
  Values y(x.size());
  for (std::int64_t i = 0; i < count(x); ++i) y[i] = std::max(x[i], 0.0);
  return y;
}

Values relu_gradient(const Values& output_gradient, const Values& output) {
  check_size(output_gradient, count(output));
  Values gradient(output.size());
  for (std::int64_t i = 0; i < count(output); ++i)
    gradient[i] = output[i] > 0 ? output_gradient[i] : 0;
  return gradient;
}

// gelu(x) = 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
namespace {
constexpr double kGeluFactor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluCube = 0.044715;
}  // namespace

Values gelu(const Values& x) {
  Values y(x.size());
  for (std::int64_t i = 0; i < count(x); ++i) {
    const double u = kGeluFactor * (x[i] + kGeluCube * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(u));
  }
  return y;
}

Values gelu_gradient(const Values& output_gradient, const Values& x) {
  check_size(output_gradient, count(x));
  Values gradient(x.size());
  for (std::int64_t i = 0; i < count(x); ++i) {
    const double u = kGeluFactor * (x[i] + kGeluCube * x[i] * x[i] * x[i]);
    const double u_slope = kGeluFactor * (1 + 3 * kGeluCube * x[i] * x[i]);
    const double tanh_u = std::tanh(u);
    const double slope = 0.5 * (1 + tanh_u) + 0.5 * x[i] * (1 - tanh_u * tanh_u) * u_slope;
    gradient[i] = output_gradient[i] * slope;
  }
  return gradient;
}

namespace {

double activation_of(double x, Activation activation) {
  if (activation == Activation::gelu) return gelu({x}).front();
  return activation == Activation::silu ? x * sigmoid(x) : std::max(x, 0.0);
}

double slope_of(double x, Activation activation) {
  if (activation == Activation::gelu) return gelu_gradient({1}, {x}).front();
  if (activation == Activation::relu) return x > 0 ? 1 : 0;
  return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
}

}  // namespace

Values activated(const Values& x, Activation activation) {
  Values y(x.size());
  for (std::int64_t i = 0; i < count(x); ++i) y[i] = activation_of(x[i], activation);
  return y;
}

Values activated_gradient(const Values& output_gradient, const Values& x, Activation activation) {
  check_size(output_gradient, count(x));
  Values gradient(x.size());
  for (std::int64_t i = 0; i < count(x); ++i)
    gradient[i] = output_gradient[i] * slope_of(x[i], activation);
  return gradient;
}

Values gated(const Values& gate_and_up, std::int64_t hidden, Activation activation) {
  const std::int64_t rows = parts(gate_and_up, 2 * hidden);
  Values y(rows * hidden);
  for (std::int64_t r = 0; r < rows; ++r) {
    const double* gate = &gate_and_up[r * 2 * hidden];
    for (std::int64_t i = 0; i < hidden; ++i)
      y[r * hidden + i] = activation_of(gate[i], activation) * gate[hidden + i];
  }
  return y;
}

Values gated_gradient(const Values& output_gradient, const Values& gate_and_up, std::int64_t hidden,
                      Activation activation) {
  const std::int64_t rows = parts(gate_and_up, 2 * hidden);
  check_size(output_gradient, rows * hidden);
  Values gradient(gate_and_up.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    const double* gate = &gate_and_up[r * 2 * hidden];
    double* to = &gradient[r * 2 * hidden];
    for (std::int64_t i = 0; i < hidden; ++i) {
      const double of_output = output_gradient[r * hidden + i];
      to[i] = of_output * gate[hidden + i] * slope_of(gate[i], activation);
      to[hidden + i] = of_output * activation_of(gate[i], activation);
    }
  }
  return gradient;
}

// Norms. With n = (x - mean) rstd and g = scale x output gradient, the gradient of the input is
// rstd (g - mean(g) - n mean(g n)), with means over the elements that were normalized together.

Normalized layer_norm(const Values& x, const Values& scale, const Values& shift) {
  const std::int64_t features = count(scale);
  const std::int64_t rows = parts(x, features);
  check_size(shift, features);
  Normalized result{Values(x.size()), Values(rows), Values(rows)};
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < features; ++i) sum += x[r * features + i];
    const double mean = sum / static_cast<double>(features);
    double squares = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const double off = x[r * features + i] - mean;
      squares += off * off;
    }
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(features) + kEpsilon);
    for (std::int64_t i = 0; i < features; ++i)
      result.output[r * features + i] = scale[i] * (x[r * features + i] - mean) * rstd + shift[i];
    result.mean[r] = mean;
    result.rstd[r] = rstd;
  }
  return result;
}

Values layer_norm_input_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 const Values& scale) {
  const std::int64_t features = count(scale);
  const std::int64_t rows = parts(x, features);
  check_size(output_gradient, count(x));
  Values gradient(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    const double mean = moments.mean[r];
    const double rstd = moments.rstd[r];
    double sum = 0;
    double sum_with_n = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const double n = (x[r * features + i] - mean) * rstd;
      const double g = scale[i] * output_gradient[r * features + i];
      sum += g;
      sum_with_n += g * n;
    }
    for (std::int64_t i = 0; i < features; ++i) {
      const double n = (x[r * features + i] - mean) * rstd;
      const double g = scale[i] * output_gradient[r * features + i];
      gradient[r * features + i] =
          rstd * (g - (sum + n * sum_with_n) / static_cast<double>(features));
    }
  }
  return gradient;
}

Values layer_norm_scale_gradient(const Values& output_gradient, const Values& x, Moments moments) {
  const std::int64_t rows = count(moments.mean);
  check_size(output_gradient, count(x));
  PLUMBLINE_CHECK(rows > 0 && count(x) % rows == 0, rows, count(x));
  const std::int64_t features = count(x) / rows;
  Values gradient(features, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < features; ++i) {
      const double n = (x[r * features + i] - moments.mean[r]) * moments.rstd[r];
      gradient[i] += output_gradient[r * features + i] * n;
    }
  }
  return gradient;
}

Normalized rms_norm(const Values& x, const Values& scale) {
  const std::int64_t features = count(scale);
  const std::int64_t rows = parts(x, features);
  Normalized result{Values(x.size()), {}, Values(rows)};
  for (std::int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::int64_t i = 0; i < features; ++i)
      squares += x[r * features + i] * x[r * features + i];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(features) + kEpsilon);
    for (std::int64_t i = 0; i < features; ++i)
      result.output[r * features + i] = scale[i] * x[r * features + i] * rstd;
    result.rstd[r] = rstd;
  }
  return result;
}

// The same with n = x rstd, and without mean(g).
Values rms_norm_input_gradient(const Values& output_gradient, const Values& x, const Values& rstd,
                               const Values& scale) {
  const std::int64_t features = count(scale);
  const std::int64_t rows = parts(x, features);
  check_size(output_gradient, count(x));
  check_size(rstd, rows);
  Values gradient(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum_with_n = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const std::int64_t at = r * features + i;
      sum_with_n += scale[i] * output_gradient[at] * x[at] * rstd[r];
    }
    for (std::int64_t i = 0; i < features; ++i) {
      const std::int64_t at = r * features + i;
      const double n = x[at] * rstd[r];
      gradient[at] = rstd[r] * (scale[i] * output_gradient[at] -
                                n * sum_with_n / static_cast<double>(features));
    }
  }
  return gradient;
}

Values rms_norm_scale_gradient(const Values& output_gradient, const Values& x, const Values& rstd) {
  return layer_norm_scale_gradient(output_gradient, x, {Values(rstd.size(), 0.0), rstd});
}

Normalized batch_norm(const Values& x, const Values& scale, const Values& shift,
                      std::int64_t area) {
  const std::int64_t channels = count(scale);
  const std::int64_t samples = parts(x, channels * area);
  check_size(shift, channels);
  const auto together = static_cast<double>(samples * area);
  Normalized result{Values(x.size()), Values(channels), Values(channels)};
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t s = 0; s < samples; ++s) {
      for (std::int64_t i = 0; i < area; ++i) sum += x[(s * channels + c) * area + i];
    }
    const double mean = sum / together;
    double squares = 0;
    for (std::int64_t s = 0; s < samples; ++s) {
      for (std::int64_t i = 0; i < area; ++i) {
        const double off = x[(s * channels + c) * area + i] - mean;
        squares += off * off;
      }
    }
    const double rstd = 1 / std::sqrt(squares / together + kEpsilon);
    for (std::int64_t s = 0; s < samples; ++s) {
      for (std::int64_t i = 0; i < area; ++i) {
        const std::int64_t at = (s * channels + c) * area + i;
        result.output[at] = scale[c] * (x[at] - mean) * rstd + shift[c];
      }
    }
    result.mean[c] = mean;
    result.rstd[c] = rstd;
  }
  return result;
}

Values batch_norm_input_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 const Values& scale, std::int64_t area) {
  const std::int64_t channels = count(scale);
  const std::int64_t samples = parts(x, channels * area);
  const auto together = static_cast<double>(samples * area);
  const Values sum = channel_sums(output_gradient, channels, area);
  const Values sum_with_n = batch_norm_scale_gradient(output_gradient, x, moments, area);
  Values gradient(x.size());
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < area; ++i) {
        const std::int64_t at = (s * channels + c) * area + i;
        const double n = (x[at] - moments.mean[c]) * moments.rstd[c];
        gradient[at] = scale[c] * moments.rstd[c] *
                       (output_gradient[at] - (sum[c] + n * sum_with_n[c]) / together);
      }
    }
  }
  return gradient;
}

Values batch_norm_scale_gradient(const Values& output_gradient, const Values& x, Moments moments,
                                 std::int64_t area) {
  const std::int64_t channels = count(moments.mean);
  const std::int64_t samples = parts(x, channels * area);
  check_size(output_gradient, count(x));
  Values gradient(channels, 0.0);
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < area; ++i) {
        const std::int64_t at = (s * channels + c) * area + i;
        gradient[c] += output_gradient[at] * (x[at] - moments.mean[c]) * moments.rstd[c];
      }
    }
  }
  return gradient;
}

// The loss.

CrossEntropy cross_entropy(const Values& logits, const Values& labels, std::int64_t classes,
                           std::int64_t samples) {
  const std::int64_t rows = parts(logits, classes * samples);  // of a sample
  check_size(labels, samples * rows);
  CrossEntropy result{Values(samples, 0.0), Values(logits.size())};
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t r = s * rows; r < (s + 1) * rows; ++r) {
      const Values row(logits.begin() + r * classes, logits.begin() + (r + 1) * classes);
      const double logsumexp = log_sum_exp(row);
      for (std::int64_t c = 0; c < classes; ++c)
        result.probabilities[r * classes + c] = std::exp(row[c] - logsumexp);
      const double loss = logsumexp - row[index_below(labels[r], classes)];
      result.loss[s] += loss / static_cast<double>(rows);
    }
  }
  return result;
}

Values cross_entropy_gradient(const Values& loss_gradient, const Values& probabilities,
                              const Values& labels) {
  const std::int64_t rows = parts(labels, count(loss_gradient));  // of a sample
  const std::int64_t classes = parts(probabilities, count(labels));
  Values gradient(probabilities.size());
  for (std::int64_t r = 0; r < count(labels); ++r) {
    const double weight = loss_gradient[r / rows] / static_cast<double>(rows);
    const std::int64_t label = index_below(labels[r], classes);
    for (std::int64_t c = 0; c < classes; ++c)
      gradient[r * classes + c] = weight * (probabilities[r * classes + c] - (c == label ? 1 : 0));
  }
  return gradient;
}

// Tables.

Values lookup(const Values& ids, const Values& table, std::int64_t features) {
  const std::int64_t entries = parts(table, features);
  Values y(count(ids) * features);
  for (std::int64_t r = 0; r < count(ids); ++r) {
    const std::int64_t id = index_below(ids[r], entries);
    for (std::int64_t i = 0; i < features; ++i) y[r * features + i] = table[id * features + i];
  }
  return y;
}

Values lookup_gradient(const Values& output_gradient, const Values& ids, std::int64_t entries) {
  const std::int64_t features = parts(output_gradient, count(ids));
  Values gradient(entries * features, 0.0);
  for (std::int64_t r = 0; r < count(ids); ++r) {
    const std::int64_t id = index_below(ids[r], entries);
    for (std::int64_t i = 0; i < features; ++i)
      gradient[id * features + i] += output_gradient[r * features + i];
  }
  return gradient;
}

}  // namespace plumbline::reference
