// The facts in a config.json beside a transformer's shape: dropout, number format, keys that
// nothing reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/section_reader.h"
#include "models/import/transformer_options.h"

namespace plumbline {

/// Reads the facts of the file that are not its shape. Requires: the keys of the shape have been
/// read before. Dropout is read under the names of GPT-2, LLaMA, BERT and similar models. Adds all
/// errors to `problems`.
ConfigFacts read_config_facts(SectionReader& file, std::string_view family, Diagnostics& problems);

/// Whether a key of a config.json is known not to change costs: constants of norms and rotations,
/// names of tokens, settings of inference or checkpoints only.
bool changes_no_cost(std::string_view key);

/// Sentences about facts of the file that costs leave out, and about assumptions in place of absent
/// facts.
std::vector<std::string> config_notes(const TransformerShape& shape,
                                      const TransformerOptions& options);

}  // namespace plumbline
