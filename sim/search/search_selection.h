// The rows of a search that are reported, and their order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/search/search_result.h"
#include "sim/whatif/sweep_order.h"

namespace plumbline {

/// The rows of a search that are reported, and their order.
struct SearchSelection {
  SweepSelection rows;                ///< Conditions on the rows' numbers.
  std::vector<ConditionText> layout;  ///< Conditions on the layouts; all must hold.
  bool distinct =
      false;  ///< Only the best layout of each tensor, context, expert and pipeline size.
};

/// Reads conditions. A condition is one of parse_condition, or is on a layout's column, named as in
/// tables or JSON or by its key, or on a key that the search varies: "pipeline <= 4",
/// "schedule.name == 1f1b". Errors: those of parse_condition.
Result<SearchSelection> select_layouts(SweepSelection rows, const std::vector<std::string>& where,
                                       const std::vector<std::string>& varied_keys);

/// Whether a layout may meet the conditions on layouts, whatever it recomputes.
bool may_meet(const SearchSelection& selection, const Layout& layout);

/// Rows that meet the conditions of a selection, best first.
struct RankedLayouts {
  std::vector<SweepRow> rows;
  std::map<std::uint64_t, const SearchRow*> by_point;  ///< All rows by their points.
  /// Of layouts that are equal and differ only in their overrides, or of those of equal sizes if
  /// only distinct ones are wanted, the best.
  std::vector<const SearchRow*> best;
};

/// Ranks feasible rows, which must outlive the result. All are ranked, however many are wanted.
RankedLayouts rank(const std::vector<SearchRow>& feasible, const SearchSelection& selection);

}  // namespace plumbline
