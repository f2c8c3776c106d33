// One function for each kind of layer and of mixer. They count products apart from
// transformer_layers.cpp, which derives FLOPs and bytes; a test compares the FLOPs of both.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_ops.h"

#include <algorithm>

#include "base/bug.h"
#include "models/import/group_traffic.h"
#include "models/import/ops_builder.h"

namespace plumbline {
namespace {

class OpsDeriver : public OpsBuilder {
 public:
  using OpsBuilder::OpsBuilder;

  void embedding() {
    add(LookupOp{.rows = n_.between,
                 .columns = n_.hidden,
                 .table_rows = n_.vocabulary,
                 .positions = shape_.learned_positions,
                 .drops = dropout_.embedding.value_or(0) > 0});
    exchange(by_tokens() ? ExchangeKind::scatter_rows : ExchangeKind::add_rows, token_bytes());
  }

  void mixer() {
    streams_in();
    norm(layer_part::kNorm);
    tokens_in();
    mix();
    if (shape_.is_parallel()) return;  // the MLP's output is added to its own
    tokens_out();
    norms_behind(shape_.mixer_norms);
    residual();
  }

  void dense_mlp() {
    streams_in();
    if (shape_.order != BlockOrder::shared_norm) {
      norm(layer_part::kNorm);
      tokens_in(layer_part::kDenseMlp);
    }
    mlp(shape_.feed_forward / n_.tensor, shape_.gated, layer_part::kDenseActivation,
        layer_part::kDenseMlp);
    if (shape_.is_parallel())
      add(ResidualOp{n_.tokens, n_.hidden, dropout_.residual.value_or(0) > 0});
    tokens_out(shape_.is_parallel() ? layer_part::kNone : layer_part::kDenseMlp);
    norms_behind(shape_.mlp_norms);
    residual();
  }

  void experts_mlp() {
    const bool exchanged = options_.expert_parallel > 1;
    const bool has_shared = shape_.shared_feed_forward > 0;
    const bool shares_products = !exchanged || has_shared;
    const LayerPart& shared = has_shared ? layer_part::kSharedExperts : layer_part::kExperts;
    const std::int64_t width = shape_.expert_width(n_.hidden);
    streams_in();
    norm(layer_part::kNorm);
    if (shares_products) tokens_in(shared);
    add(LinearOp{options_.dtype, n_.to_experts, shape_.experts, n_.hidden}, layer_part::kExperts);
    add(RoutingOp{n_.to_experts, shape_.experts}, layer_part::kExperts);
    if (width != n_.hidden) linear(n_.to_experts, width, n_.hidden, layer_part::kExperts);
    experts(exchanged);
    if (width != n_.hidden) linear(n_.to_experts, n_.hidden, width, layer_part::kExperts);
    if (has_shared) {
      mlp(shape_.shared_feed_forward / n_.tensor, shape_.gated, layer_part::kSharedActivation,
          shared);
      if (shape_.shared_gate > 0) linear(n_.tokens, shape_.shared_gate, n_.hidden);
      add(SumOp{n_.between, n_.hidden}, layer_part::kExperts);
    }
    if (shares_products) tokens_out(shared);
    norms_behind(shape_.mlp_norms);
    residual();
  }

  /// The embedding of the next token and the tokens of the block before are projected to one.
  void projection_of_both() {
    for (int input = 0; input < 2; ++input) {
      norm(layer_part::kOtherNorm);
      tokens_in();
    }
    exchange(by_tokens() ? ExchangeKind::scatter_rows : ExchangeKind::add_rows, token_bytes());
    add(SumOp{n_.between, n_.hidden});  // joined
    linear(n_.tokens, (n_.hidden + n_.tensor - 1) / n_.tensor, 2 * n_.hidden);
    exchange(ExchangeKind::scatter_sums, token_bytes());
    norm(layer_part::kOtherNorm);  // behind the block
  }

  void head() {
    const std::int64_t outputs = 1 + (options_.mtp ? shape_.further_predictions : 0);
    if (shape_.streams > 1) {
      linear(n_.tokens, shape_.streams, shape_.streams * n_.hidden);
      add(SumOp{n_.between, shape_.streams * n_.hidden});
    }
    norm(layer_part::kOtherNorm);
    for (std::int64_t i = 0; i < outputs; ++i) {
      tokens_in();
      add(LinearOp{options_.dtype, n_.tokens, n_.vocabulary, n_.hidden});
      add(LossOp{n_.tokens, n_.vocabulary, options_.fused_loss});
      // The largest logit of a token, its own, and the sum of their exponents.
      for (int number = 0; number < 3; ++number)
        exchange(ExchangeKind::add_losses, (fp32 * SaturatingCount{n_.tokens}).value());
    }
  }

 private:
  /// Keys and values of the devices that share a sample, each a group of tensor-parallel ones.
  void gather_keys(std::int64_t numbers_of_token, std::int64_t repeated) {
    const std::int64_t devices = options_.context_parallel;
    if (devices == 1) return;
    const SaturatingCount numbers = SaturatingCount{devices} * n_.tokens * numbers_of_token;
    add(ExchangeOp{.kind = ExchangeKind::gather_keys,
                   .devices = devices,
                   .near = options_.context_neighbours(),
                   .bytes = bytes(numbers),
                   .repeated = repeated},
        layer_part::kCoreAttention);
  }

  /// `numbers_of_token` of each token for those of other heads.
  void exchange_heads(std::int64_t numbers_of_token) {
    const Sent sent =
        sent_for_heads({bytes(SaturatingCount{n_.tokens} * numbers_of_token)}, options_);
    add(ExchangeOp{.kind = ExchangeKind::exchange_heads,
                   .devices = options_.context_parallel,
                   .near = options_.context_neighbours(),
                   .bytes = sent.link.count,
                   .network_bytes = sent.network.count},
        layer_part::kCoreAttention);
  }

  // ---- what few models have ----

  /// The weights of residual streams, their sum for the layer, and their mixture behind it.
  void streams_in() {
    const std::int64_t streams = shape_.streams;
    if (streams == 1) return;
    linear(n_.tokens, streams * (streams + 2), streams * n_.hidden);
    for (int i = 0; i < 2; ++i) add(SumOp{n_.between, streams * n_.hidden});
  }

  void norms_behind(std::int64_t norms) {
    for (std::int64_t i = 0; i < norms; ++i) norm(layer_part::kOtherNorm);
  }

  /// Between the norm in front and what tensor-parallel devices add up behind.
  void mix() {
    switch (shape_.mixer) {
      case Mixer::attention:
        if (!shape_.latent) return plain_heads();
        if (shape_.reach(options_.sequence)) return sparse_latent_heads(*shape_.latent);
        return latent_heads(*shape_.latent);
      case Mixer::scan:
        return scan(*shape_.scan);
      case Mixer::compressed:
        return compressed_heads(*shape_.compressed);
      case Mixer::linear:
        return linear(n_.tokens, (n_.hidden + n_.tensor - 1) / n_.tensor, n_.hidden);
      case Mixer::none:
        return;
    }
  }

  /// The scores of the index, where the layer has its own; they are not shared.
  void index(std::int64_t stride = 1) {
    if (!shape_.index || !shape_.index->is_own) return;
    const KeyIndex& own = *shape_.index;
    const std::int64_t inputs = own.of_compressed ? shape_.latent ? shape_.latent->query_rank
                                                                  : shape_.compressed->query_rank
                                                  : n_.hidden;
    linear(n_.tokens, own.heads * own.size, inputs);
    if (shape_.mixer != Mixer::compressed) linear(n_.tokens, own.size, n_.hidden);
    if (own.is_weighted) linear(n_.tokens, own.heads, n_.hidden);
    if (own.norm_numbers > 0) add(NormOp{n_.tokens, own.size});
    add(IndexOp{.batch = options_.batch,
                .queries = options_.sequence / options_.context_parallel,
                .keys = options_.sequence / stride,
                .heads = own.heads,
                .size = own.size,
                .weighted = own.is_weighted ? 1 : 0,
                .stride = stride},
        layer_part::kCoreAttention);
  }

  void gate(std::int64_t width) {
    if (shape_.output_gate == 0) return;
    linear(n_.tokens, shape_.output_gate / n_.tensor, n_.hidden);
    add(ActivationOp{n_.tokens, width, true});
  }

  void scan(const Scan& own) {
    const std::int64_t keys = own.keys() / n_.tensor, values = own.values() / n_.tensor;
    const std::int64_t heads = own.heads / n_.tensor, channels = 2 * keys + values;
    const bool is_kimi = own.kind == ScanKind::kimi_delta;
    const bool is_mamba = own.kind == ScanKind::mamba2;
    const std::int64_t scalars = is_mamba || is_kimi ? heads : 2 * heads;
    linear(n_.tokens, channels + scalars + (own.gate_rank > 0 ? 0 : values), n_.hidden);
    if (is_kimi) {
      linear(n_.tokens, own.key_size, n_.hidden);
      linear(n_.tokens, keys, own.key_size);
    }
    if (own.gate_rank > 0) {
      linear(n_.tokens, own.gate_rank, n_.hidden);
      linear(n_.tokens, values, own.gate_rank);
    }
    add(ConvolutionOp{n_.tokens, channels, own.convolution});
    add(ScanOp{.batch = options_.batch,
               .tokens = options_.sequence,
               .heads = heads,
               .key_heads = is_mamba ? own.key_heads / n_.tensor : heads,
               .key_size = own.key_size,
               .value_size = own.value_size,
               .chunk = own.chunk,
               .delta = !is_mamba});
    add(NormOp{n_.tokens, values});
    add(ActivationOp{n_.tokens, values, true});
    linear(n_.tokens, n_.hidden, values);
  }

  void compressed_heads(const CompressedAttention& own) {
    const std::int64_t d = n_.head, a = n_.heads;
    const std::int64_t copies = own.overlaps ? 2 : 1;
    const std::int64_t groups = own.output_groups / n_.tensor;
    linear(n_.tokens, own.query_rank, n_.hidden);
    norm(n_.tokens, own.query_rank);
    linear(n_.tokens, a * d, own.query_rank);
    linear(n_.tokens, d, n_.hidden);
    norm(n_.tokens, (a + 1) * d);
    add(RotationOp{n_.tokens, (a + 1) * d});
    if (own.stride > 0) {
      linear(n_.tokens, 2 * copies * d, n_.hidden);
      add(SumOp{n_.tokens, copies * d});
    }
    if (shape_.index) {
      linear(n_.tokens, 2 * copies * shape_.index->size, n_.hidden);
      add(SumOp{n_.tokens, copies * shape_.index->size});
    }
    index(std::max<std::int64_t>(1, own.stride));
    limited_scores(options_.sequence, shape_.window.value_or(0), d, d, 1);
    if (own.stride > 0) {
      const std::int64_t keys = std::max<std::int64_t>(1, options_.sequence / own.stride);
      const std::int64_t chosen = shape_.index ? shape_.index->chosen : 0;
      limited_scores(keys, chosen >= keys ? 0 : chosen, d, d, 1, own.stride);
    }
    add(RotationOp{n_.tokens, a * d});
    linear(n_.tokens, groups * own.output_rank, a * d / groups);
    linear(n_.tokens, n_.hidden, groups * own.output_rank);
  }

  /// All heads take the compressed keys as they are.
  void sparse_latent_heads(const LatentAttention& latent) {
    latent_products(latent);
    index();
    limited_scores(options_.sequence, shape_.index->chosen, latent.key_value_rank + latent.rotated,
                   latent.key_value_rank, 1);
    gate(n_.heads * latent.value);
    linear(n_.tokens, n_.hidden, n_.heads * latent.value);
  }

  /// Attention over some of `keys`, on devices that hold whole samples.
  void limited_scores(std::int64_t keys, std::int64_t window, std::int64_t query_size,
                      std::int64_t value_size, std::int64_t key_heads, std::int64_t stride = 1) {
    const bool keeps = !options_.flash_attention;
    add(AttentionOp{.batch = options_.batch,
                    .queries = options_.sequence / options_.context_parallel,
                    .keys = keys,
                    .heads = n_.heads,
                    .key_heads = key_heads,
                    .query_size = query_size,
                    .value_size = value_size,
                    .keeps_scores = keeps,
                    .drops = keeps && dropout_.attention.value_or(0) > 0,
                    .window = keeps || window >= keys ? 0 : window,
                    .stride = stride},
        keeps ? layer_part::kScores : layer_part::kCoreAttention);
  }

  /// Attention over all tokens of a sample, with what the devices that share it send each other.
  /// Each key head serves `shared` heads of queries.
  void attend(std::int64_t query_size, std::int64_t value_size, std::int64_t shared) {
    const std::int64_t a = n_.heads, g = a / shared;
    if (!options_.exchanges_heads()) {
      gather_keys(g * (query_size + value_size), shared);
      return scores(query_size, value_size, g);
    }
    const std::int64_t sent_keys = g * options_.repeats_of_keys(g);
    exchange_heads(a * query_size + sent_keys * (query_size + value_size));
    scores(query_size, value_size, sent_keys / options_.context_parallel);
    exchange_heads(a * value_size);
  }

  void plain_heads() {
    const std::int64_t d = n_.head, a = n_.heads, g = n_.key_heads, w = shape_.value_size();
    linear(n_.tokens, (a + g) * d + (shape_.values_are_keys ? 0 : g * w), n_.hidden);
    if (shape_.query_key_norm) add(NormOp{n_.tokens, (a + g) * d});
    if (!shape_.learned_positions && !shape_.positions_in_scores)
      add(RotationOp{n_.tokens, (a + g) * d});
    index();
    attend(d, w, a / g);
    gate(a * w);
    linear(n_.tokens, n_.hidden, a * w);
  }

  void latent_heads(const LatentAttention& latent) {
    latent_products(latent);
    index();
    attend(latent.plain + latent.rotated, latent.value, 1);
    gate(n_.heads * latent.value);
    linear(n_.tokens, n_.hidden, n_.heads * latent.value);
  }

  void latent_products(const LatentAttention& latent) {
    const std::int64_t a = n_.heads;
    const std::int64_t of_query = latent.plain + latent.rotated;
    if (latent.query_rank > 0) {
      linear(n_.tokens, latent.query_rank, n_.hidden);
      norm(n_.tokens, latent.query_rank);
      linear(n_.tokens, a * of_query, latent.query_rank, layer_part::kLatentHeads);
    } else {
      linear(n_.tokens, a * of_query, n_.hidden, layer_part::kLatentQueries);
    }
    linear(n_.tokens, latent.key_value_rank + latent.rotated, n_.hidden);
    norm(n_.tokens, latent.key_value_rank);
    linear(n_.tokens, a * (latent.plain + latent.value), latent.key_value_rank,
           layer_part::kLatentHeads);
    add(RotationOp{.rows = n_.tokens, .columns = a * of_query, .joins = true},
        layer_part::kLatentHeads);
  }

  void scores(std::int64_t query_size, std::int64_t value_size, std::int64_t key_heads) {
    const bool keeps = !options_.flash_attention;
    const std::int64_t devices = options_.context_parallel;
    const bool has_all_tokens = options_.exchanges_heads();
    add(AttentionOp{.batch = options_.batch,
                    .queries = options_.sequence / (has_all_tokens ? 1 : devices),
                    .keys = options_.sequence,
                    .heads = n_.heads / (has_all_tokens ? devices : 1),
                    .key_heads = key_heads,
                    .query_size = query_size,
                    .value_size = value_size,
                    .keeps_scores = keeps,
                    .drops = keeps && dropout_.attention.value_or(0) > 0,
                    .window = keeps ? 0 : shape_.reach(options_.sequence).value_or(0),
                    .by_chunk = !keeps && shape_.by_chunk && shape_.reach(options_.sequence)},
        keeps ? layer_part::kScores : layer_part::kCoreAttention);
  }

  void mlp(std::int64_t inner, bool gated, const LayerPart& activation, const LayerPart& all) {
    linear(n_.tokens, (gated ? 2 : 1) * inner, n_.hidden, all);
    add(ActivationOp{n_.tokens, inner, gated}, activation);
    linear(n_.tokens, n_.hidden, inner, all);
  }

  /// Tokens go to their experts and back; each device sorts them by its own experts.
  void experts(bool exchanged) {
    const std::int64_t rows = (SaturatingCount{shape_.experts_per_token} * n_.to_experts).value();
    const std::int64_t own = shape_.experts / options_.expert_parallel;
    const std::int64_t parts = exchanged ? options_.expert_tensor_parallel : 1;
    const std::int64_t inner = shape_.expert_feed_forward / (exchanged ? parts : n_.tensor);
    const std::int64_t sorts = exchanged && own > 1 ? 2 : 1;
    const std::int64_t gathered = parts * rows;
    // Behind the exchange, rows of all that divide an expert are sorted: here the mean of both.
    const std::int64_t sorted = sorts == 2 ? (rows + gathered) / 2 : rows;
    const NumberFormat format = options_.fp8_linear ? NumberFormat::fp8 : options_.dtype;
    const std::int64_t sent_size =
        options_.fp8_dispatch ? bytes_of(NumberFormat::fp8) : bytes_of(options_.dtype);
    const LayerPart& all = layer_part::kExperts;
    const std::int64_t width = shape_.expert_width(n_.hidden);
    const std::int64_t products = shape_.gated ? 2 : 1;
    const SaturatingCount sent = SaturatingCount{sent_size} * rows * width;
    const SaturatingCount returned = SaturatingCount{bytes_of(options_.dtype)} * rows * width;
    add(PermuteOp{sorted, width, sorts}, all);
    if (exchanged) to_experts(sent);
    between_parts(ExchangeKind::gather_rows, parts, sent);
    add(LinearOp{format, gathered, products * inner, width, own}, all);
    add(ActivationOp{gathered, inner, shape_.gated}, layer_part::kExpertActivation);
    add(LinearOp{format, gathered, width, inner, own}, all);
    between_parts(ExchangeKind::scatter_parts, parts, returned);
    if (exchanged) to_experts(returned);
    add(PermuteOp{sorted, width, sorts, n_.to_experts}, all);
  }

  /// Between the neighbours that divide experts: `bytes` are those of the tokens that came to one.
  void between_parts(ExchangeKind kind, std::int64_t parts, SaturatingCount bytes) {
    if (parts == 1) return;
    add(ExchangeOp{.kind = kind,
                   .devices = parts,
                   .near = std::min(parts, options_.devices_per_server.value_or(parts)),
                   .bytes = (parts * bytes).value()},
        layer_part::kExperts);
  }

  void to_experts(SaturatingCount bytes) {
    const Sent sent = sent_to_experts(bytes, shape_.routing(), options_);
    add(ExchangeOp{.kind = ExchangeKind::to_experts,
                   .devices = options_.expert_parallel,
                   .near = options_.expert_parallel / options_.expert_servers(),
                   .bytes = sent.link.count,
                   .network_bytes = sent.network.count},
        layer_part::kExperts);
  }
};

}  // namespace

LayerOps transformer_ops(const std::string& role, const TransformerShape& shape,
                         const TransformerOptions& options) {
  OpsDeriver deriver(shape, options);
  const bool has_experts = role == "moe_block" || role == "moe" ||
                           (role == "mtp" && shape.has_experts(shape.blocks - 1));
  if (role == "embedding") deriver.embedding();
  if (role == "mtp") deriver.projection_of_both();
  if (role == "attention" || role.ends_with("block") || role == "mtp") deriver.mixer();
  if (has_experts) {
    deriver.experts_mlp();
  } else if (role == "mlp" || role == "block" || role == "mtp") {
    deriver.dense_mlp();
  }
  if (role == "head") deriver.head();
  return deriver.take();
}

}  // namespace plumbline
