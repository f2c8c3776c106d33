// The ops of layers in files: one table of their kinds and keys, which the reader, the writer and
// the JSON Schema use.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/file_format.h"
#include "models/ops/layer_op.h"

namespace plumbline {

/// A key of an op, and the member with its value. A flag is 0 or 1, below 0 where it may be absent
/// and is; a word is its place among the words of op_format(). Requires of get and set: the shape
/// is of the kind that has the key.
struct OpKey {
  std::string_view name;
  bool required = true;  ///< Else the member's default is the value of an absent key.
  std::int64_t (*get)(const LayerOp::Shape& shape) = nullptr;
  void (*set)(LayerOp::Shape& shape, std::int64_t value) = nullptr;
};

/// A kind of op.
struct LayerOpKind {
  std::string_view name;  ///< The word under `op`.
  std::string_view text;
  LayerOp::Shape shape;  ///< With the defaults of its members.
  std::vector<OpKey> keys;

  /// The defaults where the layers' numbers are of this format: so are those of products.
  LayerOp::Shape defaults(NumberFormat dtype) const;
};

/// The kinds, in the order of LayerOp::Shape.
const std::vector<LayerOpKind>& op_kinds();

/// The kind of an op.
inline const LayerOpKind& op_kind_of(const LayerOp::Shape& shape) {
  return op_kinds()[shape.index()];
}

/// An op in a list; its keys are those of its kind.
const SectionFormat& op_format();

/// The type of the values of a key of op_format(): a count, bytes, a flag or one of some words.
const ValueFormat& op_value_format(std::string_view key);

/// `ops`: lists of ops by name.
const SectionFormat& ops_format();
KeyFormat ops_key();

}  // namespace plumbline
