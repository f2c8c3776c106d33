// The commit as CMake sets it.
//
// SPDX-License-Identifier: MIT
#include "cli/record/commit.h"

namespace plumbline {

std::string_view commit() { return PLUMBLINE_COMMIT; }

}  // namespace plumbline
