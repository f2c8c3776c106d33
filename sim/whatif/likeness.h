// Whether runs that stand side by side are of the same work on as many devices, and which keys
// they differ in.
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

/// What is not the same in all runs and makes their times hard to compare, a phrase each: "devices
/// used (4: 1f1b; 2: zb-v)". Devices, the mini-batch, the model, the fit into the memory, whether
/// there is a flush. What a run does not know counts as alike.
std::vector<std::string> unlikenesses(const std::vector<ComparedRun>& runs);

/// A sentence and the runs that it holds for.
struct SharedText {
  std::string text;
  std::vector<std::size_t> runs;
};

/// Each note of the runs once, in the order of their first run.
std::vector<SharedText> shared_notes(const std::vector<ComparedRun>& runs);
/// The same of their estimates.
std::vector<SharedText> shared_estimates(const std::vector<ComparedRun>& runs);

/// A key of a scenario that is not the same in all runs that know their keys.
struct DifferingKey {
  std::string key;                  ///< Dotted.
  std::vector<std::string> values;  ///< One a run; "-" where it is not written.
};

/// In the order in which they are written. A result file's keys are not known: it has "-".
std::vector<DifferingKey> differing_keys(const std::vector<ComparedRun>& runs);

/// The keys of a scenario's tree with their values as they are written, but for `version`, `name`
/// and `sweep`, which change no number.
WrittenKeys written_keys(const YamlNode& root);

/// "1f1b", "1f1b and zb-v", "1f1b, zb-v and zb-h1".
std::string titles_of(const std::vector<ComparedRun>& runs, const std::vector<std::size_t>& some);

}  // namespace plumbline
