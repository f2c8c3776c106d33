// One function for each kind of layer. They count products apart from transformer_layers.cpp, which
// derives FLOPs and bytes; a test compares the FLOPs of both.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_ops.h"

#include <algorithm>

#include "base/bug.h"
#include "models/import/group_traffic.h"

namespace plumbline {
namespace {

/// The sizes on one device.
struct Sizes {
  explicit Sizes(const TransformerShape& shape, const TransformerOptions& options)
      : tensor(options.tensor_parallel),
        tokens(options.own_tokens()),
        between(tokens / (options.sequence_parallel ? tensor : 1)),
        to_experts(options.expert_parallel > 1 ? between : tokens),
        hidden(shape.hidden),
        heads(shape.heads / tensor),
        key_heads(std::max<std::int64_t>(1, shape.key_value_heads / tensor)),
        head(shape.head_dim),
        vocabulary((shape.vocabulary + tensor - 1) / tensor) {}

  std::int64_t tensor;      ///< Devices that share each layer's matrices.
  std::int64_t tokens;      ///< Of the micro-batch, for products.
  std::int64_t between;     ///< Of the micro-batch, between products.
  std::int64_t to_experts;  ///< That the device sends to experts.
  std::int64_t hidden;
  std::int64_t heads, key_heads;
  std::int64_t head;
  std::int64_t vocabulary;
};

class OpsDeriver {
 public:
  OpsDeriver(const TransformerShape& shape, const TransformerOptions& options)
      : shape_(shape), options_(options), dropout_(dropout_of(shape, options)), n_(shape, options) {
    layer_.dtype = options.dtype;
  }

  void embedding() {
    add(LookupOp{.rows = n_.between,
                 .columns = n_.hidden,
                 .table_rows = n_.vocabulary,
                 .positions = shape_.learned_positions,
                 .drops = dropout_.embedding.value_or(0) > 0});
    exchange(by_tokens() ? ExchangeKind::scatter_rows : ExchangeKind::add_rows, token_bytes());
  }

  void attention() {
    norm(layer_part::kNorm);
    tokens_in();
    if (shape_.latent) {
      latent_heads(*shape_.latent);
    } else {
      plain_heads();
    }
    if (shape_.is_parallel()) return;  // the MLP's output is added to its own
    tokens_out();
    residual();
  }

  void dense_mlp() {
    if (shape_.order != BlockOrder::shared_norm) {
      norm(layer_part::kNorm);
      tokens_in(layer_part::kDenseMlp);
    }
    mlp(shape_.feed_forward / n_.tensor, shape_.gated, layer_part::kDenseActivation,
        layer_part::kDenseMlp);
    if (shape_.is_parallel())
      add(ResidualOp{n_.tokens, n_.hidden, dropout_.residual.value_or(0) > 0});
    tokens_out(shape_.is_parallel() ? layer_part::kNone : layer_part::kDenseMlp);
    residual();
  }

  void experts_mlp() {
    const bool exchanged = options_.expert_parallel > 1;
    const bool has_shared = shape_.shared_feed_forward > 0;
    const bool shares_products = !exchanged || has_shared;
    const LayerPart& shared = has_shared ? layer_part::kSharedExperts : layer_part::kExperts;
    norm(layer_part::kNorm);
    if (shares_products) tokens_in(shared);
    add(LinearOp{options_.dtype, n_.to_experts, shape_.experts, n_.hidden}, layer_part::kExperts);
    add(RoutingOp{n_.to_experts, shape_.experts}, layer_part::kExperts);
    experts(exchanged);
    if (has_shared) {
      mlp(shape_.shared_feed_forward / n_.tensor, true, layer_part::kSharedActivation, shared);
      add(SumOp{n_.between, n_.hidden}, layer_part::kExperts);
    }
    if (shares_products) tokens_out(shared);
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

  LayerOps take() { return std::move(layer_); }

 private:
  static constexpr std::int64_t fp32 = 4;

  bool by_tokens() const { return options_.sequence_parallel; }
  std::int64_t bytes(SaturatingCount numbers) const {
    return (SaturatingCount{bytes_of(options_.dtype)} * numbers).value();
  }
  std::int64_t token_bytes() const { return bytes(SaturatingCount{n_.tokens} * n_.hidden); }

  void add(LayerOp::Shape shape, const LayerPart& part = layer_part::kNone) {
    layer_.ops.push_back({shape, options_.makes_again(part)});
  }

  void linear(std::int64_t rows, std::int64_t outputs, std::int64_t inputs,
              const LayerPart& part = layer_part::kNone) {
    add(LinearOp{options_.fp8_linear ? NumberFormat::fp8 : options_.dtype, rows, outputs, inputs},
        part);
  }
  void norm(const LayerPart& part) { add(NormOp{n_.between, n_.hidden}, part); }
  /// Within latent attention.
  void norm(std::int64_t rows, std::int64_t columns) {
    add(NormOp{rows, columns}, layer_part::kOtherNorm);
  }

  void residual() { add(ResidualOp{n_.between, n_.hidden, dropout_.residual.value_or(0) > 0}); }

  /// In front of the products that a tensor-parallel group shares, and behind them.
  void tokens_in(const LayerPart& part = layer_part::kNone) {
    exchange(by_tokens() ? ExchangeKind::gather_tokens : ExchangeKind::copy_tokens, token_bytes(),
             part);
  }
  void tokens_out(const LayerPart& part = layer_part::kNone) {
    exchange(by_tokens() ? ExchangeKind::scatter_sums : ExchangeKind::add_sums, token_bytes(),
             part);
  }

  /// Between the devices of a tensor-parallel group, which are neighbours.
  void exchange(ExchangeKind kind, std::int64_t bytes, const LayerPart& part = layer_part::kNone) {
    if (n_.tensor == 1) return;
    const std::int64_t in_server = options_.devices_per_server.value_or(n_.tensor);
    add(ExchangeOp{.kind = kind,
                   .devices = n_.tensor,
                   .near = std::min(n_.tensor, in_server),
                   .bytes = bytes},
        part);
  }

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
    const std::int64_t d = n_.head, a = n_.heads, g = n_.key_heads;
    linear(n_.tokens, (a + 2 * g) * d, n_.hidden);
    if (shape_.query_key_norm) add(NormOp{n_.tokens, (a + g) * d});
    if (!shape_.learned_positions && !shape_.positions_in_scores)
      add(RotationOp{n_.tokens, (a + g) * d});
    attend(d, d, a / g);
    linear(n_.tokens, n_.hidden, a * d);
  }

  void latent_heads(const LatentAttention& latent) {
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
    attend(of_query, latent.value, 1);
    linear(n_.tokens, n_.hidden, a * latent.value);
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
                    .drops = keeps && dropout_.attention.value_or(0) > 0},
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
    const SaturatingCount sent = SaturatingCount{sent_size} * rows * n_.hidden;
    const SaturatingCount returned = SaturatingCount{bytes_of(options_.dtype)} * rows * n_.hidden;
    add(PermuteOp{sorted, n_.hidden, sorts}, all);
    if (exchanged) to_experts(sent);
    between_parts(ExchangeKind::gather_rows, parts, sent);
    add(LinearOp{format, gathered, 2 * inner, n_.hidden, own}, all);
    add(ActivationOp{gathered, inner, true}, layer_part::kExpertActivation);
    add(LinearOp{format, gathered, n_.hidden, inner, own}, all);
    between_parts(ExchangeKind::scatter_parts, parts, returned);
    if (exchanged) to_experts(returned);
    add(PermuteOp{sorted, n_.hidden, sorts, n_.to_experts}, all);
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

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  DropoutRates dropout_;
  Sizes n_;
  LayerOps layer_;
};

}  // namespace

LayerOps transformer_ops(const std::string& kind, const TransformerShape& shape,
                         const TransformerOptions& options) {
  OpsDeriver deriver(shape, options);
  const bool has_experts = kind == "moe_block" || kind == "moe" ||
                           (kind == "mtp" && shape.has_experts(shape.blocks - 1));
  if (kind == "embedding") deriver.embedding();
  if (kind == "mtp") deriver.projection_of_both();
  if (kind == "attention" || kind.ends_with("block") || kind == "mtp") deriver.attention();
  if (has_experts) {
    deriver.experts_mlp();
  } else if (kind == "mlp" || kind == "block" || kind == "mtp") {
    deriver.dense_mlp();
  }
  if (kind == "head") deriver.head();
  return deriver.take();
}

}  // namespace plumbline
