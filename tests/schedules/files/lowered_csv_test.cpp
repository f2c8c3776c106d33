// Orders with their communication, read back.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/lowered_csv.h"

#include <doctest/doctest.h>

#include "schedules/files/schedule_file.h"
#include "tests/support/stages.h"

namespace plumbline::test {
namespace {

TEST_CASE(
    "a lowered order names each op, its sends and receives, and each stage's beginning and end") {
  TestStages t = equal_stages(2, std::chrono::nanoseconds(10), std::chrono::nanoseconds(20));
  t.schedule = "1f1b";
  t.micro_batches = 2;
  CHECK(lowered_csv(schedule_of(t)) ==
        "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1UNSHARD,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n");
}

}  // namespace
}  // namespace plumbline::test
