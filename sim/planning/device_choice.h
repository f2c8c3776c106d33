// plan.devices: auto: which device runs which part of the pipeline.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// A run on some arrangement of the devices.
struct TriedDevices {
  bool fits = true;  ///< Into the memory of every device.
  double time_s = 0;
  Bytes peak_memory;
};

/// Runs a scenario whose devices are decided.
using TryDevices = std::function<Result<TriedDevices>(const Scenario&)>;

/// A scenario with its devices decided, and what was chosen, in words.
struct ChosenDevices {
  Scenario scenario;
  std::string text;
};

/// The most arrangements that are tried, and those of them that are tried once more.
inline constexpr std::size_t kMaxArrangements = 1000;
inline constexpr std::size_t kFinalists = 8;

/// Decides plan.devices: auto by trying arrangements. The best are those that fit, then the
/// fastest, then those with the least memory, then the one that is tried first, which is that of
/// the devices' numbers. Devices of one run are alike, so arrangements differ in the runs along the
/// pipeline: all of them, or if these are more than kMaxArrangements, those in which the devices of
/// a run follow each other. Where links differ by the devices' numbers, too, pairs of devices are
/// then exchanged as long as that helps. With `careful`, which may be slower and closer to the
/// truth, the best few are then tried once more, and decide. Errors: those of the first
/// arrangement, if none can run.
Result<ChosenDevices> choose_devices(Scenario scenario, const TryDevices& attempt,
                                     const TryDevices& careful = {});

}  // namespace plumbline
