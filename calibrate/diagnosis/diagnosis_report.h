// A diagnosis as tables for people, as JSON and CSV for programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/document.h"
#include "calibrate/diagnosis/diagnosis.h"
#include "sim/report/timeline.h"

namespace plumbline {

/// The tables: the run, its devices and their idle time by cause, ops, links, clocks, what stands
/// out.
Document to_table(const Diagnosis& diagnosis, const std::optional<TimelineStyle>& style);

/// The same as JSON, one line per top-level key, with the ops of all iterations. Ends in a newline.
std::string to_json(const Diagnosis& diagnosis, const std::string& version);

/// What each trace has, a sentence each: for a run that cannot be put together.
Document overview(const std::vector<RankRecording>& recordings);

/// One op a row: iteration, device, rank, stage, op, micro_batch, begin_ns, end_ns, busy_ns,
/// input_ns, pass. Times count from the begin of the first iteration; input_ns, when its input
/// arrived, is empty where that is unknown; pass counts within a step of the profiler.
std::string ops_csv(const Diagnosis& diagnosis);

}  // namespace plumbline
