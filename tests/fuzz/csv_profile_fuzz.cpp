// Any bytes as a table of layers.
//
// SPDX-License-Identifier: MIT
#include "models/import/csv_profile.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/fuzz/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  const auto model = parse_csv_profile(fuzz::source(fuzz::text(data, size)));
  fuzz::use(model);
  if (!model) return 0;
  const std::string written = profile_yaml(*model);
  const auto back = parse_profile(fuzz::source(written));
  PLUMBLINE_CHECK(back, back ? "" : to_text(back.problems()));
  PLUMBLINE_CHECK(profile_yaml(*back) == written, written);
  return 0;
}
