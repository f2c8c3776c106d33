// Empty pipelines.
// SPDX-License-Identifier: MIT
#include "calibrate/overheads.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/real_run.h"
#include "calibrate/synthetic.h"
#include "models/bug.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kMicroBatches = 200;

/// The time of an op in a run of empty ops, one after the other, over `devices` devices.
double time_per_op_s(std::uint32_t devices) {
  const std::string text = fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: {0}, forward: 0 ns, backward: 0 ns}}}}\n"
      "cluster: {{devices: {0}}}\nschedule: {{name: naive, micro_batches: {1}}}\n",
      devices, kMicroBatches);
  const auto scenario =
      parse_scenario(std::make_shared<const Source>(Source{"empty ops", text, ""}), {});
  PLUMBLINE_CHECK(scenario, devices);
  const auto backend = synthetic_backend({});
  RunOptions options;
  options.iterations = 20;
  const auto run = run_scenario(*scenario, *backend, options);
  PLUMBLINE_CHECK(run, devices);
  return run->time_s.median / (2.0 * kMicroBatches * devices);
}

}  // namespace

Overheads measure_overheads() {
  const double alone = time_per_op_s(1);
  const double together = time_per_op_s(2);
  // Of two devices' ops, all but those at the two ends hand over.
  Overheads overheads;
  overheads.per_op = round_up(alone * 1e9);
  overheads.hand_over = round_up(std::max(0.0, 2 * (together - alone)) * 1e9);
  return overheads;
}

}  // namespace plumbline
