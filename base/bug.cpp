// What happens when a check of our own fails.
//
// SPDX-License-Identifier: MIT
#include "base/bug.h"

#include <fmt/format.h>

namespace plumbline {

void throw_bug(const char* condition, const std::string& values, const char* file, int line) {
  throw Bug(
      fmt::format("plumbline: bug: expected {} ({}) at {}:{}\n"
                  "  please report it with the command and the files that led here",
                  condition, values, file, line));
}

}  // namespace plumbline
