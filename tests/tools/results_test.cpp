// Results of validations: what is kept of them, and the numbers that are made of them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>

#include "tests/support/temporary_folder.h"
#include "tools/error_lines.h"
#include "tools/markdown.h"
#include "tools/page.h"
#include "tools/resimulation.h"
#include "tools/result_file.h"
#include "tools/summary.h"

namespace plumbline::test {
namespace {

ResultPoint point(const std::string& schedule, double error, Verdict verdict) {
  ResultPoint p;
  p.scenario = "a | b";
  p.schedule = schedule;
  p.devices = 2;
  p.micro_batches = 4;
  p.verdict = verdict;
  p.clean = 9;
  p.iterations = 10;
  p.predicted_s = 0.1 * (1 + error);
  // Compute has three quarters of the error, hand-over the rest.
  ResultPoint::Measured measured;
  measured.time_s = 0.1;
  measured.error = error;
  measured.shares.compute_s = 0.075 * error;
  measured.shares.hand_over_s = 0.025 * error;
  p.measured = measured;
  return p;
}

ResultFile file_of(ResultGroup group, const std::string& name) {
  ResultFile file;
  file.group = group;
  file.name = name;
  file.command = "plumbline validate x.yaml";
  file.machine = {{"processor", "a CPU"}, {"date", "2026-01-02"}, {"cores", "2"}};
  file.ranking.pairs = 6;
  file.ranking.ties = 1;
  file.ranking.right = 4;
  file.ranking.wrong = 1;
  file.points = {point("gpipe", -0.04, Verdict::close), point("1f1b", 0.01, Verdict::same),
                 point("naive", -0.01, Verdict::same)};
  file.points[2].measured->memory = MemoryVerdict::ties;
  ResultPoint unmeasured = point("delayed-backward", -0.9, Verdict::inconclusive);
  unmeasured.measured.reset();
  unmeasured.clean = 0;
  file.points.push_back(unmeasured);
  return file;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a summary counts only what was measured, and names the worst with its sign") {
  const ResultFile file = file_of(ResultGroup::networks, "mlp");
  const Summary s = summarize({&file});
  CHECK(s.runs == 4);
  CHECK(s.measured == 3);
  CHECK(s.error.mean_size == doctest::Approx(0.02));
  CHECK(s.error.median_size == doctest::Approx(0.01));
  CHECK(s.error.mean == doctest::Approx(-0.04 / 3));
  CHECK(s.error.min == doctest::Approx(-0.04));
  CHECK(s.error.max == doctest::Approx(0.01));
  CHECK(s.worst == &file.points[0]);
  CHECK(s.causes[1].min == doctest::Approx(-0.03));  // compute
  CHECK(s.causes[3].min == doctest::Approx(-0.01));  // hand-over
  CHECK(s.causes[2].mean_size == 0);
  CHECK(s.clean == 27);
  CHECK(s.iterations == 40);
  CHECK(worst_cell(s) == "-4.00 %: mlp, gpipe, 4 micro-batches, 2 devices");
  CHECK(range_cell(s.error, true) == "-4.00 % to +1.00 %");
  CHECK(memory_cell(s) == "2 exact, 1 ties");
  CHECK(verdict_cell(s) == "2 SAME, 1 CLOSE, 1 INCONCLUSIVE");
  CHECK(order_cell(s.ranking) == "4 of 5, 1 within the noise");
  Ranking alike = s.ranking;
  alike.equal = 2;
  CHECK(order_cell(alike) == "4 of 5, 1 within the noise, 2 predicted as equal");
}

TEST_CASE("several files add up, and their orders are those within each") {
  const ResultFile file = file_of(ResultGroup::networks, "mlp");
  const Summary s = summarize({&file, &file});
  CHECK(s.runs == 8);
  CHECK(s.error.mean_size == doctest::Approx(0.02));
  CHECK(s.ranking.pairs == 12);
  CHECK(*s.ranking.tau() == doctest::Approx(0.6));
}

TEST_CASE("where nothing was measured there is no number") {
  ResultFile file = file_of(ResultGroup::networks, "mlp");
  file.points.erase(file.points.begin(), file.points.begin() + 3);
  file.ranking = {};
  const Summary s = summarize({&file});
  CHECK(s.measured == 0);
  CHECK(worst_cell(s) == "-");
  CHECK(memory_cell(s) == "-");
  CHECK(order_cell(s.ranking) == "-");
  const std::string page = validation_page({file});
  CHECK(has(page, "| mlp | 1 | - | - | - | - | - | 1 INCONCLUSIVE | - | - | 0 of 10 |"));
  CHECK(has(page, "Nothing clean was measured in 1 of 1 runs"));
}

TEST_CASE("what is written is read back, and written again to the byte") {
  ResultFile file = file_of(ResultGroup::matrix, "2 devices");
  file.is_short = true;
  file.calibration = {{"noise", "0.01"}};
  file.ranking.equal = 3;
  const std::string text = to_json(file);
  const TemporaryFolder folder;
  const auto read = read_result(folder.file("result.json", text));
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(to_json(*read) == text);
  CHECK(validation_page({*read}) == validation_page({file}));
  CHECK_FALSE(read->points[3].measured);
}

TEST_CASE("errors by the layers' times of now stand beside those by the profile") {
  ResultFile file = file_of(ResultGroup::networks, "mlp");
  CHECK(summarize({&file}).again.runs == 0);
  CHECK_FALSE(has(validation_page({file}), "own error"));
  CHECK(has(accuracy_table({file}), "| -4.00 %: mlp, gpipe, 4 micro-batches, 2 devices | - |"));
  ResultPoint::Measured& gpipe = *file.points[0].measured;
  gpipe.again_error = 0.005;
  gpipe.shares.profile_s = -0.0045;
  gpipe.rounds_s = {0.098, 0.1, 0.103};
  ResultPoint::Measured& naive = *file.points[2].measured;
  naive.again_error = -0.015;
  naive.rounds_s = {0.1, 0.101};
  const Summary s = summarize({&file});
  CHECK(s.error.mean_size == doctest::Approx(0.02));
  CHECK(s.again.runs == 2);
  CHECK(s.again.by_profile.mean_size == doctest::Approx(0.025));
  CHECK(s.again.error.mean_size == doctest::Approx(0.01));
  CHECK(s.again.worst == &file.points[2]);
  CHECK(s.again.rounds.max == doctest::Approx(0.05));
  CHECK(s.again.rounds.mean == doctest::Approx(0.03));
  CHECK(s.causes[0].min == doctest::Approx(-0.045));  // the profile
  const std::string page = validation_page({file});
  CHECK(has(page,
            "| mlp | 2 | 2.50 % | 1.00 % | -1.50 % to +0.50 % | -1.50 %: mlp, naive, 4 "
            "micro-batches, 2 devices | 3.00 % | 5.00 % |"));
  CHECK(has(page, "| network | profile | compute | transfer | hand-over | waiting |"));
  CHECK(has(page, "| mlp | 1f1b | 2 | 4 | 101 ms | 100 ms | +1.00 % | - | +0.00 |"));
  CHECK(has(accuracy_table({file}), "| 1.00 % (-1.50 %) |"));
  const std::string text = to_json(file);
  const TemporaryFolder folder;
  const auto read = read_result(folder.file("result.json", text));
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(to_json(*read) == text);
  CHECK(validation_page({*read}) == page);
}

TEST_CASE("what telling takes has a column where it took anything, and is kept") {
  ResultFile file = file_of(ResultGroup::gpu_networks, "mlp on 4");
  CHECK_FALSE(has(validation_page({file}), "| telling |"));
  file.points[0].measured->shares.telling_s = 0.002;
  const std::string page = validation_page({file});
  CHECK(has(page, "| waiting | telling |"));
  CHECK(has(page, "| +0.00 | +2.00 | exact |"));
  const TemporaryFolder folder;
  const auto read = read_result(folder.file("result.json", to_json(file)));
  REQUIRE(read);
  CHECK(read->points[0].measured->shares.telling_s == 0.002);
  CHECK(read->points[1].measured->shares.telling_s == 0);
}

TEST_CASE("each group has its section, whose points go by network or by scenario") {
  for (const ResultGroup group : kResultGroups) {
    CAPTURE(name(group));
    CHECK(group_named(name(group)) == group);
    ResultFile file = file_of(group, "mlp");
    file.calibration = {{"noise", "0.01"}};
    const std::string page = validation_page({file});
    CHECK(has(page, "\n## Where and when\n"));
    CHECK(has(page, "The calibrations") == trains(group));
    CHECK(has(page, "| a \\| b | gpipe | 2 | 4 |") == has_scenarios(group));
    CHECK(has(page, "| mlp | gpipe | 2 | 4 |") != has_scenarios(group));
    const bool is_of_mlp = trains(group) && !has_scenarios(group);
    CHECK(has(accuracy_table({file}), "%: mlp, gpipe") == is_of_mlp);
    CHECK(has(accuracy_table({file}), "of them mlp") ==
          (group == ResultGroup::networks || group == ResultGroup::gpu_networks));
  }
  CHECK_FALSE(group_named("network"));
}

TEST_CASE("the page says what is short, and what is not there") {
  ResultFile file = file_of(ResultGroup::examples, "all");
  CHECK_FALSE(has(validation_page({file}), "short run"));
  const std::string table = accuracy_table({file});
  CHECK(has(table, "Not in these results: course practicals"));
  CHECK(has(table, "worst | own error, mean (worst) | peak memory"));
  CHECK(has(table, "-4.00 %: a \\| b, gpipe"));  // a bar would end the cell
  CHECK(has(table, "Measured 2026-01-02 on a CPU (2 cores)."));
  ResultFile other = file;
  other.is_short = true;
  CHECK(has(accuracy_table({other}), "**These numbers are of a short run**"));
  CHECK(has(accuracy_table({file, other}), "**1 of 2 results are of a short run**"));
}

TEST_CASE("an error has a part that grows with the micro-batches and one that does not") {
  ResultFile file = file_of(ResultGroup::gpu_networks, "mlp on 4");
  file.points.clear();
  const auto add = [&](const std::string& schedule, std::int64_t count, double predicted_s,
                       double measured_s) {
    ResultPoint p = point(schedule, 0, Verdict::same);
    p.micro_batches = count;
    p.predicted_s = predicted_s;
    p.measured->time_s = measured_s;
    file.points.push_back(p);
  };
  CHECK(error_lines(file).empty());
  add("gpipe", 4, 0.100, 0.100);  // 1 ms too fast a micro-batch, and 4 ms too slow
  add("gpipe", 16, 0.196, 0.208);
  add("naive", 16, 0.151, 0.150);  // 1 ms too slow without any
  add("naive", 4, 0.051, 0.050);
  add("1f1b", 4, 0.1, 0.1);  // one number of micro-batches: no line
  const std::vector<ErrorLine> lines = error_lines(file);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].schedule == "gpipe");
  CHECK(lines[0].slope_s == doctest::Approx(-0.001));
  CHECK(lines[0].slope == doctest::Approx(-0.001 / 0.009));
  CHECK(lines[0].fixed_s == doctest::Approx(0.004));
  CHECK(lines[0].cancels);
  CHECK(lines[1].slope_s == doctest::Approx(0));
  CHECK(lines[1].fixed_s == doctest::Approx(0.001));
  CHECK_FALSE(lines[1].cancels);
  file.points[0].measured.reset();
  CHECK(error_lines(file).size() == 1);
  file.points[0].measured = file.points[1].measured;
  file.points[0].measured->time_s = 0.1;
  CHECK(error_line_table({&file}, "network") ==
        "| network | schedules | a micro-batch more | of its time | fixed part | two that cancel "
        "|\n|---|---:|---:|---:|---:|---|\n| mlp on 4 | 2 | -1000.0 us to +0.0 us | -11.11 % to "
        "+0.00 % | +1000.0 us to +4000.0 us | gpipe |\n");
  CHECK(has(validation_page({file}), "| mlp on 4 | 2 | -1000.0 us to +0.0 us |"));
}

TEST_CASE("this version predicts the stored runs of an H100 no worse than the page says") {
  const auto results = read_results("docs/results/validation");
  REQUIRE_MESSAGE(results, (results ? "" : to_text(results.problems())));
  const auto resimulated = resimulate(*results);
  REQUIRE_MESSAGE(resimulated, (resimulated ? "" : to_text(resimulated.problems())));
  const auto error = [&](const std::vector<ResultFile>& files, const std::string& name) {
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const ResultFile& one) { return one.name == name; });
    REQUIRE(found != files.end());
    return summarize({&*found}).error.mean_size;
  };
  CHECK(resimulated->size() == 16);
  for (const char* name : {"mlp on 4", "mlp on 8", "gpt-small on 4"})
    CHECK(error(*resimulated, name) <= error(*results, name) + 0.001);
  CHECK(error(*resimulated, "mlp on 4") <= 0.0165);
  CHECK(error(*resimulated, "mlp on 8") <= 0.036);
  CHECK(error(*resimulated, "gpt-small on 4") <= 0.0075);
  // What is written is read back, and stands on the page beside what ran.
  const std::string text = resimulation_json(*resimulated);
  const TemporaryFolder folder;
  const auto read = read_resimulation(folder.file("again.json", text));
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(resimulation_json(*read) == text);
  CHECK(has(validation_page(*results, *read), "### The same runs, predicted by this version"));
  CHECK_FALSE(has(validation_page(*results), "### The same runs, predicted by this version"));
  CHECK_FALSE(read_resimulation(folder.file("wrong.json", "{\"resimulated\": [{}]}")));
  ResultFile unknown = file_of(ResultGroup::gpu_networks, "mlp");
  const auto refused = resimulate({unknown});
  REQUIRE_FALSE(refused);
  CHECK(has(to_text(refused.problems()), "'mlp' is no name of a stored run"));
  unknown.name = "mlp on 4 of an H200, hybrid";
  unknown.machine.erase("processor");
  const auto nowhere = resimulate({unknown});
  REQUIRE_FALSE(nowhere);
  CHECK(has(to_text(nowhere.problems()), "does not say which GPU it ran on"));
  unknown.machine["processor"] = "NVIDIA H200";
  const auto no_profile = resimulate({unknown});  // of this network, there is none
  REQUIRE_FALSE(no_profile);
  CHECK(has(to_text(no_profile.problems()), "examples/profiles/nvidia-h200/mlp-4.profile.yaml"));
}

}  // namespace
}  // namespace plumbline::test
