// Two trainings that are one, bit by bit.
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/network_scenario.h"

namespace plumbline::test {

inline bool bit_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Whatever is computed again, of a stage or layer by layer, `train(scenario)` makes the same
/// parameters and losses.
template <class Train>
void check_recomputation(const char* network, int devices, const std::string& schedule,
                         const Train& train) {
  CAPTURE(network);
  CAPTURE(schedule);
  const auto kept = train(network_scenario(network, on_devices(devices, schedule)));
  for (const char* how :
       {"full", "layers", "layers, recompute_layers: 1", "layers, recompute_layers: 2"}) {
    CAPTURE(how);
    const auto again =
        train(network_scenario(network, on_devices(devices, schedule + ", recompute: " + how)));
    CHECK(bit_equal(kept.parameters, again.parameters));
    CHECK(kept.losses == again.losses);
  }
}

}  // namespace plumbline::test
