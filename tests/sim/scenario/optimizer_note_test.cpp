// A measured update is that of one optimizer, and a run may use another.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/scenario/scenario.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// The notes of a scenario with a profile of this provenance.
std::vector<std::string> notes(const std::string& provenance, const std::string& training) {
  const TemporaryFolder folder;
  const std::string path = folder.file(
      "p.profile.yaml", "version: 1\nkind: profile\nprovenance: {" + provenance +
                            "}\nbatch: 1\nlayers:\n  - {name: a, forward: 1 ms, backward: 1 ms}\n");
  const auto scenario =
      parse_scenario(text_source("s.yaml", "version: 1\nmodel: {profile: " + path +
                                               "}\ncluster: {devices: 1}\nschedule: {name: gpipe, "
                                               "micro_batches: 1}\n" +
                                               training),
                     {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return scenario->notes;
}

TEST_CASE("a profile with the updates of another optimizer than the run's is noted") {
  const std::string adam = "training: {optimizer_state: 2.0}\n";
  CHECK(notes("optimizer: sgd", adam) ==
        std::vector<std::string>{
            "the profile's updates were measured with sgd; a run with training.optimizer_state 2 "
            "makes those of adam, which plumbline calibrate --optimizer adam measures"});
  CHECK(notes("optimizer: adam", "") ==
        std::vector<std::string>{
            "the profile's updates were measured with adam; a run with training.optimizer_state 0 "
            "makes those of sgd, which plumbline calibrate --optimizer sgd measures"});
  CHECK(notes("optimizer: adam", adam).empty());
  CHECK(notes("optimizer: sgd", "").empty());
  CHECK(notes("source: estimated", adam).empty());
}

}  // namespace
}  // namespace plumbline::test
