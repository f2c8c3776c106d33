// Groups of SMs on tables.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/split.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

/// A driver that uses every SM.
SmRoom room_in(std::uint32_t sms) {
  return [sms](std::uint32_t each) { return sms / each; };
}

TEST_CASE("a group is as large as the driver has room for") {
  const SmSupply h100{132, 8, 8};
  const SmRoom max = room_in(120);
  CHECK(*split_sms(h100, 2, max) == SmSplit{2, 56, 20});
  CHECK(*split_sms(h100, 4, max) == SmSplit{4, 24, 36});
  CHECK(*split_sms(h100, 8, max) == SmSplit{8, 8, 68});
  const auto none = split_sms(h100, 16, max);
  REQUIRE_FALSE(none);
  CHECK(none.problems().front().message ==
        "the driver makes 15 groups of 8 of the GPU's 132 SMs, not the 16 that are asked for");
}

TEST_CASE("a GPU is split into equal groups, as large as they can be") {
  struct Case {
    SmSupply supply;
    SmSplit split;
  };
  const Case cases[] = {
      {{132, 8, 8}, {1, 128, 4}}, {{132, 8, 8}, {2, 64, 4}},  {{132, 8, 8}, {3, 40, 12}},
      {{132, 8, 8}, {4, 32, 4}},  {{132, 8, 8}, {8, 16, 4}},  {{132, 8, 8}, {16, 8, 4}},
      {{108, 4, 2}, {2, 52, 4}},  {{108, 4, 2}, {8, 12, 12}}, {{108, 4, 2}, {27, 4, 0}},
      {{114, 8, 8}, {4, 24, 18}}, {{148, 8, 8}, {4, 32, 20}}, {{16, 8, 8}, {2, 8, 0}},
      {{16, 2, 2}, {5, 2, 6}},    {{24, 10, 4}, {2, 12, 0}},  {{132, 1, 1}, {5, 26, 2}},
      {{128, 2, 2}, {4, 30, 8}},  {{128, 2, 2}, {2, 62, 4}},  {{10, 0, 0}, {3, 3, 1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.supply.sms);
    CAPTURE(c.split.groups);
    const auto split = split_sms(c.supply, c.split.groups, room_in(c.supply.sms));
    REQUIRE(split);
    CHECK(*split == c.split);
  }
}

TEST_CASE("a GPU that is too small for a split is refused with the numbers") {
  struct Case {
    SmSupply supply;
    std::uint32_t groups;
    const char* message;
    const char* help;
  };
  const Case cases[] = {
      {{132, 8, 8},
       17,
       "the GPU has 132 SMs, too few for 17 groups of 8 or more",
       "it can be split into 16 devices at most"},
      {{16, 8, 8},
       3,
       "the GPU has 16 SMs, too few for 3 groups of 8 or more",
       "it can be split into 2 devices at most"},
      {{24, 10, 4},
       3,
       "the GPU has 24 SMs, too few for 3 groups of 12 or more",
       "it can be split into 2 devices at most"},
      {{6, 8, 8},
       2,
       "the GPU has 6 SMs, too few for 2 groups of 8 or more",
       "it can be split into 1 device at most"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.supply.sms);
    const auto split = split_sms(c.supply, c.groups, room_in(c.supply.sms));
    REQUIRE_FALSE(split);
    CHECK(split.problems().front().message == c.message);
    CHECK(split.problems().front().help == c.help);
    CHECK(split.problems().front().fault == Fault::no_device);
  }
}

}  // namespace
}  // namespace plumbline
