// The result of a search: the layouts, and the facts about all of them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/layouts.h"
#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// One layout of a training: its overrides of the scenario, and the resulting sizes.
struct Layout {
  std::vector<std::string> overrides;  ///< `key=value`, those of the arguments first.
  std::size_t combination = 0;         ///< Index of the combination of the arguments' values.
  std::int64_t tensor = 1;             ///< GPUs that share each layer.
  std::int64_t context = 1;            ///< Such groups that share each sample.
  std::int64_t expert = 1;             ///< GPUs that share experts.
  std::int64_t batches = 1;            ///< Micro-batches that a group trains at the same time.
  std::int64_t stages = 1;             ///< Stages of the pipeline; with chunks several per device.
  std::int64_t chunks = 1;
  std::int64_t copies = 1;
  std::string schedule;
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;
  std::int64_t sequence = 0;  ///< Tokens of a sample; 0 = unknown.
  std::string recomputation;  ///< "none", "selective", "layers 12/80".

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A layout with its predicted numbers.
struct SearchRow {
  Layout layout;
  SweepRow row;  ///< Its point is the number of the layout in the search.
};

/// The result of a family.
struct FamilyResult {
  std::uint64_t family = 0;     ///< Its number in the search.
  std::vector<SearchRow> rows;  ///< Layouts that were predicted, or that cannot run.
  /// Layouts that were not predicted: they do not fit, by the floor of their memory, or because one
  /// with smaller micro-batches does not.
  std::uint64_t passed_over = 0;
  /// Layouts that were not predicted: by the bounds of their times they cannot be among the best
  /// that were asked for.
  std::uint64_t slower = 0;
};

/// The scenario of the command line as `simulate` would read it, before `free` removes its layout.
struct StandingScenario {
  std::optional<SweepNumbers> numbers;  ///< Nothing if it cannot run.
  std::string reason;                   ///< The reason why it cannot run.
  /// The values used for keys to which the arguments give several values: the file's value, else
  /// the first one.
  std::vector<std::string> chosen;

  friend bool operator==(const StandingScenario&, const StandingScenario&) = default;
};

/// The facts that a report gives on a search besides its layouts.
struct SearchFacts {
  std::string scenario;     ///< Its name.
  std::string file;         ///< The file's name as the user gave it.
  std::string fingerprint;  ///< Equal for equal scenarios, files and arguments.
  std::vector<std::string> arguments;
  bool free = false;
  std::vector<std::string> open_keys;    ///< The keys that are searched.
  std::vector<std::string> kept_keys;    ///< Layout keys that the scenario or the arguments give.
  std::vector<std::string> varied_keys;  ///< Keys outside the layout with several values.
  std::vector<std::string> notes;        ///< Notes of reading the scenario, for any layout.
  std::uint64_t families = 0;
  std::uint64_t layouts = 0;
  std::optional<StandingScenario> as_it_stands;  ///< Only with `free`.

  friend bool operator==(const SearchFacts&, const SearchFacts&) = default;
};

}  // namespace plumbline
