// `plumbline import huggingface`: a profile out of a model's config.json.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <tuple>

#include "base/quantity.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/import.h"
#include "cli/option_checks.h"
#include "models/architectures/huggingface.h"
#include "models/import/expert_routing.h"
#include "models/import/transformer_network.h"
#include "models/import/transformer_profile.h"

namespace plumbline {
namespace {

struct HuggingFaceArguments {
  std::string config;
  std::string like;
  std::string output;
  std::string name;
  TransformerWords words;
  TransformerOptions options;
  bool as_network = false;
  NetworkOptions network;  ///< What only --network knows.
  std::string scale;       ///< "" = all of it.
};

/// The name of the written profile: the requested one, else the file's. If the file is config.json,
/// as it mostly is, the model's family.
std::string model_name(const HuggingFaceArguments& arguments, const TransformerShape& shape) {
  if (!arguments.name.empty()) return arguments.name;
  const std::string stem = printable(std::filesystem::path(arguments.config).stem().string());
  return stem == "config" ? shape.family : stem;
}

/// 8030261248 as "8,030,261,248".
std::string grouped(SaturatingCount count) {
  if (!count.is_exact()) return "more than 2^53";
  std::string digits = std::to_string(count.value());
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string work_text(double flops) {
  constexpr double max = 0x1p62;
  return flops <= max ? to_text(Flops{static_cast<std::int64_t>(flops)}) : "more than is counted";
}

std::string total_table(const TransformerTotals& totals, double tokens) {
  Table table;
  table.row({"parameters", grouped(totals.parameters)});
  table.row({"active for a token", grouped(totals.active_parameters)});
  table.row({"forward of a token", work_text(totals.forward_flops / tokens)});
  table.row(
      {"forward and backward", work_text((totals.forward_flops + totals.backward_flops) / tokens)});
  return table.print();
}

/// One row for each kind of layer, summed over its layers, in the order of the model.
std::string kind_table(const Model& model) {
  struct Row {
    std::string kind;
    std::int64_t layers = 0;
    Bytes parameters, activation, output;
    double forward = 0, backward = 0;
  };
  std::vector<Row> rows;
  const std::vector<LayerCosts>& costs = model.profile.measurements.front().layers;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Layer& layer = model.graph.layers()[i];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& other) { return other.kind == layer.kind; });
    if (row == rows.end()) row = rows.insert(rows.end(), Row{layer.kind, 0, {}, {}, {}});
    ++row->layers;
    row->parameters += layer.parameters;
    row->activation += costs[i].activation;
    row->output = costs[i].output;
    const LayerWork& work = *costs[i].work;
    row->forward += static_cast<double>(work.forward.flops.count);
    row->backward += static_cast<double>(work.backward_input.flops.count) +
                     static_cast<double>(work.backward_weight.flops.count);
  }
  Table table;
  table.row({"kind", "layers", "parameters", "activations", "output", "forward", "backward"});
  for (const Row& row : rows) {
    table.row({row.kind, std::to_string(row.layers), to_text(row.parameters),
               to_text(row.activation), to_text(row.output), work_text(row.forward),
               work_text(row.backward)});
  }
  return table.print();
}

/// The text after the tokens of a micro-batch: what groups of devices share.
std::string group_text(const TransformerOptions& options) {
  std::vector<std::string> shares;
  const std::string tokens = options.sequence_parallel ? ", sequence-parallel" : "";
  if (options.tensor_parallel > 1)
    shares.push_back(fmt::format("tensor {}{}", options.tensor_parallel, tokens));
  if (options.context_parallel > 1)
    shares.push_back(fmt::format("context {}", options.context_parallel));
  const std::string parts = options.expert_tensor_parallel > 1
                                ? fmt::format(" x {}", options.expert_tensor_parallel)
                                : "";
  if (options.expert_parallel > 1)
    shares.push_back(fmt::format("experts {}{}", options.expert_parallel, parts));
  if (shares.size() > 1)
    return fmt::format("; on groups of {}: {}", options.group(), fmt::join(shares, ", "));
  if (options.tensor_parallel > 1)
    return fmt::format("; on groups of {}{}", options.tensor_parallel, tokens);
  if (options.expert_parallel > 1)
    return fmt::format("; experts on groups of {}{}", options.expert_parallel, parts);
  if (options.context_parallel > 1)
    return fmt::format("; samples on groups of {}", options.context_parallel);
  return "";
}

std::string summary(const HuggingFaceArguments& arguments, const TransformerProfile& profile,
                    const TransformerShape& shape) {
  const TransformerOptions& options = arguments.options;
  std::string text = fmt::format(
      "{}\n  {}, {} blocks, {}; {} x {} tokens{}\n\n", profile.model.name, shape.family,
      shape.blocks, name_of(options.dtype), options.batch, options.sequence, group_text(options));
  text += total_table(profile.totals, static_cast<double>(options.tokens())) + '\n' +
          kind_table(profile.model);
  text += "all layers of a kind together, output of one; for one micro-batch of one device\n\n";
  text += "estimated: nothing was measured; cluster.device turns FLOPs and bytes into times\n";
  for (const std::string& note : profile.notes) text += "note: " + note + '\n';
  return text;
}

int import_huggingface(const HuggingFaceArguments& arguments) {
  if (arguments.network.layers > 0 || !arguments.scale.empty()) {
    return fail({input_error({}, "--layers and --scale are of a network, and --network is missing",
                             "a profile has all layers as wide as they are")});
  }
  const auto shape = read_huggingface(arguments.config, arguments.like);
  if (!shape) return fail(shape.problems());
  const auto profile =
      transformer_profile(model_name(arguments, *shape), *shape, arguments.options);
  if (!profile) return fail(profile.problems());
  const int written =
      write_output(profile_yaml(profile->model, profile->comments), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  return write_output(summary(arguments, *profile, *shape), "");
}

std::string network_summary(const TransformerNetwork& made, const NetworkOptions& options) {
  const Network& network = made.network;
  double forward = 0;
  for (const NetworkLayer& layer : network.layers) forward += layer.forward_flops;
  std::string text = fmt::format("{}\n  {} layers, {}; samples of {} tokens\n\n", network.name,
                                 network.layers.size(), name(network.element), options.sequence);
  Table table;
  table.row({"parameters", grouped(SaturatingCount(network.parameter_count()))});
  table.row({"forward of a token", work_text(forward / static_cast<double>(options.sequence))});
  text += table.print() + '\n';
  for (const std::string& note : made.notes) text += "note: " + note + '\n';
  return text;
}

/// The type of a network's elements for --dtype; nothing where networks have no such type.
std::optional<ElementType> element_of(const std::string& dtype) {
  const auto* const found = std::find(kElementTypes.begin(), kElementTypes.end(), dtype);
  if (found == kElementTypes.end()) return std::nullopt;
  return static_cast<ElementType>(found - kElementTypes.begin());
}

int import_network(const HuggingFaceArguments& arguments) {
  NetworkOptions options = arguments.network;
  options.sequence = arguments.options.sequence;
  options.tensor_parallel = arguments.options.tensor_parallel;
  const auto element = element_of(arguments.words.dtype);
  if (!element) {
    return fail({input_error(
        {}, fmt::format("--dtype is {}, which no network computes in", arguments.words.dtype),
        "fp32 or bf16")});
  }
  options.dtype = *element;
  const auto scale = read_fraction(arguments.scale.empty() ? "1" : arguments.scale);
  if (!scale) {
    return fail({input_error(
        {}, fmt::format("--scale is '{}', which is no part of a whole", clipped(arguments.scale)),
        "such as 1/8")});
  }
  options.scale = *scale;
  const auto shape = read_huggingface(arguments.config, arguments.like);
  if (!shape) return fail(shape.problems());
  const auto made = transformer_network(model_name(arguments, *shape), *shape, options);
  if (!made) return fail(made.problems());
  const int written = write_output(made->yaml, arguments.output);
  if (written != ExitCode::done) return written;
  if (arguments.output.empty()) {
    for (const std::string& note : made->notes) say(fmt::format("note: {}\n", note));
    return written;
  }
  return write_output(network_summary(*made, options), "");
}

/// Adds options: the file to read, the file to write, and the model's name.
void add_files(CLI::App& command, HuggingFaceArguments& arguments) {
  command.add_option("config", arguments.config, "config.json of a Hugging Face model")
      ->required()
      ->type_name("FILE");
  command.add_option("-o,--output", arguments.output, "write the profile, or the network, here")
      ->type_name("FILE");
  command
      .add_option("--like", arguments.like,
                  "read config.json as one of this architecture, whatever its model_type says")
      ->type_name("ARCHITECTURE");
  command.add_option("--name", arguments.name, "what the model is called; absent = as its file")
      ->type_name("NAME");
}

/// Adds options: the micro-batch of one device, and the format of its numbers.
void add_micro_batch(CLI::App& command, HuggingFaceArguments& arguments) {
  constexpr std::int64_t max = 100'000'000;
  command.add_option("--sequence", arguments.options.sequence, "tokens of a sample")
      ->required()
      ->check(between(1, max))
      ->type_name("N");
  command.add_option("--batch", arguments.options.batch, "samples of a micro-batch")
      ->check(between(1, max))
      ->capture_default_str()
      ->type_name("N");
  add_dtype(command, arguments.words);
}

/// Adds options: the devices that share layers, experts or tokens.
void add_groups(CLI::App& command, HuggingFaceArguments& arguments) {
  command
      .add_option("--tensor-parallel", arguments.options.tensor_parallel,
                  "devices that share each layer, as Megatron-LM does")
      ->check(between(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  command.add_flag("--sequence-parallel", arguments.options.sequence_parallel,
                   "these devices also share what stands between the products, by tokens");
  command
      .add_option("--expert-parallel", arguments.options.expert_parallel,
                  "devices that share the experts of each layer, each with tokens of its own")
      ->check(between(1, 65536))
      ->capture_default_str()
      ->type_name("N");
  add_divided_experts(command, arguments.words, arguments.options);
  command
      .add_option("--context-parallel", arguments.options.context_parallel,
                  "devices that share the tokens of each sample")
      ->check(between(1, 65536))
      ->capture_default_str()
      ->type_name("N");
  add_context_exchange(command, arguments.words);
  command
      .add_option("--devices-per-server", arguments.options.devices_per_server,
                  "of a group, those that share a server; the rest goes over the network")
      ->check(between(1, 65536))
      ->type_name("N");
}

/// Adds options: how layers are computed, and which layers there are.
void add_implementation(CLI::App& command, HuggingFaceArguments& arguments) {
  TransformerOptions& options = arguments.options;
  add_flash_attention(command, options);
  command.add_flag(
      "--fused-swiglu", options.fused_swiglu,
      "the activation of a gated MLP and its product, of an expert with its share, are "
      "one kernel: it and the expert's output are not kept");
  add_fp8_linear(command, options);
  command.add_flag("--fp8-dispatch", options.fp8_dispatch,
                   "tokens on their way to experts, and gradients on theirs, are in fp8");
  add_cross_entropy(command, arguments.words);
  add_mtp(command, options);
  command.add_flag("--split-blocks", options.split_blocks,
                   "attention and MLP as layers of their own");
}

/// The options of a profile that a network takes, too.
constexpr std::array<std::string_view, 8> kOfBoth = {"--help",  "config",           "--output",
                                                     "--like",  "--name",           "--sequence",
                                                     "--dtype", "--tensor-parallel"};
constexpr std::array<std::string_view, 3> kOfNetworks = {"--network", "--layers", "--scale"};

/// The errors of options that describe a profile, where a network is asked for.
Diagnostics misplaced_options(const CLI::App& command) {
  Diagnostics misplaced;
  for (const CLI::Option* option : command.get_options()) {
    const auto is_it = [&](std::string_view name) { return option->check_name(std::string(name)); };
    if (option->count() == 0 || std::any_of(kOfBoth.begin(), kOfBoth.end(), is_it) ||
        std::any_of(kOfNetworks.begin(), kOfNetworks.end(), is_it))
      continue;
    misplaced.push_back(
        input_error({}, fmt::format("{} and --network do not go together", option->get_name()),
                    "give one of them"));
  }
  return misplaced;
}

/// Adds options: a network in the place of a profile.
void add_network(CLI::App& command, HuggingFaceArguments& arguments) {
  command.add_flag("--network", arguments.as_network,
                   "write a network that is really executed: plumbline run, calibrate and validate "
                   "take it");
  command
      .add_option("--layers", arguments.network.layers,
                  "with --network: only so many blocks, from the first on")
      ->check(between(1, 1'000'000))
      ->type_name("N");
  command
      .add_option(
          "--scale", arguments.scale,
          "with --network: widths, numbers of heads and the vocabulary are this part; heads keep "
          "their size")
      ->type_name("1/N");
}

void add_dropout(CLI::App& command, TransformerOptions& options) {
  for (const auto& [name, rate, text] :
       {std::tuple{"--dropout", &options.dropout,
                   "share of numbers that is dropped, of attention's probabilities and of hidden "
                   "states; absent = as config.json says"},
        std::tuple{"--attention-dropout", &options.attention_dropout,
                   "the same of attention's probabilities alone"},
        std::tuple{"--hidden-dropout", &options.hidden_dropout,
                   "the same of residuals and the embedding alone"}}) {
    command.add_option(name, *rate, text)->check(between_reals(0.0, 1.0))->type_name("SHARE");
  }
}

}  // namespace

void TransformerWords::apply(const CLI::App& command, TransformerOptions& options) const {
  options.dtype = number_format(dtype);
  options.dtype_given = command.count("--dtype") > 0;
  options.dispatch = dispatch_of(dispatch);
  options.dispatch_given = command.count("--dispatch") > 0;
  options.context_exchange = context_exchange_of(context_exchange);
  if (!cross_entropy.empty()) options.fused_loss = cross_entropy == kCrossEntropies[0];
}

void add_dtype(CLI::App& command, TransformerWords& words) {
  command.add_option("--dtype", words.dtype, "what numbers are kept and multiplied in")
      ->check(one_of({kNumberFormats.begin(), kNumberFormats.end()}))
      ->capture_default_str();
}

void add_flash_attention(CLI::App& command, TransformerOptions& options) {
  command.add_flag("--flash-attention,!--no-flash-attention", options.flash_attention,
                   "whether attention's scores are kept for the backward; default: they are not");
}

void add_fp8_linear(CLI::App& command, TransformerOptions& options) {
  command.add_flag("--fp8-linear", options.fp8_linear,
                   "linear layers but the head and routers multiply in fp8, the rest in --dtype");
}

void add_divided_experts(CLI::App& command, TransformerWords& words, TransformerOptions& options) {
  command
      .add_option("--expert-tensor-parallel", options.expert_tensor_parallel,
                  "devices that divide each expert; --expert-parallel times as many share them")
      ->check(between(1, 65536))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--dispatch", words.dispatch,
                  "how tokens go to experts: a copy for each, or one to each server that has some")
      ->check(one_of({kDispatches.begin(), kDispatches.end()}))
      ->capture_default_str();
}

void add_context_exchange(CLI::App& command, TransformerWords& words) {
  command
      .add_option("--context-exchange", words.context_exchange,
                  "what these send each other: all keys and values, or tokens for heads")
      ->check(one_of({kContextExchanges.begin(), kContextExchanges.end()}))
      ->capture_default_str();
}

void add_cross_entropy(CLI::App& command, TransformerWords& words) {
  command
      .add_option("--cross-entropy", words.cross_entropy,
                  "whether the loss keeps one copy of the logits in fp32, or the logits and the "
                  "logarithms of their softmax, as PyTorch's does; absent = fused")
      ->check(one_of({kCrossEntropies.begin(), kCrossEntropies.end()}));
}

void add_mtp(CLI::App& command, TransformerOptions& options) {
  command.add_flag("--mtp", options.mtp,
                   "the modules that predict further tokens are trained, too");
}

void add_import_huggingface(CLI::App& import, int& exit_code) {
  auto arguments = std::make_shared<HuggingFaceArguments>();
  CLI::App* command = import.add_subcommand(
      "huggingface",
      "the layers of a transformer from its config.json, with estimated costs, or to be executed");
  add_files(*command, *arguments);
  add_micro_batch(*command, *arguments);
  add_groups(*command, *arguments);
  add_implementation(*command, *arguments);
  add_dropout(*command, arguments->options);
  add_network(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    arguments->words.apply(*command, arguments->options);
    if (!arguments->as_network) {
      exit_code = import_huggingface(*arguments);
    } else if (const auto wrong = misplaced_options(*command); !wrong.empty()) {
      exit_code = fail(wrong);
    } else {
      exit_code = import_network(*arguments);
    }
  });
}

}  // namespace plumbline
