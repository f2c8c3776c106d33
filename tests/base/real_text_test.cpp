// Both ways to read a real number say the same, and what they say.
//
// SPDX-License-Identifier: MIT
#include "base/real_text.h"

#include <doctest/doctest.h>

#include <string>

namespace plumbline {
namespace {

TEST_CASE("a real number at the front of a text, and how long it is") {
  CHECK(real_at_front("12.5 ms").value == 12.5);
  CHECK(real_at_front("12.5 ms").used == 4);
  CHECK(real_at_front("-1e3").value == -1000);
  CHECK(real_at_front(".5").value == 0.5);
  CHECK(real_at_front("0x10").used == 1);
  CHECK(real_at_front("1e").used == 1);
  for (const char* none : {"", "-", ".", "-.", "e5", "inf", "nan", "-inf", "+1", " 1", "ms"}) {
    CAPTURE(none);
    CHECK(real_at_front(none).used == 0);
  }
  CHECK(real_at_front("1e999").out_of_range);
  CHECK(real_at_front("1e-999").out_of_range);
  CHECK_FALSE(real_at_front("1e-310").out_of_range);
}

TEST_CASE("with and without std::from_chars, a text is the same number") {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "0.1",
                           "1e-310",
                           "4.9e-324",
                           "1.7976931348623157e308",
                           "1e999",
                           "-1e999",
                           "1e-999",
                           "0x10",
                           "-0X1f",
                           "1e",
                           "1e+",
                           "1.e3x",
                           "..5",
                           "inf",
                           "nan",
                           "",
                           "-",
                           "-.5",
                           "007",
                           "9007199254740993",
                           "0.30000000000000004",
                           "123456789012345678901234567890"}) {
    CAPTURE(text);
    const RealText a = real_at_front(text);
    const RealText b = real_by_strtod(text);
    CHECK(a.used == b.used);
    CHECK(a.out_of_range == b.out_of_range);
    if (!a.out_of_range) CHECK(a.value == b.value);
  }
}

}  // namespace
}  // namespace plumbline
