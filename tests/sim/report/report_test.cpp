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

TEST_CASE("rows that count up and are alike but for that are one") {
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
        "  device  busy\n"
        "  0-1     1 ms\n"
        "  2       1 ms  NO\n"
        "  3       1 ms\n"
        "  5-7     1 ms\n"
        "  8       2 ms\n");
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
  return to_table(*prediction, TimelineStyle{});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("of more than sixteen devices those that are alike share a line in every table") {
  const std::string few = report_of(4);
  CHECK(count(few, "\n  15 ") == 3);
  CHECK(count(few, "\n  device 15 ") == 1);
  CHECK(count(few, "0-3") == 0);
  const std::string many = report_of(5);
  CHECK(count(many, "\n  0-4 ") == 2);
  CHECK(count(many, "\n  15-19 ") == 2);
  CHECK(count(many, "\n  0-19 ") == 1);  // all hold the same
  CHECK(count(many, "\n  device 5-9 ") == 1);
  CHECK(count(many, "\n  device ") == 3 + 4);  // headers of tables among them
}

}  // namespace
}  // namespace plumbline::test
