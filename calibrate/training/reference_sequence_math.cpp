// Plain loops over sequences: attention, long short-term memory.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_sizes.h"

namespace plumbline::reference {

namespace {

/// One head of queries of one sample, with its keys and values: the positions of its vectors.
class OneHead {
 public:
  OneHead(const Attention& shape, std::int64_t sample, std::int64_t head)
      : shape_(shape), widths_(shape.widths), sample_(sample), head_(head) {}

  std::int64_t size() const { return widths_.head_size; }
  /// The first token that this one sees, and the number of tokens from there on.
  std::int64_t first(std::int64_t token) const {
    return shape_.window > 0 ? std::max<std::int64_t>(token + 1 - shape_.window, 0) : 0;
  }
  std::int64_t seen(std::int64_t token) const {
    return (shape_.causal ? token + 1 : shape_.tokens) - first(token);
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size())); }

  // The beginning of a token's vector, in qkv and in the context.
  std::int64_t q(std::int64_t token) const { return row(token) * widths_.qkv() + head_ * size(); }
  std::int64_t k(std::int64_t token) const {
    return row(token) * widths_.qkv() + widths_.queries() + head_ / widths_.sharing() * size();
  }
  std::int64_t v(std::int64_t token) const { return k(token) + widths_.keys(); }
  std::int64_t context(std::int64_t token) const {
    return row(token) * widths_.queries() + head_ * size();
  }
  std::int64_t logsumexp(std::int64_t token) const {
    return (sample_ * widths_.heads + head_) * shape_.tokens + token;
  }

  /// The score of each token that this one sees.
  Values scores(const Values& qkv, std::int64_t token) const {
    Values result(seen(token), 0.0);
    for (std::int64_t j = 0; j < count(result); ++j) {
      for (std::int64_t e = 0; e < size(); ++e)
        result[j] += qkv[q(token) + e] * qkv[k(first(token) + j) + e];
      result[j] *= scale();
    }
    return result;
  }

 private:
  std::int64_t row(std::int64_t token) const { return sample_ * shape_.tokens + token; }

  const Attention& shape_;
  AttentionWidths widths_;
  std::int64_t sample_;
  std::int64_t head_;
};

}  // namespace

AttentionForward attention(const Values& qkv, const Attention& shape) {
  const AttentionWidths& widths = shape.widths;
  check_size(qkv, shape.samples * shape.tokens * widths.qkv());
  AttentionForward result{Values(shape.samples * shape.tokens * widths.queries(), 0.0),
                          Values(shape.samples * widths.heads * shape.tokens)};
  for (std::int64_t s = 0; s < shape.samples; ++s) {
    for (std::int64_t h = 0; h < widths.heads; ++h) {
      const OneHead head(shape, s, h);
      for (std::int64_t i = 0; i < shape.tokens; ++i) {
        const Values scores = head.scores(qkv, i);
        const double logsumexp = log_sum_exp(scores);
        result.logsumexp[head.logsumexp(i)] = logsumexp;
        for (std::int64_t j = 0; j < head.seen(i); ++j) {
          const double p = std::exp(scores[j] - logsumexp);
          for (std::int64_t e = 0; e < head.size(); ++e)
            result.context[head.context(i) + e] += p * qkv[head.v(head.first(i) + j) + e];
        }
      }
    }
  }
  return result;
}

Values attention_gradient(const Values& context_gradient, const Values& qkv,
                          const Values& logsumexp, const Attention& shape) {
  check_size(context_gradient, shape.samples * shape.tokens * shape.widths.queries());
  check_size(qkv, shape.samples * shape.tokens * shape.widths.qkv());
  Values gradient(qkv.size(), 0.0);
  for (std::int64_t s = 0; s < shape.samples; ++s) {
    for (std::int64_t h = 0; h < shape.widths.heads; ++h) {
      const OneHead head(shape, s, h);
      for (std::int64_t i = 0; i < shape.tokens; ++i) {
        Values p = head.scores(qkv, i);
        for (double& score : p) score = std::exp(score - logsumexp[head.logsumexp(i)]);
        // The gradient of each probability, then of the scores through the softmax.
        Values p_gradient(p.size(), 0.0);
        double mean = 0;
        for (std::int64_t j = 0; j < count(p); ++j) {
          const std::int64_t v = head.v(head.first(i) + j);
          for (std::int64_t e = 0; e < head.size(); ++e)
            p_gradient[j] += context_gradient[head.context(i) + e] * qkv[v + e];
          mean += p[j] * p_gradient[j];
        }
        for (std::int64_t j = 0; j < count(p); ++j) {
          const double score_gradient = p[j] * (p_gradient[j] - mean) * head.scale();
          const std::int64_t token = head.first(i) + j;
          for (std::int64_t e = 0; e < head.size(); ++e) {
            gradient[head.q(i) + e] += score_gradient * qkv[head.k(token) + e];
            gradient[head.k(token) + e] += score_gradient * qkv[head.q(i) + e];
            gradient[head.v(token) + e] += p[j] * context_gradient[head.context(i) + e];
          }
        }
      }
    }
  }
  return gradient;
}

void rotate(Values& heads, std::int64_t columns, std::int64_t size, std::int64_t tokens,
            double base, bool back) {
  const std::int64_t rows = parts(heads, columns);
  PLUMBLINE_CHECK(size % 2 == 0 && columns % size == 0 && rows % tokens == 0, size, columns, rows);
  const std::int64_t half = size / 2;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double turn = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(size));
      const double angle = static_cast<double>(r % tokens) * (back ? -turn : turn);
      for (std::int64_t h = 0; h < columns; h += size) {
        double& a = heads[r * columns + h + i];
        double& b = heads[r * columns + h + half + i];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }
}

Values taken_columns(const Values& matrix, std::int64_t columns, std::int64_t first,
                     std::int64_t taken) {
  const std::int64_t rows = parts(matrix, columns);
  Values result;
  result.reserve(rows * taken);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto begin = matrix.begin() + r * columns + first;
    result.insert(result.end(), begin, begin + taken);
  }
  return result;
}

void put_columns(Values& matrix, std::int64_t columns, std::int64_t first, const Values& put) {
  const std::int64_t rows = parts(matrix, columns);
  const std::int64_t width = count(put) / rows;
  check_size(put, rows * width);
  for (std::int64_t r = 0; r < rows; ++r)
    std::copy_n(put.begin() + r * width, width, matrix.begin() + r * columns + first);
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
    // The gradients that come from the next step.
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

}  // namespace plumbline::reference
