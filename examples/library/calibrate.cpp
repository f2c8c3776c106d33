// A program that times the layers of a network on a core: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/measure.h>

#include <iostream>

int main() {
  const auto profile = plumbline::calibrate("examples/networks/mlp.network.yaml");
  if (!profile) return std::cerr << profile.error().text, 2;
  std::cout << profile->yaml;
}
