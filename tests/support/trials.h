// The number of a test's trials: less under a sanitizer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline::test {

/// Whether the build has a sanitizer. Then everything takes about ten times as long.
#if defined(PLUMBLINE_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// The number of random cases of a test: `all`, or a tenth of them under a sanitizer.
constexpr std::uint64_t trials(std::uint64_t all) { return kSanitized ? all / 10 : all; }

}  // namespace plumbline::test
