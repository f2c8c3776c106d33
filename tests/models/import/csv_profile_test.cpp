// Tables of layers: what a header may say, quoting, and what is refused where.
//
// SPDX-License-Identifier: MIT
#include "models/import/csv_profile.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/csv.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

Model read(const std::string& text) {
  const auto model = parse_csv_profile(test::text_source("folder/small.csv", text));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  return *model;
}

std::string faults(const std::string& text) {
  const auto model = parse_csv_profile(test::text_source("t.csv", text));
  REQUIRE(!model);
  return to_text(model.problems());
}

const std::vector<LayerCosts>& costs(const Model& model) {
  return model.profile.measurements.front().layers;
}

TEST_CASE("columns stand in any order, and every quantity carries its unit") {
  const Model model = read(
      "parameters,backward,layer,kind,output,forward,update,activation\n"
      "4 MiB,2.5 ms,first,linear,1 kB,1.25 ms,3 us,2 GiB\n"
      ",0 s,second,,,7 ns,,\n");
  CHECK(model.name == "small");
  REQUIRE(model.graph.size() == 2);
  CHECK(model.graph.layer({0}).name == "first");
  CHECK(model.graph.layer({0}).kind == "linear");
  CHECK(model.graph.layer({0}).parameters == Bytes{4 << 20});
  CHECK(model.graph.edges() == std::vector<LayerEdge>{{{0}, {1}}});
  CHECK(!model.profile.measurements.front().batch);
  CHECK(costs(model)[0].forward.mean == microseconds(1250));
  CHECK(costs(model)[0].backward.mean == microseconds(2500));
  CHECK(costs(model)[0].update.mean == microseconds(3));
  CHECK(costs(model)[0].output == Bytes{1000});
  CHECK(costs(model)[0].activation == Bytes{std::int64_t{2} << 30});
  CHECK(!costs(model)[0].split);
  CHECK(costs(model)[1].forward.mean == nanoseconds(7));
  CHECK(costs(model)[1].update.mean == Duration::zero());
  CHECK(costs(model)[1].output == Bytes{0});
}

TEST_CASE("a unit at the end of a column's name is the unit of its bare numbers") {
  struct Case {
    const char* column;
    std::int64_t ticks;
  };
  for (const Case& unit : {Case{"forward_s", 1'500'000'000}, Case{"forward_ms", 1'500'000},
                           Case{"forward_us", 1'500}, Case{"forward_ns", 2}}) {
    CAPTURE(unit.column);
    const Model model = read(fmt::format("layer,{},backward\na,1.5,1 s\n", unit.column));
    CHECK(costs(model)[0].forward.mean == Duration(unit.ticks));
  }
  for (const Case& unit :
       {Case{"output_bytes", 3}, Case{"output_kb", 3'000}, Case{"output_mb", 3'000'000},
        Case{"output_gb", 3'000'000'000}, Case{"output_kib", 3 << 10}, Case{"output_mib", 3 << 20},
        Case{"output_gib", std::int64_t{3} << 30}}) {
    CAPTURE(unit.column);
    const Model model = read(fmt::format("layer,forward,backward,{}\na,1 s,1 s,3\n", unit.column));
    CHECK(costs(model)[0].output == Bytes{unit.ticks});
  }
}

TEST_CASE("a backward is given whole, in its parts, or both") {
  const Model model = read(
      "layer,forward,backward_input,backward,backward_weight\n"
      "parts,1 ms,2 ms,,3 ms\n"
      "whole,1 ms,,4 ms,\n"
      "both,1 ms,2 ms,6 ms,3 ms\n");
  REQUIRE(costs(model)[0].split);
  CHECK(costs(model)[0].split->input.mean == milliseconds(2));
  CHECK(costs(model)[0].split->weight.mean == milliseconds(3));
  CHECK(costs(model)[0].backward.mean == milliseconds(5));
  CHECK(!costs(model)[1].split);
  CHECK(costs(model)[1].backward.mean == milliseconds(4));
  CHECK(costs(model)[2].split);
  CHECK(costs(model)[2].backward.mean == milliseconds(6));
  const std::string wrong =
      faults("layer,forward,backward_input,backward_weight\na,1 ms,1 ms,\nb,1 ms,,\n");
  CHECK(wrong.find("t.csv:2:") != std::string::npos);
  CHECK(wrong.find("backward_weight is empty") != std::string::npos);
  CHECK(wrong.find("t.csv:3:1: error: this layer has no backward") != std::string::npos);
}

TEST_CASE("quotes, blanks, comments and Windows line ends are what a spreadsheet makes of them") {
  const Model model = read(
      "# exported\r\n\r\n \"layer\" , forward ,\"backward\"\r\n"
      "\"a, \"\"b\"\"\nc\", 1 ms ,\"2 ms\"\r\n"
      "#skipped,1 ms,2 ms\r\n"
      "   \r\n"
      "\"#kept\",1 ms,2 ms");  // no end of line at the end of the file
  REQUIRE(model.graph.size() == 2);
  CHECK(model.graph.layer({0}).name == "a, \"b\"\nc");
  CHECK(model.graph.layer({1}).name == "#kept");
  CHECK(costs(model)[1].backward.mean == milliseconds(2));
}

TEST_CASE("rows tell where each field begins, also after one of several lines") {
  Diagnostics problems;
  CsvReader rows(test::text_source("t.csv", "\"a\n\xC3\xA4\",x\ny, \"z\"\n"), problems);
  CsvRow row;
  REQUIRE(rows.next(row));
  REQUIRE(row.count == 2);
  CHECK(row.fields[0].mark.line == 1);
  CHECK(row.fields[0].mark.column == 1);
  CHECK(row.fields[1].mark.line == 2);
  CHECK(row.fields[1].mark.column == 5);
  REQUIRE(rows.next(row));
  CHECK(row.fields[1].text == "z");
  CHECK(row.fields[1].mark.line == 3);
  CHECK(row.fields[1].mark.column == 4);
  CHECK(row.fields[1].mark.length == 3);
  CHECK(!rows.next(row));
  CHECK(problems.empty());
}

TEST_CASE("a table comes back from its profile") {
  const Model model = read(
      "layer,kind,forward,backward_input,backward_weight,update_us,output,activation,parameters\n"
      "\"a: \"\"b\"\"\",linear,1 ms,2 ms,3 ms,4,5 MiB,6 MiB,7 MiB\n"
      "c,,1 ms,2 ms,3 ms,0,5 B,6 B,\n");
  const auto back = parse_profile(test::text_source("p.yaml", profile_yaml(model)));
  REQUIRE_MESSAGE(back, (back ? "" : to_text(back.problems())));
  CHECK(profile_yaml(*back) == profile_yaml(model));
  CHECK(back->graph.layer({0}).name == "a: \"b\"");
}

TEST_CASE("a table of sizes needs no times") {
  const std::string text = "layer,output_mib\na,1\nb,2\n";
  const auto table = parse_csv_layers(test::text_source("t.csv", text), CsvTimes::optional);
  REQUIRE_MESSAGE(table, (table ? "" : to_text(table.problems())));
  REQUIRE(table->size() == 2);
  CHECK((*table)[1].costs.output == Bytes{2 << 20});
  CHECK(faults(text).find("there is no column forward") != std::string::npos);
}

TEST_CASE("a table may have as many layers as a model, and rows only as many fields as are kept") {
  std::string text = "layer,forward_ms,backward_ms\n";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("{},1,1\n", i);
  CHECK(read(text).graph.size() == 100'000);
  CHECK(faults(text + "more,1,1\n").find("this is one layer more than the 100000 that are read") !=
        std::string::npos);
  CHECK(faults(std::string(1000, ',')).find("there are 1001 columns") != std::string::npos);
}

TEST_CASE("a text that no profile can hold is refused") {
  const std::string row = "layer,forward,backward\n" + std::string(10'001, 'x') + ",1 s,1 s\n";
  CHECK(faults(row).find("layer is longer than 10,000 bytes") != std::string::npos);
}

}  // namespace
}  // namespace plumbline
