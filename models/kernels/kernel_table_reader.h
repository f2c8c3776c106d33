// Reading tables of kernels (`kind: kernels`) from YAML.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "models/kernels/kernel_table.h"

namespace plumbline {

/// Reads a table. Errors: all text that is not in the format; rows with too few or too many fields;
/// words that no column knows; sizes below 1; times of 0; a key that a second row has.
Result<KernelTable> read_kernel_table(const std::string& path);

/// The same for a document in memory.
Result<KernelTable> parse_kernel_table(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
