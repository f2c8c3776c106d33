// What CMake says of the commit.
//
// SPDX-License-Identifier: MIT
#include "cli/commit.h"

namespace plumbline {

std::string_view commit() { return PLUMBLINE_COMMIT; }

}  // namespace plumbline
