// A real run and a validation as tables for people and as JSON for programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/validation.h"
#include "sim/report/html_report.h"
#include "sim/report/timeline.h"

namespace plumbline {

/// The tables of `simulate` for the median iteration, then how it was measured.
Document to_table(const RealRun& run, const std::optional<TimelineStyle>& style);

/// The JSON of `simulate`, followed by a `measured` object.
std::string to_json(const RealRun& run, const std::string& version);

/// For one point: predicted beside measured, and the causes of the error. For several points: a
/// line each, and whether their order was predicted. Where no iteration was clean, nothing is
/// compared: the median of the disturbed ones is reported, marked as such.
/// Requires: at least one point.
Document to_table(const std::vector<ValidationPoint>& points);

/// Values that are unknown because no iteration was clean are null.
std::string to_json(const std::vector<ValidationPoint>& points, const std::string& version);

/// For the HTML report: the error of the prediction, and its causes.
std::vector<ReportFigure> report_figures(const Validation& validation);

/// For the HTML report: the verdict, and how it was measured, in sentences.
std::vector<std::string> report_remarks(const Validation& validation);
std::vector<std::string> report_remarks(const RealRun& run);

/// The verdict on all points: off if any is off, else inconclusive if any is, else close.
Verdict verdict_on(const std::vector<ValidationPoint>& points);

}  // namespace plumbline
