// Checks that two trainings are the same, bit by bit.
//
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

/// Checks that `train(scenario)` gives the same parameters and losses with any recompute, by stage
/// or layer by layer.
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

/// Checks the same for any buckets of a backward, with one layer or several in each.
template <class Train>
void check_buckets(const char* network, const Train& train) {
  const std::string copies = "plan: {stages: 2, data_parallel: 2}\n";
  struct Case {
    int devices;
    std::string schedule;
    std::string more;
  };
  const Case cases[] = {
      {2, "name: gpipe, micro_batches: 2", "plan: {stages: 1, data_parallel: 2}\n"},
      {4, "name: 1f1b, micro_batches: 3, mini_batches: 2", copies},
      {4, "name: 1f1b, micro_batches: 3, recompute: full", copies},
      {4, "name: 1f1b, micro_batches: 3, recompute: full, recompute_early: true", copies},
      {4, "name: 1f1b, micro_batches: 3, recompute: layers", copies},
      {4, "name: zb-h1, micro_batches: 4", copies + "training: {optimizer_state: 2}\n"},
      {3, "name: 1f1b, micro_batches: 4, transfers: blocking",
       "plan: {stages: 2, replicas: [2, 1]}\ntraining: {zero_stage: 1}\n"},
      {2, "name: chimera, micro_batches: 4", ""}};
  for (const Case& one : cases) {
    CAPTURE(network);
    CAPTURE(one.schedule);
    const auto of = [&](const std::string& bucket) {
      return train(network_scenario(
          network, on_devices(one.devices, one.schedule + ", bucket: " + bucket, one.more)));
    };
    const auto whole = of("1 GB");
    for (const std::string bucket : {"1 KiB", "2 KiB"}) {
      CAPTURE(bucket);
      const auto cut = of(bucket);
      CHECK(bit_equal(whole.parameters, cut.parameters));
      CHECK(whole.losses == cut.losses);
    }
  }
}

}  // namespace plumbline::test
