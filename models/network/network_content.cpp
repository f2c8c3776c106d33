// One function for each kind of layer.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_content.h"

#include <fmt/format.h>

#include <cstdint>

namespace plumbline {
namespace {

struct Settings {
  std::string operator()(const Linear& l) const {
    return fmt::format("features {} bias {}", l.features, l.bias);
  }
  std::string operator()(const Relu&) const { return ""; }
  std::string operator()(const Gelu&) const { return ""; }
  std::string operator()(const LayerNorm&) const { return ""; }
  std::string operator()(const AttentionBlock& l) const {
    return fmt::format("heads {} causal {}", l.heads, l.causal);
  }
  std::string operator()(const MlpBlock& l) const { return fmt::format("hidden {}", l.hidden); }
  std::string operator()(const Embedding& l) const {
    return fmt::format("vocabulary {} features {} positions {}", l.vocabulary, l.features,
                       l.positions);
  }
  std::string operator()(const Head& l) const {
    return fmt::format("classes {} norm {} bias {}", l.classes, l.norm, l.bias);
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
};

}  // namespace

std::string network_content(const Network& network) {
  std::string text =
      fmt::format("{} {} {} {}\n", network.name, name(network.element),
                  to_text(network.input.shape), network.input.vocabulary.value_or(0));
  for (const NetworkLayer& layer : network.layers) {
    text += fmt::format("{} {} {} {} {}\n", layer.name, kind_name(layer.settings),
                        std::visit(Settings{}, layer.settings), to_text(layer.input),
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
