// The report of a run as text: what is alike on many devices is told once.
//
// SPDX-License-Identifier: MIT
#include "sim/report/report.h"

#include <doctest/doctest.h>

#include <string>

#include "base/table.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

TEST_CASE("rows that are alike but for their numbers are one") {
  Table table;
  table.row({"device", "busy"});
  table.row({"0", "1 ms"});
  table.row({"1", "1 ms"});
  table.row({"2", "1 ms"}, "NO");
  table.row({"3", "1 ms"});
  table.row({"5", "1 ms"});
  table.row({"6", "1 ms"});
  table.row({"7", "1 ms"});
  table.row({"8", "2 ms"});
  table.join_alike();
  CHECK(table.print() ==
        "  device     busy\n"
        "  0-1,3,5-7  1 ms\n"
        "  2          1 ms  NO\n"
        "  8          2 ms\n");
}

TEST_CASE("a name that leaves devices out has them behind its row") {
  Table table;
  table.row({"device", "busy"});
  for (const char* device : {"1", "3", "10", "30", "100", "300", "1000"})
    table.row({device, "1 ms"});
  table.join_alike();
  CHECK(table.print() ==
        "  device        busy\n"
        "  1 and 6 more  1 ms  1,3,10,30,100,300,1000\n");
}

TEST_CASE("devices that are alike have one name") {
  CHECK(alike_name({3}) == "3");
  CHECK(alike_name({4, 5, 6, 7}) == "4-7");
  CHECK(alike_name({0, 2}) == "0,2");
  CHECK(alike_name({0, 4, 8, 12, 16}) == "0,4,..,16");
  CHECK(alike_name({0, 1, 2, 5}) == "0-2,5");
  CHECK(alike_name({1, 3, 10, 30, 100, 300, 1000}) == "1 and 6 more");
}

std::string report_of(int copies) {
  const auto scenario = parse_scenario(
      text_source("copies.yaml",
                  "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, "
                  "parameters: 1 MB}}\nplan: {stages: 4, data_parallel: " +
                      std::to_string(copies) + "}\nschedule: {name: 1f1b, micro_batches: 4}\n"),
      {});
  REQUIRE(scenario);
  const auto prediction = predict(*scenario);
  REQUIRE(prediction);
  return to_table(*prediction, TimelineStyle{}).print();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("devices that are alike share a row in every table and in the timeline") {
  for (const int copies : {2, 5}) {
    const std::string text = report_of(copies);
    CAPTURE(text);
    const auto named = [&](int stage) {
      return " " + std::to_string(stage * copies) + "-" + std::to_string((stage + 1) * copies - 1);
    };
    CHECK(count(text, "\n " + named(0) + " ") == 2);  // of stage 0: what it does, why it is idle
    CHECK(count(text, "\n " + named(3) + " ") == 2);
    CHECK(count(text, "\n  0-" + std::to_string(4 * copies - 1) + " ") == 1);  // all hold the same
    CHECK(count(text, "\n  device" + named(1) + " ") == 1);
    CHECK(count(text, "\n  device ") == 3 + 4);  // headers of tables among them
  }
}

}  // namespace
}  // namespace plumbline::test
