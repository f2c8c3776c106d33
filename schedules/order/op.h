// One piece of compute: forward, backward or its parts, for one stage and micro-batch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <string>

#include "base/units.h"

namespace plumbline {

enum class OpKind : std::uint8_t {
  forward,          ///< F
  backward,         ///< B: the full backward.
  backward_input,   ///< I: the gradient of the input.
  backward_weight,  ///< W: the gradient of the weights.
};

/// Prints as `2F0`: stage 2, forward, micro-batch 0.
struct Op {
  OpKind kind = OpKind::forward;
  StageId stage;
  MicroBatchId micro_batch;

  friend auto operator<=>(const Op&, const Op&) = default;
};

/// F, B, I or W.
constexpr char letter(OpKind kind) { return "FBIW"[static_cast<int>(kind)]; }

/// `2F0`.
inline std::string to_text(const Op& op) {
  return std::to_string(op.stage.value) + letter(op.kind) + std::to_string(op.micro_batch.value);
}

}  // namespace plumbline
