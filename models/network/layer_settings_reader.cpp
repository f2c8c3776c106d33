// The keys of the kinds of layers, in one table.
//
// SPDX-License-Identifier: MIT
#include "models/network/layer_settings_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/network/network_format.h"

namespace plumbline {
namespace {

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

LayerSettings read_attention_block(SectionReader& section) {
  AttentionBlock kind;
  take_count(section, "heads", kind.heads);
  take_flag(section, "causal", kind.causal);
  return kind;
}

LayerSettings read_mlp_block(SectionReader& section) {
  MlpBlock kind;  // hidden absent = 0, which derive_layer reads as 4 x features
  take_count(section, "hidden", kind.hidden);
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
  take_flag(section, "norm", kind.norm);
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
      {name(AttentionBlock{}), {"heads", "causal"}, {}, &read_attention_block},
      {name(MlpBlock{}), {"hidden"}, {}, &read_mlp_block},
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
             "The heads of an attention_block; they divide its "
             "features.",
             "1"},
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
             {boolean()},
             "Whether a bias is added: linear, conv2d (absent: true), head "
             "(absent: false)."},
            {"norm", {boolean()}, "Whether a head begins with a layer norm.", "true"},
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
