// A program that reads the devices and the ops of a run: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <iostream>

int main() {
  const auto scenario = plumbline::load("examples/four-stages.yaml");
  if (!scenario) return std::cerr << scenario.error().text, 2;
  const auto run = plumbline::predict(*scenario);
  if (!run) return std::cerr << run.error().text, 2;
  for (const plumbline::Device& device : run->devices())
    std::cout << "device " << device.device << ": idle for " << 1000 * device.idle_s
              << " ms, peak at " << device.peak_op << ": " << device.peak_memory_bytes
              << " bytes\n";
  const plumbline::Ops& ops = run->ops();
  std::int64_t forwards_ns = 0;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops.kind[i] == 'F') forwards_ns += ops.end_ns[i] - ops.begin_ns[i];
  std::cout << ops.size() << " ops; all forwards take " << forwards_ns << " ns\n";
  const auto why = run->why("1B0");
  std::cout << (why ? *why : why.error().text);
}
