// How a transformer is trained: what the costs of its layers depend on, beside its shape.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/number_format.h"
#include "models/import/recompute_modules.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// The exchange between devices that share a sample, for attention.
enum class ContextExchange : std::uint8_t {
  /// All keys and values go to all devices (Liu et al. 2023, Ring Attention, section 3).
  keys,
  /// Each device gives its tokens of other heads for all tokens of its own heads, and the other way
  /// round behind attention (Jacobs et al. 2023, DeepSpeed Ulysses, section 3.1).
  heads,
};

inline constexpr std::array<std::string_view, 2> kContextExchanges = {"keys", "heads"};

constexpr std::string_view name_of(ContextExchange exchange) {
  return kContextExchanges[static_cast<std::size_t>(exchange)];
}

/// Requires: `name` is one of kContextExchanges.
constexpr ContextExchange context_exchange_of(std::string_view name) {
  return name == kContextExchanges[0] ? ContextExchange::keys : ContextExchange::heads;
}

/// The names of the options where the user gives them, for messages.
struct TransformerOptionNames {
  std::string_view sequence, batch, dtype, tensor_parallel, sequence_parallel, context_parallel,
      context_exchange, expert_parallel, expert_tensor_parallel, dispatch, devices_per_server,
      fp8_linear, fp8_dispatch, cross_entropy, mtp, split_blocks, dropout;
};

inline constexpr TransformerOptionNames kCommandLineNames = {
    .sequence = "--sequence",
    .batch = "--batch",
    .dtype = "--dtype",
    .tensor_parallel = "--tensor-parallel",
    .sequence_parallel = "--sequence-parallel",
    .context_parallel = "--context-parallel",
    .context_exchange = "--context-exchange",
    .expert_parallel = "--expert-parallel",
    .expert_tensor_parallel = "--expert-tensor-parallel",
    .dispatch = "--dispatch",
    .devices_per_server = "--devices-per-server",
    .fp8_linear = "--fp8-linear",
    .fp8_dispatch = "--fp8-dispatch",
    .cross_entropy = "--cross-entropy",
    .mtp = "--mtp",
    .split_blocks = "--split-blocks",
    .dropout = "--dropout",
};

/// The ways from logits to the loss: TransformerOptions::fused_loss, and not.
inline constexpr std::array<std::string_view, 2> kCrossEntropies = {"fused", "unfused"};

/// How a transformer is trained, as far as the costs of its layers depend on it.
struct TransformerOptions {
  std::int64_t sequence = 1;  ///< Tokens of a sample.
  std::int64_t batch = 1;     ///< Samples of a micro-batch.
  NumberFormat dtype = NumberFormat::bf16;
  bool dtype_given = false;  ///< Somebody asked for it.
  /// The shares of numbers that are dropped, in the place of the file's: everywhere, and of
  /// attention's probabilities or the hidden states (residuals and embedding) alone.
  std::optional<double> dropout{}, attention_dropout{}, hidden_dropout{};
  /// Devices that share every layer, as Megatron-LM does it (Shoeybi et al. 2019, section 3).
  std::int64_t tensor_parallel = 1;
  /// They also share what stands between the products, by tokens.
  bool sequence_parallel = false;
  /// Devices that share the tokens of every sample. With tensor_parallel each of them is such a
  /// group.
  std::int64_t context_parallel = 1;
  ContextExchange context_exchange = ContextExchange::keys;
  /// Devices that share the experts of every layer, each with tokens of its own (Lepikhin et al.
  /// 2020, GShard, section 3): those that share layers or samples, and others with samples of their
  /// own, each expert whole on one of them (Liu et al. 2025, MoE Parallel Folding, section 3).
  std::int64_t expert_parallel = 1;
  /// With expert_parallel above 1: the neighbours that divide each expert, so that the group has
  /// expert_parallel times as many devices. They gather their tokens in front of it and scatter the
  /// sums behind.
  std::int64_t expert_tensor_parallel = 1;
  Dispatch dispatch = Dispatch::per_expert;
  bool dispatch_given = false;  ///< Somebody asked for it.
  /// The devices of the group in one server. Those of a tensor-parallel group are neighbours, then
  /// those of a context-parallel one. Nothing: all are in one server.
  std::optional<std::int64_t> devices_per_server;
  bool flash_attention = true;  ///< Scores are never kept, and only those not masked are computed.
  /// A gated MLP never keeps the activation of its gate. An expert multiplies it with the router's
  /// share in the same kernel, so that its output need not be kept for that.
  bool fused_swiglu = false;
  /// Linear layers multiply in fp8 and keep their inputs so, but for the head and the routers;
  /// attention, norms, parameters and what lies between layers stay as they are (DeepSeek-AI 2024,
  /// "DeepSeek-V3", section 3.3.1).
  bool fp8_linear = false;
  /// So are tokens on their way to experts, and in the backward the gradients of what these have
  /// made; what comes back is not (section 3.3.3).
  bool fp8_dispatch = false;
  /// Whether cross entropy is one op that keeps a copy of the logits in fp32 (Megatron-LM's
  /// vocab_parallel_cross_entropy makes the softmax and the gradient of it, in its place), or ops
  /// of their own: PyTorch's log_softmax keeps its output in fp32 beside the model's logits.
  /// Nothing: one copy is kept, and its kernels are those of the software stack.
  std::optional<bool> fused_loss{};
  bool split_blocks = false;  ///< Attention and MLP as layers of their own.
  bool mtp = false;           ///< The modules that predict further tokens are trained, too.
  /// The modules that selective recomputation runs again; nothing: the usual parts.
  std::optional<RecomputeModules> recompute_modules{};
  const TransformerOptionNames* names = &kCommandLineNames;

  bool exchanges_heads() const {
    return context_parallel > 1 && context_exchange == ContextExchange::heads;
  }
  /// How often a head of keys and values stands on the devices that share a sample, where these
  /// exchange heads: fewer than there are devices are repeated. `heads`: those of a tensor-parallel
  /// device.
  std::int64_t repeats_of_keys(std::int64_t heads) const {
    return exchanges_heads() ? std::max<std::int64_t>(1, context_parallel / heads) : 1;
  }
  /// The devices in one server that share a sample's tokens.
  std::int64_t context_neighbours() const {
    const std::int64_t server = devices_per_server.value_or(devices_per_sample());
    return std::clamp<std::int64_t>(server / tensor_parallel, 1, context_parallel);
  }

  /// Devices that a scenario's device stands for.
  std::int64_t group() const { return std::max(expert_devices(), devices_per_sample()); }
  std::int64_t expert_devices() const {
    return expert_parallel > 1 ? expert_parallel * expert_tensor_parallel : 1;
  }
  std::int64_t devices_per_sample() const { return tensor_parallel * context_parallel; }
  /// The servers that the group has to itself.
  std::int64_t servers() const {
    return fits_in_server(group()) ? 1 : group() / *devices_per_server;
  }
  /// In which the experts of a layer are: those that divide an expert may fill several.
  std::int64_t expert_servers() const { return std::min(servers(), expert_parallel); }
  /// Micro-batches that the group trains at a time.
  std::int64_t group_batches() const { return group() / devices_per_sample(); }
  bool fits_in_server(std::int64_t devices) const {
    return !devices_per_server || devices <= *devices_per_server;
  }

  /// Whether selective recomputation runs this part of a layer again.
  bool makes_again(const LayerPart& part) const {
    return recompute_modules ? recompute_modules->meets(part.modules) : part.is_usual;
  }

  std::int64_t tokens() const { return sequence * batch; }
  /// The tokens of a micro-batch that the device has; context parallelism leaves others the rest.
  std::int64_t own_tokens() const { return tokens() / context_parallel; }

  friend bool operator==(const TransformerOptions&, const TransformerOptions&) = default;
};

/// The rates of dropout: those of the options, else of the file; absent where neither has them.
inline DropoutRates dropout_of(const TransformerShape& shape, const TransformerOptions& options) {
  const auto first = [&](const std::optional<double>& own, const std::optional<double>& of_file) {
    return own ? own : options.dropout ? options.dropout : of_file;
  };
  const DropoutRates& file = shape.facts.dropout;
  return {first(options.attention_dropout, file.attention),
          first(options.hidden_dropout, file.residual),
          first(options.hidden_dropout, file.embedding)};
}

}  // namespace plumbline
