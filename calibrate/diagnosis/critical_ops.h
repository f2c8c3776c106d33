// The chain of ops, transfers and waits that an iteration of a recorded run took as long as.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"

namespace plumbline {

/// A part of the chain: "ops of device 1", "transfers", "between ops".
struct CriticalShare {
  std::string what;
  Duration time{};
};

/// The chain behind the device that ends last, found backwards: an op began when the op before it
/// on its device had ended and its input was there; what came later of the two decided. Where a
/// device began to receive only after its op before, that op decided. The shares add up to the
/// iteration's time exactly, the longest first. Where the next iteration begins before this one has
/// ended, they are the end of the chain.
std::vector<CriticalShare> critical_shares(const RecordedRun& run, const RunIteration& iteration,
                                           const RunCosts& costs);

}  // namespace plumbline
