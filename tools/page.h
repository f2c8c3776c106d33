// Results as Markdown: docs/validation.md, and the table of the README.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/result_file.h"

namespace plumbline {

/// docs/validation.md: where it was measured, a summary, a section per group with its tables and
/// all points, and how to repeat it. The same results give the same bytes. Requires: at least one
/// result.
std::string validation_page(const std::vector<ResultFile>& results);

/// The README's table: a row per group, and one per network, with place and date below it.
/// Requires: at least one result.
std::string accuracy_table(const std::vector<ResultFile>& results);

/// The lines before and after accuracy_table in the README.
inline constexpr const char* kTableBegin =
    "<!-- from docs/validation/ by scripts/validation-page; do not edit -->";
inline constexpr const char* kTableEnd = "<!-- end of what scripts/validation-page wrote -->";

}  // namespace plumbline
