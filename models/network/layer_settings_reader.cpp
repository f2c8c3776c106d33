// The keys of the kinds of layers, in one table.
//
// SPDX-License-Identifier: MIT
#include "models/network/layer_settings_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/network/network_format.h"

namespace plumbline {
namespace {

constexpr std::string_view kQkv = "qkv";  ///< The bias of queries, keys and values alone.

void take_count(SectionReader& section, std::string_view key, std::int64_t& value) {
  if (auto read = section.count(key)) value = read->value;
}

void take_flag(SectionReader& section, std::string_view key, bool& value) {
  if (auto read = section.boolean(key)) value = read->value;
}

LayerSettings read_linear(SectionReader& section) {
  Linear kind;
  take_count(section, "features", kind.features);
  take_flag(section, "bias", kind.bias);
  return kind;
}

template <class Kind>
LayerSettings read_plain(SectionReader& /*section*/) {
  return Kind{};
}

/// The place of a word in a table of names.
template <class Enum, std::size_t size>
void take_word(SectionReader& section, std::string_view key, std::string_view noun,
               const std::array<std::string_view, size>& names, Enum& value) {
  const auto chosen = section.choice(key, noun);
  if (!chosen) return;
  const auto* const found = std::find(names.begin(), names.end(), chosen->value);
  value = static_cast<Enum>(found - names.begin());
}

AttentionBias read_attention_bias(SectionReader& section) {
  if (section.is_word("bias", kQkv)) {
    section.child("bias");
    return AttentionBias::qkv;
  }
  const auto bias = section.boolean("bias");
  return bias && !bias->value ? AttentionBias::none : AttentionBias::all;
}

LayerSettings read_attention_block(SectionReader& section) {
  AttentionBlock kind;  // kv_heads and head_size absent = 0: derive_layer fills them in
  take_count(section, "heads", kind.heads);
  take_flag(section, "causal", kind.causal);
  take_count(section, "kv_heads", kind.kv_heads);
  take_count(section, "head_size", kind.head_size);
  take_word(section, "norm", "norm", kNormKinds, kind.norm);
  kind.bias = read_attention_bias(section);
  take_flag(section, "qk_norm", kind.qk_norm);
  const auto base = section.real("rotary");
  if (base) kind.rotary = base->value;
  take_count(section, "window", kind.window);
  if (kind.kv_heads > 0 && kind.heads % kind.kv_heads != 0) {
    section.error(section.mark_of("kv_heads"),
                  fmt::format("{} is {}, which does not divide heads: {}",
                              section.path_of("kv_heads"), kind.kv_heads, kind.heads),
                  "each head of keys and values serves as many heads of queries");
  }
  if (base && base->value < 1) {
    section.error(
        base->mark,
        fmt::format("{} is {}, which is not at least 1", section.path_of("rotary"), base->value),
        "the base of the angles, such as 10000; absent = no rotary positions");
  }
  if (kind.window > 0 && !kind.causal) {
    section.error(section.mark_of("window"),
                  fmt::format("{} is {}, but causal is false: no token is before another",
                              section.path_of("window"), kind.window),
                  "a window is of the tokens before: leave one of the two out");
  }
  return kind;
}

LayerSettings read_mlp_block(SectionReader& section) {
  MlpBlock kind;  // hidden absent = 0, which derive_layer reads as 4 x features
  take_count(section, "hidden", kind.hidden);
  take_word(section, "activation", "activation", kActivationNames, kind.activation);
  take_flag(section, "gated", kind.gated);
  take_word(section, "norm", "norm", kNormKinds, kind.norm);
  take_flag(section, "bias", kind.bias);
  return kind;
}

LayerSettings read_embedding(SectionReader& section) {
  Embedding kind;  // derive_layer fills in the vocabulary
  take_count(section, "features", kind.features);
  take_flag(section, "positions", kind.positions);
  return kind;
}

LayerSettings read_head(SectionReader& section) {
  Head kind;  // classes absent = 0: the reader fills in the vocabulary
  take_count(section, "classes", kind.classes);
  if (section.is_word("norm", "true") || section.is_word("norm", "false")) {
    take_flag(section, "norm", kind.norm);
  } else {
    take_word(section, "norm", "norm", kNormKinds, kind.norm_kind);
  }
  take_flag(section, "bias", kind.bias);
  return kind;
}

LayerSettings read_conv2d(SectionReader& section) {
  Conv2d kind;
  take_count(section, "channels", kind.channels);
  take_count(section, "kernel", kind.kernel);
  take_count(section, "stride", kind.stride);
  take_count(section, "padding", kind.padding);
  take_flag(section, "bias", kind.bias);
  return kind;
}

LayerSettings read_max_pool(SectionReader& section) {
  MaxPool kind;
  const auto kernel = section.count("kernel");
  if (kernel) kind.kernel = kernel->value;
  kind.stride = kind.kernel;
  take_count(section, "stride", kind.stride);
  take_count(section, "padding", kind.padding);
  if (kind.padding >= kind.kernel && (kernel || !section.has("kernel"))) {
    section.error(section.mark_of("padding"),
                  fmt::format("{} is {}, which is not below the kernel of {}",
                              section.path_of("padding"), kind.padding, kind.kernel),
                  "a window of nothing but padding has no maximum");
  }
  return kind;
}

LayerSettings read_residual_block(SectionReader& section) {
  ResidualBlock kind;
  take_count(section, "channels", kind.channels);
  take_count(section, "stride", kind.stride);
  return kind;
}

LayerSettings read_lstm(SectionReader& section) {
  Lstm kind;
  take_count(section, "hidden", kind.hidden);
  take_flag(section, "residual", kind.residual);
  return kind;
}

/// The spelling of a kind of layer in a file.
struct KindFormat {
  std::string name;
  std::vector<std::string_view> keys;      ///< Beside kind and name.
  std::vector<std::string_view> required;  ///< A part of `keys`.
  LayerSettings (*read)(SectionReader& section);
};

const std::vector<KindFormat>& kind_formats() {
  const auto name = [](const LayerSettings& kind) { return std::string(kind_name(kind)); };
  static const std::vector<KindFormat> formats = {
      {name(Linear{}), {"features", "bias"}, {"features"}, &read_linear},
      {name(Relu{}), {}, {}, &read_plain<Relu>},
      {name(Gelu{}), {}, {}, &read_plain<Gelu>},
      {name(LayerNorm{}), {}, {}, &read_plain<LayerNorm>},
      {name(RmsNorm{}), {}, {}, &read_plain<RmsNorm>},
      {name(AttentionBlock{}),
       {"heads", "causal", "kv_heads", "head_size", "norm", "bias", "qk_norm", "rotary", "window"},
       {},
       &read_attention_block},
      {name(MlpBlock{}), {"hidden", "activation", "gated", "norm", "bias"}, {}, &read_mlp_block},
      {name(Embedding{}), {"features", "positions"}, {"features"}, &read_embedding},
      {name(Head{}), {"classes", "norm", "bias"}, {}, &read_head},
      {name(Conv2d{}),
       {"channels", "kernel", "stride", "padding", "bias"},
       {"channels"},
       &read_conv2d},
      {name(MaxPool{}), {"kernel", "stride", "padding"}, {}, &read_max_pool},
      {name(BatchNorm{}), {}, {}, &read_plain<BatchNorm>},
      {name(Flatten{}), {}, {}, &read_plain<Flatten>},
      {name(ResidualBlock{}), {"channels", "stride"}, {"channels"}, &read_residual_block},
      {name(Lstm{}), {"hidden", "residual"}, {"hidden"}, &read_lstm},
  };
  return formats;
}

/// Adds an error for every key that only other kinds know.
void report_keys_of_others(SectionReader& section, const KindFormat& format) {
  std::map<std::string_view, std::vector<std::string>> owners;
  for (const KindFormat& other : kind_formats()) {
    for (const std::string_view key : other.keys) owners[key].push_back(other.name);
  }
  for (const std::string_view key : format.keys) owners.erase(key);
  for (const auto& [key, kinds] : owners) {
    if (!section.has(key)) continue;
    section.error(section.mark_of(key),
                  fmt::format("{} is a key of {}, not of {}", section.path_of(key),
                              fmt::join(kinds, ", "), format.name),
                  "take it out, or change the kind");
    section.child(key);
  }
}

}  // namespace

const SectionFormat& network_layer_format() {
  static const SectionFormat layer = [] {
    using namespace format;
    std::vector<std::string> kinds;
    kinds.reserve(kind_formats().size());
    for (const KindFormat& kind : kind_formats()) kinds.push_back(kind.name);
    SectionFormat built = {
        .name = "network_layer",
        .text = "A layer of a network; which keys it has depends on its kind.",
        .keys = {
            {.name = "kind",
             .values = {words(std::move(kinds))},
             .text = "What the layer does.",
             .required = true},
            {"name", {text()}, "Its name; absent: the kind and a number, as linear_0."},
            {"features", {count(1, kMaxExtent)}, "The features of its output: linear, embedding."},
            {"channels",
             {count(1, kMaxExtent)},
             "The channels of its output: conv2d, residual_block."},
            {"hidden",
             {count(1, kMaxExtent)},
             "The inner features: mlp_block (absent: 4 times its features), lstm."},
            {"heads",
             {count(1, kMaxExtent)},
             "The heads of an attention_block; without head_size, they divide its features.",
             "1"},
            {"kv_heads",
             {count(1, kMaxExtent)},
             "The heads of keys and values of an attention_block; they divide its heads; absent: "
             "as many."},
            {"head_size",
             {count(1, kMaxExtent)},
             "The numbers in a head of an attention_block; absent: features / heads."},
            {"qk_norm",
             {boolean()},
             "Whether an attention_block normalizes each head of queries and keys, by an rms_norm.",
             "false"},
            {"rotary",
             {real(1e15)},
             "The base of the rotary positions of an attention_block, such as 10000; absent: "
             "none."},
            {"window",
             {count(1, kMaxExtent)},
             "How many tokens a token of an attention_block sees, itself included; absent: all."},
            {"activation",
             {words({kActivationNames.begin(), kActivationNames.end()})},
             "The function in the middle of an mlp_block.",
             "gelu"},
            {"gated",
             {boolean()},
             "Whether an mlp_block is gated: its first product makes twice as many numbers, and "
             "one half, activated, is a factor of the other.",
             "false"},
            {"causal",
             {boolean()},
             "Whether a token of an attention_block sees only those before "
             "it.",
             "true"},
            {"classes",
             {count(1, kMaxExtent)},
             "The classes of a head; absent: the vocabulary of the input."},
            {"kernel",
             {count(1, kMaxExtent)},
             "The side of the square that is looked at: conv2d (absent: 3), max_pool (absent: 2)."},
            {"stride",
             {count(1, kMaxExtent)},
             "The step between two such squares: conv2d, residual_block (absent: 1), max_pool "
             "(absent: its kernel)."},
            {"padding",
             {count(0, kMaxExtent)},
             "What is added on each side: conv2d, max_pool.",
             "0"},
            {"bias",
             {boolean(), word(kQkv)},
             "Whether a bias is added: linear, conv2d, mlp_block, attention_block (absent: true), "
             "head (absent: false). An attention_block may say qkv: to these alone."},
            {"norm",
             {words({kNormKinds.begin(), kNormKinds.end()}), boolean()},
             "The norm at the start of an attention_block, an mlp_block or a head; a head may say "
             "false.",
             "layer_norm"},
            {"positions",
             {boolean()},
             "Whether an embedding adds a learned vector for each "
             "position.",
             "false"},
            {"residual", {boolean()}, "Whether an lstm adds its input to its output.", "false"}}};
    for (const KindFormat& kind : kind_formats()) {
      FormatCase& one =
          built.cases.emplace_back(FormatCase{"kind", kind.name, kind.keys, kind.required});
      one.keys.insert(one.keys.begin(), {"kind", "name"});
    }
    return built;
  }();
  return layer;
}

std::optional<Marked<LayerSettings>> read_layer_settings(SectionReader& section) {
  section.require("kind", "or give repeat and layers");
  const auto kind = section.choice("kind", "kind of layer");
  if (!kind) return std::nullopt;
  const KindFormat& format =
      *std::find_if(kind_formats().begin(), kind_formats().end(),
                    [&](const KindFormat& each) { return each.name == kind->value; });
  for (const std::string_view key : format.required) section.require(key);
  Marked<LayerSettings> read{format.read(section), kind->mark};
  report_keys_of_others(section, format);
  return read;
}

}  // namespace plumbline
