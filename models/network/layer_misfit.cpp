// The shapes that each kind of layer takes, and the advice for other shapes.
//
// SPDX-License-Identifier: MIT
#include "models/network/layer_misfit.h"

#include <fmt/format.h>

namespace plumbline {
namespace {

const char* const kSequence = "[tokens, features]";
const char* const kRows = "[features] or [tokens, features]";
const char* const kImage = "[channels, height, width]";

Misfit wants_sequence(const Shape& shape) {
  if (shape.extents.size() == 3) {
    return {kSequence, "pictures go through conv2d or residual_block, then flatten and linear"};
  }
  return {kSequence, "sequences come from an embedding or input: {shape: [tokens, features]}"};
}

Misfit wants_image() {
  return {kImage, "pictures come from input: {shape: [channels, height, width]}"};
}

/// Whether a window with these settings fits into a picture.
std::optional<Misfit> window_misfit(const Shape& shape, const Conv2d& window) {
  if (shape.extents.size() != 3) return wants_image();
  for (std::size_t i = 1; i < 3; ++i) {
    if (shape.extents[i] + 2 * window.padding >= window.kernel) continue;
    return Misfit{
        fmt::format(
            "{0} of at least {1} x {1}{2}", kImage, window.kernel,
            window.padding == 0 ? "" : fmt::format(" with its padding of {}", window.padding)),
        "make the kernel smaller or the padding larger, or take out a layer before that shrinks "
        "the picture"};
  }
  return std::nullopt;
}

/// The demands of each kind on a shape of numbers.
struct FindMisfit {
  const Shape& shape;

  std::optional<Misfit> operator()(const Linear&) const { return at_least_one(); }
  std::optional<Misfit> operator()(const Relu&) const { return std::nullopt; }
  std::optional<Misfit> operator()(const Gelu&) const { return std::nullopt; }
  std::optional<Misfit> operator()(const LayerNorm&) const { return at_least_one(); }
  std::optional<Misfit> operator()(const AttentionBlock& kind) const {
    if (shape.extents.size() != 2) return wants_sequence(shape);
    PLUMBLINE_CHECK(kind.heads >= 1, kind.heads);
    if (kind.head_size == 0 && shape.extents[1] % kind.heads != 0) {
      return Misfit{fmt::format("features that its {} heads divide", kind.heads),
                    "every head gets an equal part of the features; else say head_size"};
    }
    const AttentionWidths widths = attention_widths(kind, shape.extents[1]);
    if (kind.rotary == 0 || widths.head_size % 2 == 0) return std::nullopt;
    return Misfit{
        fmt::format("heads of an even size for its rotary positions, not of {}", widths.head_size),
        "numbers turn in pairs: change heads or head_size, or take rotary out"};
  }
  std::optional<Misfit> operator()(const RmsNorm&) const { return at_least_one(); }
  std::optional<Misfit> operator()(const MlpBlock&) const { return one_or_two(); }
  std::optional<Misfit> operator()(const Embedding&) const {
    return Misfit{"token ids", "an embedding stands first, after input: {tokens, vocabulary}"};
  }
  std::optional<Misfit> operator()(const Head&) const { return one_or_two(); }
  std::optional<Misfit> operator()(const Conv2d& kind) const { return window_misfit(shape, kind); }
  std::optional<Misfit> operator()(const MaxPool& kind) const {
    return window_misfit(shape, {0, kind.kernel, kind.stride, kind.padding, false});
  }
  std::optional<Misfit> operator()(const BatchNorm&) const {
    return shape.extents.size() == 3 ? std::nullopt : std::optional(wants_image());
  }
  std::optional<Misfit> operator()(const Flatten&) const { return at_least_one(); }
  std::optional<Misfit> operator()(const ResidualBlock&) const {
    return shape.extents.size() == 3 ? std::nullopt : std::optional(wants_image());
  }
  std::optional<Misfit> operator()(const Lstm& kind) const {
    if (shape.extents.size() != 2) return wants_sequence(shape);
    if (!kind.residual || shape.extents[1] == kind.hidden) return std::nullopt;
    return Misfit{fmt::format("[tokens, {}] for its residual", kind.hidden),
                  fmt::format("say hidden: {} or residual: false", shape.extents[1])};
  }

 private:
  std::optional<Misfit> at_least_one() const {
    if (!shape.extents.empty()) return std::nullopt;
    return Misfit{"[..., features]", ""};
  }
  std::optional<Misfit> one_or_two() const {
    if (shape.extents.size() == 1 || shape.extents.size() == 2) return std::nullopt;
    return Misfit{kRows, "put a flatten between"};
  }
};

}  // namespace

std::optional<Misfit> find_misfit(const LayerSettings& settings, const NetworkInput& input) {
  if (!input.vocabulary) return std::visit(FindMisfit{input.shape}, settings);
  if (std::holds_alternative<Embedding>(settings)) return std::nullopt;
  return Misfit{"numbers", "an embedding makes numbers of token ids: put one first"};
}

}  // namespace plumbline
