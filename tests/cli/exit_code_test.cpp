// The exit codes of the command.
//
// SPDX-License-Identifier: MIT
#include "cli/exit_code.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

TEST_CASE("each verdict has its exit code") {
  CHECK(exit_code_of(Verdict::same) == 0);
  CHECK(exit_code_of(Verdict::close) == 0);
  CHECK(exit_code_of(Verdict::off) == 1);
  CHECK(exit_code_of(Verdict::inconclusive) == 6);
}

}  // namespace
}  // namespace plumbline
