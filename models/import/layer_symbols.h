// The symbols of the formulas: the sizes of a transformer's layers on one device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/saturating_count.h"
#include "models/import/transformer_options.h"

namespace plumbline {

/// The sizes on one device, as the formulas name them.
struct Symbols {
  SaturatingCount e;  // bytes of a number
  SaturatingCount l;  // that a linear layer multiplies
  SaturatingCount T;  // tokens of a micro-batch
  SaturatingCount R;  // those between products
  SaturatingCount M;  // those that it sends to experts
  SaturatingCount s;  // tokens of a sample
  SaturatingCount h;  // hidden
  SaturatingCount a;  // heads
  SaturatingCount g;  // key-value heads
  SaturatingCount d;  // of a head
  SaturatingCount f;  // inner width of a dense MLP
  SaturatingCount x;  // inner width of an expert
  SaturatingCount E;  // experts
  SaturatingCount k;  // experts of a token
  SaturatingCount L;  // of them on each device
  SaturatingCount y;  // inner width of the shared experts
  SaturatingCount q;  // rank of compressed queries
  SaturatingCount c;  // of compressed keys and values
  SaturatingCount n;  // of a head of queries and keys, not rotated
  SaturatingCount r;  // rotated
  SaturatingCount v;  // of a head of values
  SaturatingCount w;  // the same of plain attention, where it differs from d
  SaturatingCount Z;  // twice the pairs of a token and a key that it reaches; T s where it is all
  SaturatingCount i;  // numbers of a token as experts take it
  SaturatingCount V;  // vocabulary
  SaturatingCount P;  // learned positions
  SaturatingCount u;  // columns of the projection in front of a further block
  SaturatingCount m;  // modules that predict further tokens
};

Symbols symbols_of(const TransformerShape& shape, const TransformerOptions& options);

/// The meanings of the symbols in the formulas, with their values: one line each. Of blocks that
/// differ, these are the model's own; each kind has others (kind_symbol_lines).
std::vector<std::string> symbol_lines(const TransformerShape& shape,
                                      const TransformerOptions& options);

/// The lines for a kind of block that differ from those of `shape`. Requires: `one` is of_kind() of
/// it.
std::vector<std::string> kind_symbol_lines(const TransformerShape& shape,
                                           const TransformerShape& one,
                                           const TransformerOptions& options);

}  // namespace plumbline
