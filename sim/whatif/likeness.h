// The likeness of runs side by side: the same work on the same number of devices or not, and the
// keys in which they differ.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "sim/whatif/compare.h"

namespace plumbline {

struct YamlNode;

/// The differences between runs that make their times hard to compare, a phrase each: "devices used
/// (4: 1f1b; 2: zb-v)". They concern devices, the mini-batch, the model, the fit into the memory,
/// and the flush. Properties that are unknown for a run count as alike.
std::vector<std::string> unlikenesses(const std::vector<ComparedRun>& runs);

/// A sentence, and the runs for which it holds.
struct SharedText {
  std::string text;
  std::vector<std::size_t> runs;
};

/// Each note of the runs once, in the order of their first run.
std::vector<SharedText> shared_notes(const std::vector<ComparedRun>& runs);
/// The same for their estimates.
std::vector<SharedText> shared_estimates(const std::vector<ComparedRun>& runs);

/// A key of a scenario that is not the same in all runs that know their keys.
struct DifferingKey {
  std::string key;                  ///< Dotted.
  std::vector<std::string> values;  ///< One per run; "-" = not written.
};

/// The differing keys, in the order of writing. The keys of a result file are unknown: it has "-".
std::vector<DifferingKey> differing_keys(const std::vector<ComparedRun>& runs);

/// The keys of a scenario's tree with their values as written. `version`, `name` and `sweep` are
/// left out, since they change no number.
WrittenKeys written_keys(const YamlNode& root);

/// "1f1b", "1f1b and zb-v", "1f1b, zb-v and zb-h1".
std::string titles_of(const std::vector<ComparedRun>& runs, const std::vector<std::size_t>& some);

}  // namespace plumbline
