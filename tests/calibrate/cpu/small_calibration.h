// A small network, calibrated quickly or with samples that are made.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/cpu/calibration.h"
#include "calibrate/cpu/layer.h"
#include "models/network/network_reader.h"

namespace plumbline::test {

inline Network small_network() {
  const std::string text =
      "version: 1\nkind: network\nname: small\ninput: {shape: [64]}\nlayers:\n"
      "  - {kind: linear, features: 256}\n  - {kind: relu}\n  - {kind: linear, features: 256}\n"
      "  - {kind: gelu}\n  - {kind: head, classes: 10}\n";
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"small.network.yaml", text, ""}));
  REQUIRE(network);
  return *network;
}

inline CalibrationOptions quick() {
  CalibrationOptions options;
  options.min_seconds = 0.05;
  options.max_seconds = 0.3;
  return options;
}

inline bool has_backend() {
  if (!cpu_library().empty()) return true;
  MESSAGE("skipped: this build has no oneDNN");
  return false;
}

/// The samples of a device with one layer of each kind of `small_network`; each layer takes `ns`.
inline StageSamples made_stage(std::size_t layers, std::int64_t ns) {
  StopLimits limits;
  limits.max_samples = 100;
  limits.max_time = std::chrono::seconds(1);
  StageSamples stage(layers, limits);
  for (const Pass pass : kAllPasses) {
    for (int i = 0; i < 2; ++i) stage.add({pass, std::vector<std::int64_t>(layers, ns)}, {});
  }
  return stage;
}

}  // namespace plumbline::test
