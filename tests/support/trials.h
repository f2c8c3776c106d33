// How much a test tries: less under a sanitizer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline::test {

/// Whether the build has a sanitizer: then everything takes about ten times as long.
#if defined(PLUMBLINE_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// How many random cases a test tries: `all`, or a tenth of them under a sanitizer.
constexpr std::uint64_t trials(std::uint64_t all) { return kSanitized ? all / 10 : all; }

}  // namespace plumbline::test
