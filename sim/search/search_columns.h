// What of a layout stands in columns.
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
  std::string usual;  ///< Where all rows have that, tables do without the column.
};

/// In the order in which they stand.
const std::vector<LayoutColumn>& layout_columns();

/// What conditions are on: a column by its title, key or path; null where there is none. A number
/// is one there, whatever a table makes of it; of what is made again the kind counts.
const LayoutColumn* find_column(std::string_view name);

/// What an override of the layout sets this key to; "-" where none does.
std::string value_of(const Layout& layout, const std::string& key);

/// Equal for layouts that are alike, however they were asked for.
std::string identity(const Layout& layout);

/// Equal for layouts of the same tensor, context, expert and pipeline sizes.
std::string sizes(const Layout& layout);

/// "tensor 4, pipeline 8, copies 2, 1f1b, ...": a layout in a few words.
std::string in_words(const Layout& layout);

/// In samples.
std::int64_t mini_batch_of(const Layout& layout);

}  // namespace plumbline
