// The tables of a network file.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_format.h"

#include "models/network/layer_settings_reader.h"
#include "models/network/network.h"
#include "models/network/network_reader.h"

namespace plumbline {

namespace {

using namespace format;

KeyFormat layers_key(std::string_view text) {
  return {.name = "layers",
          .values = {list({section(&network_layer_format), section(&layer_group_format)}, 1)},
          .text = text,
          .required = true};
}

}  // namespace

const SectionFormat& network_input_format() {
  static const SectionFormat input = {
      .name = "input",
      .text = "What the first layer gets for one sample: numbers of a shape, or token ids.",
      .keys = {{"shape",
                {list({count(1, kMaxExtent)}, 1, 3)},
                "[features], [tokens, features] or [channels, height, width]."},
               {"tokens", {count(1, kMaxExtent)}, "How many token ids a sample has."},
               {"vocabulary", {count(1, kMaxExtent)}, "How many different token ids there are."}},
      .exactly_one = {"shape", "tokens"},
      .needs = {{"tokens", "vocabulary"}, {"vocabulary", "tokens"}}};
  return input;
}

const SectionFormat& layer_group_format() {
  static const SectionFormat group = {
      .name = "layer_group",
      .text = "Layers that repeat.",
      .keys = {{.name = "repeat",
                .values = {count(1, kMaxNetworkLayers)},
                .text = "How often they stand there one after another.",
                .required = true},
               layers_key("The layers that repeat.")}};
  return group;
}

const SectionFormat& network_format() {
  static const SectionFormat network = {
      .name = "network",
      .text = "A network: what run executes and calibrate measures.",
      .keys = {{.name = "version",
                .values = {count(1, 1)},
                .text = "The version of the format.",
                .required = true},
               {.name = "kind",
                .values = {word("network")},
                .text = "That this is a network.",
                .required = true},
               {"name", {text()}, "Its name; absent: that of the file."},
               {"dtype",
                {words({kElementTypes.begin(), kElementTypes.end()})},
                "What it computes in.",
                "fp32"},
               {.name = "input",
                .values = {section(&network_input_format)},
                .text = "What the first layer gets for one sample.",
                .required = true},
               layers_key("The layers in their order, and groups that repeat.")}};
  return network;
}

}  // namespace plumbline
