// How far the clocks of ranks are apart, found again from recordings that were set apart.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/clocks.h"

#include <doctest/doctest.h>

#include "tests/calibrate/diagnosis/made_recordings.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Transfers = RecordingStyle::Transfers;

/// Checks that two runs have the same ops, transfers and updates at the same times.
void check_same_times(const RecordedRun& run, const RecordedRun& right) {
  REQUIRE(run.iterations.size() == right.iterations.size());
  for (std::size_t k = 0; k < run.iterations.size(); ++k) {
    const RunIteration& a = run.iterations[k];
    const RunIteration& b = right.iterations[k];
    CHECK(a.begin == b.begin);
    CHECK(a.end == b.end);
    for (std::size_t d = 0; d < a.ops.size(); ++d) {
      REQUIRE(a.ops[d].size() == b.ops[d].size());
      for (std::size_t i = 0; i < a.ops[d].size(); ++i) {
        CHECK(a.ops[d][i].work.begin == b.ops[d][i].work.begin);
        CHECK(a.ops[d][i].work.end == b.ops[d][i].work.end);
      }
      REQUIRE(a.updates[d].has_value() == b.updates[d].has_value());
      if (a.updates[d]) CHECK(a.updates[d]->begin == b.updates[d]->begin);
    }
    REQUIRE(a.transfers.size() == b.transfers.size());
    for (const auto& [op, transfer] : a.transfers) {
      CHECK(transfer.arrival() == b.transfers.at(op).arrival());
      CHECK(transfer.moved_from() == b.transfers.at(op).moved_from());
    }
  }
}

TEST_CASE("clocks are found exactly where both directions have equally fast transfers") {
  for (const Transfers transfers :
       {Transfers::none, Transfers::named, Transfers::by_peer, Transfers::received}) {
    for (const MadeTraining& made : made_trainings()) {
      CAPTURE(made.schedule);
      CAPTURE(static_cast<int>(transfers));
      RecordingStyle style;
      style.transfers = transfers;
      if (transfers == Transfers::received) style.clock = OpClock::work;
      const Outcome predicted = prediction_of(made);
      const RecordedRun right = run_of(recordings_of(predicted, style));
      style.ahead = {milliseconds(4), -milliseconds(3), Duration{123'456'789}};
      const RecordedRun run = run_of(recordings_of(predicted, style));
      for (std::size_t d = 0; d < run.devices.size(); ++d) {
        CHECK(run.devices[d].clock_ahead == style.ahead[d] - style.ahead[0]);
        CHECK(right.devices[d].clock_ahead == Duration{});
        CHECK(run.devices[d].clock_known_to.has_value() == (d > 0));
      }
      // Ops and receives say it to a transfer's latency, both ends of a transfer exactly.
      const bool both_ends = transfers == Transfers::named || transfers == Transfers::by_peer;
      const Duration known = both_ends ? Duration{} : microseconds(5);
      CHECK(run.devices[1].clock_known_to == known);
      check_same_times(run, right);
      CHECK(run.notes.empty());
    }
  }
}

TEST_CASE("a clock that is seen over other ranks is known less well") {
  RecordingStyle style;
  style.transfers = Transfers::none;
  style.ahead = {Duration{}, microseconds(700), -microseconds(90), milliseconds(2)};
  const RecordedRun run = run_of(MadeTraining{.devices = 4, .micro_batches = 8}, style);
  for (std::int64_t d = 1; d < 4; ++d) {
    const RunDevice& device = run.devices[static_cast<std::size_t>(d)];
    CHECK(device.clock_ahead == style.ahead[static_cast<std::size_t>(d)]);
    CHECK(device.clock_known_to == d * microseconds(5));
  }
}

TEST_CASE("transfers that were recorded in one direction alone leave the clocks to the ops") {
  RecordingStyle style;
  style.ahead = {Duration{}, milliseconds(1)};
  auto recordings = recordings_of(MadeTraining{}, style);
  for (RankRecording& recording : recordings) {
    std::erase_if(recording.transfers, [&](const RecordedTransfer& transfer) {
      return transfer.sends == (recording.rank == 1);
    });
  }
  const RecordedRun run = run_of(recordings);
  CHECK(run.devices[1].clock_ahead == milliseconds(1));
  CHECK(run.devices[1].clock_known_to == microseconds(5));
}

TEST_CASE("a clock that runs faster is followed, and a note says how much") {
  for (const double ppm : {500.0, -500.0}) {
    for (const Transfers transfers : {Transfers::none, Transfers::by_peer}) {
      CAPTURE(ppm);
      CAPTURE(static_cast<int>(transfers));
      RecordingStyle style;
      style.iterations = 40;
      style.transfers = transfers;
      const Outcome predicted = prediction_of({});
      const RecordedRun right = run_of(recordings_of(predicted, style));
      style.ppm = {0, ppm};
      const RecordedRun run = run_of(recordings_of(predicted, style));
      CHECK_MESSAGE(notes_hold(run.notes, fmt::format("the clock of rank1.json runs 500.0 ppm {}, "
                                                      "seen from rank0.json",
                                                      ppm > 0 ? "faster" : "slower")),
                    fmt::format("{}", fmt::join(run.notes, "; ")));
      // Within an iteration of a millisecond it goes wrong by half a microsecond.
      for (std::size_t k = 0; k < run.iterations.size(); ++k) {
        const auto apart = run.iterations[k].ops[1].front().work.begin -
                           right.iterations[k].ops[1].front().work.begin;
        CHECK(std::chrono::abs(apart) < microseconds(1));
      }
      REQUIRE(run.devices[1].clock_known_to);
      CHECK(*run.devices[1].clock_known_to < microseconds(50));
    }
  }
}

TEST_CASE("collectives follow a clock that runs faster, as the ops around them do") {
  RecordingStyle style;
  style.iterations = 40;
  style.ppm = {0, 500};
  auto recordings = recordings_of(MadeTraining{}, style);
  for (const RecordedUpdate& update : recordings[1].updates)  // 20 us before each update
    recordings[1].collectives.push_back({update.work.begin - microseconds(20), update.work.begin});
  const RecordedRun run = run_of(recordings);
  REQUIRE(run.collectives[1].size() == 40);
  for (std::size_t k = 0; k < 40; ++k) {
    CHECK(run.collectives[1][k].end == run.iterations[k].updates[1]->begin);
    CHECK(run.collectives[1][k].length() == microseconds(20));
  }
}

TEST_CASE("a clock that jumps is followed, and a note says when") {
  RecordingStyle style;
  style.iterations = 8;
  const Outcome predicted = prediction_of({});
  const RecordedRun right = run_of(recordings_of(predicted, style));
  style.jump = [](std::uint32_t rank, std::int64_t iteration) -> Duration {
    return rank == 1 && iteration >= 5 ? milliseconds(1) : milliseconds(0);
  };
  const RecordedRun run = run_of(recordings_of(predicted, style));
  CHECK_MESSAGE(notes_hold(run.notes,
                           "the clock of rank1.json jumps by 1 ms before iteration 15, seen from "
                           "rank0.json"),
                fmt::format("{}", fmt::join(run.notes, "; ")));
  check_same_times(run, right);
}

TEST_CASE("what jumps by less than transfers scatter is no jump") {
  RecordingStyle style;
  style.iterations = 8;
  style.jump = [](std::uint32_t rank, std::int64_t iteration) -> Duration {
    return rank == 1 && iteration >= 5 ? microseconds(90) : microseconds(0);
  };
  CHECK(run_of(MadeTraining{}, style).notes.empty());
}

TEST_CASE("times that no two clocks of one run have are an error") {
  RecordingStyle style;
  style.iterations = 40;
  style.ppm = {0, 20'000};
  const auto run = assemble(recordings_of(MadeTraining{}, style), {});
  REQUIRE_FALSE(run);
  const Diagnostic& told = run.problems().front();
  CHECK(told.message == "its times do not go with those of rank0.json, whatever their clocks");
  CHECK(told.mark.source->name == "rank1.json");
}

TEST_CASE("bounds that contradict each other within the only iteration tell of no jump") {
  // Device 1 begins each forward before its input is made: its clock goes back in between.
  auto recordings =
      recordings_of(MadeTraining{.schedule = "gpipe"},
                    {.iterations = 1, .transfers = Transfers::none, .has_steps = false});
  for (RecordedOp& op : recordings[1].ops) {
    if (op.op.kind != OpKind::forward) continue;
    op.work.begin -= microseconds(300);
    op.work.end -= microseconds(300);
    op.issued -= microseconds(300);
  }
  const RecordedRun run = run_of(recordings);
  CHECK_MESSAGE(!notes_hold(run.notes, "jumps"), fmt::format("{}", fmt::join(run.notes, "; ")));
  REQUIRE(run.devices[1].clock_known_to);
  CHECK(*run.devices[1].clock_known_to == microseconds(145));
  CHECK(run.devices[1].clock_ahead == -microseconds(150));
}

}  // namespace
}  // namespace plumbline::test
