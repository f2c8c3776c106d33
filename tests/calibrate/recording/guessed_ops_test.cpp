// Ops of traces whose ranges name none.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/guessed_ops.h"

#include <doctest/doctest.h>

#include "calibrate/recording/rank_recording.h"
#include "tests/calibrate/recording/rank_trace.h"

namespace plumbline::test {
namespace {

/// The ranges of a trace's guessed ops: "F 10..20, B 30..50", in microseconds.
std::string guesses(const RankTrace& trace) {
  std::istringstream stream(trace.text());
  const auto events = read_rank_events(stream, text_source("trace.json", ""), {});
  REQUIRE(events);
  std::string all;
  for (const TitledRange& range : guessed_ops(*events)) {
    CHECK(range.title.use == RangeUse::op);
    CHECK_FALSE(range.title.op.stage);
    CHECK_FALSE(range.title.op.micro_batch);
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", letter(range.title.op.kind),
                       span_text(range.span));
  }
  return all;
}

TEST_CASE("what autograd launches is a backward, other work is a forward") {
  const RankTrace trace = RankTrace()
                              .launched(10, 100, 50)
                              .launched(12, 150, 50)
                              .autograd(20, 10)
                              .launched(21, 200, 100, 2)
                              .launched(29, 300, 100, 2)
                              .launched(40, 400, 50);
  CHECK(guesses(trace) == "F 10..12.001, B 21..29.001, F 40..40.001");
  const RankRecording recording = recording_of(trace);
  CHECK(recording.guessed);
  CHECK(ops_text(recording) == "?F? 100..200, ?B? 200..400, ?F? 400..450");
  CHECK(recording.clock == OpClock::kernels);
}

TEST_CASE("a send or a receive in between ends an op") {
  CHECK(guesses(RankTrace()
                    .launched(10, 100, 50)
                    .launched(11, 150, 50)
                    .launch(12, 1)
                    .send(200, 10, 1, 1)
                    .launched(13, 210, 50)
                    .launch(14, 2)
                    .receive(260, 10, 2, 1)
                    .launched(15, 270, 50)) == "F 10..11.001, F 13..13.001, F 15..15.001");
  // An all-reduce does not.
  CHECK(guesses(RankTrace()
                    .launched(10, 100, 50)
                    .launch(12, 1)
                    .all_reduce(150, 10, 1)
                    .launched(13, 210, 50)) == "F 10..13.001");
}

TEST_CASE("less than a tenth of the longest of its kind is no op") {
  CHECK(guesses(RankTrace()
                    .launched(10, 100, 100)
                    .autograd(20, 10)
                    .launched(21, 200, 200, 2)
                    .launched(30, 400, 9)  // loss scaling
                    .autograd(40, 10)
                    .launched(41, 420, 200, 2)) == "F 10..10.001, B 21..41.001");
  CHECK(guesses(RankTrace()
                    .launched(10, 100, 100)
                    .autograd(20, 10)
                    .launched(21, 200, 200, 2)
                    .launched(30, 400, 10)
                    .autograd(40, 10)
                    .launched(41, 420, 200, 2)) ==
        "F 10..10.001, B 21..21.001, F 30..30.001, B 41..41.001");
  // A send before what is too small still ends an op.
  CHECK(guesses(RankTrace()
                    .launched(10, 100, 100)
                    .launch(12, 1)
                    .send(200, 10, 1, 1)
                    .autograd(13, 1)
                    .launched(13, 210, 5, 2)
                    .launched(16, 230, 100)
                    .autograd(20, 10)
                    .launched(21, 400, 200, 2)) == "F 10..10.001, F 16..16.001, B 21..21.001");
}

TEST_CASE("work of the optimizer and of other threads is in no op") {
  const RankTrace trace = RankTrace()
                              .step(0, 0, 100)
                              .launched(10, 100, 50)
                              .launched(11, 150, 40, 9)  // a loader's copy
                              .autograd(20, 10)
                              .launched(21, 200, 100, 2)
                              .range("Optimizer.step#SGD.step", 40, 20)
                              .launched(45, 300, 90)
                              .launched(70, 400, 50);
  CHECK(guesses(trace) == "F 10..10.001, B 21..21.001, F 70..70.001");
  const RankRecording recording = recording_of(trace);
  REQUIRE(recording.updates.size() == 1);
  CHECK(span_text(recording.updates[0].work) == "300..390");
}

TEST_CASE("on a CPU, calls within autograd's functions are a backward") {
  const RankTrace trace = RankTrace()
                              .call("aten::mm", 10, 50)
                              .call("c10d::send", 60, 5)
                              .call("aten::mm", 70, 40)
                              .autograd(120, 80)
                              .call("aten::mm", 125, 70, 2);
  CHECK(guesses(trace) == "F 10..60, F 70..110, B 120..200");
  CHECK(recording_of(trace).clock == OpClock::work);
}

TEST_CASE("traces that name an op, or hold no work, are not guessed") {
  const RankRecording named = recording_of(RankTrace()
                                               .range("PP:0F0", 0, 20)
                                               .launched(10, 100, 50)
                                               .autograd(30, 10)
                                               .launched(31, 200, 50, 2));
  CHECK_FALSE(named.guessed);
  CHECK(ops_text(named) == "0F0 100..150");
  CHECK(guesses(RankTrace().range("loss", 0, 10)).empty());
}

}  // namespace
}  // namespace plumbline::test
