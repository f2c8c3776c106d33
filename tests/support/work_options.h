// The options of a search or a sweep.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/whatif/work.h"

namespace plumbline::test {

inline WorkOptions on_threads(unsigned threads) {
  WorkOptions options;
  options.threads = threads;
  return options;
}

}  // namespace plumbline::test
