// The shape of a text transformer: the numbers that determine its layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/import/expert_routing.h"

namespace plumbline {

/// Multi-head latent attention: tokens are compressed, and queries, keys and values are made from
/// the compressed tokens (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1). All sizes but the ranks
/// are those of one head.
struct LatentAttention {
  std::int64_t query_rank = 0;      ///< 0 = queries are made from the tokens themselves.
  std::int64_t key_value_rank = 1;  ///< Rank of keys and values together.
  std::int64_t plain = 1;           ///< Part of queries and keys without rotation.
  std::int64_t rotated = 1;         ///< Rotated part; all heads share that of the keys.
  std::int64_t value = 1;           ///< Size of values.
};

/// How a block's attention and MLP stand to each other.
enum class BlockOrder : std::uint8_t {
  sequential,    ///< The MLP takes what attention has added to.
  side_by_side,  ///< Both take the block's input, each behind a norm of its own, and are added up.
  shared_norm,   ///< The same, both behind one norm.
};

/// The shares of numbers that training drops, each in [0, 1]; absent = not given.
struct DropoutRates {
  std::optional<double> attention{};  ///< Dropout of attention's probabilities.
  std::optional<double> residual{};   ///< Dropout of attention and MLP outputs before the residual.
  std::optional<double> embedding{};  ///< Dropout of the embedding's output.

  friend bool operator==(const DropoutRates&, const DropoutRates&) = default;
};

/// Facts in a config.json beside the shape that may change costs.
struct ConfigFacts {
  DropoutRates dropout;
  std::vector<std::string> absent_dropout;  ///< Dropout keys of the family that the file lacks.
  double usual_dropout = 0;         ///< The default of the family's configuration class for them.
  std::string dtype_key;            ///< "torch_dtype" or "dtype"; "" = neither.
  std::string dtype;                ///< As the file has it: "float32".
  bool quantized = false;           ///< quantization_config is there.
  std::vector<std::string> unread;  ///< Keys that nothing reads and that may change costs.
};

/// A decoder-only transformer. Invariants: all sizes >= 1; heads are a multiple of key_value_heads;
/// experts are 0 or >= experts_per_token >= 1, and with their groups they keep the invariants of
/// ExpertRouting; sparse is empty or has one entry per block. It knows no sequence length, no
/// number format and no cost.
struct TransformerShape {
  std::string family;  ///< "llama", "gpt2", ...
  std::int64_t blocks = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;  ///< Fewer than heads: grouped-query attention.
  std::int64_t head_dim = 1;
  std::optional<LatentAttention> latent;  ///< In the place of key_value_heads and head_dim.
  std::int64_t feed_forward = 1;          ///< Inner width of a dense MLP.
  std::int64_t vocabulary = 1;
  std::int64_t positions = 0;         ///< The longest sequence that it was made for; 0 = unknown.
  bool learned_positions = false;     ///< In a table of parameters; else by rotation.
  bool positions_in_scores = false;   ///< Neither: scores get a bias by distance (ALiBi).
  bool gated = true;                  ///< Three matrices in an MLP; else two.
  bool layer_norm = false;            ///< Norms have a bias too; else root-mean-square norms.
  bool query_key_norm = false;        ///< Queries and keys are normalised, head by head.
  bool attention_input_bias = false;  ///< Biases of queries, keys and values.
  bool attention_output_bias = false;
  bool feed_forward_bias = false;
  bool head_bias = false;
  BlockOrder order = BlockOrder::sequential;
  bool tied = false;  ///< The head multiplies with the embedding's table.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_groups = 1;  ///< Groups of neighbours; a token uses groups_per_token.
  std::int64_t groups_per_token = 1;
  std::int64_t expert_feed_forward = 0;
  std::int64_t shared_feed_forward = 0;  ///< Width of the experts for all tokens; 0 = none.
  std::vector<bool>
      sparse;  ///< Whether each block has experts, not a dense MLP; empty = all or none.
  std::int64_t further_predictions = 0;  ///< Modules that predict more tokens than the next one.
  std::optional<std::int64_t> window;    ///< Attention looks back this far, in some or all blocks.
  ConfigFacts facts;                     ///< Facts of the file that the shape was read from.

  /// Whether a block's attention and MLP both take the block's input.
  bool is_parallel() const { return order != BlockOrder::sequential; }
  /// The routing to the experts of a block.
  ExpertRouting routing() const {
    return {experts, experts_per_token, expert_groups, groups_per_token};
  }
  /// Whether some block has experts.
  bool has_experts() const {
    if (sparse.empty()) return experts > 0;
    return std::find(sparse.begin(), sparse.end(), true) != sparse.end();
  }
  bool has_dense_blocks() const {
    return sparse.empty() ? experts == 0
                          : std::find(sparse.begin(), sparse.end(), false) != sparse.end();
  }
  /// Whether block `i` has experts.
  bool has_experts(std::int64_t i) const {
    return experts > 0 && (sparse.empty() || sparse[static_cast<std::size_t>(i)]);
  }
};

}  // namespace plumbline
