// What happens when a check of our own fails.
//
// SPDX-License-Identifier: MIT
#include "base/bug.h"

#include <cstdio>
#include <cstdlib>

namespace plumbline {

void report_bug(const char* condition, const std::string& values, const char* file, int line) {
  std::fprintf(stderr,
               "plumbline: bug: expected %s (%s) at %s:%d\n"
               "  please report it with the command and the files that led here\n",
               condition, values.c_str(), file, line);
  std::fflush(nullptr);
  std::_Exit(70);
}

}  // namespace plumbline
