// The tables of a layer's costs.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_format.h"

#include "base/number_format.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

using namespace format;

KeyFormat time_key(std::string_view name, std::string_view text, std::string_view otherwise = "") {
  return {name, {duration(), section(&statistics_format)}, text, otherwise};
}

KeyFormat size_key(std::string_view name, std::string_view text) {
  return {name, {bytes()}, text, "0 B"};
}

/// The three passes of a layer, each with a value of `value`.
SectionFormat passes(std::string_view name, std::string_view text, const ValueFormat& value) {
  return {.name = name,
          .text = text,
          .keys = {{"forward", {value}, "Of the forward."},
                   {"backward_input", {value}, "Of the backward for the input."},
                   {"backward_weight", {value}, "Of the backward for the weights."}}};
}

}  // namespace

const SectionFormat& statistics_format() {
  static const SectionFormat statistics = {
      .name = "statistics",
      .text = "A measured time: its mean, which predictions use, and how it spread.",
      .keys = {{.name = "mean",
                .values = {duration()},
                .text = "The mean, which enters predictions.",
                .required = true},
               {"median", {duration()}, "The median."},
               {"q1", {duration()}, "The first quartile."},
               {"q3", {duration()}, "The third quartile."},
               {"samples", {count(1)}, "How many passes were timed."}}};
  return statistics;
}

const SectionFormat& pass_flops_format() {
  static const SectionFormat work =
      passes("pass_flops", "The floating-point operations of each pass.", flops());
  return work;
}

const SectionFormat& tied_format() {
  static const SectionFormat tied = {
      .name = "tied",
      .text = "The table of another layer that a layer uses, too, such as a head the embedding's.",
      .keys = {{.name = "to",
                .values = {text()},
                .text = "The name of the layer whose table it is.",
                .required = true},
               {.name = "parameters",
                .values = {bytes()},
                .text = "Of the layer's parameters, those that are this table.",
                .required = true}}};
  return tied;
}

const SectionFormat& selective_format() {
  static const SectionFormat selective = {
      .name = "selective",
      .text = "What of a layer's activation a backward can recompute at little cost.",
      .keys = {{.name = "activation",
                .values = {bytes()},
                .text = "Of the layer's activation, what is not kept; not its output, which the "
                        "next one needs.",
                .required = true},
               {"forward",
                {duration(), section(&statistics_format)},
                "The time to recompute it; absent: estimated."},
               {"flops", {flops()}, "The floating-point operations of that, for an estimate."},
               {"fp8_flops", {flops()}, "Of these, what is multiplied in fp8."},
               {"memory_traffic",
                {bytes()},
                "The bytes that it moves to and from memory, for an estimate."}}};
  return selective;
}

const SectionFormat& pass_bytes_format() {
  static const SectionFormat traffic =
      passes("pass_bytes", "The bytes that each pass moves.", bytes());
  return traffic;
}

std::vector<KeyFormat> layer_cost_keys() {
  return {
      {"kind", {text()}, "What kind of layer it is, such as linear; only printed, never used."},
      time_key("forward", "The time of one forward."),
      time_key("backward",
               "The time of one full backward; beside the two parts of a split one, "
               "what both take when they run as one op. A schedule with I and W takes half for "
               "each where the parts are not given."),
      time_key("backward_input", "The time of the backward for the input, where it is split."),
      time_key("backward_weight", "The time of the backward for the weights, where it is split."),
      time_key(
          "update",
          "The time of one optimizer update of the layer; absent: of a layer with flops what the "
          "bytes take that it moves, else 0."),
      size_key("output",
               "What it hands to the next layer for one micro-batch: what a transfer "
               "carries."),
      size_key("activation", "What a forward keeps for its backward, of one micro-batch."),
      {"selective",
       {section(&selective_format)},
       "What of its activation `recompute: selective` recomputes for its backward."},
      size_key("parameters", "The size of its weights."),
      size_key(
          "replicated",
          "Of its weights, those that each device of the profile's group holds a copy of (every "
          "tensor_parallel-th the same), trained by tokens of its own: an estimated update "
          "holds the time in which the group adds up their gradients, and zero_stage shares "
          "their optimizer state over the group, too."),
      {"flops",
       {flops(), section(&pass_flops_format)},
       "Its floating-point operations, in the place of times: cluster.device estimates them; one "
       "number stands for each pass."},
      {"fp8_flops",
       {flops(), section(&pass_flops_format)},
       "Of its floating-point operations, those that are multiplied in fp8; the device's fp8_peak "
       "estimates them."},
      {"memory_traffic",
       {bytes(), section(&pass_bytes_format)},
       "The bytes that a pass moves to and from memory, for an estimate."},
      {"link_traffic",
       {bytes(), section(&pass_bytes_format)},
       "The bytes that a pass moves over the device's link, added to an estimate."},
      {"network_traffic",
       {bytes(), section(&pass_bytes_format)},
       "The bytes that a pass moves over the device's network card, to devices of its group in "
       "other "
       "servers; added to an estimate."},
      {"ops",
       {text()},
       "The name, under ops, of the list of its ops: their kernels are estimated in the place of "
       "flops and traffic, which say the same."},
  };
}

std::vector<std::vector<std::string_view>> layer_cost_groups() {
  return {{"forward", "backward"},
          {"forward", "backward_input", "backward_weight"},
          {"flops"},
          {"memory_traffic"}};
}

std::vector<std::vector<std::string_view>> layer_cost_needs() {
  return {{"backward_input", "backward_weight"}, {"backward_weight", "backward_input"}};
}

const SectionFormat& layer_format() {
  static const SectionFormat layer = [] {
    SectionFormat built = {.name = "layer",
                           .text = "A layer: the smallest unit that is costed.",
                           .keys = layer_cost_keys(),
                           .some_group = layer_cost_groups(),
                           .needs = layer_cost_needs()};
    built.keys.insert(built.keys.begin(), {.name = "name",
                                           .values = {text()},
                                           .text = "Its name; no two layers share one.",
                                           .required = true});
    built.keys.push_back(
        {"tied",
         {section(&tied_format)},
         "The table of another layer that it uses, too: devices without that layer hold a copy, "
         "and the gradients of both are added up before the update."});
    return built;
  }();
  return layer;
}

KeyFormat layers_key() {
  return {"layers",
          {list({section(&layer_format)}, 1, kMaxLayers)},
          "The layers with their costs, in topological order."};
}

KeyFormat edges_key() {
  return {"edges",
          {list({list({text()}, 2, 2)})},
          "Pairs of layer names, from the one that hands over to the one that receives; absent: a "
          "chain in the order of the layers."};
}

KeyFormat dtype_key() {
  return {"dtype",
          {words({kNumberFormats.begin(), kNumberFormats.end()})},
          "The numbers that it is trained in: which peak of a device counts."};
}

/// Far above any group, so that devices times groups stay far from the end of 64 bits.
constexpr std::int64_t kMaxGroup = 1'000'000'000;

const SectionFormat& group_format() {
  static const SectionFormat group = {
      .name = "group",
      .text = "Devices that share the layers; a scenario's device stands for all of them.",
      .keys = {{"devices", {count(1, kMaxGroup)}, "How many they are.", "1"},
               {"tensor_parallel",
                {count(1, kMaxGroup)},
                "How many of them divide each layer's matrices; what is replicated is so on every "
                "such one.",
                "1"},
               {"devices_per_server",
                {count(1, kMaxGroup)},
                "How many of them are in one server; absent: all. A group of more adds up the "
                "gradients of what is replicated over the device's network."},
               {"forward_flops",
                {flops()},
                "What all of them compute of the model in the forwards of a batch, each product "
                "once; absent: what the layers have, on each."}}};
  return group;
}

KeyFormat group_key() {
  return {"group", {section(&group_format)}, "Devices that share the layers."};
}

const SectionFormat& overheads_format() {
  static const SectionFormat overheads = {
      .name = "overheads",
      .text = "What is added to the times of ops and transfers.",
      .keys = {{"per_op",
                {duration()},
                "Added to every compute op, and to each part of one that is cut into buckets; busy "
                "time.",
                "0 us"},
               {"hand_over",
                {duration()},
                "Added to the latency of every transfer, and of each send of a ring: the 2 (r - 1) "
                "of an all-reduce over r devices follow each other.",
                "0 us"},
               {"per_iteration",
                {duration()},
                "Added once for each mini-batch, after the flush.",
                "0 us"},
               {"add_up",
                {bandwidth()},
                "How fast an update adds up the gradients of each other replica or copy; absent: "
                "at once."},
               {"stash",
                {bandwidth()},
                "How fast an update writes weights elsewhere than the old version, where that is "
                "kept; absent: at once."}}};
  return overheads;
}

}  // namespace plumbline
