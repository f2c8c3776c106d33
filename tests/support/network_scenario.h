// A small network as a scenario, without a calibration.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/network/network_reader.h"
#include "sim/scenario/scenario.h"

namespace plumbline::test {

/// A scenario that runs a network. Its times are invented, as nothing here depends on them.
inline Scenario network_scenario(const char* network_text, const std::string& rest) {
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"n.network.yaml", network_text, ""}));
  REQUIRE(network);
  std::string layers;
  for (const NetworkLayer& layer : network->layers) {
    layers += "    - {name: " + layer.name +
              ", forward: 20 us, backward_input: 20 us, backward_weight: 20 us, output: 1 KiB, "
              "activation: 1 KiB, parameters: 1 KiB}\n";
  }
  const std::string text =
      "version: 1\nname: test\nmodel:\n  batch: 3\n  layers:\n" + layers + rest;
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  scenario->network = std::make_shared<const Network>(*network);
  return *std::move(scenario);
}

inline std::string on_devices(int count, const std::string& schedule,
                              const std::string& more = "") {
  return "cluster: {devices: " + std::to_string(count) + "}\nschedule: {" + schedule + "}\n" + more;
}

/// Plans in which several devices hold a stage: copies, replicas, the whole model, both directions.
inline std::vector<std::string> plans_with_members() {
  return {on_devices(4, "name: 1f1b, micro_batches: 4, mini_batches: 2",
                     "plan: {stages: 2, data_parallel: 2}\n"),
          on_devices(4, "name: gpipe, micro_batches: 6, transfers: blocking",
                     "plan: {stages: 2, replicas: [3, 1]}\n"),
          on_devices(3, "name: data-parallel, micro_batches: 2, bucket: 1 KiB"),
          on_devices(2, "name: chimera, micro_batches: 4, recompute: full"),
          on_devices(4, "name: 1f1b, micro_batches: 4, recompute: layers",
                     "plan: {stages: 2, data_parallel: 2}\n")};
}

}  // namespace plumbline::test
