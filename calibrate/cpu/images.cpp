// Windows laid out as matrices, and searches for maxima.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/images.h"

#include <algorithm>

#include "calibrate/cpu/gemm.h"

namespace plumbline::cpu {
namespace {

/// The matrix of a convolution stays in the L2 cache: 384 KiB.
constexpr std::int64_t kElementsLaidOut = std::int64_t{96} << 10U;

/// A range of places of a window along one extent, where an element is inside the picture.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The places where `element` of the window is inside the picture. It is at place x stride +
/// element - padding.
Range places_inside(std::int64_t element, std::int64_t extent, std::int64_t places,
                    const Window& window) {
  const std::int64_t offset = window.padding - element;
  // The first place with place x stride >= offset, and the first with place x stride >= offset +
  // extent.
  const auto first_from = [&](std::int64_t min) {
    return min <= 0 ? 0 : std::min((min + window.stride - 1) / window.stride, places);
  };
  return {first_from(offset), first_from(offset + extent)};
}

}  // namespace

/// Some rows of places.
struct Convolution::Rows {
  std::int64_t first;
  std::int64_t end;
  std::int64_t columns;

  std::int64_t begin() const { return first * columns; }
  std::int64_t places() const { return (end - first) * columns; }
};

Convolution::Convolution(const Window& window, std::int64_t outputs)
    : window_(window),
      outputs_(outputs),
      depth_(window.channels * window.kernel * window.kernel),
      rows_(plain() ? window.rows()
                    : std::clamp(kElementsLaidOut / (depth_ * window.columns()), std::int64_t{1},
                                 window.rows())),
      laid_out_(plain() ? 0 : depth_ * rows_ * window.columns()) {}

Convolution::Rows Convolution::rows_at(std::int64_t first) const {
  return {first, std::min(first + rows_, window_.rows()), window_.columns()};
}

/// Calls visit(row, at, inside, across) for each row of the matrix: one element of the window at
/// all places. `at` is its position in the picture at the very first place. `inside` and `across`
/// are the rows and columns of places where it is inside the picture.
template <class Visit>
void Convolution::for_each_tap(const Rows& rows, const Visit& visit) {
  float* to = laid_out_.data();
  for (std::int64_t c = 0; c < window_.channels; ++c) {
    for (std::int64_t i = 0; i < window_.kernel; ++i) {
      // Rows of places where this row of the window is inside the picture.
      Range inside = places_inside(i, window_.height, window_.rows(), window_);
      inside.begin = std::clamp(inside.begin, rows.first, rows.end);
      inside.end = std::clamp(inside.end, inside.begin, rows.end);
      for (std::int64_t j = 0; j < window_.kernel; ++j) {
        visit(to, c * window_.area() + (i - window_.padding) * window_.width + j - window_.padding,
              inside, places_inside(j, window_.width, rows.columns, window_));
        to += rows.places();
      }
    }
  }
}

namespace {

/// Writes zeros to the columns outside of `inside`.
void clear_columns(float* values, std::int64_t rows, std::int64_t columns, const Range& inside) {
  if (inside.begin == 0 && inside.end == columns) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = values + r * columns;
    for (std::int64_t c = 0; c < inside.begin; ++c) row[c] = 0;
    for (std::int64_t c = inside.end; c < columns; ++c) row[c] = 0;
  }
}

// The elements of the picture are a stride apart.

void add_strided(float* __restrict to, const float* __restrict from, std::int64_t stride,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] += from[i];
}

void copy_strided(float* __restrict to, const float* __restrict from, std::int64_t stride,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

}  // namespace

// If places have the picture's width and a stride of 1, all rows of a tap are one piece of the
// picture. Only the columns in the padding differ.

void Convolution::lay_out(const float* image, const Rows& rows) {
  const std::int64_t width = window_.width;
  const std::int64_t columns = rows.columns;
  const bool shifted = window_.stride == 1 && columns == width;
  for_each_tap(rows, [&](float* to, std::int64_t from, const Range& inside, const Range& across) {
    std::fill(to, to + (inside.begin - rows.first) * columns, 0.0F);
    std::fill(to + (inside.end - rows.first) * columns, to + rows.places(), 0.0F);
    if (inside.begin == inside.end || across.begin >= across.end) {
      std::fill(to, to + rows.places(), 0.0F);
      return;
    }
    float* first = to + (inside.begin - rows.first) * columns;
    if (shifted) {
      const std::int64_t count =
          (inside.end - inside.begin - 1) * columns + across.end - across.begin;
      std::copy_n(image + (from + inside.begin * width + across.begin), count,
                  first + across.begin);
      clear_columns(first, inside.end - inside.begin, columns, across);
      return;
    }
    for (std::int64_t row = inside.begin; row < inside.end; ++row) {
      copy_strided(to + (row - rows.first) * columns + across.begin,
                   image + (from + (row * width + across.begin) * window_.stride), window_.stride,
                   across.end - across.begin);
    }
    clear_columns(first, inside.end - inside.begin, columns, across);
  });
}

void Convolution::add_back(float* image, const Rows& rows) {
  const std::int64_t width = window_.width;
  const std::int64_t columns = rows.columns;
  const bool shifted = window_.stride == 1 && columns == width;
  for_each_tap(rows, [&](float* taps, std::int64_t to, const Range& inside, const Range& across) {
    if (inside.begin == inside.end || across.begin >= across.end) return;
    if (shifted) {
      float* first = taps + (inside.begin - rows.first) * columns;
      clear_columns(first, inside.end - inside.begin, columns, across);
      add(image + (to + inside.begin * width + across.begin), first + across.begin,
          (inside.end - inside.begin - 1) * columns + across.end - across.begin);
      return;
    }
    for (std::int64_t row = inside.begin; row < inside.end; ++row) {
      add_strided(image + (to + (row * width + across.begin) * window_.stride),
                  taps + (row - rows.first) * columns + across.begin, window_.stride,
                  across.end - across.begin);
    }
  });
}

void Convolution::forward(float* y, const float* x, const float* weight, const float* bias) {
  const std::int64_t places = window_.places();
  if (bias != nullptr) fill_channels(y, bias, {window_.samples, outputs_, places});
  const float keep = bias != nullptr ? 1 : 0;
  for (std::int64_t s = 0; s < window_.samples; ++s) {
    const float* image = x + s * window_.channels * window_.area();
    for (std::int64_t first = 0; first < window_.rows(); first += rows_) {
      const Rows rows = rows_at(first);
      if (!plain()) lay_out(image, rows);
      multiply({outputs_, rows.places(), depth_}, {weight, depth_},
               {plain() ? image : laid_out_.data(), rows.places()},
               {y + s * outputs_ * places + rows.begin(), places, keep});
    }
  }
}

void Convolution::add_input_gradient(float* x_gradient, const float* y_gradient,
                                     const float* weight) {
  const std::int64_t places = window_.places();
  for (std::int64_t s = 0; s < window_.samples; ++s) {
    float* image = x_gradient + s * window_.channels * window_.area();
    for (std::int64_t first = 0; first < window_.rows(); first += rows_) {
      const Rows rows = rows_at(first);
      const Operand gradient{y_gradient + s * outputs_ * places + rows.begin(), places};
      const GemmSize size{depth_, rows.places(), outputs_};
      if (plain()) {
        multiply(size, {weight, depth_, true}, gradient, {image, rows.places(), 1});
      } else {
        multiply(size, {weight, depth_, true}, gradient, {laid_out_.data(), rows.places()});
        add_back(image, rows);
      }
    }
  }
}

void Convolution::weight_gradient(float* weight_gradient, float* bias_gradient,
                                  const float* y_gradient, const float* x) {
  const std::int64_t places = window_.places();
  for (std::int64_t s = 0; s < window_.samples; ++s) {
    const float* image = x + s * window_.channels * window_.area();
    for (std::int64_t first = 0; first < window_.rows(); first += rows_) {
      const Rows rows = rows_at(first);
      if (!plain()) lay_out(image, rows);
      multiply({outputs_, depth_, rows.places()},
               {y_gradient + s * outputs_ * places + rows.begin(), places},
               {plain() ? image : laid_out_.data(), rows.places(), true},
               {weight_gradient, depth_, 1});
    }
  }
  if (bias_gradient != nullptr)
    add_channel_sums(bias_gradient, y_gradient, {window_.samples, outputs_, places});
}

// Pools.

namespace {

/// Calls visit(place, largest) with each place of a channel and the position of its largest
/// element.
template <class Visit>
void for_each_maximum(const float* x, const Window& window, const Visit& visit) {
  const std::int64_t width = window.width;
  const std::int64_t columns = window.columns();
  for (std::int64_t row = 0; row < window.rows(); ++row) {
    const std::int64_t top = row * window.stride - window.padding;
    const Range down{std::max<std::int64_t>(top, 0), std::min(top + window.kernel, window.height)};
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t left = column * window.stride - window.padding;
      const Range across{std::max<std::int64_t>(left, 0), std::min(left + window.kernel, width)};
      std::int64_t best = down.begin * width + across.begin;
      for (std::int64_t i = down.begin; i < down.end; ++i) {
        for (std::int64_t j = across.begin; j < across.end; ++j)
          best = x[i * width + j] > x[best] ? i * width + j : best;
      }
      visit(row * columns + column, best);
    }
  }
}

// Windows of 2 x 2 without padding, the usual ones, in loops without branches, because the largest
// element cannot be predicted.

bool of_four(const Window& window) { return window.kernel == 2 && window.padding == 0; }

/// The maxima of one picture.
void max_of_four(float* __restrict y, const float* __restrict x, const Window& window) {
  const std::int64_t columns = window.columns();
  for (std::int64_t row = 0; row < window.rows(); ++row) {
    const float* __restrict upper = x + row * window.stride * window.width;
    const float* __restrict lower = upper + window.width;
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = column * window.stride;
      const float above = upper[at + 1] > upper[at] ? upper[at + 1] : upper[at];
      const float below = lower[at + 1] > lower[at] ? lower[at + 1] : lower[at];
      y[row * columns + column] = below > above ? below : above;
    }
  }
}

void max_of_four_gradient(float* __restrict x_gradient, const float* __restrict y_gradient,
                          const float* __restrict x, const Window& window) {
  const std::int64_t columns = window.columns();
  for (std::int64_t row = 0; row < window.rows(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      // Comparisons become numbers: a choice would become a branch.
      std::int64_t above = (row * window.width + column) * window.stride;
      std::int64_t below = above + window.width;
      above += static_cast<std::int64_t>(x[above + 1] > x[above]);
      below += static_cast<std::int64_t>(x[below + 1] > x[below]);
      const auto lower = static_cast<std::int64_t>(x[below] > x[above]);
      x_gradient[above + lower * (below - above)] += y_gradient[row * columns + column];
    }
  }
}

}  // namespace

void max_pool(float* y, const float* x, const Window& window) {
  for (std::int64_t p = 0; p < window.samples * window.channels; ++p) {
    const float* image = x + p * window.area();
    float* to = y + p * window.places();
    if (of_four(window)) {
      max_of_four(to, image, window);
      continue;
    }
    for_each_maximum(image, window,
                     [&](std::int64_t place, std::int64_t largest) { to[place] = image[largest]; });
  }
}

void max_pool_gradient(float* x_gradient, const float* y_gradient, const float* x,
                       const Window& window) {
  std::fill_n(x_gradient, window.samples * window.channels * window.area(), 0.0F);
  for (std::int64_t p = 0; p < window.samples * window.channels; ++p) {
    const float* image = x + p * window.area();
    const float* from = y_gradient + p * window.places();
    float* to = x_gradient + p * window.area();
    if (of_four(window)) {
      max_of_four_gradient(to, from, image, window);
      continue;
    }
    for_each_maximum(image, window,
                     [&](std::int64_t place, std::int64_t largest) { to[largest] += from[place]; });
  }
}

}  // namespace plumbline::cpu
