// How far the clocks of ranks are apart: found from what cannot end before it began.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "calibrate/diagnosis/recorded_run.h"

namespace plumbline {

/// Finds the clock of each device against that of device 0 and takes the difference off all times
/// of the run, which then begins at 0.
///
/// An op begins after the op of another device whose output it needs has ended; a receive ends no
/// earlier than its send. Seen on two clocks, the least time between the two in each direction is a
/// bound on their difference. The middle of both bounds is taken, as NTP does (Mills 1991): it is
/// right where the fastest transfers of both directions take equally long; half the distance of the
/// bounds is how far it may be off. Where the bounds of several iterations contradict each other,
/// one clock runs faster: a line is fitted through the middles, and a note says so. Where they are
/// on no line, each iteration has a difference of its own. Errors: clocks that run so differently
/// that the ranks cannot be of one run.
std::optional<Diagnostic> align_clocks(RecordedRun& run,
                                       const std::vector<RankRecording>& recordings);

}  // namespace plumbline
