// Which traces are one run, and predictions beside recorded runs.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/against.h"

#include <doctest/doctest.h>

#include "calibrate/diagnosis/run_costs.h"
#include "calibrate/diagnosis/run_scenario.h"
#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

std::vector<TraceFiles> found_runs(const std::vector<std::string>& words) {
  auto runs = runs_of(words);
  REQUIRE_MESSAGE(runs, (runs ? "" : to_text(runs.problems())));
  return *std::move(runs);
}

TEST_CASE("a folder is a run, and all files that are named alone are one more") {
  const TemporaryFolder folder;
  const auto rank = [&](const char* name) { return folder.file(name, "[]"); };
  const std::string b1 = rank("b/rank1.json.gz"), b0 = rank("b/rank0.json"), a0 = rank("a/x.json");
  rank("a/notes.txt");
  rank("a/x.json.bak");
  const std::string one = rank("one.json"), other = rank("other.json");
  CHECK(found_runs({folder["b"]}) == std::vector<TraceFiles>{{b0, b1}});
  CHECK(found_runs({one, folder["b"], folder["a"], other}) ==
        std::vector<TraceFiles>{{b0, b1}, {a0}, {one, other}});
  CHECK(found_runs({other, one}) == std::vector<TraceFiles>{{other, one}});  // as they are written
  CHECK(found_runs({"no-such-file.json"}) == std::vector<TraceFiles>{{"no-such-file.json"}});
}

TEST_CASE("where files of a folder name their rank, those that do not are no traces") {
  const TemporaryFolder folder;
  const std::string second = folder.file("Rank_1.json", "[]");
  static_cast<void>(folder.file("scenario.json", "{}"));
  const std::string tenth = folder.file("trace-rank10.json.gz", "[]");
  CHECK(found_runs({folder.path()}) == std::vector<TraceFiles>{{second, tenth}});
}

TEST_CASE("a folder without traces is an error, each of them") {
  const TemporaryFolder folder;
  static_cast<void>(folder.file("empty/readme.md", ""));
  static_cast<void>(folder.file("bare/readme.md", ""));
  static_cast<void>(folder.file("rank0.json", "[]"));
  const auto runs = runs_of({folder["empty"], folder.path(), folder["bare"]});
  REQUIRE_FALSE(runs);
  REQUIRE(runs.problems().size() == 2);
  CHECK(runs.problems()[0].message == "has no file that ends in .json or .json.gz");
  CHECK(runs.problems()[0].mark.source->name == folder["empty"]);
  CHECK(runs.problems()[0].fault == Fault::file);
  CHECK(runs.problems()[1].mark.source->name == folder["bare"]);
}

/// The planned runs of a run's own scenario, with these overrides.
std::vector<PlannedRun> planned_beside(const RecordedRun& run,
                                       const std::vector<std::vector<std::string>>& combinations) {
  const TemporaryFolder folder;
  const auto texts = scenario_of(run, costs_of(run), {});
  REQUIRE(texts);
  auto planned =
      plan_runs({folder.file("run.yaml", texts->yaml)}, combinations, Beside::recorded_run);
  REQUIRE_MESSAGE(planned, (planned ? "" : to_text(planned.problems())));
  return *std::move(planned);
}

TEST_CASE("each prediction is beside the run of its place") {
  std::vector<RecordedRun> runs;
  RecordingStyle style;
  style.iterations = 8;
  for (const char* schedule : {"gpipe", "1f1b"})
    runs.push_back(run_of(MadeTraining{.schedule = schedule, .devices = 3}, style));
  const auto points = validate_against(
      planned_beside(runs[0], {{"schedule.name=gpipe"}, {"schedule.name=1f1b"}}), runs, 0.05);
  REQUIRE_MESSAGE(points, (points ? "" : to_text(points.problems())));
  REQUIRE(points->size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Validation& v = (*points)[i].validation;
    CHECK(v.verdict == Verdict::same);
    CHECK(v.measured_s() == close_to(seconds(*runs[i].iterations[0].period)));
    CHECK(v.tolerance == 0.05);
  }
  CHECK((*points)[1].overrides == std::vector<std::string>{"schedule.name=1f1b"});
}

TEST_CASE("a run that does not fit is told at the schedule of the scenario") {
  std::vector<RecordedRun> runs = {run_of(MadeTraining{})};
  const auto points =
      validate_against(planned_beside(runs[0], {{"schedule.name=gpipe"}}), runs, 0.05);
  REQUIRE_FALSE(points);
  const Diagnostic& told = points.problems().front();
  CHECK(told.message.find("the run had another order: op 2 of device 0") == 0);
  REQUIRE(told.mark.source);
  CHECK(told.fault == Fault::input);
}

}  // namespace
}  // namespace plumbline::test
