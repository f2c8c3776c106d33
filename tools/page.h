// Results as Markdown: docs/results/validation.md, and the table of docs/results/accuracy.md.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/result_file.h"

namespace plumbline {

/// docs/results/validation.md: where it was measured, a summary, a section per group with its
/// tables and all points, and how to repeat it. `resimulated` are those of a GPU, predicted again;
/// without them the page has no table of that. The same results give the same bytes. Requires: at
/// least one result.
std::string validation_page(const std::vector<ResultFile>& results,
                            const std::vector<ResultFile>& resimulated = {});

/// The table of accuracy: a row per group, and one per network, with place and date below it.
/// Requires: at least one result.
std::string accuracy_table(const std::vector<ResultFile>& results);

/// The lines before and after accuracy_table in its page.
inline constexpr const char* kTableBegin =
    "<!-- from docs/results/validation/ by scripts/validation-page; do not edit -->";
inline constexpr const char* kTableEnd = "<!-- end of what scripts/validation-page wrote -->";

}  // namespace plumbline
