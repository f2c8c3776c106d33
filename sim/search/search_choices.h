// The layouts of a search between which there is something to decide.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/engine/memory.h"
#include "sim/search/search_result.h"

namespace plumbline {

class Search;

/// The best layout of its tensor, context, expert and pipeline sizes.
struct SearchChoice {
  SearchRow row;
  std::uint64_t alike = 0;            ///< Number of feasible layouts of the same sizes.
  std::optional<MemoryParts> memory;  ///< The parts of the peak on the device that needs most.
};

/// The largest number of choices, and of layouts on a front.
inline constexpr std::size_t kMaxChoices = 12;
inline constexpr std::size_t kMaxFront = 40;

/// The choices among feasible rows that stand best first, at most kMaxChoices.
std::vector<SearchChoice> choices_among(const std::vector<SweepRow>& best_first,
                                        const std::map<std::uint64_t, const SearchRow*>& by_point);

/// The rows that no other beats in throughput and peak memory, each pair of these once, at most
/// kMaxFront.
std::vector<SearchRow> front_of(const std::vector<SweepRow>& rows,
                                const std::map<std::uint64_t, const SearchRow*>& by_point);

/// Predicts the choices once more, for the parts of their memory.
void add_memory_parts(const Search& search, std::vector<SearchChoice>& choices);

}  // namespace plumbline
