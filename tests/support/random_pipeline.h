// Random pipelines of every kind, from a seed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "tests/support/builders.h"
#include "tests/support/rules.h"

namespace plumbline::test {

/// A random pipeline: any schedule with a window, uneven stages, links, updates, several
/// mini-batches, shared devices, replicas and copies.
inline TestPipeline random_pipeline(std::uint64_t seed) {
  Dice dice(seed);
  TestPipeline t = equal_pipeline(static_cast<std::uint32_t>(dice.roll(1, 7)), {}, {});
  for (std::size_t s = 0; s < t.forward.size(); ++s) {
    t.forward[s] = std::chrono::nanoseconds(dice.roll(0, 40));
    t.backward[s] = std::chrono::nanoseconds(dice.roll(0, 80));
  }
  t.update = std::chrono::nanoseconds(dice.roll(0, 1) * dice.roll(0, 20));
  t.output = {dice.roll(0, 3000)};
  t.activation = {dice.roll(0, 3000)};
  t.micro_batches = static_cast<std::uint32_t>(dice.roll(1, 14));
  static const std::vector<ScheduleRule> rules = window_rules();
  t.schedule =
      rules[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(rules.size()) - 1))]
          .name;
  t.link.latency = std::chrono::nanoseconds(dice.roll(0, 1) * dice.roll(0, 30));
  if (dice.roll(0, 1) == 1) t.link.bandwidth = BytesPerSecond{dice.roll(20, 500) * 1'000'000'000};
  t.options.blocking = dice.roll(0, 3) == 0;
  constexpr Recompute kinds[] = {Recompute::none, Recompute::none, Recompute::full,
                                 Recompute::layers};
  t.options.recompute = kinds[dice.roll(0, 3)];
  t.options.overheads = {std::chrono::nanoseconds(dice.roll(0, 2)),
                         std::chrono::nanoseconds(dice.roll(0, 2)),
                         std::chrono::nanoseconds(dice.roll(0, 9))};
  t.parameters = {dice.roll(0, 1) * dice.roll(0, 5000)};
  const std::int64_t kind = dice.roll(0, 2);
  if (kind == 1) {
    for (std::size_t s = 0; s < t.forward.size(); ++s)
      t.replicas.push_back(static_cast<std::uint32_t>(dice.roll(1, 3)));
  }
  if (t.schedule == "pipedream") {
    t.micro_batches += steady_window(replicas_of(t)).min_run();
  } else {
    t.options.mini_batches = static_cast<std::uint32_t>(dice.roll(1, 3));
    t.options.copies = static_cast<std::uint32_t>(dice.roll(1, 2));
    if (kind == 1) t.micro_batches *= 6;
    t.options.sharing.state = seed % 3 == 0 ? Sharded::optimizer : Sharded::nothing;
  }
  if (kind == 0) {  // neighbouring stages share devices
    std::uint32_t device = 0;
    for (std::size_t s = 0; s < t.forward.size(); ++s) {
      t.devices.push_back({device});
      device += static_cast<std::uint32_t>(dice.roll(0, 1));
    }
  }
  return t;
}

}  // namespace plumbline::test
