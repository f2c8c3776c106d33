// Blocks become attention and MLP layers; what no kind of layer computes is an error.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/some_of.h"
#include "base/yaml_text.h"
#include "models/network/network_reader.h"

namespace plumbline {
namespace {

/// The base of rotary positions where the file gives none (Su et al. 2021).
constexpr double kUsualRotaryBase = 10'000;

/// The word for a norm or an activation in a network file.
std::string_view word_of(NormKind kind) { return kNormKinds[static_cast<std::size_t>(kind)]; }
std::string_view word_of(Activation activation) {
  return kActivationNames[static_cast<std::size_t>(activation)];
}

/// Functions by the names of Hugging Face Transformers. Forms of gelu differ by less than 0.1 % of
/// their values, and are computed in the tanh form.
std::optional<Activation> named_activation(std::string_view name) {
  constexpr std::array<std::string_view, 7> gelus = {
      "gelu",        "gelu_accurate",    "gelu_fast",        "gelu_new",
      "gelu_python", "gelu_python_tanh", "gelu_pytorch_tanh"};
  if (std::find(gelus.begin(), gelus.end(), name) != gelus.end()) return Activation::gelu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  return std::nullopt;
}

/// Lines of layers; equal neighbours repeat.
class LayerLines {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  /// The lines of one block of the model.
  void add_block(std::vector<std::string> lines) {
    if (!blocks_.empty() && blocks_.back().lines == lines) {
      ++blocks_.back().times;
    } else {
      blocks_.push_back({1, std::move(lines)});
    }
  }
  void end_blocks() {
    for (const Block& block : blocks_) {
      if (block.times == 1) {
        lines_.insert(lines_.end(), block.lines.begin(), block.lines.end());
        continue;
      }
      std::string group = fmt::format("repeat: {}\n    layers:", block.times);
      for (const std::string& line : block.lines) group += "\n      - " + line;
      lines_.push_back(std::move(group));
    }
    blocks_.clear();
  }
  std::string text() const { return fmt::format("  - {}\n", fmt::join(lines_, "\n  - ")); }

 private:
  struct Block {
    std::int64_t times;
    std::vector<std::string> lines;
  };

  std::vector<std::string> lines_;
  std::vector<Block> blocks_;
};

class NetworkOfTransformer {
 public:
  NetworkOfTransformer(const TransformerShape& shape, const NetworkOptions& options)
      : shape_(shape), options_(options) {}

  Result<TransformerNetwork> run(const std::string& name) && {
    const std::int64_t blocks =
        options_.layers > 0 ? std::min(options_.layers, shape_.blocks) : shape_.blocks;
    if (options_.layers > shape_.blocks) {
      problem(fmt::format("--layers is {}, but the model has {} blocks", options_.layers,
                          shape_.blocks));
    }
    hidden_ = scaled(shape_.hidden, "hidden size");
    vocabulary_ = padded(shape_.vocabulary, "vocabulary");
    check_model();
    add_ends_and_blocks(blocks);
    if (!problems_.empty()) return std::move(problems_);
    TransformerNetwork made;
    made.yaml = header(name, blocks) + lines_.text();
    auto source = std::make_shared<Source>();
    source->name = name + ".network.yaml";
    source->text = made.yaml;
    auto network = parse_network(std::move(source));
    if (!network) return network.problems();
    made.network = *std::move(network);
    made.notes = std::move(notes_);
    return made;
  }

 private:
  void problem(std::string message, std::string help = "") {
    const auto same = [&](const Diagnostic& one) { return one.message == message; };
    if (std::none_of(problems_.begin(), problems_.end(), same))
      problems_.push_back(input_error({}, std::move(message), std::move(help)));
  }
  void no_kind(std::string_view what) {
    problem(fmt::format("no kind of layer computes {}", what),
            "without --network the model is described, and its times are estimated");
  }
  void note(std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end())
      notes_.push_back(std::move(text));
  }

  /// A width after --scale.
  std::int64_t scaled(std::int64_t width, std::string_view what) {
    const std::int64_t parts = options_.scale.parts;
    if (width % parts != 0)
      problem(fmt::format("--scale 1/{} does not divide the {} of {}", parts, what, width));
    return std::max<std::int64_t>(width / parts, 1);
  }
  /// What one rank of a tensor-parallel group has of it.
  std::int64_t divided(std::int64_t width, std::string_view what) {
    const std::int64_t parts = options_.tensor_parallel;
    if (width % parts != 0)
      problem(fmt::format("--tensor-parallel {} does not divide the {} of {}", parts, what, width));
    return std::max<std::int64_t>(width / parts, 1);
  }
  /// Both, rounded up.
  std::int64_t padded(std::int64_t width, std::string_view what) {
    const std::int64_t parts = options_.scale.parts * options_.tensor_parallel;
    if (width % parts != 0)
      note(fmt::format("the {} of {} is padded to a multiple of {}", what, width, parts));
    return (width + parts - 1) / parts;
  }

  void check_model() {
    if (shape_.streams > 1) no_kind("several residual streams (hyper-connections)");
    if (shape_.head_bias && options_.tensor_parallel > 1)
      note("the head's bias is divided like its rows");
    if (!shape_.head_tensors.empty()) no_kind(shape_.head_tensors.front().what);
    if (shape_.further_predictions > 0) note("modules that predict further tokens are left out");
    if (shape_.positions_in_scores)
      note("positions in the scores of attention are left out: they cost next to nothing");
    if (shape_.tied)
      note(
          fmt::format("the model ties its head to the embedding; here each has a table, which is "
                      "{} parameters more",
                      hidden_ * vocabulary_));
    if (shape_.facts.dropout.attention.value_or(0) > 0 ||
        shape_.facts.dropout.residual.value_or(0) > 0 ||
        shape_.facts.dropout.embedding.value_or(0) > 0)
      note("dropout is left out");
    check_file();
    if (shape_.facts.partly_rotated)
      note("all of each head turns by its position, not a part of it");
    if (options_.tensor_parallel > 1)
      note("what the ranks of a tensor-parallel group send each other is not in it");
  }

  /// What the file has beside the shape.
  void check_file() {
    const ConfigFacts& facts = shape_.facts;
    for (const std::string& text : facts.notes) note(text);
    if (facts.quantized) note("quantization_config of config.json is not counted");
    if (!facts.unread.empty()) {
      note(
          fmt::format("config.json has {} that nothing here reads and that may change what is "
                      "computed: {}",
                      facts.unread.size() == 1 ? "a key" : "keys", some_of(facts.unread, 7)));
    }
    if (!shape_.learned_positions || shape_.positions == 0) return;
    if (options_.sequence > shape_.positions) {
      problem(fmt::format("--sequence is {}, but the model has {} positions", options_.sequence,
                          shape_.positions));
    } else if (options_.sequence < shape_.positions) {
      note(fmt::format("the table of positions has {} rows, not {}", options_.sequence,
                       shape_.positions));
    }
  }

  bool is_rotated() const { return !shape_.learned_positions && !shape_.positions_in_scores; }
  bool starts_with_layer_norm() const {
    return shape_.kinds.empty() ? shape_.layer_norm : shape_.kinds.front().block.layer_norm;
  }

  void add_ends_and_blocks(std::int64_t blocks) {
    lines_.add(fmt::format("{{kind: embedding, features: {}{}}}", hidden_,
                           shape_.learned_positions ? ", positions: true" : ""));
    for (std::int64_t i = 0; i < blocks; ++i) add_block(i);
    lines_.end_blocks();
    lines_.add(fmt::format("{{kind: head, norm: {}{}}}", word_of(norm_of(starts_with_layer_norm())),
                           shape_.head_bias ? ", bias: true" : ""));
  }

  void add_block(std::int64_t i) {
    const BlockShape& block = shape_.kinds.empty()
                                  ? shape_
                                  : shape_.kinds[shape_.kind_of[static_cast<std::size_t>(i)]].block;
    if (block.is_parallel()) no_kind("attention and MLP side by side");
    std::vector<std::string> lines;
    if (block.mixer != Mixer::none) lines.push_back(attention_line(block));
    if (block.has_mlp) {
      if (shape_.has_experts(i)) {
        no_kind("experts");
      } else {
        lines.push_back(mlp_line(block));
      }
    }
    lines_.add_block(std::move(lines));
  }

  static NormKind norm_of(bool layer_norm) {
    return layer_norm ? NormKind::layer_norm : NormKind::rms_norm;
  }

  void check_mixer(const BlockShape& block) {
    if (block.mixer == Mixer::scan) no_kind("a scan in the place of attention");
    if (block.mixer == Mixer::compressed) no_kind("attention over compressed keys");
    if (block.mixer == Mixer::linear) no_kind("a linear mixer");
    if (block.latent) no_kind("latent attention (MLA)");
    if (block.index) no_kind("attention over chosen keys");
    if (block.by_chunk) no_kind("attention by chunks");
    if (block.values_are_keys) no_kind("attention whose values are its keys");
    if (block.output_gate > 0) no_kind("a gate of attention's output");
    if (block.value_size() != block.head_dim) no_kind("heads of values of another size");
    if (block.whole_norms) no_kind("a norm over all heads together");
    if (block.query_key_norm && block.layer_norm) no_kind("layer norms of each head");
    if (block.attention_output_bias && !block.attention_input_bias)
      no_kind("attention with a bias of its projection alone");
    if (block.mixer_norms > 0 || block.mlp_norms > 0) no_kind("norms behind a mixer or an MLP");
    for (const SmallTensor& tensor : block.mixer_tensors) no_kind(tensor.what);
  }

  std::string attention_line(const BlockShape& block) {
    check_mixer(block);
    if (block.mixer != Mixer::attention || block.latent) return "";
    const std::int64_t heads = divided(scaled(block.heads, "attention heads"), "attention heads");
    const std::int64_t kv_heads = heads_of_keys(block, heads);
    std::string line = fmt::format("{{kind: attention_block, heads: {}", heads);
    if (kv_heads != heads) line += fmt::format(", kv_heads: {}", kv_heads);
    if (heads * block.head_dim != hidden_) line += fmt::format(", head_size: {}", block.head_dim);
    if (block.layer_norm == false) line += ", norm: rms_norm";
    if (!block.attention_input_bias) {
      line += ", bias: false";
    } else if (!block.attention_output_bias) {
      line += ", bias: qkv";
    }
    if (block.query_key_norm) line += ", qk_norm: true";
    if (is_rotated()) line += fmt::format(", rotary: {}", rotary_base());
    if (block.window && *block.window < options_.sequence)
      line += fmt::format(", window: {}", *block.window);
    return line + "}";
  }

  std::int64_t heads_of_keys(const BlockShape& block, std::int64_t heads) {
    const std::int64_t parts = options_.scale.parts * options_.tensor_parallel;
    const std::int64_t wanted = block.key_value_heads / parts;
    if (block.key_value_heads % parts == 0) return wanted;
    if (block.key_value_heads > parts) {
      problem(fmt::format("{} parts do not divide the {} heads of keys and values", parts,
                          block.key_value_heads),
              "take another --scale or --tensor-parallel");
      return heads;
    }
    note(fmt::format("the model has {} heads of keys and values, fewer than {} parts: one is kept",
                     block.key_value_heads, parts));
    return 1;
  }

  double rotary_base() const {
    return shape_.facts.rotary_base > 0 ? shape_.facts.rotary_base : kUsualRotaryBase;
  }

  std::string mlp_line(const BlockShape& block) {
    for (const SmallTensor& tensor : block.mlp_tensors) no_kind(tensor.what);
    const auto activation = activation_of(shape_);
    if (!activation) {
      no_kind(fmt::format("the activation {}", shape_.facts.activation));
      return "";
    }
    const std::int64_t hidden = divided(scaled(block.feed_forward, "inner width"), "inner width");
    std::string line = fmt::format("{{kind: mlp_block, hidden: {}", hidden);
    if (*activation != Activation::gelu)
      line += fmt::format(", activation: {}", word_of(*activation));
    if (block.gated) line += ", gated: true";
    if (!block.layer_norm) line += ", norm: rms_norm";
    if (!block.feed_forward_bias) line += ", bias: false";
    return line + "}";
  }

  std::string header(const std::string& name, std::int64_t blocks) const {
    std::vector<std::string> parts;
    if (blocks < shape_.blocks)
      parts.push_back(fmt::format("{} of {} blocks", blocks, shape_.blocks));
    if (options_.scale.parts > 1)
      parts.push_back(fmt::format("1/{} as wide", options_.scale.parts));
    if (options_.tensor_parallel > 1) {
      parts.push_back(fmt::format("the part of one of {} ranks of a tensor-parallel group",
                                  options_.tensor_parallel));
    }
    const std::string which = parts.empty() ? "" : fmt::format(": {}", fmt::join(parts, ", "));
    return fmt::format(
        "# {}, from its config.json{}.\n"
        "version: 1\n"
        "kind: network\n"
        "name: {}\n"
        "dtype: {}\n"
        "input: {{tokens: {}, vocabulary: {}}}\n"
        "layers:\n",
        shape_.family, which, yaml_scalar(name), plumbline::name(options_.dtype), options_.sequence,
        vocabulary_);
  }

  const TransformerShape& shape_;
  NetworkOptions options_;
  std::int64_t hidden_ = 1;
  std::int64_t vocabulary_ = 1;
  LayerLines lines_;
  Diagnostics problems_;
  std::vector<std::string> notes_;
};

}  // namespace

std::optional<Activation> activation_of(const TransformerShape& shape) {
  if (!shape.facts.activation.empty()) return named_activation(shape.facts.activation);
  return shape.gated ? Activation::silu : Activation::gelu;
}

std::optional<Fraction> read_fraction(const std::string& text) {
  if (text == "1") return Fraction{};
  if (!text.starts_with("1/")) return std::nullopt;
  Fraction fraction;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data() + 2, end, fraction.parts);
  if (error != std::errc() || read != end || fraction.parts < 1 || fraction.parts > 1'000'000)
    return std::nullopt;
  return fraction;
}

Result<TransformerNetwork> transformer_network(const std::string& name,
                                               const TransformerShape& shape,
                                               const NetworkOptions& options) {
  return NetworkOfTransformer(shape, options).run(name);
}

}  // namespace plumbline
