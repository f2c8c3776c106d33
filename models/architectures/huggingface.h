// Reading the config.json of models published on Hugging Face.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// Reads the shape of a model of one of architecture_names(); of a model with images or sound, that
/// of its text. Absent keys take the default of the family's configuration class in Hugging Face
/// Transformers (src/transformers/models/FAMILY/configuration_FAMILY.py). Sizes must be there. null
/// counts as transformers takes it: mostly as absent, and as 0 where it is a number of things.
/// Facts beside the shape are in `facts`. With `like` the file is read as one of that architecture,
/// whatever it says; "" = as it says. Errors, all at once: no JSON, another architecture, sizes
/// that are missing, out of range or do not divide each other.
Result<TransformerShape> read_huggingface(const std::string& path, std::string_view like = "");

/// The same for a text in memory.
Result<TransformerShape> parse_huggingface(const std::shared_ptr<const Source>& source,
                                           std::string_view like = "");

/// The architectures that are read, by their model_type.
std::vector<std::string> architecture_names();

}  // namespace plumbline
