// The keys of a layer's work.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_work_reader.h"

#include <fmt/format.h>

#include "models/profile/layer_format.h"

namespace plumbline {
namespace {

/// One quantity for each pass.
template <class T>
struct Passes {
  T forward{};
  T backward_input{};
  T backward_weight{};
};

template <class T>
Passes<T> read_passes(SectionReader& section, std::string_view key, const SectionFormat& format,
                      Diagnostics& problems,
                      std::optional<T> (*read)(const YamlNode&, const std::string&, Diagnostics&)) {
  const YamlNode* node = section.child(key);
  if (!node) return {};
  if (node->kind != YamlNode::Kind::map) {
    const T each = read(*node, section.path_of(key), problems).value_or(T{});
    return {each, each, each};
  }
  SectionReader passes(*node, section.path_of(key), format, problems);
  const auto value = [&](std::string_view pass) {
    const YamlNode* given = passes.child(pass);
    return given ? read(*given, passes.path_of(pass), problems).value_or(T{}) : T{};
  };
  Passes<T> result;
  result.forward = value("forward");
  result.backward_input = value("backward_input");
  result.backward_weight = value("backward_weight");
  passes.finish();
  return result;
}

}  // namespace

void report_fp8_flops(SectionReader& section) {
  section.error(
      section.mark_of("fp8_flops"),
      fmt::format("{} is more than {}", section.path_of("fp8_flops"), section.path_of("flops")),
      "it is the part of those that is multiplied in fp8, pass by pass");
}

std::optional<LayerWork> read_layer_work(SectionReader& section, Diagnostics& problems) {
  const Passes<Flops> flops =
      read_passes<Flops>(section, "flops", pass_flops_format(), problems, read_flops);
  const Passes<Flops> fp8 =
      read_passes<Flops>(section, "fp8_flops", pass_flops_format(), problems, read_flops);
  const Passes<Bytes> memory =
      read_passes<Bytes>(section, "memory_traffic", pass_bytes_format(), problems, read_bytes);
  const Passes<Bytes> link =
      read_passes<Bytes>(section, "link_traffic", pass_bytes_format(), problems, read_bytes);
  const Passes<Bytes> network =
      read_passes<Bytes>(section, "network_traffic", pass_bytes_format(), problems, read_bytes);
  if (!section.has("flops") && !section.has("memory_traffic")) {
    for (const std::string_view key : {"link_traffic", "network_traffic"}) {
      if (!section.has(key)) continue;
      section.error(section.mark_of(key),
                    fmt::format("{} stands without flops and memory_traffic", section.path_of(key)),
                    "it is added to the time that those two are estimated to take");
    }
    if (section.has("fp8_flops")) report_fp8_flops(section);
    return std::nullopt;
  }
  const auto exceeds = [](Flops part, Flops whole) { return part.count > whole.count; };
  if (exceeds(fp8.forward, flops.forward) || exceeds(fp8.backward_input, flops.backward_input) ||
      exceeds(fp8.backward_weight, flops.backward_weight))
    report_fp8_flops(section);
  return LayerWork{
      .forward = {flops.forward, fp8.forward, memory.forward, link.forward, network.forward},
      .backward_input = {flops.backward_input, fp8.backward_input, memory.backward_input,
                         link.backward_input, network.backward_input},
      .backward_weight = {flops.backward_weight, fp8.backward_weight, memory.backward_weight,
                          link.backward_weight, network.backward_weight}};
}

}  // namespace plumbline
