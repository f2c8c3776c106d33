// Plain loops over images: convolutions and pooling.
//
// SPDX-License-Identifier: MIT
#include <vector>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_sizes.h"

namespace plumbline::reference {

namespace {

/// Calls visit(place, at, ..) for each place of the window in one channel and each element `at` of
/// that channel under it. Rows are in order. Elements in the padding are left out. The last
/// argument is the index of the element in the window.
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

/// The index of the largest element under each place of the window; the first one on ties.
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

}  // namespace plumbline::reference
