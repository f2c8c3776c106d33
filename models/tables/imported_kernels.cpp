// Rows, each key once.
//
// SPDX-License-Identifier: MIT
#include "models/tables/imported_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumbline {

void ImportedKernels::add(const KernelKey& key, double seconds, std::string how, std::string layout,
                          double spread) {
  const Duration time{std::max<std::int64_t>(1, std::llround(seconds * 1e9))};
  KernelRow row{key, time, spread, std::move(how), std::move(layout)};
  const auto [known, is_new] = rows_.emplace(key, row);
  if (is_new) return;
  leave_out("slower, or not faster, than another row with the same sizes");
  if (time < known->second.time) known->second = std::move(row);
}

const KernelRow* ImportedKernels::find(const KernelKey& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

KernelTable ImportedKernels::take() {
  KernelTable table;
  table.provenance = std::move(provenance);
  table.rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) table.rows.push_back(std::move(row));
  rows_.clear();
  return table;
}

}  // namespace plumbline
