// The pages of sweeps and comparisons: their data come back, their texts are safe.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/report/compare_html.h"
#include "sim/report/compare_report.h"
#include "sim/report/page_file.h"
#include "sim/report/report_columns.h"
#include "sim/report/sweep_html.h"
#include "sim/whatif/sweep.h"
#include "sim/whatif/sweep_file.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// The part of the page between `mark` and the end of its element.
std::string element_of(const std::string& page, std::string_view mark) {
  const std::size_t at = page.find(mark);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = page.find('>', at) + 1;
  return page.substr(begin, page.find("</script>", begin) - begin);
}

nlohmann::json facts_of(const std::string& page) {
  return nlohmann::json::parse(element_of(page, "id=\"facts\""));
}

/// The bytes beside the facts, where they are not compressed.
std::string data_of(const std::string& page) {
  REQUIRE(page.find("data-encoding=\"plain\"") != std::string::npos);
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (const char c : element_of(page, "id=\"columns\"")) {
    if (c == '=') break;
    group = (group << 6U) | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>((group >> bits) & 0xffU);
  }
  return bytes;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

SweepResult swept(const std::string& name, const std::vector<std::string>& axes) {
  const auto sweep = Sweep::parse(
      text_source("a folder/s.yaml",
                  "version: 1\nname: " + name +
                      "\nmodel: {uniform: {layers: 6, forward: 1 ms, backward: 2 ms, output: 1 "
                      "MiB, activation: 9 MiB}}\n"
                      "cluster: {devices: 3, memory: 200 MiB}\n"
                      "schedule: {name: gpipe, micro_batches: 4}\n"),
      axes);
  REQUIRE_MESSAGE(sweep, (sweep ? "" : to_text(sweep.problems())));
  SweepResult result = sweep->header();
  for (std::uint64_t point = 0; point < sweep->points(); ++point)
    result.rows.push_back(sweep->evaluate(point));
  return result;
}

std::string page_of(SweepResult result, const SweepSelection& selection = {}) {
  return html_report(report(std::move(result), selection), "plumbline sweep", "0");
}

TEST_CASE("a sweep's page holds its rows in their order, and where they come from") {
  const SweepResult result =
      swept("it", {"schedule.micro_batches=4,16", "plan.stages=3,2,7", "schedule.name=1f1b,gpipe"});
  const SweepReport told = report(result, {});
  const std::string page = page_of(result);
  const auto facts = facts_of(page);
  CHECK(facts["file"] == "a folder/s.yaml");
  CHECK(facts["points"] == 12);
  CHECK(facts["axes"][1]["key"] == "plan.stages");
  CHECK(facts["axes"][1]["values"] == nlohmann::json({"3", "2", "7"}));
  CHECK(facts["remarks"].size() == 3);
  CHECK(facts["remarks"][0] == "not alike in devices used (2 to 3), mini-batch (4 to 16 samples)");
  const auto data = nlohmann::json::parse(data_of(page));
  REQUIRE(data["rows"].size() == told.result.rows.size());
  std::size_t without_numbers = 0;
  for (std::size_t i = 0; i < told.result.rows.size(); ++i) {
    CAPTURE(i);
    const SweepRow& row = told.result.rows[i];
    const auto& array = data["rows"][i];
    CHECK(array[0] == row.point);
    if (row.feasible()) {
      CHECK(array[1].is_null());
    } else {
      CHECK(data["reasons"][array[1].get<std::size_t>()] == row.reason);
    }
    if (!row.numbers) {
      ++without_numbers;
      CHECK(array.size() == 3);
      continue;
    }
    REQUIRE(array.size() == 18);
    CHECK(array[3] == row.numbers->iteration_time_s);
    CHECK(array[4] == *row.numbers->throughput_samples_per_s);
    CHECK(array[5] == row.numbers->bubble_fraction);
    CHECK(array[8].is_null() == !row.numbers->formula_bubble_fraction.has_value());
    CHECK(array[10] == row.numbers->peak_memory_bytes);
    CHECK(array[12] == *row.numbers->fits);
    CHECK(array[13] == std::int64_t{200} << 20U);
    CHECK(array[14] == row.numbers->devices_without_stage);
    CHECK(array[15] == row.numbers->devices);
    CHECK(array[16].is_null());
    CHECK(array[17].is_null());
  }
  CHECK(without_numbers == 4);
  CHECK(page == page_of(result));
}

TEST_CASE("a sweep's page tells the rows that the command tells") {
  SweepSelection best;
  best.top = 2;
  const std::string page = page_of(swept("it", {"schedule.micro_batches=2,3,4,5"}), best);
  CHECK(nlohmann::json::parse(data_of(page))["rows"].size() == 2);
  CHECK(facts_of(page)["remarks"][0] == "not alike in mini-batch (4 to 5 samples)");
  CHECK(facts_of(page)["remarks"][1] == "shown: 2 of 4 points: the best 2");
}

TEST_CASE("of more rows than a page holds it has the first, and says so") {
  SweepResult result = swept("it", {"schedule.micro_batches=2"});
  const SweepRow row = result.rows.front();
  result.axes[0].values.assign(kMaxPageRows + 1, "2");
  result.points = kMaxPageRows + 1;
  for (std::uint64_t point = 1; point < result.points; ++point) {
    result.rows.push_back(row);
    result.rows.back().point = point;
  }
  const auto facts = facts_of(page_of(result));
  CHECK(facts["remarks"].back() ==
        "this page holds the first 100000 of 100001 rows; --csv and --json have all");
}

TEST_CASE("the file and the limit of a sweep come back from its JSON") {
  const SweepResult result = swept("it", {"schedule.micro_batches=2,64", "plan.stages=3,7"});
  const auto read = parse_sweep_file(text_source("r.json", to_json(report(result, {}), "0")), "0");
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(read->result.file == result.file);
  const auto whole = merge({*read});
  REQUIRE(whole);
  CHECK(page_of(*whole) == page_of(result));
}

TEST_CASE("hostile names and values end no element of a page") {
  const std::string tame = page_of(swept("it", {"name=a,b"}));
  const std::string page =
      page_of(swept("\"</script><script>/*SCRIPT*/ <!--DATA--> <!-- <!--BODY-->\"",
                    {"name=</script><script>,<!-- /*STYLE*/"}));
  CHECK(count(page, "<script") == count(tame, "<script"));
  CHECK(count(page, "</script") == count(tame, "</script"));
  CHECK(count(page, "<!--") == count(tame, "<!--"));
  CHECK(facts_of(page)["axes"][0]["values"][0] == "</script><script>");
  for (const char* loaded : {" src=", "@import", "\nimport ", "\nexport ", "http://a", "https://"})
    CHECK_MESSAGE(tame.find(loaded) == std::string::npos, loaded);
}

TEST_CASE("a comparison's page holds its JSON and the columns of the runs that have a trace") {
  std::vector<ComparedRun> runs;
  for (const char* schedule : {"gpipe", "1f1b"}) {
    runs.push_back(compared(std::make_shared<const Outcome>(predict_example(
                                "four-stages", {std::string("schedule.name=") + schedule})),
                            std::string(schedule) + " </script>"));
  }
  runs.push_back(runs.front());
  runs.back().outcome = nullptr;  // as one that was read from a file
  const std::string page = html_report(runs, {"a", "b", "c.json"}, "plumbline compare", "0");
  const auto facts = facts_of(page);
  CHECK(facts["comparison"] == nlohmann::json::parse(to_json(runs, "0")));
  CHECK(facts["sources"][2] == "c.json");
  CHECK(facts["memory_limits"] == nlohmann::json({1 << 30, 1 << 30, nullptr}));
  CHECK(facts["layouts"][2].is_null());
  std::string columns;
  for (std::size_t r = 0; r < 2; ++r) {
    const std::int64_t tick_ns = facts["layouts"][r]["tick_ns"];
    CHECK(tick_ns == 1);
    append_columns(*runs[r].outcome, tick_ns, columns);
  }
  CHECK(data_of(page) == columns);
}

}  // namespace
}  // namespace plumbline::test
