// Versions by order.
// SPDX-License-Identifier: MIT
#include "schedules/weight_versions.h"

#include <doctest/doctest.h>

#include "tests/support/builders.h"

namespace plumbline {
namespace {

TEST_CASE("PipeDream keeps warm-up + 1 versions and applies gradients p-1-s updates late") {
  for (std::uint32_t p = 1; p <= 6; ++p) {
    for (std::uint32_t s = 0; s < p; ++s) {
      const std::uint32_t m = 30;
      const StageVersions versions = stage_versions(window_list({s, 1}, p - s, m));
      CAPTURE(p);
      CAPTURE(s);
      CHECK(versions.kept == p - s);
      for (std::uint32_t k = p; k < m; ++k) CHECK(versions.staleness[k] == p - 1 - s);
      for (std::uint32_t k = 0; k < p - s; ++k) CHECK(versions.used[k] == 0);
    }
  }
}

TEST_CASE("one micro-batch at a time needs one version and is never stale") {
  const StageVersions versions = stage_versions(window_list({0, 1}, 1, 5));
  CHECK(versions.kept == 1);
  CHECK(versions.staleness == std::vector<std::uint32_t>(5, 0));
}

}  // namespace
}  // namespace plumbline
