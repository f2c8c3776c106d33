// A program that times the layers of a network on a core: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <iostream>

#include "calibrate/cpu/calibration.h"
#include "calibrate/measure/calibrate_network.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_writer.h"

int main() {
  const auto network = plumbline::read_network("examples/networks/mlp.network.yaml");
  if (!network) return std::cerr << to_text(network.problems()), 2;
  const auto run = calibrate_network(*plumbline::cpu_devices(), *network, {});
  if (!run) return std::cerr << to_text(run.problems()), 2;
  std::cout << profile_yaml(run->calibration->model);
}
