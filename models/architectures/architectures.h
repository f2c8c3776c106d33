// The table of architectures: what reads the config.json of each.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// Reads the shape of a model; facts beside it are read later.
using ShapeReader = void (*)(ConfigFile& file, TransformerShape& shape);

/// An architecture by the word under model_type.
struct Architecture {
  std::string_view name;
  ShapeReader read = nullptr;    ///< nullptr: a first family of this name reads it.
  std::string_view as_family{};  ///< The name of that, if it is another.
};

/// All, in the order of the documentation.
const std::vector<Architecture>& architectures();

/// nullptr where it is not read.
const Architecture* find_architecture(std::string_view name);

/// Reads a map of one of the first families, without nulls (first_families.cpp); they have no
/// reader in the table. Adds errors to `problems`.
void read_first_family(SectionReader& file, std::string_view family,
                       const std::map<std::string, Mark, std::less<>>& nulls,
                       TransformerShape& shape, Diagnostics& problems);

}  // namespace plumbline
