// The places of problems.
//
// SPDX-License-Identifier: MIT
#include "base/diagnostic.h"

#include <doctest/doctest.h>

#include <memory>

namespace plumbline::test {
namespace {

TEST_CASE("problems without a place get one, and the others keep theirs") {
  const auto source = std::make_shared<const Source>(Source{"s.yaml", "a: 1\nb: 2\n", ""});
  const Mark first{source, 0, 0, 1};
  const Mark second{source, 1, 0, 1};
  const Diagnostics problems =
      located({input_error(first, "has one"), input_error({}, "has none")}, second);
  CHECK(problems[0].mark.line == first.line);
  CHECK(problems[1].mark.source == source);
  CHECK(problems[1].mark.line == second.line);
}

}  // namespace
}  // namespace plumbline::test
