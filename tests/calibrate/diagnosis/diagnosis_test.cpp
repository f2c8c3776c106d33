// From the texts of traces to tables, JSON and CSV.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/diagnosis.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "calibrate/diagnosis/diagnosis_report.h"
#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

/// The recording of one rank as the text of a trace: its ranges alone.
std::string trace_text(const RankRecording& recording) {
  constexpr std::int64_t base = 1'700'000'000'000'000'000;
  std::string events;
  const auto range = [&](const std::string& name, const RecordedSpan& span) {
    events += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"{}\", \"pid\": 1, \"tid\": "
        "1, "
        "\"ts\": {}, \"dur\": {}}}",
        events.empty() ? "" : ",\n", name,
        static_cast<double>((span.begin.time_since_epoch().count() - base)) / 1e3,
        static_cast<double>(span.length().count()) / 1e3);
  };
  for (const RecordedOp& op : recording.ops)
    range("PP:" + to_text(Op{op.op.kind, {*op.op.stage}, {*op.op.micro_batch}}), op.work);
  for (const RecordedStep& step : recording.steps)
    range(fmt::format("ProfilerStep#{}", step.number), step.span);
  for (const RecordedUpdate& update : recording.updates)
    range("Optimizer.step#SGD.step", update.work);
  return fmt::format("{{\"baseTimeNanoseconds\": {}, \"traceEvents\": [{}]}}", base, events);
}

Diagnosis diagnosis_of(const std::vector<RankRecording>& recordings,
                       const DiagnosisOptions& options = {}) {
  auto diagnosis = diagnose(recordings, options);
  REQUIRE_MESSAGE(diagnosis, (diagnosis ? "" : to_text(diagnosis.problems())));
  return *std::move(diagnosis);
}

nlohmann::json json_of(const Diagnosis& diagnosis) {
  return nlohmann::json::parse(to_json(diagnosis, "1.2.3"));
}

std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

TEST_CASE("traces on the disk are read, put together and explained") {
  const TemporaryFolder folder;
  const MadeTraining made{.devices = 3};
  const Outcome predicted = prediction_of(made);
  RecordingStyle style;
  style.ahead = {Duration{}, microseconds(900), -microseconds(300)};
  std::vector<std::string> files;
  for (const RankRecording& recording : recordings_of(predicted, style))
    files.push_back(folder.file(recording.file, trace_text(recording)));
  const ReadTraces traces = read_traces(files, {});
  REQUIRE_MESSAGE(traces.problems.empty(), to_text(traces.problems));
  REQUIRE(traces.recordings.size() == 3);
  CHECK(traces.recordings[2].rank == 2);
  const Diagnosis d = diagnosis_of(traces.recordings);
  CHECK(d.run.clock == OpClock::ranges);
  CHECK(d.run.lists == predicted.setup.schedule.lists());
  CHECK(d.run.devices[1].clock_ahead == microseconds(900));
  CHECK(d.run.devices[2].clock_ahead == -microseconds(300));
  CHECK(d.costs.iteration_s.median == close_to(seconds(made_period(predicted))));
  CHECK(d.scenario.schedule == "1f1b");
  CHECK(d.measured.device == "ranges on the CPU");
  CHECK(d.replay_error() == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("traces that cannot be read are told together, and the others are kept") {
  const TemporaryFolder folder;
  const auto recordings = recordings_of(MadeTraining{});
  const ReadTraces traces =
      read_traces({folder.file("rank0.json", "[]"),
                   folder.file("rank1.json", trace_text(recordings[1])), folder["rank2.json"]},
                  {});
  CHECK(traces.problems.size() == 2);
  REQUIRE(traces.recordings.size() == 1);
  CHECK(traces.recordings[0].rank == 1);
}

TEST_CASE("a diagnosis says which device is busy longest, and how much is idle") {
  const MadeTraining made{.devices = 3, .forward = {100, 150, 100}};
  const Outcome predicted = prediction_of(made);
  const Diagnosis d = diagnosis_of(recordings_of(predicted));
  CHECK(d.busiest() == 1);
  const double busy =
      static_cast<double>(predicted.metrics.busy().count()) / (3.0 * 1e9);  // of one device
  CHECK(d.bubble_fraction() == close_to(1 - busy / seconds(made_period(predicted))));
  CHECK(d.times.size() == 3);
  CHECK(d.times[1].busy() == predicted.metrics.devices[1].busy);
  Duration chain{};
  for (const CriticalShare& share : d.critical) chain += share.time;
  CHECK(chain == made_period(predicted));
  CHECK(d.measured.remarks == d.run.notes);
}

TEST_CASE("what cannot be put together is an error") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[1].rank = 0;
  const auto twice = diagnose(recordings, {});
  REQUIRE_FALSE(twice);
  CHECK(twice.problems().front().message == "is rank 0, and so is rank0.json");
  DiagnosisOptions options;
  options.text.layers = {1, 2, 3};
  CHECK_FALSE(diagnose(recordings_of(MadeTraining{}), options));
}

TEST_CASE("orders that contradict each other are an error, and of guesses it says so") {
  // Device 0 does its backward of micro-batch 1 first, which device 1 does last, behind the
  // forward that device 0 does last.
  RecordedOp op;
  std::vector<RankRecording> recordings(2);
  const auto add = [&](std::size_t rank, OpKind kind, std::uint32_t m, std::int64_t at) {
    op.op = {kind, static_cast<std::uint32_t>(rank), m};
    op.issued = SimTime{microseconds(at)};
    op.work = {op.issued, op.issued + microseconds(10)};
    op.busy = microseconds(10);
    recordings[rank].ops.push_back(op);
  };
  add(0, OpKind::forward, 0, 0);
  add(0, OpKind::backward, 0, 20);
  add(0, OpKind::forward, 1, 40);
  add(0, OpKind::backward, 1, 60);
  add(1, OpKind::forward, 0, 5);
  add(1, OpKind::forward, 1, 25);
  add(1, OpKind::backward, 0, 45);
  add(1, OpKind::backward, 1, 65);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    recordings[rank].rank = static_cast<std::int64_t>(rank);
    recordings[rank].rank_known = true;
    recordings[rank].file = fmt::format("rank{}.json", rank);
  }
  const auto wrong = diagnose(recordings, {});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.problems().front().message.find("the orders of the devices contradict each other") ==
        0);
  CHECK(wrong.problems().front().mark.source->name == "rank0.json");
  recordings[1].guessed = true;
  const auto guessed = diagnose(recordings, {});
  REQUIRE_FALSE(guessed);
  CHECK(guessed.problems().front().message == "the ops were guessed, and such an order cannot run");
}

TEST_CASE("micro-batches that are not alike are a finding") {
  RecordingStyle style;
  const auto findings = [&] {
    return to_table(diagnosis_of(recordings_of(MadeTraining{}, style)), std::nullopt).print();
  };
  CHECK(findings().find("micro-batches are not alike") == std::string::npos);
  style.earlier = [](std::int64_t, const Op& op) -> Duration {
    return to_text(op) == "1F3" ? microseconds(50) : microseconds(0);
  };
  const std::string text = findings();
  CHECK_MESSAGE(text.find("micro-batches are not alike: F of stage 1 takes 50 us for micro-batch 3 "
                          "and 100 us for 0") != std::string::npos,
                text);
}

TEST_CASE("the JSON holds all ops of all iterations, on a line per key") {
  const MadeTraining made{.schedule = "zb-h1", .devices = 3};
  RecordingStyle style;
  style.bytes = {2048};
  style.ahead = {Duration{}, microseconds(5)};
  const Diagnosis d = diagnosis_of(recordings_of(made, style));
  const std::string text = to_json(d, "1.2.3");
  CHECK(text.ends_with("}\n"));
  const nlohmann::json json = json_of(d);
  CHECK(std::count(text.begin(), text.end(), '\n') == static_cast<int>(json.size()) + 2);
  CHECK(json["tool"]["version"] == "1.2.3");
  CHECK(json["clock"] == "kernels");
  CHECK(json["schedule"] == "zb-h1");
  CHECK(json["stages"] == 3);
  CHECK(json["micro_batches"] == 4);
  CHECK(json["iteration_time_s"]["samples"] == 3);
  CHECK(json["ops"].size() == 9);  // F, I and W of three stages
  CHECK(json["links"].size() == 4);
  CHECK(json["links"][0]["bytes"] == 2048);
  CHECK(json["devices"][1]["clock_ahead_s"] == 5e-6);
  CHECK(json["devices"][0]["clock_known_to_s"].is_null());
  for (std::size_t i = 0; i < 3; ++i) {
    double all = json["devices"][i]["busy_s"];
    for (const auto& idle : json["devices"][i]["idle_s"]) all += idle.get<double>();
    CHECK(all == close_to(d.costs.iteration_s.mean));
    CHECK(json["devices"][i]["idle_s"].size() == kRunIdles);
  }
  double chain = 0;
  for (const auto& share : json["critical_path_s"]) chain += share.get<double>();
  CHECK(chain == close_to(d.measured.outcome.iteration_time_s));
  REQUIRE(json["iterations"].size() == 4);
  CHECK(json["iterations"][3]["time_s"].is_null());
  for (std::size_t k = 0; k < 4; ++k) {
    const auto& iteration = json["iterations"][k];
    CHECK(iteration["number"] == 10 + k);
    REQUIRE(iteration["ops"].size() == 3);
    for (std::size_t device = 0; device < 3; ++device) {
      const auto& ops = iteration["ops"][device];
      REQUIRE(ops.size() == d.run.lists[device].size());
      for (std::size_t i = 0; i < ops.size(); ++i) {
        CHECK(ops[i][0] == to_text(d.run.lists[device][i]));
        CHECK(ops[i][0] == json["order"][device][i]);
        const RecordedSpan& work = d.run.iterations[k].ops[device][i].work;
        CHECK(ops[i][1] == seconds(work.begin.time_since_epoch()));
        CHECK(ops[i][2] == seconds(work.end.time_since_epoch()));
      }
    }
  }
}

TEST_CASE("an order of its own has no schedule in the JSON") {
  const Diagnosis d = diagnosis_of(recordings_of(MadeTraining{
      .micro_batches = 3, .order = "0F0,0F1,0F2,0B1,0B0,0B2\n1F0,1F1,1F2,1B1,1B0,1B2\n"}));
  CHECK(json_of(d)["schedule"].is_null());
  CHECK(to_table(d, std::nullopt).print().find("an order of its own: 2 stages") == 0);
}

TEST_CASE("the CSV has every op once, with exact nanoseconds") {
  const Outcome predicted = prediction_of({});
  auto recordings = recordings_of(predicted);
  for (RankRecording& recording : recordings) {
    recording.rank += 4;
    for (RecordedTransfer& transfer : recording.transfers) *transfer.peer += 4;
  }
  const Diagnosis d = diagnosis_of(recordings);
  const auto rows = rows_of(ops_csv(d));
  REQUIRE(rows.size() == 1 + 4 * 2 * 8);
  CHECK(rows[0] == std::vector<std::string>{"iteration", "device", "rank", "stage", "op",
                                            "micro_batch", "begin_ns", "end_ns", "busy_ns",
                                            "input_ns", "pass"});
  std::set<std::string> seen;
  std::size_t with_input = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    REQUIRE(row.size() == 11);
    CHECK(row[10] == "0");
    CHECK(seen.insert(row[0] + " " + row[3] + row[4] + row[5]).second);
    const std::size_t k = std::stoul(row[0]) - 10, device = std::stoul(row[1]);
    REQUIRE(k < 4);
    CHECK(std::stoul(row[2]) == device + 4);
    CHECK(row[3] == row[1]);  // stage 0 on device 0
    const auto& ops = d.run.iterations[k].ops[device];
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const RunOp& one) {
      return to_text(one.op) == row[3] + row[4] + row[5];
    });
    REQUIRE(op != ops.end());
    CHECK(row[6] == std::to_string(op->work.begin.time_since_epoch().count()));
    CHECK(row[7] == std::to_string(op->work.end.time_since_epoch().count()));
    CHECK(row[8] == std::to_string(op->busy.count()));
    if (row[9].empty()) continue;
    ++with_input;
    CHECK(std::stoll(row[9]) <= std::stoll(row[6]));
  }
  CHECK(with_input == 4 * 8);  // each transfer of each iteration
}

TEST_CASE("the tables name the schedule, the devices, the causes and the clocks") {
  RecordingStyle style;
  style.ahead = {Duration{}, microseconds(900), -microseconds(300)};
  style.pause = microseconds(50);
  style.earlier = [](std::int64_t iteration, const Op& op) -> Duration {
    return microseconds(op.stage.value == 1 && op.micro_batch.value == iteration ? 0 : 20);
  };
  auto recordings = recordings_of(MadeTraining{.devices = 3}, style);
  for (RankRecording& recording : recordings) {
    for (RecordedOp& op : recording.ops) op.busy = op.work.length() / 2;
  }
  recordings[0].notes = {"rank0.json: something is missing"};
  const std::string text = to_table(diagnosis_of(recordings), std::nullopt).print();
  for (const char* part :
       {"1f1b: 3 stages on 3 devices, 4 micro-batches, 4 iterations",
        "times are those of the kernels on the GPUs", "bubble fraction", "straggler",
        "the same, as its op took longer than usual", "until the next iteration begins",
        "is busy longest", "the longest chain of the shown iteration: ops of device",
        "kernels run in 50", "the clock of rank 1 is 900 us ahead of that of rank 0",
        "the clock of rank 2 is 300 us behind that of rank 0", "note: rank0.json: something is",
        "as a scenario it takes"}) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, std::string(part), " is not in\n", text);
  }
  const std::string narrow = to_table(diagnosis_of(recordings), std::nullopt).print(60);
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 60, line);
}

TEST_CASE("each trace is told in a sentence where no run comes of them") {
  auto recordings = recordings_of(MadeTraining{});
  recordings[1].rank_known = false;
  recordings[1].guessed = true;
  for (RecordedOp& op : recordings[1].ops) op.op.stage.reset();
  std::erase_if(recordings[1].ops,
                [](const RecordedOp& op) { return op.op.kind == OpKind::backward; });
  const std::string text = overview(recordings).print();
  CHECK_MESSAGE(text.find("rank0.json: rank 0, 1 event, 4 steps, stage 0, 16 forwards of 100 us on "
                          "average, 16 backwards of 200 us on average\n") == 0,
                text);
  CHECK_MESSAGE(text.find("rank1.json: a rank that is not told, 1 event, 4 steps, 16 forwards of "
                          "100 us on average, 0 backwards (a guess: no range names an op)") !=
                    std::string::npos,
                text);
}

}  // namespace
}  // namespace plumbline::test
