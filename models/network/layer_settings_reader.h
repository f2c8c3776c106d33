// Reading the settings of a layer: the keys of each kind.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/section_reader.h"
#include "models/network/network.h"

namespace plumbline {

/// The largest extent, kernel or count of classes that a file may give.
inline constexpr std::int64_t kMaxExtent = 1'000'000'000;

/// Reads `kind` and the keys that only this kind has. The mark is that of the kind. Adds all
/// problems, also keys of other kinds. Nothing comes back where the kind is absent or unknown. An
/// absent vocabulary, number of classes or hidden size stays 0, because only the network knows it.
std::optional<Marked<LayerSettings>> read_layer_settings(SectionReader& section);

}  // namespace plumbline
