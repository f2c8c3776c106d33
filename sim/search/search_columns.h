// The columns of a layout.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/search/search_result.h"

namespace plumbline {

/// A column of a layout: its name in tables, in data and in a scenario.
struct LayoutColumn {
  const char* title;
  const char* key;
  const char* path;  ///< "" = no key of its own.
  std::function<std::string(const Layout&)> text;
  std::string usual;  ///< If all rows have this value, tables omit the column.
};

/// All columns, in their order.
const std::vector<LayoutColumn>& layout_columns();

/// The titles of all columns, and those of earlier versions.
std::vector<std::string> layout_names();

/// The column of a condition, by its title, key or path; null if there is none. Its number is a
/// plain number, whatever a table prints; of recomputation the kind counts.
const LayoutColumn* find_column(std::string_view name);

/// The value to which an override of the layout sets this key; "-" if there is none.
std::string value_of(const Layout& layout, const std::string& key);

/// A text that is equal for equal layouts, even with different overrides.
std::string identity(const Layout& layout);

/// A text that is equal for layouts of the same tensor, context, expert and pipeline sizes.
std::string sizes(const Layout& layout);

/// "tensor 4, pipeline 8, copies 2, 1f1b, ...": a layout in a few words.
std::string in_words(const Layout& layout);

/// The size of the mini-batch in samples.
std::int64_t mini_batch_of(const Layout& layout);

}  // namespace plumbline
