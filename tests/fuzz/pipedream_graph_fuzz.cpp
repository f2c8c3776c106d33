// Any bytes as a PipeDream graph.txt.
//
// SPDX-License-Identifier: MIT
#include "models/import/pipedream_graph.h"
#include "tests/fuzz/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  fuzz::use(parse_pipedream_graph(fuzz::source(fuzz::text(data, size))));
  return 0;
}
