// The kernels that a search would need measured.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "models/tables/kernel_list.h"
#include "sim/search/search.h"
#include "sim/search/search_file.h"

namespace plumbline {

/// The kernels of all layouts in `part` that cluster.device.kernels has no row for, those first
/// that take the largest share of the layouts' times. Without such a table: all kernels. Errors:
/// times that do not come from kernels, in all layouts.
Result<std::vector<ListedKernel>> missing_kernels(const Search& search, const SearchPart& part);

}  // namespace plumbline
