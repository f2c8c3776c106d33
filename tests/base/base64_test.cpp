// The test vectors of RFC 4648, section 10.
//
// SPDX-License-Identifier: MIT
#include "base/base64.h"

#include <doctest/doctest.h>

#include <string_view>

namespace plumbline {
namespace {

TEST_CASE("bytes as base64: the vectors of RFC 4648, and bytes above 127") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string_view("\0\xff\xfb", 3)) == "AP/7");
}

}  // namespace
}  // namespace plumbline
