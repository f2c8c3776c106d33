// The recordings of all ranks, put together: stages, micro-batches, iterations, transfers, copies.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/calibrate/diagnosis/made_recordings.h"

namespace plumbline::test {
namespace {

std::string assembly_fault(const std::vector<RankRecording>& recordings,
                           const AssemblyOptions& options = {}) {
  const auto run = assemble(recordings, options);
  REQUIRE_FALSE(run);
  CHECK(run.problems().size() == 1);
  return run.problems().front().message;
}

/// "0F0 0F1 0B0 ...".
std::string list_text(const std::vector<Op>& list) {
  std::string all;
  for (const Op& op : list) all += (all.empty() ? "" : " ") + to_text(op);
  return all;
}

/// The ops of a rank that a test leaves out.
void drop_ops(RankRecording& recording, const std::function<bool(const RecordedOp&)>& dropped) {
  std::erase_if(recording.ops, dropped);
}

TEST_CASE("a run gives back the order, the stages and the micro-batches of its prediction") {
  for (const MadeTraining& made : made_trainings()) {
    CAPTURE(made.schedule);
    const Outcome predicted = prediction_of(made);
    const RecordedRun run = run_of(recordings_of(predicted));
    CHECK(run.lists == predicted.setup.schedule.lists());
    CHECK(run.stages == made.stages());
    CHECK(run.micro_batches == made.micro_batches);
    CHECK(run.devices.size() == made.devices);
    CHECK(run.copies == 1);
    CHECK(run.left_out == 0);
    CHECK(run.notes.empty());
    for (std::uint32_t s = 0; s < run.stages; ++s) {
      const auto& stages = run.devices[run.device_of(s)].stages;
      CHECK(std::find(stages.begin(), stages.end(), s) != stages.end());
    }
  }
}

TEST_CASE("iterations have their numbers, their times and the time until the next one") {
  const Outcome predicted = prediction_of({});
  RecordingStyle style;
  style.pause = std::chrono::microseconds(7);
  const RecordedRun run = run_of(recordings_of(predicted, style));
  const Duration period = made_period(predicted, style);
  REQUIRE(run.iterations.size() == 4);
  for (std::size_t k = 0; k < 4; ++k) {
    const RunIteration& iteration = run.iterations[k];
    CHECK(iteration.number == static_cast<std::int64_t>(10 + k));
    CHECK(iteration.begin == SimTime{static_cast<std::int64_t>(k) * period});
    CHECK(iteration.end == iteration.begin + predicted.metrics.makespan);
    CHECK(iteration.period.has_value() == (k < 3));
    CHECK(iteration.time() == (k < 3 ? period : predicted.metrics.makespan));
  }
  CHECK(run.timed() == std::vector<std::size_t>{0, 1, 2});
  // Every op has its predicted time.
  const OpGraph& graph = predicted.graph;
  std::size_t ops = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    if (!is_op(activity.kind)) continue;
    const Op op{static_cast<OpKind>(activity.kind), activity.stage, activity.micro_batch};
    for (const RunIteration& iteration : run.iterations) {
      const auto& device = iteration.ops[graph.nodes[node].resource];
      const auto found = std::find_if(device.begin(), device.end(),
                                      [&](const RunOp& one) { return one.op == op; });
      REQUIRE(found != device.end());
      CHECK(found->work.begin - iteration.begin ==
            predicted.trace.spans[node].begin.time_since_epoch());
      CHECK(found->work.end - iteration.begin ==
            predicted.trace.spans[node].end.time_since_epoch());
      ++ops;
    }
  }
  CHECK(ops == std::size_t{4} * 2 * 2 * 4);
  REQUIRE(run.iterations[1].updates[1]);
  CHECK(run.iterations[1].updates[1]->length() == std::chrono::microseconds(30));
}

TEST_CASE("one iteration alone counts until its own end") {
  RecordingStyle style;
  style.iterations = 1;
  const Outcome predicted = prediction_of({});
  const RecordedRun run = run_of(recordings_of(predicted, style));
  CHECK(run.timed() == std::vector<std::size_t>{0});
  CHECK(run.iterations[0].time() == predicted.metrics.makespan);
}

TEST_CASE("without steps, an iteration begins where an op comes again, or behind an update") {
  for (const bool has_updates : {false, true}) {
    for (const bool tells_micro_batches : {false, true}) {
      if (!has_updates && !tells_micro_batches) continue;
      CAPTURE(has_updates);
      CAPTURE(tells_micro_batches);
      RecordingStyle style;
      style.has_steps = false;
      style.has_updates = has_updates;
      style.tells_micro_batches = tells_micro_batches;
      const Outcome predicted = prediction_of({});
      const RecordedRun run = run_of(recordings_of(predicted, style));
      CHECK(run.lists == predicted.setup.schedule.lists());
      REQUIRE(run.iterations.size() == 4);
      CHECK(run.iterations[0].number == 0);
      CHECK(run.iterations[3].number == 3);
      CHECK(run.iterations[2].period == made_period(predicted));
    }
  }
}

TEST_CASE("a step of the profiler that holds several iterations is cut where an op comes again") {
  RecordingStyle style;
  style.iterations = 6;
  const Outcome predicted = prediction_of({});
  auto recordings = recordings_of(predicted, style);
  for (RankRecording& recording : recordings) {  // every second step goes on
    std::vector<RecordedStep> steps;
    for (std::size_t k = 0; k < 6; k += 2)
      steps.push_back({static_cast<std::int64_t>(k / 2),
                       {recording.steps[k].span.begin, recording.steps[k + 1].span.end}});
    recording.steps = steps;
  }
  const RecordedRun run = run_of(recordings);
  CHECK(run.left_out == 0);
  REQUIRE(run.iterations.size() == 6);
  for (std::size_t k = 0; k < 6; ++k) {
    CHECK(run.iterations[k].number == static_cast<std::int64_t>(k / 2));
    if (k < 5) CHECK(run.iterations[k].period == made_period(predicted));
  }
  CHECK(notes_hold(run.notes, "a step of the profiler holds up to 2 passes"));
}

TEST_CASE("steps without a number, or whose numbers do not rise, are counted") {
  for (const std::int64_t number : {-1, 7}) {
    CAPTURE(number);
    auto recordings = recordings_of(MadeTraining{});
    for (RankRecording& recording : recordings) {
      for (RecordedStep& step : recording.steps) step.number = number;
    }
    const RecordedRun run = run_of(recordings);
    REQUIRE(run.iterations.size() == 4);
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(run.iterations[k].number == static_cast<std::int64_t>(k));
    CHECK(run.timed().size() == 3);
  }
}

TEST_CASE("micro-batches that are numbered on and on begin at 0 in every iteration") {
  auto recordings = recordings_of(MadeTraining{});
  for (RankRecording& recording : recordings) {
    std::map<std::pair<std::uint32_t, OpKind>, std::uint32_t> before;
    for (RecordedOp& op : recording.ops) {
      const std::uint32_t iteration = before[{*op.op.stage, op.op.kind}]++ / 4;
      *op.op.micro_batch += 4 * iteration + 100;
    }
  }
  const RecordedRun run = run_of(recordings);
  CHECK(run.lists == prediction_of({}).setup.schedule.lists());
  CHECK(run.iterations.size() == 4);
}

TEST_CASE("where names tell no stage, the ranks are the stages in their order") {
  RecordingStyle style;
  style.tells_stages = false;
  const MadeTraining made{.devices = 3};
  const RecordedRun run = run_of(made, style);
  CHECK(run.stages == 3);
  CHECK(run.lists == prediction_of(made).setup.schedule.lists());
  CHECK(notes_hold(run.notes,
                   "the names of ranges tell no stage: the ranks are taken as the stages of a "
                   "pipeline in their order"));
  // Four ranks, two stages: ranks 0 and 1 are copies of stage 0.
  const auto pipeline = recordings_of(MadeTraining{}, style);
  std::vector<RankRecording> copies;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    copies.push_back(pipeline[static_cast<std::size_t>(rank / 2)]);
    copies.back().rank = rank;
    copies.back().file = fmt::format("rank{}.json", rank);
    for (RecordedTransfer& transfer : copies.back().transfers) transfer.peer.reset();
    for (RecordedOp& op : copies.back().ops) op.work.end += Duration{rank};  // no two are the same
  }
  const AssemblyOptions two{.stages = 2};
  const RecordedRun first = run_of(copies, two);
  CHECK(first.copies == 2);
  CHECK(first.stages == 2);
  REQUIRE(first.devices.size() == 2);
  CHECK(first.devices[1].rank == 2);
  CHECK(notes_hold(first.notes, "2 copies of each side by side"));
  CHECK(assembly_fault(copies, {.stages = 3}) == "4 devices cannot have 3 stages");
}

TEST_CASE("copies of the pipeline are told apart, and one of them is shown") {
  const Outcome predicted = prediction_of({});
  RecordingStyle slow;
  slow.pause = std::chrono::microseconds(50);
  auto recordings = recordings_of(predicted);
  for (RankRecording& recording : recordings_of(predicted, slow)) {
    recording.rank += 2;
    recording.file = fmt::format("rank{}.json", recording.rank);
    for (RecordedTransfer& transfer : recording.transfers) *transfer.peer += 2;
    recordings.push_back(recording);
  }
  const RecordedRun first = run_of(recordings);
  const RecordedRun second = run_of(recordings, {.copy = 1});
  CHECK(first.copies == 2);
  CHECK(second.copies == 2);
  CHECK(first.devices[0].rank == 0);
  CHECK(second.devices[0].rank == 2);
  CHECK(second.devices[1].rank == 3);
  REQUIRE(first.copy_times_s.size() == 2);
  CHECK(first.copy_times_s[0] == doctest::Approx(seconds(made_period(predicted))));
  CHECK(first.copy_times_s[1] == doctest::Approx(seconds(made_period(predicted, slow))));
  CHECK(second.copy_times_s == first.copy_times_s);
  CHECK(second.iterations[0].time() == made_period(predicted, slow));
  CHECK(assembly_fault(recordings, {.copy = 2}) ==
        "--copy 2, but there are 2 copies of the pipeline");
  CHECK(assembly_fault(recordings_of(predicted), {.copy = 1}) ==
        "--copy 1, but there is 1 copy of the pipeline");
  recordings.pop_back();
  CHECK(assembly_fault(recordings) == "sends to rank 3, of which there is no trace");
  for (RankRecording& recording : recordings) recording.transfers.clear();
  CHECK(assembly_fault(recordings) == "1 traces have stage 1, but 2 have stage 0");
}

TEST_CASE("iterations that are not whole are left out, and a note says so") {
  auto recordings = recordings_of(MadeTraining{});
  const RecordedRun whole = run_of(recordings);
  const SimTime third = recordings[1].steps[2].span.begin;
  drop_ops(recordings[1], [&](const RecordedOp& op) {
    return op.issued >= third && op.op.kind == OpKind::backward && op.op.micro_batch == 3 &&
           op.issued < recordings[1].steps[3].span.begin;
  });
  const RecordedRun run = run_of(recordings);
  REQUIRE(run.iterations.size() == 3);
  CHECK(run.iterations[0].number == 10);
  CHECK(run.iterations[1].number == 11);
  CHECK(run.iterations[2].number == 13);
  CHECK(run.left_out == 1);
  CHECK(notes_hold(run.notes, "1 iteration left out: not every op of it was recorded"));
  for (std::size_t k = 0; k < 3; ++k) {  // transfers are still those of their ops
    CHECK(run.iterations[k].transfers.size() == whole.iterations[0].transfers.size());
    for (const auto& [op, transfer] : run.iterations[k].transfers)
      CHECK(transfer.arrival() ==
            run.iterations[k].begin +
                (*whole.iterations[0].transfers.at(op).arrival() - whole.iterations[0].begin));
  }
  // The next one is missing, so its time is unknown.
  CHECK(run.iterations[0].period);
  CHECK_FALSE(run.iterations[1].period);
  CHECK(run.timed() == std::vector<std::size_t>{0});
}

TEST_CASE("iterations with another order than most are left out, and a note says so") {
  auto recordings = recordings_of(MadeTraining{});
  // In iteration 11, device 1 does its first two forwards the other way round.
  for (RecordedOp& op : recordings[0].ops) {
    const bool is_in = op.issued >= recordings[0].steps[1].span.begin &&
                       op.issued < recordings[0].steps[2].span.begin;
    if (is_in && op.op.kind == OpKind::forward && *op.op.micro_batch < 2)
      op.op.micro_batch = 1 - *op.op.micro_batch;
  }
  const RecordedRun run = run_of(recordings);
  CHECK(run.iterations.size() == 3);
  CHECK(run.left_out == 1);
  CHECK(notes_hold(run.notes, "1 iteration left out: it had another order of ops"));
  CHECK(list_text(run.lists[0]) == "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3");
}

TEST_CASE("the first iterations are skipped where that is asked for") {
  const auto recordings = recordings_of(MadeTraining{});
  const RecordedRun run = run_of(recordings, {.skip = 3});
  REQUIRE(run.iterations.size() == 1);
  CHECK(run.iterations[0].number == 13);
  CHECK(run.iterations[0].begin == SimTime{});
  CHECK(run.left_out == 0);
  CHECK(assembly_fault(recordings, {.skip = 4}) == "--skip 4, but there are 4 iterations");
}

TEST_CASE("ops before the first step belong to no iteration") {
  auto recordings = recordings_of(MadeTraining{});
  for (RankRecording& recording : recordings) recording.steps.erase(recording.steps.begin());
  const RecordedRun run = run_of(recordings);
  CHECK(run.iterations.size() == 3);
  CHECK(run.iterations[0].number == 11);
  CHECK(notes_hold(run.notes, "rank0.json: 8 ops before the first step are left out"));
  for (RankRecording& recording : recordings) {
    const SimTime behind = recording.ops.back().issued + std::chrono::seconds(1);
    recording.steps = {{7, {behind, behind + std::chrono::seconds(1)}}};
  }
  const std::string told = assembly_fault(recordings);
  CHECK(told == "all ops come before the first step of the profiler");
}

TEST_CASE("a rank twice is an error, as is a stage that no trace has") {
  auto recordings = recordings_of(MadeTraining{.devices = 3});
  auto twice = recordings;
  twice[2].rank = 1;
  CHECK(assembly_fault(twice) == "is rank 1, and so is rank1.json");
  recordings.erase(recordings.begin() + 1);
  CHECK(assembly_fault(recordings) == "sends to rank 1, of which there is no trace");
  for (RankRecording& recording : recordings) recording.transfers.clear();
  CHECK(assembly_fault(recordings) == "no trace has an op of stage 1");
  recordings.erase(recordings.begin());
  CHECK(assembly_fault(recordings) == "no trace has an op of stages 0, 1");
}

TEST_CASE("a last stage that sends on is not the last one") {
  RecordingStyle style;
  style.transfers = RecordingStyle::Transfers::named;
  auto recordings = recordings_of(MadeTraining{.devices = 3}, style);
  recordings.pop_back();
  CHECK(assembly_fault(recordings).find("stage 1 ") == 0);
  CHECK(assembly_fault(recordings).find("another stage behind it, of which there is no trace") !=
        std::string::npos);
}

TEST_CASE("a trace that has the ops of another one is given twice") {
  auto recordings = recordings_of(MadeTraining{});
  recordings.push_back(recordings[1]);
  recordings.back().rank = 2;
  recordings.back().file = "again.json";
  CHECK(assembly_fault(recordings) == "has the same ops as rank1.json");
}

TEST_CASE("stages and micro-batches have numbers within reason") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[1].ops[3].op.stage = 10'000;
  CHECK(assembly_fault(recordings) == "an op is of stage 10000");
}

TEST_CASE("ranks that reduce and send nothing are copies, where names tell no stage") {
  RecordingStyle style;
  style.tells_stages = false;
  const auto one = recordings_of(MadeTraining{.devices = 1}, style);
  std::vector<RankRecording> recordings = {one[0], one[0]};
  recordings[1].rank = 1;
  for (RecordedOp& op : recordings[1].ops) op.work.end += Duration{1};
  for (RankRecording& recording : recordings) recording.has_peers = false;
  CHECK(run_of(recordings).stages == 2);  // without collectives they are stages
  for (RankRecording& recording : recordings)
    recording.collectives.push_back(recording.updates.front().work);
  const RecordedRun run = run_of(recordings);
  CHECK(run.stages == 1);
  CHECK(run.copies == 2);
  CHECK(notes_hold(run.notes, "each rank is taken as a copy of the whole model"));
}

TEST_CASE("traces that do not tell their rank are taken in their order") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[0].rank_known = false;
  recordings[0].rank = 0;
  recordings[1].rank = 0;
  for (RankRecording& recording : recordings) {
    for (RecordedTransfer& transfer : recording.transfers) transfer.peer.reset();
  }
  const RecordedRun run = run_of(recordings);
  REQUIRE(run.devices.size() == 2);
  CHECK(run.devices[1].rank == 1);
  CHECK(notes_hold(run.notes, "the files are taken as ranks 0, 1, ... in their order"));
}

TEST_CASE("ranks are sorted by their number, not by their place among the files") {
  RecordingStyle style;
  style.tells_stages = false;
  const MadeTraining made{.devices = 3};
  auto recordings = recordings_of(made, style);
  std::rotate(recordings.begin(), recordings.begin() + 1, recordings.end());
  const RecordedRun run = run_of(recordings);
  CHECK(run.lists == prediction_of(made).setup.schedule.lists());
  REQUIRE(run.devices.size() == 3);
  CHECK(run.devices[0].rank == 0);
  CHECK(run.devices[2].rank == 2);
}

TEST_CASE("ranks of two runs, with other numbers of micro-batches, fit no iteration together") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[1] = recordings_of(MadeTraining{.micro_batches = 6})[1];
  const auto run = assemble(recordings, {});
  REQUIRE_FALSE(run);
  const Diagnostic& told = run.problems().front();
  CHECK(told.message ==
        "no iteration is whole: every stage needs a forward and a backward of each micro-batch");
  CHECK(told.detail.find("4 forwards and 4 backwards of stage 0 in rank0.json") !=
        std::string::npos);
  CHECK(told.detail.find("6 forwards and 6 backwards of stage 1 in rank1.json") !=
        std::string::npos);
}

TEST_CASE("a run without backwards is no training") {
  auto recordings = recordings_of(MadeTraining{});
  for (RankRecording& recording : recordings)
    drop_ops(recording, [](const RecordedOp& op) { return op.op.kind == OpKind::backward; });
  CHECK(assembly_fault(recordings).find("no iteration is whole") == 0);
}

TEST_CASE("names that tell the stage here and not there are an error") {
  auto recordings = recordings_of(MadeTraining{});
  for (RecordedOp& op : recordings[1].ops) op.op.stage.reset();
  CHECK(assembly_fault(recordings) == "32 ops tell their stage and 32 do not");
}

TEST_CASE("stages that overlap in part are an error") {
  auto recordings =
      recordings_of(MadeTraining{.schedule = "interleaved-1f1b", .devices = 2, .chunks = 2});
  auto part = recordings[0];
  part.rank = 2;
  part.file = "rank2.json";
  drop_ops(part, [](const RecordedOp& op) { return op.op.stage != 0; });
  recordings.push_back(part);
  CHECK(assembly_fault(recordings).find("of which other traces have only some") !=
        std::string::npos);
}

TEST_CASE("without numbers of micro-batches, steps and updates nothing ends an iteration") {
  RecordingStyle style;
  style.has_steps = style.has_updates = style.tells_micro_batches = false;
  CHECK(assembly_fault(recordings_of(MadeTraining{}, style)) ==
        "it does not tell where an iteration ends: micro-batches have no numbers, and there are no "
        "steps and no optimizer");
}

TEST_CASE("several devices of one rank are devices of the pipeline") {
  RecordingStyle style;
  style.transfers = RecordingStyle::Transfers::none;
  auto recordings = recordings_of(MadeTraining{}, style);
  RankRecording one = recordings[0];
  for (RecordedOp op : recordings[1].ops) {
    op.device = 1;
    one.ops.push_back(op);
  }
  std::stable_sort(one.ops.begin(), one.ops.end(),
                   [](const RecordedOp& a, const RecordedOp& b) { return a.issued < b.issued; });
  const RecordedRun run = run_of({one});
  REQUIRE(run.devices.size() == 2);
  CHECK(run.devices[0].device == 0);
  CHECK(run.devices[1].device == 1);
  CHECK(run.devices[1].rank == 0);
  CHECK(run.lists == prediction_of({}).setup.schedule.lists());
  CHECK_FALSE(run.devices[1].clock_known_to);  // it is the same clock
}

TEST_CASE("devices of one rank have updates of their own, or share the one that there is") {
  RecordingStyle style;
  style.transfers = RecordingStyle::Transfers::none;
  const auto recordings = recordings_of(MadeTraining{.update = {30, 70}}, style);
  RankRecording one = recordings[0];
  for (RecordedOp op : recordings[1].ops) {
    op.device = 1;
    one.ops.push_back(op);
  }
  const auto update_us = [](const RankRecording& recording, std::size_t device) {
    const RecordedRun run = run_of({recording});
    const auto& update = run.iterations[1].updates[device];
    REQUIRE(update);
    return update->length().count() / 1000;
  };
  CHECK(update_us(one, 0) == 30);
  CHECK(update_us(one, 1) == 30);  // nothing tells of another one
  for (RecordedUpdate update : recordings[1].updates) {
    update.device = 1;
    update.work.begin += std::chrono::microseconds(200);
    update.work.end += std::chrono::microseconds(200);
    update.issued += std::chrono::microseconds(1);
    one.updates.push_back(update);
  }
  std::stable_sort(
      one.updates.begin(), one.updates.end(),
      [](const RecordedUpdate& a, const RecordedUpdate& b) { return a.issued < b.issued; });
  CHECK(update_us(one, 0) == 30);
  CHECK(update_us(one, 1) == 70);
}

TEST_CASE("a pair that was recorded as one is two ops, by the times that both take alone") {
  RecordingStyle style;
  style.transfers = RecordingStyle::Transfers::none;
  auto recordings = recordings_of(MadeTraining{}, style);
  // 0F2 and the 0B1 behind it run as one, in 210 us; alone a forward takes half as long.
  std::vector<RecordedOp> ops;
  for (const RecordedOp& op : recordings[0].ops) {
    const bool is_second = op.op.kind == OpKind::backward && op.op.micro_batch == 1;
    if (is_second) {
      REQUIRE(ops.back().op.kind == OpKind::forward);
      REQUIRE(ops.back().op.micro_batch == 2);
      ops.back().partner = op.op;
      ops.back().work.end = op.work.end;
    } else {
      ops.push_back(op);
    }
  }
  recordings[0].ops = ops;
  const RecordedRun run = run_of(recordings);
  CHECK(run.lists == prediction_of({}).setup.schedule.lists());
  for (const RunIteration& iteration : run.iterations) {
    const RunOp& forward = iteration.ops[0][3];
    const RunOp& backward = iteration.ops[0][4];
    CHECK(to_text(forward.op) == "0F2");
    CHECK(to_text(backward.op) == "0B1");
    CHECK(forward.in_pair);
    CHECK(backward.in_pair);
    CHECK(forward.work.end == backward.work.begin);
    const Duration whole = backward.work.end - forward.work.begin;
    CHECK(std::abs((forward.work.length() - whole / 3).count()) <= 1);
    CHECK_FALSE(iteration.ops[0][0].in_pair);
  }
}

TEST_CASE("sends and receives find their ops, by name and by order") {
  using Transfers = RecordingStyle::Transfers;
  for (const Transfers transfers : {Transfers::named, Transfers::by_peer}) {
    for (MadeTraining made : made_trainings()) {
      CAPTURE(made.schedule);
      CAPTURE(static_cast<int>(transfers));
      RecordingStyle style;
      style.transfers = transfers;
      style.bytes = {4096};
      const Outcome predicted = prediction_of(made);
      const RecordedRun run = run_of(recordings_of(predicted, style));
      CHECK(run.notes.empty());
      std::size_t wanted = 0;
      const OpGraph& graph = predicted.graph;
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        const Activity& activity = graph.activities[node];
        if (!is_transfer(activity.kind) || !graph.holds_channel(node)) continue;
        ++wanted;
        for (const RunIteration& iteration : run.iterations) {
          const RunTransfer* found = nullptr;
          for (const OpKind kind : {OpKind::forward, OpKind::backward, OpKind::backward_input}) {
            const bool is_forward = kind == OpKind::forward;
            if (is_forward != (activity.kind == ActivityKind::activation_transfer)) continue;
            const auto at = iteration.transfers.find({kind, activity.stage, activity.micro_batch});
            if (at != iteration.transfers.end()) found = &at->second;
          }
          REQUIRE(found);
          REQUIRE(found->arrival());
          CHECK(*found->arrival() - iteration.begin ==
                predicted.trace.spans[node].end.time_since_epoch());
          REQUIRE(found->moved_from());
          CHECK(*found->moved_from() - iteration.begin ==
                predicted.trace.spans[node].begin.time_since_epoch());
          CHECK(found->bytes.count == 4096);
        }
      }
      for (const RunIteration& iteration : run.iterations)
        CHECK(iteration.transfers.size() == wanted);
    }
  }
}

TEST_CASE("receives that name nothing stand in the order of the ops that need them") {
  for (const MadeTraining& made : made_trainings()) {
    CAPTURE(made.schedule);
    RecordingStyle style;
    const RecordedRun right = run_of(made, style);
    style.transfers = RecordingStyle::Transfers::received;
    style.clock = OpClock::work;
    const RecordedRun run = run_of(made, style);
    REQUIRE(run.iterations.size() == 4);
    std::size_t waited = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const auto& transfers = run.iterations[k].transfers;
      CHECK(transfers.size() == right.iterations[k].transfers.size());
      for (const auto& [op, transfer] : transfers) {
        CHECK(transfer.is_whole);
        CHECK_FALSE(transfer.sent);
        CHECK_FALSE(transfer.moved_from());
        const SimTime arrived = *right.iterations[k].transfers.at(op).arrival();
        REQUIRE(transfer.arrival());
        CHECK(*transfer.arrival() == std::max(arrived, transfer.received->begin));
        waited += arrived > transfer.received->begin ? 1 : 0;
      }
    }
    CHECK(waited >= 4 * 2);
  }
  // Another number of them than of ops says nothing.
  RecordingStyle style;
  style.transfers = RecordingStyle::Transfers::received;
  auto recordings = recordings_of(MadeTraining{}, style);
  recordings[1].transfers.pop_back();
  for (const RunIteration& iteration : run_of(recordings).iterations) {
    CHECK(iteration.transfers.size() == 4);
    for (const auto& [op, transfer] : iteration.transfers) CHECK(op.kind == OpKind::backward);
  }
}

TEST_CASE("sends and receives of iterations that are skipped or cut off are left aside") {
  auto recordings = recordings_of(MadeTraining{.devices = 3});
  const RecordedRun all = run_of(recordings);
  for (RankRecording& recording : recordings) {  // the last iteration is not whole
    const SimTime begin = recording.steps[3].span.begin;
    drop_ops(recording, [&](const RecordedOp& op) {
      return op.issued >= begin && op.op.kind == OpKind::backward;
    });
  }
  const RecordedRun run = run_of(recordings, {.skip = 1});
  REQUIRE(run.iterations.size() == 2);
  CHECK(run.left_out == 1);
  for (std::size_t k = 0; k < 2; ++k) {
    const RunIteration& iteration = run.iterations[k];
    const RunIteration& same = all.iterations[k + 1];
    REQUIRE(iteration.transfers.size() == same.transfers.size());
    for (const auto& [op, transfer] : iteration.transfers) {
      REQUIRE(transfer.arrival());
      CHECK(*transfer.arrival() - iteration.begin == *same.transfers.at(op).arrival() - same.begin);
    }
  }
}

TEST_CASE("transfers that do not fit the ops are unknown, and a note says so") {
  auto recordings = recordings_of(MadeTraining{});
  auto& transfers = recordings[1].transfers;
  const auto some = std::find_if(transfers.begin() + 10, transfers.end(),
                                 [](const RecordedTransfer& one) { return !one.sends; });
  REQUIRE(some != transfers.end());
  transfers.erase(some);
  const RecordedRun run = run_of(recordings);
  CHECK(notes_hold(run.notes,
                   "rank 0 sent 16 times to rank 1, which received 15 times, for 16 ops: when "
                   "transfers moved is unknown there"));
  for (const RunIteration& iteration : run.iterations) {
    CHECK(iteration.transfers.size() == 4);  // those of the other direction
    for (const auto& [op, transfer] : iteration.transfers) CHECK(op.kind == OpKind::backward);
  }
}

TEST_CASE("notes of the recordings are the run's, and so are guesses") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[1].notes = {"rank1.json: something was left out"};
  recordings[1].guessed = true;
  const RecordedRun run = run_of(recordings);
  CHECK(notes_hold(run.notes, "rank1.json: something was left out"));
  CHECK(notes_hold(run.notes, "a guess: no range names an op"));
}

TEST_CASE("spans are cut to a time, and of sends the last one that ended then counts") {
  const auto at = [](std::int64_t us) { return SimTime{std::chrono::microseconds(us)}; };
  const auto us = [](Duration time) { return time.count() / 1000; };
  const std::vector<RecordedSpan> spans = {{at(0), at(10)}, {at(20), at(30)}, {at(40), at(50)}};
  CHECK(us(covered(spans, at(5), at(45))) == 5 + 10 + 5);
  CHECK(us(covered(spans, at(10), at(20))) == 0);
  CHECK(us(covered(spans, at(22), at(24))) == 2);
  CHECK(us(covered({}, at(0), at(9))) == 0);
  const std::vector<RecordedSpan> sends = {{at(0), at(10)}, {at(25), at(30)}, {at(2), at(50)}};
  CHECK(us(waited_for(sends, at(20), at(40))) == 5);
  CHECK(us(waited_for(sends, at(20), at(60))) == 30);
  CHECK(us(waited_for(sends, at(12), at(20))) == 0);  // it had ended before
  CHECK(us(waited_for(sends, at(-5), at(9))) == 0);
  CHECK(us(waited_for(sends, at(-5), at(10))) == 10);
}

TEST_CASE("collectives that overlap are one, and sends stand by their ends") {
  auto recordings = recordings_of(MadeTraining{});
  const SimTime begin = recordings[1].ops.front().work.begin;
  const auto span = [&](std::int64_t from, std::int64_t to) {
    return RecordedSpan{begin + std::chrono::microseconds(from),
                        begin + std::chrono::microseconds(to)};
  };
  recordings[1].collectives = {span(10, 20), span(15, 40), span(16, 18), span(50, 60)};
  recordings[1].sends = {span(0, 30), span(1, 5)};
  const RecordedRun run = run_of(recordings);
  const SimTime first = run.iterations[0].ops[1].front().work.begin;
  const auto us = [&](SimTime time) { return (time - first).count() / 1000; };
  CHECK(run.collectives[0].empty());
  REQUIRE(run.collectives[1].size() == 2);
  CHECK(us(run.collectives[1][0].begin) == 10);
  CHECK(us(run.collectives[1][0].end) == 40);
  CHECK(us(run.collectives[1][1].end) == 60);
  REQUIRE(run.sends[1].size() == 2);
  CHECK(us(run.sends[1][0].end) == 5);
  CHECK(us(run.sends[1][1].end) == 30);
}

TEST_CASE("an op needs the op before it on another stage") {
  const auto text = [](const Op& op, std::uint32_t stages, bool split) {
    const auto needs = producer_of(op, stages, split);
    return needs ? to_text(*needs) : "nothing";
  };
  CHECK(text({OpKind::forward, {0}, {3}}, 3, false) == "nothing");
  CHECK(text({OpKind::forward, {2}, {3}}, 3, true) == "1F3");
  CHECK(text({OpKind::backward, {2}, {3}}, 3, false) == "nothing");
  CHECK(text({OpKind::backward, {1}, {3}}, 3, false) == "2B3");
  CHECK(text({OpKind::backward_input, {0}, {3}}, 3, true) == "1I3");
  CHECK(text({OpKind::backward_weight, {0}, {3}}, 3, true) == "nothing");
}

}  // namespace
}  // namespace plumbline::test
