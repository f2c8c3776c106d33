// The keys of the kinds of layers, in one table.
// SPDX-License-Identifier: MIT
#include "models/layer_settings_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace plumbline {
namespace {

void take_count(SectionReader& section, std::string_view key, std::int64_t& value,
                std::int64_t least = 1) {
  if (auto read = section.count(key, least, kMostExtent)) value = read->value;
}

void take_flag(SectionReader& section, std::string_view key, bool& value) {
  if (auto read = section.boolean(key)) value = read->value;
}

LayerSettings read_linear(SectionReader& section) {
  Linear kind;
  section.require("features");
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
  section.require("features");
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
  section.require("channels");
  take_count(section, "channels", kind.channels);
  take_count(section, "kernel", kind.kernel);
  take_count(section, "stride", kind.stride);
  take_count(section, "padding", kind.padding, 0);
  take_flag(section, "bias", kind.bias);
  return kind;
}

LayerSettings read_max_pool(SectionReader& section) {
  MaxPool kind;
  const auto kernel = section.count("kernel", 1, kMostExtent);
  if (kernel) kind.kernel = kernel->value;
  kind.stride = kind.kernel;
  take_count(section, "stride", kind.stride);
  take_count(section, "padding", kind.padding, 0);
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
  section.require("channels");
  take_count(section, "channels", kind.channels);
  take_count(section, "stride", kind.stride);
  return kind;
}

LayerSettings read_lstm(SectionReader& section) {
  Lstm kind;
  section.require("hidden");
  take_count(section, "hidden", kind.hidden);
  take_flag(section, "residual", kind.residual);
  return kind;
}

/// How a kind of layer is written.
struct KindFormat {
  std::string name;
  std::vector<std::string_view> keys;  ///< Beside kind and name.
  LayerSettings (*read)(SectionReader& section);
};

const std::vector<KindFormat>& kind_formats() {
  const auto name = [](const LayerSettings& kind) { return std::string(kind_name(kind)); };
  static const std::vector<KindFormat> formats = {
      {name(Linear{}), {"features", "bias"}, &read_linear},
      {name(Relu{}), {}, &read_plain<Relu>},
      {name(Gelu{}), {}, &read_plain<Gelu>},
      {name(LayerNorm{}), {}, &read_plain<LayerNorm>},
      {name(AttentionBlock{}), {"heads", "causal"}, &read_attention_block},
      {name(MlpBlock{}), {"hidden"}, &read_mlp_block},
      {name(Embedding{}), {"features", "positions"}, &read_embedding},
      {name(Head{}), {"classes", "norm", "bias"}, &read_head},
      {name(Conv2d{}), {"channels", "kernel", "stride", "padding", "bias"}, &read_conv2d},
      {name(MaxPool{}), {"kernel", "stride", "padding"}, &read_max_pool},
      {name(BatchNorm{}), {}, &read_plain<BatchNorm>},
      {name(Flatten{}), {}, &read_plain<Flatten>},
      {name(ResidualBlock{}), {"channels", "stride"}, &read_residual_block},
      {name(Lstm{}), {"hidden", "residual"}, &read_lstm},
  };
  return formats;
}

/// Adds an error for every key that only other kinds know.
void refuse_keys_of_others(SectionReader& section, const KindFormat& format) {
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

std::optional<Marked<LayerSettings>> read_layer_settings(SectionReader& section) {
  std::vector<std::string> names;
  names.reserve(kind_formats().size());
  for (const KindFormat& format : kind_formats()) names.push_back(format.name);
  section.require("kind", "or give repeat and layers");
  const auto kind = section.choice("kind", names, "kind of layer");
  if (!kind) return std::nullopt;
  const KindFormat& format =
      *std::find_if(kind_formats().begin(), kind_formats().end(),
                    [&](const KindFormat& each) { return each.name == kind->value; });
  Marked<LayerSettings> read{format.read(section), kind->mark};
  refuse_keys_of_others(section, format);
  return read;
}

}  // namespace plumbline
