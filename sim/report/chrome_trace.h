// A trace in Chrome's JSON, which Perfetto opens.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// One process per device. It has tracks for compute, for idle time, and for the transfers to and
/// from each other device; counters for memory and micro-batches in flight; arrows along the
/// critical path. Slices on one track never overlap. A blocking transfer stands on the compute
/// tracks of both ends, since it holds both. Slices are named `F 12`, `send F 12`, `recv F 12`,
/// `idle transfer`: kind and micro-batch, numbered through the run. Times are microseconds with
/// three decimals: exact.
std::string chrome_trace(const Outcome& outcome);

/// One of several runs in a file.
struct TracedRun {
  const Outcome& outcome;
  std::string title;  ///< Prefix of the names of its devices: "predicted ".
};

/// Several runs on the same devices in one file: device 0 of each, one above the other, then device
/// 1 of each, and so on.
std::string chrome_trace(const std::vector<TracedRun>& runs);

/// `text` in gzip's format; `level` from 1, the fastest, to 9, the smallest.
std::string gzip(const std::string& text, int level = 1);

}  // namespace plumbline
