// A check that fails is an exception, and it reaches whoever called.
//
// SPDX-License-Identifier: MIT
#include "base/bug.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "base/diagnostic.h"
#include "base/parallel.h"

namespace plumbline::test {
namespace {

TEST_CASE("a check that fails throws what was expected, the values and the place") {
  const int stages = 3;
  const int devices = 2;
  std::string told;
  try {
    PLUMBLINE_CHECK(stages <= devices, stages, devices);
  } catch (const std::logic_error& bug) {
    told = bug.what();
  }
  CHECK(told.starts_with("plumbline: bug: expected stages <= devices (stages, devices = 3 2) at "));
  CHECK(told.find("bug_test.cpp:") != std::string::npos);
  CHECK(told.ends_with("\n  please report it with the command and the files that led here"));
  CHECK_NOTHROW(PLUMBLINE_CHECK(stages > devices, stages, devices));
}

TEST_CASE("a host that makes a mistake may catch it and go on") {
  CHECK_THROWS_AS(static_cast<void>(Result<int>(Diagnostics{})), Bug);
  CHECK(*Result<int>(7) == 7);
}

TEST_CASE("a bug on one of several threads reaches the caller, once") {
  const std::atomic<bool> stop{false};
  for (const unsigned jobs : {1U, 4U}) {
    CHECK_THROWS_AS(
        for_each_parallel(100, jobs, stop, [](std::uint64_t i) { PLUMBLINE_CHECK(i != 7, i); }),
        Bug);
  }
}

TEST_CASE("of several exceptions the first is kept until it is thrown") {
  FirstException thrown;
  CHECK_NOTHROW(thrown.rethrow());
  for (const char* text : {"one", "two"}) {
    try {
      throw std::runtime_error(text);
    } catch (...) {
      thrown.keep_current();
    }
  }
  CHECK(thrown.is_kept());
  CHECK_THROWS_WITH_AS(thrown.rethrow(), "one", std::runtime_error);
  CHECK_FALSE(thrown.is_kept());
  CHECK_NOTHROW(thrown.rethrow());
}

}  // namespace
}  // namespace plumbline::test
