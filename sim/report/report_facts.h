// The words and numbers of the HTML report: a run as JSON for the page's script.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/html_report.h"
#include "sim/report/report_columns.h"

namespace plumbline {

/// `text` as a JSON string that may stand in a <script> element: quotes and control characters are
/// escaped, and so are `<`, `>`, `&` and the line separators U+2028 and U+2029.
std::string script_text(std::string_view text);

/// JSON that may stand in a <script> element, from any JSON. The characters that script_text
/// escapes occur only in its strings.
std::string script_json(std::string_view json);

/// One run as a JSON object: `summary` as `simulate --json` gives it, the stages with their layers,
/// the figures, and the layout of its columns.
std::string run_facts(const TracedRun& run, const ColumnLayout& layout, const std::string& version);

/// The data that the page needs to separate a run's columns and to name its lanes: a JSON object.
std::string layout_json(const Outcome& p, const ColumnLayout& layout);

/// Figures as a JSON array.
std::string figures_json(const std::vector<ReportFigure>& figures);

/// The parts of a memory as a JSON object, with the keys of `simulate --json`.
std::string memory_json(const MemoryParts& memory);

/// Texts as a JSON array.
std::string texts_json(const std::vector<std::string>& texts);

}  // namespace plumbline
