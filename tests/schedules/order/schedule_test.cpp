// Printed forms of schedules, and the orders that PyTorch uses.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/schedule.h"

#include <doctest/doctest.h>

#include "tests/support/stages.h"

namespace plumbline {
namespace {

using test::equal_stages;
using test::schedule_of;

Schedule make(const std::string& name, std::uint32_t p, std::uint32_t m) {
  auto t = equal_stages(p, Duration{1}, Duration{2});
  t.schedule = name;
  t.micro_batches = m;
  return schedule_of(t);
}

TEST_CASE("slots number the devices that hold a stage, in the order of the devices") {
  const Partition partition =
      make_partition({{0}, {1}, {2}, {3}}, {1, 1, 1, 1}, {{{5}}, {{5}}, {{2}}, {{7}}});
  CHECK(pipeline_shape(partition, 4).stage_slots ==
        std::vector<std::vector<std::uint32_t>>{{1}, {1}, {0}, {2}});
}

TEST_CASE("1F1B over three stages prints as grid, CSV and sequence") {
  const Schedule schedule = make("1f1b", 3, 3);
  CHECK(*replay_grid(schedule, {"device 0", "device 1", "device 2"}) ==
        "step     |   0   1   2   3   4   5   6   7   8   9\n"
        "device 0 | 0F0 0F1 0F2   .   . 0B0   . 0B1   . 0B2\n"
        "device 1 |   . 1F0 1F1   . 1B0 1F2 1B1   . 1B2\n"
        "device 2 |   .   . 2F0 2B0 2F1 2B1 2F2 2B2\n");
  CHECK(torch_csv(schedule) ==
        "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2\n2F0,2B0,2F1,2B1,2F2,2B2\n");
  CHECK(issue_sequence(schedule) ==
        "0F0 1F0 0F1 2F0 1F1 0F2 2B0 1B0 2F1 0B0 2B1 1F2 1B1 2F2 0B1 2B2 1B2 0B2\n");
}

TEST_CASE("a loop over the whole model prints its body") {
  CHECK(issue_sequence(make("delayed-backward", 2, 4)) == "F0 F1 B0 F2 B1 F3 B2 B3\n");
  CHECK(issue_sequence(make("naive", 3, 2)) == "F0 B0 F1 B1\n");
  CHECK(issue_sequence(make("gpipe", 2, 2)) == "F0 F1 B0 B1\n");
  CHECK(issue_sequence(make("1f1b", 1, 2)) == "0F0 0B0 0F1 0B1\n");
}

TEST_CASE("eager 1F1B has windows of 2(p-s)-1") {
  CHECK(torch_csv(make("eager-1f1b", 2, 4)) ==
        "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
}

TEST_CASE("several stages of one position run forwards upwards and backwards downwards") {
  auto t = equal_stages(3, Duration{1}, Duration{2});
  t.devices = {{0}, {0}, {1}};
  t.schedule = "1f1b";
  t.micro_batches = 2;
  CHECK(torch_csv(schedule_of(t)) == "0F0,1F0,0F1,1F1,1B0,0B0,1B1,0B1\n2F0,2B0,2F1,2B1\n");
}

}  // namespace
}  // namespace plumbline
