// A transformer as a network that is really executed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/transformer_shape.h"
#include "models/network/network.h"

namespace plumbline {

/// One part of a whole: 1 / `parts`.
struct Fraction {
  std::int64_t parts = 1;
};

/// "1/8" or "1". Nothing for any other text.
std::optional<Fraction> read_fraction(const std::string& text);

/// The function of a model's MLPs, by the name that its file gives; without one silu where they are
/// gated, else gelu. Nothing where no kind of layer computes it.
std::optional<Activation> activation_of(const TransformerShape& shape);

struct NetworkOptions {
  std::int64_t sequence = 1;  ///< Tokens of a sample.
  ElementType dtype = ElementType::bf16;
  std::int64_t layers = 0;  ///< Blocks from the first on; 0 = all.
  /// Widths are this part: hidden, inner widths, vocabulary, numbers of heads. Heads keep their
  /// size.
  Fraction scale{};
  /// The part of one rank of a tensor-parallel group: heads, inner widths and the vocabulary are
  /// divided, hidden numbers are not. It computes what a rank computes; what ranks send is not in
  /// it.
  std::int64_t tensor_parallel = 1;
};

struct TransformerNetwork {
  std::string yaml;  ///< The network file.
  Network network;
  std::vector<std::string> notes;  ///< What differs from the model, and does not stop it.
};

/// The network of the same layers: an embedding, blocks of attention and MLP, a head with the loss.
/// `name` is the network's. Errors, all at once: parts of the model for which there is no kind of
/// layer (experts, latent attention, mixers other than attention, blocks side by side, norms behind
/// a mixer, ...), and sizes that the options do not divide.
Result<TransformerNetwork> transformer_network(const std::string& name,
                                               const TransformerShape& shape,
                                               const NetworkOptions& options);

}  // namespace plumbline
