// Any bytes as a profile.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_reader.h"
#include "tests/fuzz/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  fuzz::use(parse_profile(fuzz::source(fuzz::text(data, size))));
  return 0;
}
