// Plain loops: what each piece of a layer means.
// SPDX-License-Identifier: MIT
#include "calibrate/training/reference_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/bug.h"

namespace plumbline::reference {
namespace {

constexpr double kEpsilon = 1e-5;  // of the norms

std::int64_t count(const Values& values) { return std::ssize(values); }

/// How many parts of `size` elements there are.
std::int64_t parts(const Values& values, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0 && count(values) % size == 0, count(values), size);
  return count(values) / size;
}

void check_size(const Values& values, std::int64_t size) {
  PLUMBLINE_CHECK(count(values) == size, count(values), size);
}

/// A label or an id as an index.
std::int64_t index_below(double value, std::int64_t limit) {
  PLUMBLINE_CHECK(value >= 0 && value < static_cast<double>(limit) && value == std::floor(value),
                  value, limit);
  return static_cast<std::int64_t>(value);
}

double log_sum_exp(const Values& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

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

// Norms. With n = (x - mean) rstd and g = scale x output gradient, the gradient of the input is
// rstd (g - mean(g) - n mean(g n)), the means over what was normalized together.

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

// Pictures.

namespace {

/// Calls visit(place, at) for each place of the window in one channel of the picture and each
/// element `at` of that channel under it, rows in order; what lies in the padding is left out.
/// visit also learns which element of the window it is.
template <class Visit>
void for_each_under(const Window& window, const Visit& visit) {
  const std::int64_t rows = window.places(window.height);
  const std::int64_t columns = window.places(window.width);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t i = 0; i < window.kernel; ++i) {
        for (std::int64_t j = 0; j < window.kernel; ++j) {
          const std::int64_t y = row * window.stride - window.padding + i;
          const std::int64_t x = column * window.stride - window.padding + j;
          if (y < 0 || y >= window.height || x < 0 || x >= window.width) continue;
          visit(row * columns + column, y * window.width + x, i * window.kernel + j);
        }
      }
    }
  }
}

/// Calls visit(y, x, w) for every product of a convolution: y[..] is the sum of x[..] w[..].
template <class Visit>
void for_each_gemm(const Window& window, std::int64_t outputs, const Visit& visit) {
  const std::int64_t area = window.height * window.width;
  const std::int64_t places = window.places(window.height) * window.places(window.width);
  const std::int64_t taps = window.kernel * window.kernel;
  for (std::int64_t s = 0; s < window.samples; ++s) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t c = 0; c < window.channels; ++c) {
        for_each_under(window, [&](std::int64_t place, std::int64_t at, std::int64_t tap) {
          visit((s * outputs + o) * places + place, (s * window.channels + c) * area + at,
                (o * window.channels + c) * taps + tap);
        });
      }
    }
  }
}

/// Elements of one output channel of all samples.
std::int64_t elements_of_output(const Window& window) {
  return window.samples * window.places(window.height) * window.places(window.width);
}

std::int64_t elements_of_image(const Window& window) {
  return window.samples * window.channels * window.height * window.width;
}

std::int64_t elements_of_kernel(const Window& window) {
  return window.channels * window.kernel * window.kernel;
}

}  // namespace

Values convolution(const Values& x, const Values& weight, const Window& window) {
  check_size(x, elements_of_image(window));
  const std::int64_t outputs = parts(weight, elements_of_kernel(window));
  Values y(outputs * elements_of_output(window), 0.0);
  for_each_gemm(window, outputs, [&](std::int64_t to, std::int64_t from, std::int64_t tap) {
    y[to] += x[from] * weight[tap];
  });
  return y;
}

Values convolution_input_gradient(const Values& output_gradient, const Values& weight,
                                  const Window& window) {
  const std::int64_t outputs = parts(weight, elements_of_kernel(window));
  check_size(output_gradient, outputs * elements_of_output(window));
  Values gradient(elements_of_image(window), 0.0);
  for_each_gemm(window, outputs, [&](std::int64_t to, std::int64_t from, std::int64_t tap) {
    gradient[from] += output_gradient[to] * weight[tap];
  });
  return gradient;
}

Values convolution_weight_gradient(const Values& output_gradient, const Values& x,
                                   const Window& window) {
  check_size(x, elements_of_image(window));
  const std::int64_t outputs = parts(output_gradient, elements_of_output(window));
  Values gradient(outputs * elements_of_kernel(window), 0.0);
  for_each_gemm(window, outputs, [&](std::int64_t to, std::int64_t from, std::int64_t tap) {
    gradient[tap] += output_gradient[to] * x[from];
  });
  return gradient;
}

namespace {

/// Where the largest element under each place of the window is, the first one on ties.
std::vector<std::int64_t> places_of_maxima(const Values& x, const Window& window) {
  check_size(x, elements_of_image(window));
  PLUMBLINE_CHECK(window.padding < window.kernel, window.padding, window.kernel);
  const std::int64_t area = window.height * window.width;
  const std::int64_t places = window.places(window.height) * window.places(window.width);
  const std::int64_t images = window.samples * window.channels;
  std::vector<std::int64_t> maxima(images * places, -1);
  for (std::int64_t p = 0; p < images; ++p) {
    for_each_under(window, [&](std::int64_t place, std::int64_t at, std::int64_t) {
      std::int64_t& best = maxima[p * places + place];
      const std::int64_t candidate = p * area + at;
      if (best < 0 || x[candidate] > x[best]) best = candidate;
    });
  }
  return maxima;
}

}  // namespace

Values max_pool(const Values& x, const Window& window) {
  const std::vector<std::int64_t> maxima = places_of_maxima(x, window);
  Values y(maxima.size());
  for (std::int64_t i = 0; i < count(y); ++i) y[i] = x[maxima[i]];
  return y;
}

Values max_pool_gradient(const Values& output_gradient, const Values& x, const Window& window) {
  const std::vector<std::int64_t> maxima = places_of_maxima(x, window);
  check_size(output_gradient, std::ssize(maxima));
  Values gradient(x.size(), 0.0);
  for (std::int64_t i = 0; i < count(output_gradient); ++i)
    gradient[maxima[i]] += output_gradient[i];
  return gradient;
}

// Attention.

namespace {

/// One head of one sample: where its vectors stand.
class OneHead {
 public:
  OneHead(const Attention& shape, std::int64_t sample, std::int64_t head)
      : shape_(shape), sample_(sample), head_(head), size_(shape.features / shape.heads) {}

  std::int64_t size() const { return size_; }
  /// How many tokens this one sees, from the first.
  std::int64_t seen(std::int64_t token) const { return shape_.causal ? token + 1 : shape_.tokens; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size_)); }

  // The beginning of a token's vector, in qkv and in the context.
  std::int64_t q(std::int64_t token) const {
    return row(token) * 3 * shape_.features + head_ * size_;
  }
  std::int64_t k(std::int64_t token) const { return q(token) + shape_.features; }
  std::int64_t v(std::int64_t token) const { return k(token) + shape_.features; }
  std::int64_t context(std::int64_t token) const {
    return row(token) * shape_.features + head_ * size_;
  }
  std::int64_t logsumexp(std::int64_t token) const {
    return (sample_ * shape_.heads + head_) * shape_.tokens + token;
  }

  /// The score of each token that this one sees.
  Values scores(const Values& qkv, std::int64_t token) const {
    Values result(seen(token), 0.0);
    for (std::int64_t j = 0; j < count(result); ++j) {
      for (std::int64_t e = 0; e < size_; ++e) result[j] += qkv[q(token) + e] * qkv[k(j) + e];
      result[j] *= scale();
    }
    return result;
  }

 private:
  std::int64_t row(std::int64_t token) const { return sample_ * shape_.tokens + token; }

  const Attention& shape_;
  std::int64_t sample_;
  std::int64_t head_;
  std::int64_t size_;
};

}  // namespace

AttentionForward attention(const Values& qkv, const Attention& shape) {
  check_size(qkv, shape.samples * shape.tokens * 3 * shape.features);
  AttentionForward result{Values(shape.samples * shape.tokens * shape.features, 0.0),
                          Values(shape.samples * shape.heads * shape.tokens)};
  for (std::int64_t s = 0; s < shape.samples; ++s) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const OneHead head(shape, s, h);
      for (std::int64_t i = 0; i < shape.tokens; ++i) {
        const Values scores = head.scores(qkv, i);
        const double logsumexp = log_sum_exp(scores);
        result.logsumexp[head.logsumexp(i)] = logsumexp;
        for (std::int64_t j = 0; j < head.seen(i); ++j) {
          const double p = std::exp(scores[j] - logsumexp);
          for (std::int64_t e = 0; e < head.size(); ++e)
            result.context[head.context(i) + e] += p * qkv[head.v(j) + e];
        }
      }
    }
  }
  return result;
}

Values attention_gradient(const Values& context_gradient, const Values& qkv,
                          const Values& logsumexp, const Attention& shape) {
  check_size(qkv, 3 * count(context_gradient));
  Values gradient(qkv.size(), 0.0);
  for (std::int64_t s = 0; s < shape.samples; ++s) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const OneHead head(shape, s, h);
      for (std::int64_t i = 0; i < shape.tokens; ++i) {
        Values p = head.scores(qkv, i);
        for (double& score : p) score = std::exp(score - logsumexp[head.logsumexp(i)]);
        // The gradient of each probability, then of the scores through the softmax.
        Values p_gradient(p.size(), 0.0);
        double mean = 0;
        for (std::int64_t j = 0; j < count(p); ++j) {
          for (std::int64_t e = 0; e < head.size(); ++e)
            p_gradient[j] += context_gradient[head.context(i) + e] * qkv[head.v(j) + e];
          mean += p[j] * p_gradient[j];
        }
        for (std::int64_t j = 0; j < count(p); ++j) {
          const double score_gradient = p[j] * (p_gradient[j] - mean) * head.scale();
          for (std::int64_t e = 0; e < head.size(); ++e) {
            gradient[head.q(i) + e] += score_gradient * qkv[head.k(j) + e];
            gradient[head.k(j) + e] += score_gradient * qkv[head.q(i) + e];
            gradient[head.v(j) + e] += p[j] * context_gradient[head.context(i) + e];
          }
        }
      }
    }
  }
  return gradient;
}

// Long short-term memory.

LstmForward lstm(const Values& projected, const Values& hidden_weight, std::int64_t tokens,
                 std::int64_t hidden) {
  const std::int64_t samples = parts(projected, tokens * 4 * hidden);
  check_size(hidden_weight, 4 * hidden * hidden);
  const std::int64_t elements = samples * tokens * hidden;
  LstmForward result{projected, Values(elements), Values(elements)};
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t row = s * tokens + t;
      double* gates = &result.gates[row * 4 * hidden];
      if (t > 0) {
        for (std::int64_t g = 0; g < 4 * hidden; ++g) {
          for (std::int64_t j = 0; j < hidden; ++j)
            gates[g] += hidden_weight[g * hidden + j] * result.hidden[(row - 1) * hidden + j];
        }
      }
      for (std::int64_t g = 0; g < 4 * hidden; ++g) {
        const bool cell = g / hidden == 2;
        gates[g] = cell ? std::tanh(gates[g]) : sigmoid(gates[g]);
      }
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double before = t > 0 ? result.cells[(row - 1) * hidden + j] : 0;
        const double c = gates[hidden + j] * before + gates[j] * gates[2 * hidden + j];
        result.cells[row * hidden + j] = c;
        result.hidden[row * hidden + j] = gates[3 * hidden + j] * std::tanh(c);
      }
    }
  }
  return result;
}

Values lstm_gradient(const Values& hidden_gradient, const Values& gates, const Values& cells,
                     const Values& hidden_weight, std::int64_t tokens, std::int64_t hidden) {
  const std::int64_t samples = parts(hidden_gradient, tokens * hidden);
  check_size(cells, count(hidden_gradient));
  check_size(gates, 4 * count(hidden_gradient));
  check_size(hidden_weight, 4 * hidden * hidden);
  Values gradient(gates.size());
  for (std::int64_t s = 0; s < samples; ++s) {
    // What the step after gives back.
    Values h_from_after(hidden, 0.0);
    Values c_from_after(hidden, 0.0);
    for (std::int64_t t = tokens - 1; t >= 0; --t) {
      const std::int64_t row = s * tokens + t;
      double* here = &gradient[row * 4 * hidden];
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double* gate = &gates[row * 4 * hidden + j];
        const double input = gate[0];
        const double forget = gate[hidden];
        const double cell = gate[2 * hidden];
        const double output = gate[3 * hidden];
        const double tanh_c = std::tanh(cells[row * hidden + j]);
        const double c_before = t > 0 ? cells[(row - 1) * hidden + j] : 0;
        const double h_gradient = hidden_gradient[row * hidden + j] + h_from_after[j];
        const double c_gradient = c_from_after[j] + h_gradient * output * (1 - tanh_c * tanh_c);
        here[j] = c_gradient * cell * input * (1 - input);
        here[hidden + j] = c_gradient * c_before * forget * (1 - forget);
        here[2 * hidden + j] = c_gradient * input * (1 - cell * cell);
        here[3 * hidden + j] = h_gradient * tanh_c * output * (1 - output);
        c_from_after[j] = c_gradient * forget;
      }
      for (std::int64_t j = 0; j < hidden; ++j) {
        h_from_after[j] = 0;
        for (std::int64_t g = 0; g < 4 * hidden; ++g)
          h_from_after[j] += here[g] * hidden_weight[g * hidden + j];
      }
    }
  }
  return gradient;
}

Values lstm_previous(const Values& h, std::int64_t tokens, std::int64_t hidden) {
  const std::int64_t samples = parts(h, tokens * hidden);
  Values previous(h.size(), 0.0);
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t i = s * tokens * hidden; i < ((s + 1) * tokens - 1) * hidden; ++i)
      previous[i + hidden] = h[i];
  }
  return previous;
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
