// The values of the symbols, and what each of them stands for.
//
// SPDX-License-Identifier: MIT
#include "models/import/layer_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plumbline {
namespace {

/// A sample of s tokens has 2 W s - W^2 halves of pairs where each token reaches W; by chunks of W,
/// the squares of their sizes.
std::int64_t reached_pairs(const TransformerShape& shape, const TransformerOptions& options) {
  const std::int64_t s = options.sequence;
  const auto window = shape.reach(s);
  if (!window) return (SaturatingCount{options.own_tokens()} * s).value();
  const std::int64_t w = *window, rest = s % w;
  const SaturatingCount whole = SaturatingCount{w} * w;
  const SaturatingCount pairs = shape.by_chunk
                                    ? SaturatingCount{s / w} * whole + SaturatingCount{rest} * rest
                                    : SaturatingCount{w} * (2 * s - w);
  const SaturatingCount all = options.batch * pairs;
  return all.is_exact() ? all.value() / options.context_parallel : all.value();
}

}  // namespace

Symbols symbols_of(const TransformerShape& shape, const TransformerOptions& options) {
  const std::int64_t t = options.tensor_parallel;
  const LatentAttention latent = shape.latent.value_or(LatentAttention{});
  const std::int64_t between = options.own_tokens() / (options.sequence_parallel ? t : 1);
  return {.e = bytes_of(options.dtype),
          .l = bytes_of(options.fp8_linear ? NumberFormat::fp8 : options.dtype),
          .T = options.own_tokens(),
          .R = between,
          .M = options.expert_parallel > 1 ? between : options.own_tokens(),
          .s = options.sequence,
          .h = shape.hidden,
          .a = shape.heads / t,
          .g = shape.key_value_heads / t,
          .d = shape.head_dim,
          .f = shape.feed_forward / t,
          .x = shape.expert_feed_forward /
               (options.expert_parallel > 1 ? options.expert_tensor_parallel : t),
          .E = shape.experts,
          .k = shape.experts_per_token,
          .L = shape.experts / options.expert_parallel,
          .y = shape.shared_feed_forward / t,
          .q = latent.query_rank,
          .c = latent.key_value_rank,
          .n = latent.plain,
          .r = latent.rotated,
          .v = latent.value,
          .w = shape.value_size(),
          .Z = reached_pairs(shape, options),
          .i = shape.expert_width(shape.hidden),
          .V = (shape.vocabulary + t - 1) / t,
          .P = shape.learned_positions ? shape.positions : 0,
          .u = (shape.hidden + t - 1) / t,
          .m = options.mtp ? shape.further_predictions : 0};
}

std::vector<std::string> symbol_lines(const TransformerShape& shape,
                                      const TransformerOptions& options) {
  const Symbols n = symbols_of(shape, options);
  const std::int64_t t = options.tensor_parallel;
  const auto shared_by = [](std::int64_t devices, std::int64_t whole, const SaturatingCount& part) {
    return devices == 1 ? std::to_string(whole)
                        : fmt::format("{} / {} = {}", whole, devices, part.value());
  };
  const auto shared = [&](std::int64_t whole, const SaturatingCount& part) {
    return shared_by(t, whole, part);
  };
  std::vector<std::string> lines = {
      fmt::format("e = {} bytes of a number ({})", n.e.value(), name_of(options.dtype)),
      fmt::format("s = {} tokens of a sample", n.s.value()),
      fmt::format(
          "T = {} x s{} = {} tokens of a micro-batch", options.batch,
          options.context_parallel > 1 ? fmt::format(" / {}", options.context_parallel) : "",
          n.T.value()),
      fmt::format("h = {} hidden", n.h.value()),
      shape.latent
          ? fmt::format("a = {} heads; of each n = {} and r = {} rotated numbers of queries and "
                        "keys, v = {} of values",
                        shared(shape.heads, n.a), n.n.value(), n.r.value(), n.v.value())
          : fmt::format("a = {} heads, g = {} of keys and values, d = {} numbers each",
                        shared(shape.heads, n.a), shared(shape.key_value_heads, n.g), n.d.value()),
      fmt::format("V = {} tokens in the vocabulary", shared(shape.vocabulary, n.V))};
  if (options.fp8_linear)
    lines.emplace_back("l = 1 byte of a number that a linear layer multiplies (fp8)");
  if (shape.latent) {
    lines.push_back(fmt::format("c = {} numbers of compressed keys and values{}", n.c.value(),
                                shape.latent->query_rank > 0
                                    ? fmt::format(", q = {} of compressed queries", n.q.value())
                                    : ""));
  }
  if (options.sequence_parallel)
    lines.push_back(
        fmt::format("R = {} of these tokens between products", shared(options.own_tokens(), n.R)));
  if (shape.has_dense_blocks())
    lines.push_back(fmt::format("f = {} inner width of an MLP", shared(shape.feed_forward, n.f)));
  if (shape.experts > 0) {
    lines.push_back(
        fmt::format("E = {} experts, k = {} for each token, x = {} inner width of each",
                    n.E.value(), n.k.value(),
                    options.expert_parallel > 1
                        ? shared_by(options.expert_tensor_parallel, shape.expert_feed_forward, n.x)
                        : shared(shape.expert_feed_forward, n.x)));
  }
  if (options.expert_parallel > 1) {
    const std::int64_t parts = options.expert_tensor_parallel;
    lines.push_back(fmt::format(
        "L = {} / {} = {} experts on {}", n.E.value(), options.expert_parallel, n.L.value(),
        parts > 1 ? fmt::format("every {} devices, in as many parts", parts) : "each device"));
  }
  if (shape.shared_feed_forward > 0)
    lines.push_back(fmt::format("y = {} inner width of the shared experts",
                                shared(shape.shared_feed_forward, n.y)));
  if (n.m.value() > 0) {
    lines.push_back(fmt::format(
        "m = {} modules that predict further tokens, u = {} columns of their projections",
        n.m.value(), shared(shape.hidden, n.u)));
  }
  if (shape.learned_positions) lines.push_back(fmt::format("P = {} positions", n.P.value()));
  if (!shape.latent && n.w.value() != n.d.value())
    lines.push_back(fmt::format("w = {} numbers of a head of values", n.w.value()));
  if (const auto reach = shape.reach(options.sequence)) {
    lines.push_back(
        fmt::format("Z = {} = twice the pairs of a token and a key that it reaches, {} {}",
                    n.Z.value(), shape.by_chunk ? "in chunks of" : "at most", *reach));
  }
  if (shape.expert_hidden > 0)
    lines.push_back(fmt::format("i = {} numbers of a token as experts take it", n.i.value()));
  return lines;
}

std::vector<std::string> kind_symbol_lines(const TransformerShape& shape,
                                           const TransformerShape& one,
                                           const TransformerOptions& options) {
  const std::vector<std::string> known = symbol_lines(shape, options);
  std::vector<std::string> lines;
  for (std::string& line : symbol_lines(one, options)) {
    if (std::find(known.begin(), known.end(), line) == known.end())
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace plumbline
