// The choices of a search: the best of each size, the front, and the parts of their memory.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_choices.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/search_report.h"
#include "sim/search/search.h"
#include "sim/search/search_columns.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Search small_search() {
  auto search = Search::parse(
      text_source("s.yaml",
                  "version: 1\nname: small\n"
                  "model: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MiB, "
                  "activation: 8 MiB, parameters: 16 MiB}, batch: 1}\n"
                  "cluster: {devices: 8, memory: 300 MiB}\n"
                  "training: {mini_batch_size: 16, optimizer_state: 2}\n"),
      {});
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  return *std::move(search);
}

SearchReport report_of(const Search& search, std::size_t top) {
  SearchTally tally(search.facts());
  for (const LayoutFamily& family : search.families()) tally.add(search.evaluate(family));
  SearchSelection selection;
  selection.rows.top = top;
  return std::move(tally).report(std::move(selection));
}

bool beats(const SweepNumbers& a, const SweepNumbers& b) {
  return a.iteration_time_s <= b.iteration_time_s && a.peak_memory_bytes <= b.peak_memory_bytes &&
         (a.iteration_time_s < b.iteration_time_s || a.peak_memory_bytes < b.peak_memory_bytes);
}

}  // namespace

TEST_CASE("a search's choices are the best of their sizes, however many rows are reported") {
  const Search search = small_search();
  const SearchReport all = report_of(search, 0);
  REQUIRE(all.choices.size() > 1);
  std::set<std::string> told;
  std::uint64_t alike = 0;
  for (const SearchChoice& choice : all.choices) {
    CHECK(told.insert(sizes(choice.row.layout)).second);
    const auto best = std::find_if(all.rows.begin(), all.rows.end(), [&](const SearchRow& row) {
      return sizes(row.layout) == sizes(choice.row.layout);
    });
    CHECK(best->row.point == choice.row.row.point);
    alike += choice.alike;
  }
  REQUIRE(all.choices.size() < kMaxChoices);
  CHECK(alike == all.rows.size());
  const SearchReport few = report_of(search, 1);
  CHECK(few.rows.size() == 1);
  CHECK(few.choices.size() == all.choices.size());
}

TEST_CASE("no row of a search beats one of its front") {
  const SearchReport report = report_of(small_search(), 0);
  REQUIRE_FALSE(report.front.empty());
  for (const SearchRow& one : report.front) {
    for (const SearchRow& row : report.rows) CHECK_FALSE(beats(*row.row.numbers, *one.row.numbers));
  }
}

TEST_CASE("the parts of a choice's memory are its peak") {
  const Search search = small_search();
  SearchReport report = report_of(search, 3);
  add_memory_parts(search, report.choices);
  for (const SearchChoice& choice : report.choices) {
    REQUIRE(choice.memory);
    CHECK(choice.memory->sum().count == choice.row.row.numbers->peak_memory_bytes);
  }
}

TEST_CASE("the page of a search holds its choices and its counts") {
  const Search search = small_search();
  SearchReport report = report_of(search, 1);
  add_memory_parts(search, report.choices);
  const std::string page = html_report(report, "plumbline search s.yaml", "1");
  const std::string_view open = "id=\"facts\">";
  const std::size_t begin = page.find(open) + open.size();
  const auto facts =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const auto& decision = facts["decision"];
  CHECK(decision["choices"].size() == report.choices.size());
  CHECK(decision["choices"][0]["row"] == 0);
  CHECK(decision["choices"][0]["words"] == in_words(report.choices.front().row.layout));
  CHECK(decision["counts"]["feasible"] == report.feasible);
  CHECK(decision["counts"]["misfits"] == report.misfits);
  CHECK(decision["reported"] == 1);
}

}  // namespace plumbline::test
