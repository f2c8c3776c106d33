// A program that finds the best layout of a training: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <iostream>

int main() {
  plumbline::Selection best;
  best.top = 5;
  plumbline::Work work;
  work.threads = 2;
  work.progress = [](std::uint64_t done, std::uint64_t count) {
    if (done == count) std::cerr << count << " layouts\n";
  };
  const auto rows = plumbline::search("examples/layouts.yaml", {}, best, /*free=*/false, work);
  if (!rows) return std::cerr << rows.error().text, 2;
  std::cout << rows->text();
  if (rows->size() == 0) return 4;
  const auto first = plumbline::load("examples/layouts.yaml", rows->settings(0));
  if (!first) return std::cerr << first.error().text, 2;
  const auto run = plumbline::predict(*first);
  if (run) std::cout << "the best one has a bubble of " << run->bubble_fraction() << '\n';
}
