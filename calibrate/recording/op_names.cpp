// Names are read from left to right: own templates first, then what frameworks write.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/op_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace plumbline {
namespace {

/// Takes the digits in front of `text`; nothing where there are none, or more than 32 bits.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_text(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}

constexpr std::array<std::pair<std::string_view, RangeTitle>, 9> kActions = {{
    {"SEND_F", {RangeUse::send, {OpKind::forward, {}, {}}, {}, 0}},
    {"RECV_F", {RangeUse::receive, {OpKind::forward, {}, {}}, {}, 0}},
    {"SEND_B", {RangeUse::send, {OpKind::backward, {}, {}}, {}, 0}},
    {"RECV_B", {RangeUse::receive, {OpKind::backward, {}, {}}, {}, 0}},
    {"REDUCE_GRAD", {RangeUse::reduction, {}, {}, 0}},
    {"F", {RangeUse::op, {OpKind::forward, {}, {}}, {}, 0}},
    {"B", {RangeUse::op, {OpKind::backward, {}, {}}, {}, 0}},
    {"I", {RangeUse::op, {OpKind::backward_input, {}, {}}, {}, 0}},
    {"W", {RangeUse::op, {OpKind::backward_weight, {}, {}}, {}, 0}},
}};

/// `0F3`, `2SEND_F1`, `0REDUCE_GRAD`.
std::optional<RangeTitle> take_action(std::string_view& text) {
  const auto stage = take_number(text);
  if (!stage) return std::nullopt;
  for (const auto& [word, title] : kActions) {
    if (!take_text(text, word)) continue;
    RangeTitle found = title;
    found.op.stage = stage;
    found.op.micro_batch = take_number(text);
    if (!found.op.micro_batch && found.use != RangeUse::reduction) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

/// What stands behind `PP:`.
std::optional<RangeTitle> pytorch_action(std::string_view text) {
  if (!take_text(text, "(")) {
    const auto action = take_action(text);
    return text.empty() ? action : std::nullopt;
  }
  auto first = take_action(text);
  if (!first || first->use != RangeUse::op || !take_text(text, ";")) return std::nullopt;
  const auto second = take_action(text);
  if (!second || second->use != RangeUse::op || text != ")OVERLAP_F_B") return std::nullopt;
  first->use = RangeUse::pair;
  first->partner = second->op;
  return first;
}

std::optional<RangeTitle> numbered(std::string_view text, OpKind kind) {
  RangeTitle title{RangeUse::op, {kind, std::nullopt, take_number(text)}, {}, 0};
  if (!title.op.micro_batch || !text.empty()) return std::nullopt;
  return title;
}

/// Functions of frameworks, by the file and the name that Python's stack has: `FILE(LINE): NAME`.
struct Function {
  std::string_view file, name;
  RangeUse use;
  OpKind kind;
};
constexpr std::array<Function, 5> kFunctions = {{
    {"pipeline_parallel/schedules.py(", ": forward_step", RangeUse::op, OpKind::forward},
    {"pipeline_parallel/schedules.py(", ": backward_step", RangeUse::op, OpKind::backward},
    {"runtime/pipe/engine.py(", ": _exec_forward_pass", RangeUse::op, OpKind::forward},
    {"runtime/pipe/engine.py(", ": _exec_backward_pass", RangeUse::op, OpKind::backward},
    {"runtime/pipe/engine.py(", ": _exec_optimizer_step", RangeUse::update, OpKind::forward},
}};

std::optional<RangeTitle> function(std::string_view name) {
  for (const Function& one : kFunctions) {
    if (name.ends_with(one.name) && name.find(one.file) != std::string_view::npos)
      return RangeTitle{one.use, {one.kind, {}, {}}, {}, 0};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> OpNames::add(OpKind kind, const std::string& text) {
  return add(RangeUse::op, kind, text);
}

std::optional<Diagnostic> OpNames::add_update(const std::string& text) {
  return add(RangeUse::update, OpKind::forward, text);
}

std::optional<Diagnostic> OpNames::add(RangeUse use, OpKind kind, const std::string& text) {
  const auto wrong = [&](std::string message) {
    return input_error(
        {}, std::move(message),
        "{stage} and {micro_batch} stand for numbers, such as 'stage{stage} F{micro_batch}'");
  };
  if (text.empty()) return wrong("a template for the names of ranges is empty");
  Template added{text, use, kind, {}};
  bool has_stage = false, has_micro_batch = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = rest.find('{');
    Piece piece{std::string(rest.substr(0, open)), Piece::Number::none};
    rest.remove_prefix(std::min(open, rest.size()));
    if (!rest.empty()) {
      bool* const had = take_text(rest, "{stage}")         ? &has_stage
                        : take_text(rest, "{micro_batch}") ? &has_micro_batch
                                                           : nullptr;
      if (!had) return wrong(fmt::format("'{}' has a brace that is no placeholder", clipped(text)));
      if (std::exchange(*had, true))
        return wrong(fmt::format("'{}' has a placeholder twice", clipped(text)));
      piece.number = had == &has_stage ? Piece::Number::stage : Piece::Number::micro_batch;
    }
    added.pieces.push_back(std::move(piece));
  }
  templates_.push_back(std::move(added));
  return std::nullopt;
}

std::optional<RangeTitle> OpNames::match(const Template& one, std::string_view name) {
  RangeTitle title{one.use, {one.kind, {}, {}}, {}, 0};
  for (const Piece& piece : one.pieces) {
    if (!take_text(name, piece.text)) return std::nullopt;
    if (piece.number == Piece::Number::none) continue;
    const auto number = take_number(name);
    if (!number) return std::nullopt;
    (piece.number == Piece::Number::stage ? title.op.stage : title.op.micro_batch) = number;
  }
  if (!name.empty()) return std::nullopt;
  return title;
}

std::vector<std::string> OpNames::texts() const {
  std::vector<std::string> texts;
  for (const Template& one : templates_) texts.push_back(one.text);
  return texts;
}

std::optional<RangeTitle> OpNames::meaning(std::string_view name) const {
  for (std::size_t i = 0; i < templates_.size(); ++i) {
    auto title = match(templates_[i], name);
    if (!title) continue;
    title->own = static_cast<int>(i);
    return title;
  }
  if (take_text(name, "PP:")) return pytorch_action(name);
  if (take_text(name, "Forward ")) return numbered(name, OpKind::forward);
  if (take_text(name, "Backward ")) return numbered(name, OpKind::backward);
  if (take_text(name, "ProfilerStep#")) {
    const auto number = take_number(name);  // nothing beyond 32 bits: then steps are counted
    return RangeTitle{RangeUse::iteration, {}, {}, number ? std::int64_t{*number} : -1};
  }
  if (name.starts_with("Optimizer.step#")) return RangeTitle{RangeUse::update, {}, {}, 0};
  return function(name);
}

}  // namespace plumbline
