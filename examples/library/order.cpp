// A program that chooses a plan, and finds an order: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <iostream>

int main() {
  const auto scenario = plumbline::load("examples/four-stages.yaml", {"cluster.devices=4"});
  if (!scenario) return std::cerr << scenario.error().text, 2;
  const auto plan = plumbline::plan(*scenario);
  if (!plan) return std::cerr << plan.error().text, 2;
  std::cout << plan->config << ": " << 1000 * plan->time_per_micro_batch_s << " ms\n";
  const auto order = plumbline::order("examples/four-stages.yaml");
  if (!order) return std::cerr << order.error().text, 2;
  std::cout << 1000 * order->time_s << " ms, at most " << 100 * order->gap << " % above any order\n"
            << order->csv;  // as PyTorch reads it
}
