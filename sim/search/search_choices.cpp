// Choices, by sizes and by the front of throughput and memory.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_choices.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "sim/planning/predict.h"
#include "sim/search/search.h"
#include "sim/search/search_columns.h"
#include "sim/whatif/sweep_order.h"

namespace plumbline {

std::vector<SearchChoice> choices_among(const std::vector<SweepRow>& best_first,
                                        const std::map<std::uint64_t, const SearchRow*>& by_point) {
  std::vector<SearchChoice> choices;
  std::map<std::string, std::size_t> place_of;
  std::set<std::string> told;
  for (const SweepRow& row : best_first) {
    const SearchRow& found = *by_point.at(row.point);
    if (!told.insert(identity(found.layout)).second) continue;
    const auto [place, is_new] = place_of.emplace(sizes(found.layout), choices.size());
    if (is_new) choices.push_back({found, 0, std::nullopt});
    ++choices[place->second].alike;
  }
  if (choices.size() > kMaxChoices) choices.resize(kMaxChoices);
  return choices;
}

std::vector<SearchRow> front_of(const std::vector<SweepRow>& rows,
                                const std::map<std::uint64_t, const SearchRow*>& by_point) {
  std::vector<SearchRow> front;
  std::set<std::pair<double, std::int64_t>> told;
  for (const SweepRow& row : pareto(rows)) {
    if (front.size() == kMaxFront) break;
    if (told.emplace(row.numbers->iteration_time_s, row.numbers->peak_memory_bytes).second)
      front.push_back(*by_point.at(row.point));
  }
  return front;
}

void add_memory_parts(const Search& search, std::vector<SearchChoice>& choices) {
  for (SearchChoice& choice : choices) {
    const auto scenario = search.scenario(choice.row.layout);
    if (!scenario) continue;
    const auto outcome = predict(*scenario, Evaluation::fastest);
    if (!outcome) continue;
    const auto most =
        std::max_element(outcome->memory.begin(), outcome->memory.end(),
                         [](const auto& a, const auto& b) { return a.peak.sum() < b.peak.sum(); });
    if (most != outcome->memory.end()) choice.memory = most->peak;
  }
}

}  // namespace plumbline
