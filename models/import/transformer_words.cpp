// Lines of formulas, then notes, then provenance.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/import/config_facts.h"
#include "models/import/expert_routing.h"
#include "models/import/layer_symbols.h"
#include "models/import/transformer_layers.h"

namespace plumbline {
namespace {

/// "  40960 = 2 T h  the norm's output" for each summand.
void add_terms(std::vector<std::string>& lines, std::string_view what,
               const std::vector<Term>& terms, std::string_view unit) {
  lines.push_back(fmt::format("{}: {} {}", what, sum(terms).value(), unit));
  for (const Term& term : terms)
    lines.push_back(fmt::format("  {} = {}  ({})", term.formula, term.value.value(), term.what));
}

void add_dispatch_lines(std::vector<std::string>& lines, const LayerDerivation& layer,
                        const ExpertRouting& routing, const TransformerOptions& options) {
  const std::string_view tokens = options.sequence_parallel ? "R" : "T";
  const std::int64_t devices = options.expert_parallel;
  const std::int64_t servers = options.expert_servers();
  const std::int64_t near = devices / servers;
  constexpr std::string_view passes = "link_traffic, forward and backward for the input: of";
  if (options.dispatch == Dispatch::per_expert) {
    lines.push_back(fmt::format("{} {} = {} {} h", passes, layer.exchanged.value(),
                                options.fp8_dispatch ? "k (1 + e)" : "2 k e", tokens));
    lines.push_back(fmt::format(
        "  (tokens to experts and back) {} / {}{}", near - 1, devices,
        servers > 1 ? fmt::format("; network_traffic: {} / {}", devices - near, devices) : ""));
    return;
  }
  lines.push_back(fmt::format("{} {} = {} {} h", passes,
                              layer.exchanged.value() / routing.per_token,
                              options.fp8_dispatch ? "(1 + e)" : "2 e", tokens));
  lines.push_back(fmt::format(
      "  (tokens to experts and back) x {:.6g}, the mean number of devices that have some",
      mean_places(routing, devices)));
  lines.push_back(fmt::format("  of its k, x {} / {}{}", near - 1, near,
                              servers > 1
                                  ? fmt::format("; network_traffic: x {:.6g} servers x {} / {}",
                                                mean_places(routing, servers), servers - 1, servers)
                                  : ""));
}

void add_divided_lines(std::vector<std::string>& lines, const LayerDerivation& layer,
                       const TransformerOptions& options) {
  const std::int64_t parts = options.expert_tensor_parallel;
  lines.push_back(fmt::format(
      "link_traffic, forward and backward for the input: of {} = {} {} {} h",
      layer.expert_gathered.value(), parts, options.fp8_dispatch ? "k (1 + e)" : "2 k e",
      options.sequence_parallel ? "R" : "T"));
  lines.push_back(fmt::format("  (gathered in front of divided experts, scattered behind) {} / {}",
                              parts - 1, parts));
  lines.push_back(fmt::format("  memory_traffic: in both also twice k e {} {} h", parts,
                              options.sequence_parallel ? "R" : "T"));
}

/// Adds the lines of a block whose attention and MLP run side by side.
void add_parallel_lines(std::vector<std::string>& lines, const LayerDerivation& layer,
                        const TransformerOptions& options) {
  lines.emplace_back("  attention's output: forward and backward for the input also twice e T h");
  if (!options.sequence_parallel) return;
  const std::int64_t norms = std::count_if(layer.parameters.begin(), layer.parameters.end(),
                                           [](const Term& term) { return term.what == "norm"; });
  lines.push_back(
      fmt::format("  in each of the three {} times e T h, gathered or added up", norms + 1));
}

void add_flops(std::vector<std::string>& lines, const LayerDerivation& layer) {
  if (layer.flops.empty()) return;
  std::vector<Term> forward;
  forward.reserve(layer.flops.size());
  for (const WorkTerm& term : layer.flops) {
    forward.push_back(term.forward);
    if (!term.has_weights)
      forward.back().what += fmt::format("; backward {:g} times that, without weights",
                                         static_cast<double>(term.input_halves) / 2);
  }
  add_terms(lines, "forward", forward,
            "FLOP; the backwards for the input and for the weights: as many each");
}

void add_embedding_lines(std::vector<std::string>& lines, const LayerDerivation& layer) {
  lines.emplace_back("memory_traffic: the rows read and written; backward: their gradients read,");
  lines.emplace_back("  those of the tables written");
  if (layer.dropped.value() > 0)
    lines.emplace_back("  dropout: either moves the output twice and its mask once besides");
}

/// Adds the lines on memory of a layer with products.
void add_memory_lines(std::vector<std::string>& lines, const LayerDerivation& layer,
                      const TransformerShape& shape, const TransformerOptions& options) {
  lines.emplace_back("memory_traffic: weights, input (of each of its norms), and twice what is");
  lines.emplace_back("  kept; backward for the input: weights and three times what is kept; for");
  lines.emplace_back("  the weights: their gradients and twice what is kept");
  if (layer.role == "mtp") {
    lines.emplace_back("  of the embedding's table the rows, and the gradients of all of it");
    if (options.sequence_parallel)
      lines.emplace_back("  around the projection in each of the three: four times e T h");
  }
  const bool attends =
      layer.role == "attention" || layer.role == "mtp" || layer.role.ends_with("block");
  if (attends && !options.flash_attention)
    lines.emplace_back("  attention: forward and backward for the input also twice e T s a");
  if (layer.dropped.value() > 0)
    lines.emplace_back(
        "  dropout: forward and backward for the input each move its tensor twice, its mask "
        "once");
  if (shape.is_parallel() && layer.role != "head") {
    add_parallel_lines(lines, layer, options);
  } else if (options.sequence_parallel) {
    lines.emplace_back(
        "  behind each norm in each of the three: twice e T h, gathered or added up");
  }
}

/// Adds the lines on keys and values that devices which share a sample gather.
void add_gathered_lines(std::vector<std::string>& lines, const Term& gathered,
                        const TransformerOptions& options) {
  const std::int64_t devices = options.context_parallel;
  lines.push_back(
      fmt::format("{}_traffic, forward: of {} = {} ({})",
                  options.fits_in_server(options.devices_per_sample()) ? "link" : "network",
                  gathered.value.value(), gathered.formula, gathered.what));
  lines.push_back(
      fmt::format("  {} / {}; backward for the input: twice that; and", devices - 1, devices));
  lines.emplace_back("  memory_traffic: each is written and read besides");
}

/// Adds the lines on heads that such devices exchange.
void add_heads_lines(std::vector<std::string>& lines, const Term& heads,
                     const TransformerOptions& options) {
  const std::int64_t devices = options.context_parallel;
  const std::int64_t near = options.context_neighbours();
  lines.push_back(fmt::format("link_traffic, forward and backward for the input: of {} = {}",
                              heads.value.value(), heads.formula));
  lines.push_back(fmt::format(
      "  ({}) {} / {}{}; and", heads.what, near - 1, devices,
      near < devices ? fmt::format("; network_traffic: {} / {}", devices - near, devices) : ""));
  lines.emplace_back("  memory_traffic: each is written and read besides");
}

constexpr std::string_view kReplicated =
    "an update holds the time in which it adds up their gradients, and training.zero_stage: 1 "
    "shares their optimizer state over the group, too";

std::string dispatch_note(const ExpertRouting& routing, const TransformerOptions& options) {
  const std::int64_t servers = options.expert_servers();
  return fmt::format("a token goes to {:.3g} devices of the group{}, on average, once to each",
                     mean_places(routing, options.expert_parallel),
                     servers > 1 ? fmt::format(" in {:.3g} of its {} servers",
                                               mean_places(routing, servers), servers)
                                 : "");
}

/// "keys and values", or the other numbers that devices which share a sample exchange.
std::string context_words(const TransformerShape& shape, const TransformerOptions& options) {
  if (!options.exchanges_heads()) return "keys and values";
  const std::int64_t repeats =
      shape.latent ? 1 : options.repeats_of_keys(shape.key_value_heads / options.tensor_parallel);
  return fmt::format(
      "tokens for heads in front of attention, and back behind it{}",
      repeats > 1
          ? fmt::format("; heads of keys and values are repeated {} times for that", repeats)
          : "");
}

/// Adds notes on the group that a device of the scenario stands for, and on what its devices share.
void add_group_notes(const TransformerShape& shape, const TransformerOptions& options,
                     std::vector<std::string>& notes) {
  const std::int64_t t = options.tensor_parallel;
  const std::int64_t each = options.devices_per_sample();
  const std::int64_t samples = options.group_batches() * options.batch;
  notes.push_back(
      fmt::format("each device stands for a group of {}: cluster.devices counts groups, and all "
                  "bytes are those of one device of the group",
                  options.group()));
  if (t > 1)
    notes.push_back(
        fmt::format("{} share each layer: {}", t,
                    options.sequence_parallel ? "all-gathers and reduce-scatters" : "all-reduces"));
  if (t > 1 && shape.latent)
    notes.emplace_back(
        "every device of these compresses all tokens, and sends tokens as wide as between blocks, "
        "where it could send compressed ones");
  if (options.context_parallel > 1)
    notes.push_back(fmt::format("{} share the tokens of each sample: {}", options.context_parallel,
                                context_words(shape, options)));
  if (options.expert_parallel > 1) {
    const std::int64_t parts = options.expert_tensor_parallel;
    notes.push_back(fmt::format(
        "all share the experts, {} of a layer on {}, and tokens are taken to spread evenly over "
        "them; {} micro-batches of {} of {} own: the samples of a micro-batch in a scenario are "
        "those of the whole group, {}",
        shape.experts / options.expert_parallel,
        parts > 1 ? fmt::format("every {}, which divide each of them", parts) : "each",
        each > 1 ? fmt::format("every {} train", each) : "each trains", options.batch,
        each > 1 ? "their" : "its", samples));
    if (options.dispatch == Dispatch::per_server)
      notes.push_back(dispatch_note(shape.routing(), options));
  }
  const std::string ways =
      options.fits_in_server(options.group())
          ? "link_traffic, over the link of cluster.device; cluster.link is that of one to its "
            "peer "
            "in another group"
          : "link_traffic and, between servers, network_traffic, over the link and the network of "
            "cluster.device; cluster.link: network is that between groups";
  notes.push_back("what they send each other is " + ways);
  if (options.group() == t) return;
  notes.push_back(fmt::format("{} replicated {}: {}",
                              options.expert_parallel > 1
                                  ? fmt::format("the {} parameters that are no experts' are",
                                                replicated_of(shape, options).value())
                                  : "all parameters are",
                              t > 1 ? fmt::format("{} times in the group", options.group() / t)
                                    : "on each device of the group",
                              kReplicated));
}

/// The chosen modules that no layer of the shape has.
RecomputeModules absent_modules(const TransformerShape& shape, RecomputeModules chosen) {
  const auto has = [&](RecomputeModule module) {
    using enum RecomputeModule;
    switch (module) {
      case core_attn:
      case layernorm:
        return true;
      case mla_up_proj:
        return shape.latent.has_value();
      case mlp:
        return shape.has_dense_blocks();
      case mlp_act:
        return shape.has_dense_blocks() || shape.shared_feed_forward > 0;
      case moe:
      case moe_act:
        return shape.has_experts();
      case shared_experts:
        return shape.shared_feed_forward > 0;
    }
    return false;
  };
  RecomputeModules absent;
  for (std::size_t i = 0; i < kRecomputeModules.size(); ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    if (chosen.holds(module) && !has(module)) absent.insert(module);
  }
  return absent;
}

/// "attention 0.1, residual 0.1"; "" where nothing is dropped.
std::string dropout_text(const DropoutRates& rates) {
  std::string text;
  for (const auto& [what, rate] :
       {std::pair{"attention", rates.attention}, std::pair{"residual", rates.residual},
        std::pair{"embedding", rates.embedding}}) {
    if (rate.value_or(0) > 0)
      text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", what, *rate);
  }
  return text;
}

/// Adds notes on blocks that see fewer tokens than come before, where that saves nothing.
void add_reach_notes(const TransformerShape& shape, const TransformerOptions& options,
                     std::vector<std::string>& notes) {
  std::optional<std::int64_t> window;
  const bool is_limited = shape.any_block([&](const BlockShape& block) {
    const auto reach = block.reach(options.sequence);
    if (reach && !window) window = reach;
    return reach.has_value();
  });
  if (!is_limited) return;
  if (!options.flash_attention)
    notes.push_back(
        fmt::format("attention looks back {} tokens in some or all blocks; its scores "
                    "are counted as if it looked back {}",
                    *window, options.sequence));
  if (options.context_parallel > 1)
    notes.emplace_back(
        "keys and values of all tokens are gathered, also where attention looks back fewer");
}

}  // namespace

std::vector<std::string> formula_lines(const LayerDerivation& layer, const TransformerShape& model,
                                       const TransformerShape& shape,
                                       const TransformerOptions& options) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}, for one micro-batch of one device:", layer.kind));
  if (layer.block >= 0) {
    for (const std::string& line : kind_symbol_lines(model, shape, options))
      lines.push_back("  with " + line);
  }
  add_terms(lines, "parameters", layer.parameters, "numbers of e bytes");
  add_flops(lines, layer);
  add_terms(lines, "activation, kept until the backward", layer.kept, "B");
  if (const SaturatingCount again = recomputation(layer.kept); again.value() > 0)
    lines.push_back(fmt::format("  of this, recompute: selective recomputes {}", again.value()));
  if (layer.role == "embedding") {
    add_embedding_lines(lines, layer);
    return lines;
  }
  add_memory_lines(lines, layer, shape, options);
  if (layer.exchanged.value() > 0) add_dispatch_lines(lines, layer, shape.routing(), options);
  if (layer.expert_gathered.value() > 0) add_divided_lines(lines, layer, options);
  if (const Term& gathered = layer.keys_and_values; gathered.value.value() > 0)
    add_gathered_lines(lines, gathered, options);
  if (const Term& heads = layer.exchanged_heads; heads.value.value() > 0)
    add_heads_lines(lines, heads, options);
  return lines;
}

std::vector<std::string> head_lines(const TransformerShape& shape,
                                    const TransformerOptions& options) {
  std::vector<std::string> lines = {
      "Nothing here was measured: every number follows from config.json by the formulas below.",
      "A scenario turns FLOPs and bytes into times with cluster.device (plumbline list presets)."};
  for (const std::string& line : symbol_lines(shape, options)) lines.push_back("  " + line);
  return lines;
}

std::vector<std::string> notes_of(const TransformerShape& shape, const TransformerOptions& options,
                                  const DeviceGroup& group) {
  std::vector<std::string> notes;
  if (shape.tied)
    notes.emplace_back(
        "the head is tied to the embedding: its copy takes memory, and is counted as a parameter "
        "once");
  if (shape.has_experts() && options.expert_parallel == 1)
    notes.emplace_back(
        "tokens are taken to spread evenly over the experts, and every device holds all of them");
  if (options.group() > 1) add_group_notes(shape, options, notes);
  for (std::string& note : uncounted(shape, options)) notes.push_back(std::move(note));
  if (group.given && !group.forward)
    notes.emplace_back(
        "a forward of the whole group has more than the 10^18 FLOP that a file may give as "
        "group.forward_flops: utilization is counted of all that its devices compute, which may be "
        "more");
  notes.emplace_back(
      "training.optimizer_state says how many bytes the optimizer holds for each byte of "
      "parameters, training.gradients how many their gradients take; without them 0 and 1");
  return notes;
}

std::vector<std::string> uncounted(const TransformerShape& shape,
                                   const TransformerOptions& options) {
  std::vector<std::string> notes;
  if (shape.further_predictions > 0 && !options.mtp)
    notes.push_back(fmt::format("the modules that predict further tokens are not counted: {} does",
                                options.names->mtp));
  if (options.expert_servers() > 1 && !options.dispatch_given && shape.experts_per_token > 1) {
    notes.push_back(fmt::format(
        "experts are in {} servers, and a token is sent there once for each of its {} experts, "
        "where recipes of DeepSeek-V3's kind send one copy to each server ({} per-server)",
        options.expert_servers(), shape.experts_per_token, options.names->dispatch));
  }
  if (const ExpertRouting routing = shape.routing();
      routing.is_limited() && options.dispatch == Dispatch::per_server &&
      options.expert_parallel > 1 &&
      (!nests(routing, options.expert_parallel) || !nests(routing, options.expert_servers()))) {
    notes.push_back(fmt::format(
        "that the experts of a token lie in {} of {} groups is not counted where devices or "
        "servers hold parts of several groups",
        routing.groups_per_token, routing.groups));
  }
  if (options.recompute_modules) {
    if (const RecomputeModules absent = absent_modules(shape, *options.recompute_modules);
        absent != RecomputeModules{})
      notes.push_back(fmt::format("no layer of the model has what is recomputed: {}",
                                  fmt::join(names_of(absent), ", ")));
  }
  if (options.fp8_linear)
    notes.emplace_back(
        "copies of the weights in fp8, scaling factors, and what rounding to fp8 takes are not "
        "counted");
  add_reach_notes(shape, options, notes);
  for (std::string& note : config_notes(shape, options)) notes.push_back(std::move(note));
  if (shape.positions > 0 && options.sequence > shape.positions) {
    notes.push_back(
        fmt::format("the sequence of {} is longer than the {} that the model was made "
                    "for",
                    options.sequence, shape.positions));
  }
  return notes;
}

std::map<std::string, std::string> provenance_of(const TransformerShape& shape,
                                                 const TransformerOptions& options) {
  std::map<std::string, std::string> provenance = {
      {"source", "derived from config.json, not measured"},
      {"architecture", shape.family},
      {"sequence", std::to_string(options.sequence)},
      {"attention", options.flash_attention ? "flash" : "scores kept"},
      {"tensor_parallel", std::to_string(options.tensor_parallel)},
      {"sequence_parallel", options.sequence_parallel ? "yes" : "no"}};
  if (shape.has_experts())
    provenance.emplace("expert_parallel", std::to_string(options.expert_parallel));
  if (options.expert_tensor_parallel > 1)
    provenance.emplace("expert_tensor_parallel", std::to_string(options.expert_tensor_parallel));
  if (shape.has_experts() && options.expert_parallel > 1)
    provenance.emplace("dispatch", name_of(options.dispatch));
  if (const std::string dropped = dropout_text(dropout_of(shape, options)); !dropped.empty())
    provenance.emplace("dropout", dropped);
  if (options.mtp) provenance.emplace("mtp", std::to_string(shape.further_predictions));
  if (options.fp8_linear) provenance.emplace("linear layers", "fp8");
  if (options.fp8_dispatch && options.expert_parallel > 1) provenance.emplace("dispatch in", "fp8");
  if (shape.gated && options.fused_swiglu) provenance.emplace("swiglu", "fused");
  if (options.recompute_modules)
    provenance.emplace("recompute_modules",
                       fmt::format("{}", fmt::join(names_of(*options.recompute_modules), ", ")));
  if (options.fused_loss)
    provenance.emplace("cross_entropy", kCrossEntropies[*options.fused_loss ? 0 : 1]);
  if (options.context_parallel > 1)
    provenance.emplace("context_parallel", std::to_string(options.context_parallel));
  if (options.exchanges_heads())
    provenance.emplace("context_exchange", name_of(options.context_exchange));
  if (options.devices_per_server)
    provenance.emplace("devices_per_server", std::to_string(*options.devices_per_server));
  return provenance;
}

}  // namespace plumbline
