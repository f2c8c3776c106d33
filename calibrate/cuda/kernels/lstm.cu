// The cells of an LSTM between its products.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
/// tanh by exp, which is the same on every device: 1 - 2 / (1 + exp(2 x)).
__device__ inline float tanh_of(float x) { return 1.0F - 2.0F / (1.0F + expf(2.0F * x)); }

/// Step `token` of [samples, tokens, ..]: gates [.., 4 hidden] in the order input, forget, cell,
/// output become their sigmoids and tanh; c = forget x c' + input x cell, h = output x tanh(c).
template <class T>
__device__ void lstm_cell(T* gates, T* cells, T* h, long long samples, long long tokens,
                          long long hidden, long long token) {
  for (long long e = grid_first(); e < samples * hidden; e += grid_step()) {
    const long long row = e / hidden * tokens + token;
    const long long j = e % hidden;
    T* const gate = gates + row * 4 * hidden + j;
    const float input = sigmoid(to_float(gate[0]));
    const float forget = sigmoid(to_float(gate[hidden]));
    const float cell = tanh_of(to_float(gate[2 * hidden]));
    const float output = sigmoid(to_float(gate[3 * hidden]));
    const float before = token == 0 ? 0.0F : to_float(cells[(row - 1) * hidden + j]);
    const float c = forget * before + input * cell;
    store(gate[0], input);
    store(gate[hidden], forget);
    store(gate[2 * hidden], cell);
    store(gate[3 * hidden], output);
    store(cells[row * hidden + j], c);
    store(h[row * hidden + j], output * tanh_of(c));
  }
}

/// The gradient of a step's gates before their sigmoid or tanh, from that of its h and the next
/// step's parts: `from_after` [samples, hidden] for h, and `cell_gradient`, fp32 of the same shape,
/// for c. The latter becomes that of the step before. Neither is read at the last step.
template <class T>
__device__ void lstm_cell_gradient(T* gates_gradient, float* cell_gradient, const T* h_gradient,
                                   const T* from_after, const T* gates, const T* cells,
                                   long long samples, long long tokens, long long hidden,
                                   long long token) {
  const bool last = token + 1 == tokens;
  for (long long e = grid_first(); e < samples * hidden; e += grid_step()) {
    const long long row = e / hidden * tokens + token;
    const long long j = e % hidden;
    const T* const gate = gates + row * 4 * hidden + j;
    const float input = to_float(gate[0]);
    const float forget = to_float(gate[hidden]);
    const float cell = to_float(gate[2 * hidden]);
    const float output = to_float(gate[3 * hidden]);
    const float before = token == 0 ? 0.0F : to_float(cells[(row - 1) * hidden + j]);
    const float squashed = tanh_of(to_float(cells[row * hidden + j]));
    const float of_h =
        to_float(h_gradient[row * hidden + j]) + (last ? 0.0F : to_float(from_after[e]));
    const float of_c =
        (last ? 0.0F : cell_gradient[e]) + of_h * output * (1.0F - squashed * squashed);
    T* const to = gates_gradient + row * 4 * hidden + j;
    store(to[0], of_c * cell * input * (1.0F - input));
    store(to[hidden], of_c * before * forget * (1.0F - forget));
    store(to[2 * hidden], of_c * input * (1.0F - cell * cell));
    store(to[3 * hidden], of_h * squashed * output * (1.0F - output));
    cell_gradient[e] = of_c * forget;
  }
}

/// The h from which each step starts; zero at the first.
template <class T>
__device__ void lstm_previous(T* previous, const T* h, long long samples, long long tokens,
                              long long hidden) {
  for (long long i = grid_first(); i < samples * tokens * hidden; i += grid_step()) {
    if (i / hidden % tokens == 0) {
      store(previous[i], 0.0F);
    } else {
      previous[i] = h[i - hidden];
    }
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(lstm_cell,
                 (Element * gates, Element* cells, Element* h, long long samples, long long tokens,
                  long long hidden, long long token),
                 (gates, cells, h, samples, tokens, hidden, token))
PLUMBLINE_KERNEL(lstm_cell_gradient,
                 (Element * gates_gradient, float* cell_gradient, const Element* h_gradient,
                  const Element* from_after, const Element* gates, const Element* cells,
                  long long samples, long long tokens, long long hidden, long long token),
                 (gates_gradient, cell_gradient, h_gradient, from_after, gates, cells, samples,
                  tokens, hidden, token))
PLUMBLINE_KERNEL(lstm_previous,
                 (Element * previous, const Element* h, long long samples, long long tokens,
                  long long hidden),
                 (previous, h, samples, tokens, hidden))
