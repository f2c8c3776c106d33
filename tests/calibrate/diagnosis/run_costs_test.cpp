// What ops, transfers and updates of a run take, over all its iterations.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/run_costs.h"

#include <doctest/doctest.h>

#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using Transfers = RecordingStyle::Transfers;

TEST_CASE("equal ops cost what they were predicted to cost, to the nanosecond") {
  const MadeTraining made{.devices = 3,
                          .forward = {100, 120, 90},
                          .backward_input = {110},
                          .backward_weight = {90, 95, 85}};
  RecordingStyle style;
  style.pause = microseconds(17);
  const RunCosts costs = costs_of(run_of(made, style));
  CHECK(costs.ops.size() == 6);
  REQUIRE(costs.find(1, OpKind::forward));
  CHECK(costs.find(1, OpKind::forward)->time == microseconds(120));
  CHECK(costs.find(2, OpKind::backward)->time == microseconds(195));
  CHECK(costs.find(2, OpKind::backward_input) == nullptr);
  CHECK(costs.find(3, OpKind::forward) == nullptr);
  CHECK(costs.find(0, OpKind::forward)->seconds.samples == 16);
  CHECK(costs.find(0, OpKind::forward)->seconds.min == close_to(100e-6));
  CHECK(costs.find(0, OpKind::forward)->busy_share == doctest::Approx(1));
  CHECK(costs.between_ops == Duration{});
  CHECK(costs.latency() == microseconds(5));
  CHECK(costs.iteration_s.samples == 3);
  CHECK(costs.iteration_s.median == close_to(seconds(made_period(prediction_of(made), style))));
}

TEST_CASE("the slowest op is named, and the time is that of a usual iteration") {
  RecordingStyle style;
  style.iterations = 5;
  // In iteration 12, the forward of micro-batch 2 on stage 1 is the only one of full length.
  style.earlier = [](std::int64_t iteration, const Op& op) -> Duration {
    const bool is_slow = iteration == 2 && to_text(op) == "1F2";
    return is_slow ? microseconds(0) : microseconds(20);
  };
  const RunCosts costs = costs_of(run_of(MadeTraining{}, style));
  const OpCosts& forward = *costs.find(1, OpKind::forward);
  CHECK(forward.time == microseconds(80));
  CHECK(to_text(forward.slowest) == "1F2");
  CHECK(forward.slowest_in == 12);
  CHECK(forward.seconds.max == close_to(100e-6));
  CHECK(forward.seconds.median == close_to(80e-6));
}

TEST_CASE("the share of an op in which something computed is kept") {
  auto recordings = recordings_of(MadeTraining{});
  for (RecordedOp& op : recordings[1].ops) op.busy = op.work.length() * 3 / 4;
  const RunCosts costs = costs_of(run_of(recordings));
  CHECK(costs.find(1, OpKind::forward)->busy_share == close_to(0.75));
  CHECK(costs.find(0, OpKind::forward)->busy_share == close_to(1));
}

TEST_CASE("links know how long data took, moved and was waited for") {
  RecordingStyle style;
  style.bytes = {1 << 20};
  const RunCosts costs = costs_of(run_of(MadeTraining{.schedule = "gpipe"}, style));
  REQUIRE(costs.links.size() == 2);
  const LinkCosts& down = costs.links[0];
  CHECK(down.from == 0);
  CHECK(down.to == 1);
  CHECK(down.transfers == 16);
  CHECK(down.latency == microseconds(5));
  CHECK(down.moving == microseconds(5));
  CHECK(down.bytes.count == 1 << 20);
  const LinkCosts& up = costs.links[1];
  CHECK(up.from == 1);
  CHECK(up.to == 0);
  CHECK(up.latency == microseconds(5));
  // Device 0 waits for the first gradient alone: then its own backwards take as long as device 1's.
  CHECK(up.waits == 4);
  REQUIRE(up.waiting);
  CHECK(*up.waiting == Duration{});
  // Where the other forwards take twice as long, device 1 waits for each of them.
  const LinkCosts slow =
      costs_of(run_of(MadeTraining{.schedule = "gpipe", .forward = {200, 100}}, style)).links[0];
  CHECK(slow.waits == 16);
  CHECK(slow.latency == microseconds(5));
  REQUIRE(slow.waiting);
  CHECK(*slow.waiting == microseconds(95));
}

TEST_CASE("without transfers, the time until an op begins that waited is the latency") {
  RecordingStyle style;
  style.transfers = Transfers::none;
  const RunCosts costs = costs_of(run_of(MadeTraining{}, style));
  CHECK(costs.latency() == microseconds(5));
  for (const LinkCosts& link : costs.links) {
    CHECK_FALSE(link.moving);
    CHECK_FALSE(link.waiting);
    CHECK(link.bytes.count == 0);
  }
}

TEST_CASE("what is between ops and between iterations is told") {
  RecordingStyle style;
  style.pause = microseconds(40);
  style.earlier = [](std::int64_t, const Op&) -> Duration { return microseconds(3); };
  const RunCosts costs = costs_of(run_of(MadeTraining{}, style));
  CHECK(costs.between_ops == microseconds(3));
  // The first device's part begins and ends the iteration.
  CHECK(costs.between_iterations == microseconds(40));
  REQUIRE(costs.updates.size() == 2);
  CHECK(costs.updates[0] == microseconds(33));
}

TEST_CASE("collectives and waits for sends are not between ops") {
  RecordingStyle style;
  style.earlier = [](std::int64_t, const Op&) -> Duration { return microseconds(10); };
  auto recordings = recordings_of(MadeTraining{}, style);
  CHECK(costs_of(run_of(recordings)).between_ops == microseconds(10));
  for (RankRecording& recording : recordings) {
    for (const RecordedOp& op : recording.ops) {
      recording.collectives.push_back({op.work.end, op.work.end + microseconds(3)});
      recording.sends.push_back({op.work.end - microseconds(50), op.work.end + microseconds(2)});
    }
  }
  // A send that is over before the collective counts beside it.
  CHECK(costs_of(run_of(recordings)).between_ops == microseconds(10 - 3 - 2));
}

TEST_CASE("the micro-batches that take least and most are told, by the median over iterations") {
  RecordingStyle style;
  style.earlier = [](std::int64_t iteration, const Op& op) -> Duration {
    if (op.kind != OpKind::forward) return {};
    if (iteration == 1 && op.micro_batch.value == 0) return microseconds(90);  // once
    return op.micro_batch.value == 2 ? microseconds(40) : microseconds(5 * op.micro_batch.value);
  };
  const RunCosts costs = costs_of(run_of(MadeTraining{}, style));
  const OpCosts& forward = *costs.find(0, OpKind::forward);
  CHECK(forward.least == microseconds(60));
  CHECK(forward.least_of == 2);
  CHECK(forward.most == microseconds(100));
  CHECK(forward.most_of == 0);
  const OpCosts& backward = *costs.find(1, OpKind::backward);
  CHECK(backward.least == backward.most);
}

TEST_CASE("a run on one device has no links, and no latency") {
  const RunCosts costs = costs_of(run_of(MadeTraining{.schedule = "naive", .devices = 1}));
  CHECK(costs.links.empty());
  CHECK_FALSE(costs.latency());
  CHECK(costs.updates == std::vector<Duration>{microseconds(30)});
}

TEST_CASE("an input that arrives before it was made had only been posted") {
  const MadeTraining made;
  RecordedRun run = run_of(made);
  RunIteration& iteration = run.iterations[0];
  const RunOp& op = iteration.ops[1][0];
  const auto input = [&] { return OpInputs(run, iteration).of(op); };
  REQUIRE(input().producer);
  CHECK(to_text(input().producer->op) == "0F0");
  CHECK(input().arrival == op.work.begin);
  RunTransfer& transfer = iteration.transfers.at(op.op);
  transfer.sent.reset();
  transfer.received->end = input().producer->work.end - Duration{1};
  CHECK_FALSE(input().arrival);
  transfer.received->end = op.work.begin + Duration{7};  // the op had begun by then
  CHECK(input().arrival == op.work.begin);
  // A receive of a CPU that was posted long after, and ended at once, does not tell since when.
  const SimTime made_at = input().producer->work.end;
  run.clock = OpClock::work;
  transfer.is_whole = true;
  transfer.received = RecordedSpan{made_at + Duration{3900}, made_at + Duration{4900}};
  CHECK(input().arrival == made_at + Duration{4900});
  transfer.received = RecordedSpan{made_at + Duration{4100}, made_at + Duration{4900}};
  CHECK_FALSE(input().arrival);
  run.clock = OpClock::kernels;
  CHECK(input().arrival == made_at + Duration{4900});
  iteration.transfers.clear();
  CHECK(input().producer);
  CHECK_FALSE(input().arrival);
  CHECK_FALSE(OpInputs(run, iteration).of(iteration.ops[0][0]).producer);
}

}  // namespace
}  // namespace plumbline::test
