// Any bytes as a network.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_reader.h"
#include "sim/report/network_report.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  const auto network = parse_network(fuzz::source(fuzz::text(data, size)));
  if (!network) {
    fuzz::use(to_text(network.problems()));
    return 0;
  }
  fuzz::use(to_table(*network, 1).print());
  fuzz::use(to_table(*network, 1'000'000).print());
  return 0;
}
