// Writing tables of kernels (`kind: kernels`).
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/kernels/kernel_table.h"

namespace plumbline {

/// The table as a file of version 1: a row per line, by class and then as they come.
/// parse_kernel_table gives an equal table back. Requires: the invariant of KernelTable; times
/// above 0; no text above 10,000 bytes.
std::string kernel_table_yaml(const KernelTable& table);

}  // namespace plumbline
