// PLUMBLINE_VECTORIZED: compiles a function once for each level of x86-64.
//
// SPDX-License-Identifier: MIT
#pragma once

// The version is chosen when the program starts (ifunc). Clang 14 and other C libraries do not know
// the levels, and the thread sanitizer is not ready when ifuncs are resolved. There the loops are
// plain.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_THREAD__)
#define PLUMBLINE_VECTORIZED \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PLUMBLINE_VECTORIZED
#endif
