// The runner's own overheads and the rates of memory, as they are measured.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/overheads.h"

#include <doctest/doctest.h>

#include <chrono>

#include "calibrate/runtime/clock.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

TEST_CASE("the runner's own overheads are measured and are no milliseconds" *
          doctest::test_suite("measures")) {
  if (kSanitized) return;  // a minute there, and other cases watch the same runner
  const Overheads overheads = measure_overheads();
  CHECK(overheads.per_op.count() > 0);
  CHECK(overheads.hand_over.count() >= 0);
  CHECK(overheads.per_op < std::chrono::milliseconds(5));
  CHECK(overheads.hand_over < std::chrono::milliseconds(5));
  CHECK_FALSE(overheads.add_up);
}

TEST_CASE("to write weights elsewhere than the old ones takes no longer than some gigabytes do" *
          doctest::test_suite("measures")) {
  CHECK_FALSE(measure_stash(OptimizerKind::adam, 0));
  for (const OptimizerKind kind : {OptimizerKind::gradient_descent, OptimizerKind::adam}) {
    const auto rate = measure_stash(kind, std::size_t{1} << (kSanitized ? 18 : 22));
    if (kSanitized) continue;  // how it walks is looked at, not how fast
    if (!rate) {
      MESSAGE("inconclusive: in place takes as long");
      continue;
    }
    CHECK(rate->count > 100'000'000);  // it may be as fast as it likes: hardly any difference
  }
}

TEST_CASE("what it takes to add up the gradients of another core is some gigabytes a second" *
          doctest::test_suite("measures")) {
  CHECK_FALSE(measure_add_up(OptimizerKind::adam, 0));
  if (usable_cores() < 2) return;
  for (const OptimizerKind kind : {OptimizerKind::gradient_descent, OptimizerKind::adam}) {
    const auto rate = measure_add_up(kind, std::size_t{1} << (kSanitized ? 16 : 20));
    if (kSanitized) continue;  // how it walks is looked at, not how fast
    REQUIRE(rate);             // two walks over 4 MiB at least
    CHECK(rate->count > 100'000'000);
    CHECK(rate->count < 1'000'000'000'000);
  }
}

}  // namespace
}  // namespace plumbline::test
