// Any bytes as a profile.
// SPDX-License-Identifier: MIT
#include "models/profile_reader.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  const auto model = parse_profile(fuzz::source(fuzz::text(data, size)));
  if (!model) {
    fuzz::use(to_text(model.problems()));
    return 0;
  }
  PLUMBLINE_CHECK(model->graph.topological_order().size() == model->graph.size(),
                  model->graph.size());
  for (const std::int64_t size_asked : {1, 7, 1'000'000})
    fuzz::use(costs_at(model->profile, size_asked).estimated);
  return 0;
}
