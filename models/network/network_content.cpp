// One function for each kind of layer.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_content.h"

#include <fmt/format.h>

#include <cstdint>

namespace plumbline {
namespace {

struct Settings {
  const NetworkLayer& layer;

  std::string operator()(const Linear& l) const {
    return fmt::format("features {} bias {}", l.features, l.bias);
  }
  std::string operator()(const Relu&) const { return ""; }
  std::string operator()(const Gelu&) const { return ""; }
  std::string operator()(const LayerNorm&) const { return ""; }
  // Settings that came later are told where they differ from what counted before, so that older
  // fingerprints hold.
  std::string operator()(const RmsNorm&) const { return ""; }
  std::string operator()(const AttentionBlock& l) const {
    std::string text = fmt::format("heads {} causal {}", l.heads, l.causal);
    const AttentionWidths widths = attention_widths(l, layer.input.extents.back());
    if (widths.kv_heads != l.heads) text += fmt::format(" kv_heads {}", widths.kv_heads);
    if (widths.queries() != layer.input.extents.back())
      text += fmt::format(" head_size {}", widths.head_size);
    text += of_norm(l.norm);
    if (l.bias == AttentionBias::qkv) text += " bias qkv";
    if (l.bias == AttentionBias::none) text += " bias false";
    if (l.qk_norm) text += " qk_norm";
    if (l.rotary > 0) text += fmt::format(" rotary {}", l.rotary);
    if (l.window > 0) text += fmt::format(" window {}", l.window);
    return text;
  }
  std::string operator()(const MlpBlock& l) const {
    std::string text = fmt::format("hidden {}", l.hidden);
    if (l.activation != Activation::gelu)
      text += fmt::format(" {}", kActivationNames[static_cast<std::size_t>(l.activation)]);
    if (l.gated) text += " gated";
    text += of_norm(l.norm);
    if (!l.bias) text += " bias false";
    return text;
  }
  std::string operator()(const Embedding& l) const {
    return fmt::format("vocabulary {} features {} positions {}", l.vocabulary, l.features,
                       l.positions);
  }
  std::string operator()(const Head& l) const {
    return fmt::format("classes {} norm {} bias {}", l.classes, l.norm, l.bias) +
           of_norm(l.norm_kind);
  }
  std::string operator()(const Conv2d& l) const {
    return fmt::format("channels {} kernel {} stride {} padding {} bias {}", l.channels, l.kernel,
                       l.stride, l.padding, l.bias);
  }
  std::string operator()(const MaxPool& l) const {
    return fmt::format("kernel {} stride {} padding {}", l.kernel, l.stride, l.padding);
  }
  std::string operator()(const BatchNorm&) const { return ""; }
  std::string operator()(const Flatten&) const { return ""; }
  std::string operator()(const ResidualBlock& l) const {
    return fmt::format("channels {} stride {}", l.channels, l.stride);
  }
  std::string operator()(const Lstm& l) const {
    return fmt::format("hidden {} residual {}", l.hidden, l.residual);
  }

 private:
  static std::string of_norm(NormKind kind) {
    return kind == NormKind::rms_norm ? " rms_norm" : "";
  }
};

}  // namespace

std::string network_content(const Network& network) {
  std::string text =
      fmt::format("{} {} {} {}\n", network.name, name(network.element),
                  to_text(network.input.shape), network.input.vocabulary.value_or(0));
  for (const NetworkLayer& layer : network.layers) {
    text += fmt::format("{} {} {} {} {}\n", layer.name, kind_name(layer.settings),
                        std::visit(Settings{layer}, layer.settings), to_text(layer.input),
                        to_text(layer.output));
  }
  return text;
}

std::string network_fingerprint(const Network& network) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : network_content(network)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace plumbline
