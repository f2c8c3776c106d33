// A program that finds the best layout of a training: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <iostream>

#include "sim/report/search_report.h"
#include "sim/search/run_search.h"
#include "sim/search/search_columns.h"

int main() {
  const auto search = plumbline::Search::open("examples/layouts.yaml", {});
  if (!search) return std::cerr << to_text(search.problems()), 2;
  auto run = run_search(*search);
  if (!run) return std::cerr << to_text(run.problems()), 2;
  const plumbline::SearchReport told = report(std::move(run->part), {});
  for (const plumbline::SearchRow& found : told.rows)  // best first
    std::cout << in_words(found.layout) << ": " << found.row.numbers->iteration_time_s << " s\n";
}
