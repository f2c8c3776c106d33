// What a config.json says beside a transformer's shape: dropout, numbers, keys that nobody reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/section_reader.h"
#include "models/import/transformer_layers.h"

namespace plumbline {

/// Reads what of the file is not its shape; the keys of that have been asked for by then. Dropout
/// is read under the names that GPT-2, LLaMA, BERT and their kin have for it. Adds all that is
/// wrong to `problems`.
ConfigFacts read_config_facts(SectionReader& file, std::string_view family, Diagnostics& problems);

/// Whether a key of a config.json is known to say nothing about costs: constants of norms and
/// rotations, names of tokens, what only inference or checkpoints need.
bool changes_no_cost(std::string_view key);

/// What costs do not count of what the file says, and what is assumed in the place of what it does
/// not say.
std::vector<std::string> config_notes(const TransformerShape& shape,
                                      const TransformerOptions& options);

}  // namespace plumbline
