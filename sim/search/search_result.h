// What a search found: the layouts, and what holds for all of them.
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

/// One way to lay a training out: what it sets beside the scenario, and what that comes to.
struct Layout {
  std::vector<std::string> overrides;  ///< `key=value`, those of the arguments first.
  std::size_t combination = 0;         ///< Of the arguments' values.
  std::int64_t tensor = 1;             ///< GPUs that share each layer,
  std::int64_t context = 1;            ///< of such groups, those that share each sample,
  std::int64_t expert = 1;             ///< and GPUs that share experts.
  std::int64_t batches = 1;            ///< Of a group, micro-batches that it trains at a time.
  std::int64_t stages = 1;             ///< Of the pipeline; several a device with chunks.
  std::int64_t chunks = 1;
  std::int64_t copies = 1;
  std::string schedule;
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;
  std::int64_t sequence = 0;  ///< Tokens of a sample; 0 = unknown.
  std::string recomputation;  ///< "none", "selective", "layers 12/80".

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A layout with what it comes to.
struct SearchRow {
  Layout layout;
  SweepRow row;  ///< Its point numbers the layouts of a search.
};

/// What became of a family.
struct FamilyResult {
  std::uint64_t family = 0;       ///< Its number in the search.
  std::vector<SearchRow> rows;    ///< Those that were predicted, or cannot run.
  std::uint64_t passed_over = 0;  ///< Larger micro-batches than one that does not fit.
};

/// The scenario of the command line as `simulate` would read it, that `free` takes the layout out
/// of.
struct StandingScenario {
  std::optional<SweepNumbers> numbers;  ///< Nothing where it cannot run.
  std::string reason;                   ///< Why not.
  /// What stands there of keys that the arguments give several values: that of the file, else the
  /// first one.
  std::vector<std::string> chosen;

  friend bool operator==(const StandingScenario&, const StandingScenario&) = default;
};

/// What a report tells of a search besides its layouts.
struct SearchFacts {
  std::string scenario;     ///< Its name.
  std::string file;         ///< As the user named it.
  std::string fingerprint;  ///< Equal for equal scenarios, files and arguments.
  std::vector<std::string> arguments;
  bool free = false;
  std::vector<std::string> open_keys;    ///< That are searched.
  std::vector<std::string> kept_keys;    ///< Of a layout: that the scenario or the arguments give.
  std::vector<std::string> varied_keys;  ///< Beside those of a layout: with several values.
  std::vector<std::string> notes;        ///< Of reading the scenario, whatever the layout.
  std::uint64_t families = 0;
  std::uint64_t layouts = 0;
  std::optional<StandingScenario> as_it_stands;  ///< Nothing without `free`.

  friend bool operator==(const SearchFacts&, const SearchFacts&) = default;
};

}  // namespace plumbline
