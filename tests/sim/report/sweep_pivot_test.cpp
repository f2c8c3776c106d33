// Sweeps as tables of two keys: names, cells, reasons, formats.
//
// SPDX-License-Identifier: MIT
#include "sim/report/sweep_pivot.h"

#include <doctest/doctest.h>

namespace plumbline::test {
namespace {

const std::vector<SweepAxis> kPivotAxes = {{"schedule.name", {"gpipe", "1f1b"}},
                                           {"schedule.micro_batches", {"2", "4"}},
                                           {"cluster.link.latency", {"1 us", "2 us"}},
                                           {"plan.stages", {"2"}}};

SweepRow timed(std::uint64_t point, double time_s, const std::string& reason = "") {
  SweepRow row;
  row.point = point;
  row.reason = reason;
  row.numbers.emplace();
  row.numbers->iteration_time_s = time_s;
  row.numbers->throughput_samples_per_s = 8 / time_s;
  row.numbers->fits = reason.empty();
  return row;
}

/// Eight points, of which one does not fit and two cannot run, for one reason.
SweepReport eight_points(SweepSelection selection = {}) {
  SweepResult result;
  result.scenario = "one|two";
  result.axes = kPivotAxes;
  result.points = 8;
  for (const std::uint64_t point : {0, 1, 3, 4, 5}) {
    result.rows.push_back(timed(point, 0.001 * static_cast<double>(point + 1)));
  }
  result.rows.push_back(timed(2, 0.009, "does not fit: by far"));
  for (const std::uint64_t point : {6, 7}) {
    SweepRow row;
    row.point = point;
    row.reason = "it cannot";
    result.rows.push_back(row);
  }
  return report(std::move(result), std::move(selection));
}

SweepPivot pivot_of(const std::string& text) {
  const auto pivot = parse_pivot(text, kPivotAxes);
  REQUIRE_MESSAGE(pivot, (pivot ? "" : to_text(pivot.problems())));
  return *pivot;
}

std::string wrong_table(const std::string& text, const std::vector<SweepAxis>& axes = kPivotAxes) {
  const auto pivot = parse_pivot(text, axes);
  REQUIRE_FALSE(pivot);
  return pivot.problems().front().message + " / " + pivot.problems().front().help;
}

TEST_CASE("a table names two keys, in full or by their ends, and a number") {
  const SweepPivot pivot = pivot_of("schedule.name,micro_batches,peak_memory_bytes");
  CHECK(pivot.rows == 0);
  CHECK(pivot.columns == 1);
  CHECK(pivot.value->title == "peak memory");
  CHECK(pivot_of("stages,link.latency,fits").columns == 2);  // a single value is a key, too
  CHECK(wrong_table("name,batches,fits") ==                  // whole parts only
        "'batches' is no key that the sweep varies / did you mean 'schedule.micro_batches'?");
  CHECK(wrong_table("name,stages,fit") == "'fit' is no number of a row / did you mean 'fits'?");
  CHECK(wrong_table("name,schedule.name,fits") ==
        "'schedule.name' is both rows and columns / two keys of the sweep");
  CHECK(wrong_table("name,stages").starts_with("--table takes three names, not 2 / "));
  CHECK(wrong_table("name,stages,fits,").starts_with("--table takes three names, not 4 / "));
  CHECK(wrong_table("latency,a.b,fits", {{"cluster.link.latency", {"1 us"}},
                                         {"cluster.host_link.latency", {"1 us"}},
                                         {"a.b", {"1"}}}) ==
        "'latency' is the end of several keys / one of cluster.link.latency, "
        "cluster.host_link.latency");
}

TEST_CASE("other keys that vary have a table for each of their values, failures say why below") {
  CHECK(to_table(eight_points(), pivot_of("name,micro_batches,iteration_time_s")).print() ==
        "one|two\n"
        "  iteration time of 8 points; rows: schedule.name; columns: schedule.micro_batches\n"
        "\n"
        "cluster.link.latency 1 us\n"
        "  schedule.name     2             4\n"
        "  gpipe          1 ms  does not fit\n"
        "  1f1b           5 ms             -\n"
        "\n"
        "cluster.link.latency 2 us\n"
        "  schedule.name     2     4\n"
        "  gpipe          2 ms  4 ms\n"
        "  1f1b           6 ms     -\n"
        "\n"
        "cluster.link.latency 1 us, schedule.name gpipe, schedule.micro_batches 4: does not fit: "
        "by far\n"
        "cluster.link.latency 1 us, schedule.name 1f1b, schedule.micro_batches 4 and 1 more: it "
        "cannot\n"
        "do not fit: 1 of 8 points\n"
        "cannot run: 2 of 8 points\n");
}

TEST_CASE("points that are not reported leave their cells empty") {
  SweepSelection fastest;
  fastest.top = 1;
  CHECK(to_table(eight_points(fastest), pivot_of("latency,name,throughput_samples_per_s"))
            .print()
            .ends_with("schedule.micro_batches 2\n"
                       "  cluster.link.latency  gpipe  1f1b\n"
                       "  1 us                   8000\n"
                       "  2 us\n"
                       "\n"
                       "do not fit: 1 of 8 points\n"
                       "cannot run: 2 of 8 points\n"
                       "shown: 1 of 8 points: the best 1\n"));
  SweepSelection none;
  none.where.push_back(*parse_condition("iteration_time_s > 1", kPivotAxes));
  CHECK(to_table(eight_points(none), pivot_of("name,latency,fits"))
            .print()
            .find("\n  no row is left\n") != std::string::npos);
}

TEST_CASE("a number that no point has is told") {
  const std::string text =
      to_table(eight_points(), pivot_of("name,latency,iteration_time_p5_s")).print();
  CHECK(text.find("\nno point has the number iteration_time_p5_s\n") != std::string::npos);
}

TEST_CASE("the table as CSV is one, unrounded, with the other keys first") {
  CHECK(to_csv(eight_points(), pivot_of("name,micro_batches,iteration_time_s")) ==
        "cluster.link.latency,schedule.name,iteration_time_s at schedule.micro_batches=2,"
        "iteration_time_s at schedule.micro_batches=4\n"
        "1 us,gpipe,0.001,\n"
        "1 us,1f1b,0.005,\n"
        "2 us,gpipe,0.002,0.004\n"
        "2 us,1f1b,0.006,\n");
  CHECK(to_csv(eight_points(), pivot_of("name,micro_batches,fits")) ==
        "cluster.link.latency,schedule.name,fits at schedule.micro_batches=2,"
        "fits at schedule.micro_batches=4\n"
        "1 us,gpipe,true,false\n"
        "1 us,1f1b,true,\n"
        "2 us,gpipe,true,true\n"
        "2 us,1f1b,true,\n");
}

TEST_CASE("the tables as Markdown have their headings between them") {
  CHECK(to_markdown(eight_points(), pivot_of("name,latency,iteration_time_s"))
            .starts_with("one|two: iteration time of 8 points; rows: schedule.name; columns: "
                         "cluster.link.latency\n"
                         "\n"
                         "schedule.micro_batches 2\n"
                         "\n"
                         "| schedule.name | 1 us | 2 us |\n"
                         "|---|---:|---:|\n"
                         "| gpipe | 1 ms | 2 ms |\n"
                         "| 1f1b | 5 ms | 6 ms |\n"
                         "\n"
                         "schedule.micro_batches 4\n"
                         "\n"
                         "| schedule.name | 1 us | 2 us |\n"));
}

TEST_CASE("times of sampled runs are bounded with units, too") {
  SweepRow row = timed(0, 0.01);
  row.numbers->iteration_time_p95_s = 0.012;
  const auto condition = parse_condition("iteration_time_p95_s < 13 ms", kPivotAxes);
  REQUIRE(condition);
  CHECK(condition->holds(row));
}

}  // namespace
}  // namespace plumbline::test
