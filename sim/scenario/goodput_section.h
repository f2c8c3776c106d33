// Failures, restarts and checkpoints: what a training over weeks loses beside its iterations.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/quantity.h"
#include "base/units.h"

namespace plumbline {

class SectionReader;

/// What a part of a checkpoint takes: a time, or the bandwidth at which each device moves its
/// weights and optimizer state, all devices at once.
using CheckpointCost = std::variant<Duration, BytesPerSecond>;

/// The goodput section of a scenario. Failures are a Poisson process: each is as likely at any
/// instant as at any other.
struct GoodputSection {
  LongTime mtbf{};             ///< The mean time between failures; more than 0.
  bool of_one_device = false;  ///< `mtbf` is that of one device, else that of the whole job.
  Duration restart{};          ///< From a failure until training goes on.
  CheckpointCost pause{};      ///< Training stands still for a checkpoint.
  /// From the end of the pause until one can start from the checkpoint. Training goes on.
  CheckpointCost write{};
  /// Training between two checkpoints: a time, or iterations. Neither: the best interval.
  std::optional<Duration> interval{};
  std::optional<std::int64_t> iterations{};
  std::uint64_t seed = 1;
  std::uint32_t samples = 1000;  ///< How many whole trainings are sampled; 0 = none.

  friend bool operator==(const GoodputSection&, const GoodputSection&) = default;
};

/// The largest number of sampled trainings.
inline constexpr std::int64_t kMaxTrainings = 100'000;

/// Reads the section. Adds all errors to the reader's problems.
GoodputSection read_goodput_section(SectionReader& section);

}  // namespace plumbline
