// Reading the config.json of models published on Hugging Face.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// Reads the shape of a model of the families gpt2, llama, mistral, mixtral, qwen2, qwen3,
/// qwen3_moe, deepseek_v2 and deepseek_v3. Absent keys take the default of the family's
/// configuration class in Hugging Face Transformers
/// (src/transformers/models/FAMILY/configuration_FAMILY.py). Sizes must be there. null counts as
/// transformers takes it: mostly as absent, and as 0 where it is a number of things. Facts beside
/// the shape are in `facts`. Errors, all at once: no JSON, another family, sizes that are missing,
/// out of range or do not divide each other.
Result<TransformerShape> read_huggingface(const std::string& path);

/// The same for a text in memory.
Result<TransformerShape> parse_huggingface(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
