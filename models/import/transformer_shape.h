// The shape of a text transformer: the numbers that determine its layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  std::string activation;           ///< Of MLPs, as transformers names it; "" = not given.
  double rotary_base = 0;           ///< Of rotary positions; 0 = not given.
  bool partly_rotated = false;      ///< Rotary positions turn a part of each head.
  std::string dtype_key;            ///< "torch_dtype" or "dtype"; "" = neither.
  std::string dtype;                ///< As the file has it: "float32".
  bool quantized = false;           ///< quantization_config is there.
  std::vector<std::string> unread;  ///< Keys that nothing reads and that may change costs.
  std::vector<std::string> notes;   ///< Sentences on what the file has and costs leave out.
};

/// Small heads of an index, by whose scores each token chooses the keys that attention reaches
/// (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1). Keys are one head for all.
struct KeyIndex {
  std::int64_t heads = 1;
  std::int64_t size = 1;          ///< Numbers in a head.
  std::int64_t chosen = 1;        ///< The most keys that a token reaches.
  bool of_compressed = false;     ///< Its queries are made of latent attention's compressed ones.
  bool is_weighted = false;       ///< A matrix weighs the scores of its heads.
  std::int64_t norm_numbers = 0;  ///< Parameters of its norms.
  bool is_own = true;             ///< Else the layer takes what one before it has chosen.
};

/// How a scan makes its state (ScanOp).
enum class ScanKind : std::uint8_t {
  mamba2,       ///< Dao and Gu 2024, "Transformers are SSMs", section 7.
  gated_delta,  ///< Yang et al. 2024, "Gated Delta Networks", section 3.
  kimi_delta,   ///< Kimi Team 2025, "Kimi Linear", section 3: a decay for each number of a key.
};

/// A mixer whose heads pass a state from token to token, in the place of attention.
struct Scan {
  ScanKind kind = ScanKind::mamba2;
  std::int64_t heads = 1;        ///< Of values.
  std::int64_t key_heads = 1;    ///< Of keys and queries; Mamba-2 calls them groups.
  std::int64_t key_size = 1;     ///< Mamba-2: the size of its state.
  std::int64_t value_size = 1;   ///< Numbers in a head of values.
  std::int64_t convolution = 4;  ///< Rows of the convolution's kernel.
  std::int64_t chunk = 64;
  bool has_convolution_bias = false;
  bool has_bias = false;           ///< Biases of its projections.
  std::int64_t gate_rank = 0;      ///< Kimi: of the output's gate; 0 = full.
  std::int64_t decay_numbers = 0;  ///< Kimi: of A_log; 0 = one for each head.

  std::int64_t keys() const { return key_heads * key_size; }  ///< Numbers of a token.
  std::int64_t values() const { return heads * value_size; }
};

/// Attention over the tokens of a window and over keys that each stand for several tokens before it
/// (DeepSeek-AI 2026, "DeepSeek-V4", section 2.3). Keys are values, too, and one head for all.
struct CompressedAttention {
  std::int64_t query_rank = 1;
  std::int64_t output_groups = 1;  ///< Of heads, each projected to output_rank numbers.
  std::int64_t output_rank = 1;
  std::int64_t stride = 0;  ///< Tokens that a key stands for; 0 = the window alone.
  bool overlaps = false;    ///< Each key is made of twice as many.
};

/// Parameters of no product, few: norms, sinks, scales.
struct SmallTensor {
  std::string_view what;
  std::int64_t numbers = 0;
  bool is_divided = false;  ///< A tensor-parallel group divides it.
};

/// What a block mixes tokens by.
enum class Mixer : std::uint8_t { attention, scan, compressed, linear, none };

/// The numbers that determine one block: its mixer and its MLP.
struct BlockShape {
  Mixer mixer = Mixer::attention;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;  ///< Fewer than heads: grouped-query attention.
  std::int64_t head_dim = 1;
  std::int64_t value_dim = 0;                     ///< Of a head of values; 0 = head_dim.
  std::optional<LatentAttention> latent;          ///< In the place of key_value_heads and head_dim.
  std::optional<KeyIndex> index;                  ///< Chooses the keys that attention reaches.
  std::optional<Scan> scan;                       ///< Mixer::scan.
  std::optional<CompressedAttention> compressed;  ///< Mixer::compressed.
  std::optional<std::int64_t> window;             ///< Attention looks back this far, at most.
  bool by_chunk = false;              ///< It sees its own chunk of so many tokens instead.
  bool layer_norm = false;            ///< Norms have a bias too; else root-mean-square norms.
  bool query_key_norm = false;        ///< Queries and keys are normalised, head by head,
  bool whole_norms = false;           ///< or all heads together.
  bool attention_input_bias = false;  ///< Biases of queries, keys and values.
  bool attention_output_bias = false;
  bool values_are_keys = false;  ///< No matrix of values.
  std::int64_t output_gate = 0;  ///< Numbers of a token that gate attention's output; 0 = none.
  std::vector<SmallTensor> mixer_tensors;  ///< Sinks of the softmax, norms behind.
  std::int64_t mixer_norms = 0;            ///< Norms of hidden numbers behind the mixer.
  BlockOrder order = BlockOrder::sequential;

  bool has_mlp = true;            ///< Else the block is its mixer alone.
  std::int64_t feed_forward = 1;  ///< Inner width of a dense MLP.
  bool gated = true;              ///< Three matrices in an MLP; else two.
  bool feed_forward_bias = false;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_groups = 1;  ///< Groups of neighbours; a token uses groups_per_token.
  std::int64_t groups_per_token = 1;
  std::int64_t expert_feed_forward = 0;
  std::int64_t expert_hidden = 0;        ///< Numbers of a token as experts take it; 0 = hidden.
  bool expert_bias = false;              ///< Biases of the experts and of the router.
  std::int64_t shared_feed_forward = 0;  ///< Width of the experts for all tokens; 0 = none.
  std::int64_t shared_gate = 0;          ///< Numbers that gate what these make.
  std::vector<SmallTensor> mlp_tensors;
  std::int64_t mlp_norms = 0;  ///< Norms of hidden numbers behind the MLP, or within it.

  /// Whether a block's attention and MLP both take the block's input.
  bool is_parallel() const { return order != BlockOrder::sequential; }
  std::int64_t value_size() const { return value_dim > 0 ? value_dim : head_dim; }
  std::int64_t expert_width(std::int64_t hidden) const {
    return expert_hidden > 0 ? expert_hidden : hidden;
  }
  /// The most keys that a token of a sample reaches, where these are fewer than `sequence`.
  std::optional<std::int64_t> reach(std::int64_t sequence) const {
    const bool chooses = index && mixer == Mixer::attention;
    const std::optional<std::int64_t> most = chooses ? std::optional(index->chosen) : window;
    return most && *most < sequence ? most : std::nullopt;
  }
  /// The routing to the experts of a block.
  ExpertRouting routing() const {
    return {experts, experts_per_token, expert_groups, groups_per_token};
  }
};

/// A kind of block, as a model has several that differ.
struct BlockKind {
  std::string prefix;  ///< In front of the names of its layers: "sliding_".
  BlockShape block;
};

/// A decoder-only transformer. Its own block is that of all its blocks, or, where they differ, has
/// the facts of the mixer and the MLP that most of them have. Invariants: all sizes >= 1; heads are
/// a multiple of key_value_heads; experts are 0 or >= experts_per_token >= 1, and with their groups
/// they keep the invariants of ExpertRouting; sparse is empty or has one entry per block, and so
/// has kind_of, with places in `kinds`; at most one of both is there. It knows no sequence length,
/// no number format and no cost.
struct TransformerShape : BlockShape {
  std::string family;  ///< "llama", "gpt2", ...
  std::int64_t blocks = 1;
  std::int64_t hidden = 1;
  std::int64_t vocabulary = 1;
  std::int64_t positions = 0;        ///< The longest sequence that it was made for; 0 = unknown.
  bool learned_positions = false;    ///< In a table of parameters; else by rotation.
  bool positions_in_scores = false;  ///< Neither: scores get a bias by distance (ALiBi), or none.
  bool head_bias = false;
  bool tied = false;         ///< The head multiplies with the embedding's table.
  std::int64_t streams = 1;  ///< Residual streams between layers (hyper-connections).
  std::vector<SmallTensor> head_tensors;
  std::vector<bool>
      sparse;  ///< Whether each block has experts, not a dense MLP; empty = all or none.
  std::vector<BlockKind> kinds;             ///< Of blocks that differ in more than that.
  std::vector<std::uint8_t> kind_of;        ///< The place of each block's kind.
  std::int64_t further_predictions = 0;     ///< Modules that predict more tokens than the next one.
  std::optional<BlockShape> further_block;  ///< Of such a module; absent: as the last block.
  ConfigFacts facts;                        ///< Facts of the file that the shape was read from.

  /// The same model with the block of kind `kind` alone. Without kinds: itself.
  TransformerShape of_kind(std::size_t kind) const {
    TransformerShape one = *this;
    if (kinds.empty()) return one;
    one.set_block(kinds[kind].block);
    one.kinds.clear();
    one.kind_of.clear();
    return one;
  }
  void set_block(const BlockShape& block) { static_cast<BlockShape&>(*this) = block; }
  /// Whether `is` holds for the shape of some block.
  template <class Is>
  bool any_block(Is&& is) const {
    if (kinds.empty()) return is(static_cast<const BlockShape&>(*this));
    return std::any_of(kinds.begin(), kinds.end(),
                       [&](const BlockKind& kind) { return is(kind.block); });
  }

  /// The layers of all blocks; `split`: a block that has both is two.
  std::int64_t block_layers(bool split) const {
    if (kinds.empty()) return blocks * (split ? 2 : 1);
    std::int64_t layers = 0;
    for (const std::uint8_t kind : kind_of) {
      const BlockShape& block = kinds[kind].block;
      const bool has_mixer = block.mixer != Mixer::none;
      layers += has_mixer && block.has_mlp ? (split ? 2 : 1) : (has_mixer || block.has_mlp ? 1 : 0);
    }
    return layers;
  }

  /// Whether some block has experts.
  bool has_experts() const {
    if (sparse.empty())
      return any_block([](const BlockShape& b) { return b.has_mlp && b.experts > 0; });
    return std::find(sparse.begin(), sparse.end(), true) != sparse.end();
  }
  bool has_dense_blocks() const {
    return sparse.empty()
               ? any_block([](const BlockShape& b) { return b.has_mlp && b.experts == 0; })
               : std::find(sparse.begin(), sparse.end(), false) != sparse.end();
  }
  /// Whether block `i` has experts.
  bool has_experts(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    if (!kinds.empty()) {
      const BlockShape& block = kinds[kind_of[at]].block;
      return block.has_mlp && block.experts > 0;
    }
    return experts > 0 && (sparse.empty() || sparse[at]);
  }
};

}  // namespace plumbline
