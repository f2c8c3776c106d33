// Faults in lists of ops, each with its message and picture.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/check.h"

#include <doctest/doctest.h>

#include "tests/support/stages.h"

namespace plumbline {
namespace {

constexpr OpKind F = OpKind::forward;
constexpr OpKind B = OpKind::backward;
constexpr OpKind I = OpKind::backward_input;
constexpr OpKind W = OpKind::backward_weight;

PipelineShape shape(std::uint32_t stages, std::uint32_t micro_batches) {
  auto t = test::equal_stages(stages, Duration{1}, Duration{1});
  return pipeline_shape(test::one_layer_a_stage(t), micro_batches);
}

std::string faults(const PipelineShape& shape, const OpLists& lists) {
  const auto checked = checked_schedule("hand", false, shape, lists, Mark{});
  return checked ? "" : to_text(checked.problems());
}

TEST_CASE("a complete schedule passes, with B or with I and W") {
  CHECK(faults(shape(2, 1), {{{F, {0}, {0}}, {B, {0}, {0}}},
                             {{F, {1}, {0}}, {I, {1}, {0}}, {W, {1}, {0}}}}) == "");
}

TEST_CASE("a missing, a repeated and a misplaced op are named with device and position") {
  CHECK(faults(shape(1, 2), {{{F, {0}, {0}}, {B, {0}, {0}}, {F, {0}, {1}}}}) ==
        "error: device 0, position 3: 0B1 is missing\n"
        "  device 0   | 0F0 0B0 0F1\n"
        "                           ^\n");
  CHECK(faults(shape(1, 1), {{{F, {0}, {0}}, {F, {0}, {0}}, {B, {0}, {0}}}}) ==
        "error: device 0, position 1: 0F0 stands here a second time\n"
        "  device 0   | 0F0 0F0 0B0\n"
        "                   ^^^\n");
  CHECK(faults(shape(2, 1), {{{F, {0}, {0}}, {F, {1}, {0}}, {B, {0}, {0}}}, {{B, {1}, {0}}}})
            .find("error: device 0, position 1: 1F0 belongs on device 1\n") == 0);
  CHECK(faults(shape(1, 1), {{{F, {0}, {3}}}})
            .find("error: device 0, position 0: 0F3 names a micro-batch out of range (0 to 0)\n") ==
        0);
  CHECK(faults(shape(1, 1), {{{F, {4}, {0}}}}).find("names a stage out of range (0 to 0)\n") !=
        std::string::npos);
  CHECK(faults(shape(1, 1), {{{F, {0}, {0}}, {I, {0}, {0}}}}).find("0W0 is missing\n") !=
        std::string::npos);
  CHECK(faults(shape(1, 1), {{{F, {0}, {0}}, {B, {0}, {0}}, {W, {0}, {0}}}})
            .find("0B0 stands beside its own parts I and W\n") != std::string::npos);
}

TEST_CASE("a deadlock names each device's next op and what it waits for") {
  const PipelineShape two = shape(2, 2);
  const OpLists lists = {{{F, {0}, {0}}, {B, {0}, {0}}, {F, {0}, {1}}, {B, {0}, {1}}},
                         {{F, {1}, {0}}, {F, {1}, {1}}, {B, {1}, {0}}, {B, {1}, {1}}}};
  CHECK(faults(two, lists) ==
        "error: the schedule deadlocks: device 0, position 1: 0B0 waits for 1B0, which never runs\n"
        "  device 0: next is 0B0, which waits for 1B0\n"
        "  device 1: next is 1F1, which waits for 0F1\n"
        "  device 0   | 0F0 0B0 0F1 0B1\n"
        "                   ^^^\n"
        "  device 1   | 1F0 1F1 1B0 1B1\n");
  const auto checked = checked_schedule("hand", false, two, lists, Mark{});
  CHECK(checked.problems()[0].fault == Fault::infeasible);
}

}  // namespace
}  // namespace plumbline
