// Native profiles and the costs at a batch size.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile.h"

#include <doctest/doctest.h>

#include "models/profile/profile_reader.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

const char* const kTwoSizes = R"(version: 1
kind: profile
model: small
provenance: {source: measured, backend: cpu}
measurements:
  - batch: 32
    layers:
      - {name: a, forward: {mean: 4 ms, median: 3.9 ms, samples: 7}, backward_input: 3 ms, backward_weight: 5 ms, output: 32 KiB, activation: 64 KiB, selective: {activation: 32 KiB, forward: 1 ms}, parameters: 8 B, update: 1 us}
  - batch: 8
    layers:
      - {name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 8 KiB, activation: 16 KiB, selective: {activation: 8 KiB, forward: 250 us}, parameters: 8 B, update: 1 us}
overheads: {per_op: 2 us, hand_over: 6 us}
links: [{kind: copy, latency: 4 us, bandwidth: 11 GB/s, table: [[1 KiB, 4.1 us], [1 MiB, 95 us]]}]
)";

TEST_CASE("a link is the first of its way to send, or the first of all") {
  const MeasuredLink peer{"peer 0-1", {}, {}, {}};
  const MeasuredLink blocking{blocking_link("peer 0-1"), {}, {}, {}};
  const MeasuredLink slower{blocking_link("peer 1-2"), {}, {}, {}};
  CHECK(blocking.kind == "blocking peer 0-1");
  CHECK(link_for({peer, blocking, slower}, false).kind == "peer 0-1");
  CHECK(link_for({peer, blocking, slower}, true).kind == "blocking peer 0-1");
  CHECK(link_for({peer}, true).kind == "peer 0-1");
  CHECK(link_for({blocking}, false).kind == "blocking peer 0-1");
}

TEST_CASE(
    "a profile with two batch sizes is read, sorted and used as measured, interpolated or scaled") {
  const auto model = parse_profile(test::text_source("p.yaml", kTwoSizes));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  const Profile& profile = model->profile;
  REQUIRE(profile.measurements.size() == 2);
  CHECK(profile.measurements[0].batch == 8);
  CHECK(profile.overheads->hand_over == std::chrono::microseconds(6));
  CHECK(profile.links[0].table.size() == 2);
  CHECK(profile.measurements[1].layers[0].forward.samples == 7);

  const SizedCosts measured = costs_at(profile, 32);
  CHECK(measured.estimated.empty());
  CHECK(measured.layers[0].backward.mean == std::chrono::milliseconds(8));
  const SizedCosts between = costs_at(profile, 16);  // a third of the way from 8 to 32
  CHECK(between.estimated ==
        "layer costs: interpolated to micro-batches of 16 between batches of 8 and 32");
  CHECK(between.layers[0].forward.mean == std::chrono::milliseconds(2));
  CHECK(between.layers[0].output == Bytes{16 << 10});
  CHECK(between.layers[0].selective->activation == Bytes{16 << 10});
  CHECK(between.layers[0].selective->forward.mean == std::chrono::microseconds(500));
  CHECK(between.layers[0].update.mean == std::chrono::microseconds(1));
  const SizedCosts above = costs_at(profile, 64);
  CHECK(above.estimated ==
        "layer costs: scaled linearly to micro-batches of 64 from a batch of 32");
  CHECK(above.layers[0].forward.mean == std::chrono::milliseconds(8));
  const SizedCosts below = costs_at(profile, 2);
  CHECK(below.layers[0].forward.mean == std::chrono::microseconds(250));
  CHECK(below.layers[0].split->weight.mean == std::chrono::microseconds(250));
  CHECK(below.layers[0].activation == Bytes{4 << 10});
  CHECK(below.layers[0].selective->activation == Bytes{2 << 10});
  CHECK(below.layers[0].selective->forward.mean == std::chrono::nanoseconds(62'500));
}

TEST_CASE("what is made again is said for every batch, or for none") {
  std::string text = kTwoSizes;
  const std::string second = " selective: {activation: 8 KiB, forward: 250 us},";
  text.erase(text.find(second), second.size());
  const auto model = parse_profile(test::text_source("p.yaml", text));
  REQUIRE_FALSE(model);
  CHECK(to_text(model.problems())
            .find("p.yaml:9:5: error: layer 'a' has no selective here, and "
                  "one in the first measurement") == 0);
}

TEST_CASE("servers are filled by groups, and by what divides layers in them") {
  const auto problem = [](const std::string& group) {
    const auto model = parse_profile(
        test::text_source("p.yaml", "version: 1\nkind: profile\ngroup: {" + group +
                                        "}\nlayers: [{name: a, forward: 1 ms, backward: 1 ms}]\n"));
    return model ? "" : model.problems().front().message;
  };
  CHECK(problem("devices: 24, tensor_parallel: 4, devices_per_server: 8").empty());
  CHECK(problem("devices: 24, tensor_parallel: 3, devices_per_server: 8") ==
        "group.devices_per_server is 8, which the tensor-parallel group of 3 does not fill");
  CHECK(problem("devices: 12, tensor_parallel: 3, devices_per_server: 8") ==
        "group.devices_per_server is 8, which the group of 12 does not fill");
}

TEST_CASE("all that is wrong in a profile is told at once") {
  const auto model = parse_profile(
      test::text_source("p.yaml",
                        "version: 2\nkind: profile\nlayers:\n  - {name: a, forward: 1, "
                        "backward: 2 ms, colour: red}\n  - {name: a, forward: 1 ms}\n"));
  REQUIRE(!model);
  CHECK(model.problems().size() == 5);
}

}  // namespace
}  // namespace plumbline
