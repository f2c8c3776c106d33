// The table of a network.
//
// SPDX-License-Identifier: MIT
#include "sim/report/network_report.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/table.h"

namespace plumbline {
namespace {

/// "1.25 M": four significant digits, in powers of 1000.
std::string count_text(double count) {
  constexpr std::string_view prefixes[] = {"", " k", " M", " G", " T", " P"};
  std::size_t prefix = 0;
  while (count >= 999.95 && prefix + 1 < std::size(prefixes)) {
    count /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g}{}", count, prefixes[prefix]);
}

}  // namespace

Document to_table(const Network& network, std::int64_t batch) {
  const auto samples = static_cast<double>(batch);
  Table table;
  table.row({"layer", "kind", "output", "parameters", "output bytes", "activation", "F FLOPs",
             "I FLOPs", "W FLOPs", "backward"});
  table.may_lack({"backward", "output bytes", "W FLOPs", "I FLOPs"});
  Bytes activations;
  double flops = 0;
  for (const NetworkLayer& layer : network.layers) {
    const Bytes activation = activation_bytes(network, layer, batch);
    activations += activation;
    flops +=
        samples * (layer.forward_flops + layer.backward_input_flops + layer.backward_weight_flops);
    table.row({layer.name, std::string(kind_name(layer.settings)), to_text(layer.output),
               count_text(static_cast<double>(layer.parameter_count())),
               to_text(output_bytes(network, layer, batch)), to_text(activation),
               count_text(samples * layer.forward_flops),
               count_text(samples * layer.backward_input_flops),
               count_text(samples * layer.backward_weight_flops),
               layer.backward_input_flops == 0 && layer.splits ? "W"
               : layer.splits                                  ? "I + W"
                                                               : "I"});
  }
  Document text;
  text.sentence(fmt::format(
      "{}: {} layers, {} parameters, {}; for a micro-batch of {}: {}FLOP, {} of activations\n\n",
      network.name, network.layers.size(), network.parameter_count(), name(network.element), batch,
      count_text(flops) + (flops < 999.95 ? " " : ""), to_text(activations)));
  text.table(std::move(table));
  return text;
}

}  // namespace plumbline
