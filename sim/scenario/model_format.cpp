// The keys of the model section.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/huggingface.h"
#include "models/import/expert_routing.h"
#include "models/import/transformer_layers.h"
#include "models/profile/layer_format.h"
#include "models/profile/model_checks.h"
#include "models/profile/op_format.h"
#include "sim/scenario/model_section.h"
#include "sim/scenario/scenario_format.h"
#include "sim/scenario/synonyms.h"

namespace plumbline {
namespace {

using namespace format;

const SectionFormat& uniform_format() {
  static const SectionFormat uniform = [] {
    SectionFormat built = {.name = "uniform",
                           .text = "Equal layers in a chain.",
                           .keys = layer_cost_keys(),
                           .some_group = layer_cost_groups(),
                           .needs = layer_cost_needs()};
    built.keys.insert(built.keys.begin(), {.name = "layers",
                                           .values = {count(1, kMaxLayers)},
                                           .text = "How many layers there are.",
                                           .required = true});
    return built;
  }();
  return uniform;
}

}  // namespace

/// It is over 80 lines as it is a table of data: the keys in the order in which they are told.
const SectionFormat& model_section_format() {
  static const SectionFormat model = {
      .name = "model",
      .text =
          "What is trained: exactly one of profile, uniform, layers, pipedream, huggingface; a "
          "network has its profile beside it.",
      .keys = {{"profile", {file()}, "Measured layers: a file with `kind: profile`."},
               {"uniform", {section(&uniform_format)}, "Equal layers in a chain."},
               layers_key(),
               edges_key(),
               ops_key(),
               {"pipedream", {file()}, "A profile of PipeDream's, graph.txt, read directly."},
               {"network",
                {file()},
                "What `plumbline run` executes: a file with `kind: network`; predictions take "
                "the profile beside it."},
               {"batch",
                {count(1, kMaxBatch)},
                "The samples that one forward in the model's times covers; absent: unknown, and "
                "then nothing is scaled."},
               dtype_key(),
               group_key(),
               {"huggingface",
                {file()},
                "A transformer by its config.json, read directly: its layers give FLOPs and bytes "
                "for training.micro_batch_size, and cluster.device their times."},
               {"like",
                {words(architecture_names())},
                "The architecture as which config.json is read, whatever its model_type says: for "
                "one that is not read, and has such blocks."},
               {"sequence", {count(1, kMaxTokens)}, "Tokens of a sample."},
               {"tensor_parallel",
                {count(1, kMaxShared)},
                "GPUs that share each layer, as Megatron-LM does.",
                "1"},
               {"sequence_parallel",
                {boolean()},
                "Whether these also share what stands between the products, by tokens.",
                "false"},
               {"context_parallel",
                {count(1, kMaxShared)},
                "GPUs that share the tokens of each sample.",
                "1"},
               {"context_exchange",
                {words({kContextExchanges.begin(), kContextExchanges.end()})},
                "What these send each other: all keys and values (ring attention), or tokens for "
                "heads in front of attention, and back behind it (DeepSpeed Ulysses).",
                "keys"},
               {"expert_parallel",
                {count(1, kMaxShared)},
                "GPUs that share the experts of each layer, each with tokens of its own.",
                "1"},
               {"expert_tensor_parallel",
                {count(1, kMaxShared)},
                "GPUs that divide each expert; expert_parallel times as many share the experts of "
                "each layer.",
                "1"},
               {"dispatch",
                {words({kDispatches.begin(), kDispatches.end()})},
                "How tokens go to experts: a copy for each, or one to each server that has some.",
                "per-expert"},
               {"flash_attention",
                {boolean()},
                "Whether attention's scores are recomputed instead of kept.",
                "true"},
               {"fused_swiglu",
                {boolean()},
                "Whether a gated MLP's activation and product, with an expert's share, are one "
                "kernel: the activation and an expert's output are not kept.",
                "false"},
               {"fp8_linear",
                {boolean()},
                "Whether linear layers but the head and routers multiply in fp8, and keep their "
                "inputs so.",
                "false"},
               {"fp8_dispatch",
                {boolean()},
                "Whether tokens on their way to experts, and gradients on theirs, are in fp8.",
                "false"},
               {"cross_entropy",
                {words({kCrossEntropies.begin(), kCrossEntropies.end()})},
                "Whether the loss keeps one copy of the logits in fp32, or the logits and the "
                "logarithms of their softmax, as PyTorch's cross_entropy does; absent: memory as "
                "fused, kernels as those of cluster.device.stack."},
               {"mtp",
                {boolean()},
                "Whether the modules that predict further tokens are trained, too.",
                "false"},
               {"split_blocks",
                {boolean()},
                "Whether attention and MLP are layers of their own.",
                "false"},
               {"dropout",
                {real(1)},
                "The share of numbers that is dropped, of attention's probabilities and of hidden "
                "states; absent: as config.json says."},
               {"attention_dropout",
                {real(1)},
                "The same of attention's probabilities alone; it goes before dropout."},
               {"hidden_dropout",
                {real(1)},
                "The same of what attention and MLP add to the residual, and of the embedding; it "
                "goes before dropout."}},
      .exactly_one = {"profile", "uniform", "layers", "pipedream", "huggingface"},
      .needs = {{"network", "profile"},
                {"edges", "layers"},
                {"huggingface", "sequence"},
                {"sequence", "huggingface"},
                {"tensor_parallel", "huggingface"},
                {"sequence_parallel", "huggingface"},
                {"context_parallel", "huggingface"},
                {"context_exchange", "huggingface"},
                {"expert_parallel", "huggingface"},
                {"expert_tensor_parallel", "huggingface"},
                {"dispatch", "huggingface"},
                {"flash_attention", "huggingface"},
                {"fused_swiglu", "huggingface"},
                {"fp8_linear", "huggingface"},
                {"fp8_dispatch", "huggingface"},
                {"cross_entropy", "huggingface"},
                {"mtp", "huggingface"},
                {"split_blocks", "huggingface"},
                {"dropout", "huggingface"},
                {"attention_dropout", "huggingface"},
                {"hidden_dropout", "huggingface"}},
      .excludes = {{"dtype", "profile", "pipedream"},
                   {"group", "profile", "pipedream", "huggingface"},
                   {"ops", "profile", "pipedream", "huggingface"},
                   {"batch", "huggingface"}},
      .elsewhere = words_elsewhere};
  return model;
}

}  // namespace plumbline
