// What the named ranges of training frameworks say: which op, which transfer, which step.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/order/op.h"

namespace plumbline {

/// An op as a name tells of it. Frameworks may leave out the stage, or number no micro-batch.
struct NamedOp {
  OpKind kind = OpKind::forward;
  std::optional<std::uint32_t> stage, micro_batch;
};

/// What a range is around.
enum class RangeUse : std::uint8_t {
  op,
  pair,       ///< Two ops at once.
  send,       ///< Of what `op` (an F or a B) has made.
  receive,    ///< Of what `op` needs.
  reduction,  ///< Of a stage's gradients.
  update,     ///< The optimizer's step.
  iteration,  ///< A whole step of training.
};

/// The meaning of a name.
struct RangeTitle {
  RangeUse use = RangeUse::op;
  NamedOp op;
  NamedOp partner;             ///< The second op of a pair.
  std::int64_t iteration = 0;  ///< The number of a step.
  int own = -1;                ///< The own template that it fits, by its place; -1 = none.

  /// Whether it is around ops.
  bool is_around_op() const { return use == RangeUse::op || use == RangeUse::pair; }
};

/// The names of ranges. Known are:
///  - PyTorch's torch.distributed.pipelining: `PP:0F3`, also B, I, W, SEND_F, RECV_F, SEND_B,
///    RECV_B, REDUCE_GRAD, `PP:(0F3;1B2)OVERLAP_F_B`; `Forward 3`, `Backward 3` (no stage);
///  - functions of Megatron Core (`forward_step`, `backward_step`) and DeepSpeed
///    (`_exec_forward_pass`, `_exec_backward_pass`) where Python's stack was recorded;
///  - `ProfilerStep#7`, `Optimizer.step#Adam.step` of torch.profiler.
/// Own templates come first. In them, `{stage}` and `{micro_batch}` stand for numbers.
class OpNames {
 public:
  /// Adds a template for ops of a kind. Errors: an empty text; a placeholder twice, or of another
  /// name.
  std::optional<Diagnostic> add(OpKind kind, const std::string& text);
  /// The same for the optimizer's step; placeholders count for nothing there.
  std::optional<Diagnostic> add_update(const std::string& text);

  /// The own templates, in the order in which they were added.
  std::vector<std::string> texts() const;

  /// What a name means; nothing where it is no known one.
  std::optional<RangeTitle> meaning(std::string_view name) const;

 private:
  /// A piece of a template: its own text, then a number.
  struct Piece {
    std::string text;
    enum class Number : std::uint8_t { none, stage, micro_batch } number = Number::none;
  };
  struct Template {
    std::string text;
    RangeUse use = RangeUse::op;
    OpKind kind = OpKind::forward;
    std::vector<Piece> pieces;
  };
  static std::optional<RangeTitle> match(const Template& one, std::string_view name);
  std::optional<Diagnostic> add(RangeUse use, OpKind kind, const std::string& text);

  std::vector<Template> templates_;
};

}  // namespace plumbline
