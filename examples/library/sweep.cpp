// A program that predicts the six points of a sweep: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <iostream>

int main() {
  const auto rows = plumbline::sweep("examples/four-stages.yaml",
                                     {"schedule.name=gpipe,1f1b", "schedule.micro_batches=4,8,16"});
  if (!rows) return std::cerr << rows.error().text, 2;
  for (std::size_t i = 0; i < rows->size(); ++i) {  // best first
    for (const std::string& setting : rows->settings(i)) std::cout << setting << ' ';
    std::cout << (rows->reason(i).empty() ? "fits" : rows->reason(i)) << '\n';
  }
  std::cout << rows->csv();
}
