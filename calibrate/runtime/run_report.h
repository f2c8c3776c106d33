// A real run and a validation as tables for people and as JSON for programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/validation.h"
#include "sim/report/html_report.h"
#include "sim/report/timeline.h"

namespace plumbline {

/// The tables of `simulate` for the iteration in the middle, then how it was measured.
std::string to_table(const RealRun& run, const std::optional<TimelineStyle>& style);

/// The JSON of `simulate`, with a `measured` object behind it.
std::string to_json(const RealRun& run, const std::string& version);

/// Of one point: predicted beside measured and where the error comes from. Of several: a line each
/// and whether their order was predicted. Where no iteration was clean, nothing is compared: the
/// median of the disturbed ones is told, marked as such.
/// Requires: at least one.
std::string to_table(const std::vector<ValidationPoint>& points);

/// What cannot be known because no iteration was clean is null.
std::string to_json(const std::vector<ValidationPoint>& points, const std::string& version);

/// For the HTML report: how far off the prediction was, and where that comes from.
std::vector<ReportFigure> report_figures(const Validation& validation);

/// For the HTML report: the verdict, and how it was measured, in sentences.
std::vector<std::string> report_remarks(const Validation& validation);
std::vector<std::string> report_remarks(const RealRun& run);

/// The verdict on all points: off where one is, else inconclusive where one is, else close.
Verdict verdict_on(const std::vector<ValidationPoint>& points);

}  // namespace plumbline
