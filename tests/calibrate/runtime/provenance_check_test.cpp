// Profiles beside the devices of a run.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/provenance_check.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace plumbline::test {
namespace {

using Facts = std::map<std::string, std::string>;

std::string said(const Facts& there, const Facts& here) {
  Profile profile;
  profile.provenance = there;
  return measured_elsewhere(profile, here).value_or("");
}

TEST_CASE("a profile that was measured on other devices is told, with what differs") {
  const Facts here = {{"backend", "cuda"}, {"device", "H100"}, {"sms", "32"}};
  Facts there = here;
  there["source"] = "measured";
  there["drift"] = "0.01";  // only what both tell counts
  CHECK(said(there, here) == "");
  there["sms"] = "64";
  CHECK(said(there, here) == "the profile was measured elsewhere: sms 64, here 32");
  there["device"] = "H200";
  CHECK(said(there, here) ==
        "the profile was measured elsewhere: device H200, here H100; sms 64, here 32");
  there["backend"] = "cpu";  // then nothing else can be the same
  CHECK(said(there, here) == "the profile was measured elsewhere: backend cpu, here cuda");
  there.erase("sms");
  there.erase("device");
  there.erase("backend");
  CHECK(said(there, here) == "");
}

TEST_CASE("times that were not measured are of no place, nor are devices that have none") {
  const Facts here = {{"sms", "32"}};
  CHECK(said({{"source", "invented"}, {"sms", "64"}}, here) == "");
  CHECK(said({{"sms", "64"}}, here) == "");
  CHECK(said({{"source", "measured"}, {"sms", "64"}}, {}) == "");
}

TEST_CASE("a long text of a profile is cut in what is told of it") {
  const std::string told =
      said({{"source", "measured"}, {"device", std::string(10'000, 'x')}}, {{"device", "y"}});
  CHECK(told.size() < 1000);
}

}  // namespace
}  // namespace plumbline::test
