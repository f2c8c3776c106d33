// The model section of a scenario: the model and its costs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>

#include "base/diagnostic.h"
#include "base/shared_value.h"
#include "models/network/network.h"
#include "models/profile/profile.h"
#include "sim/scenario/transformer_section.h"

namespace plumbline {

class SectionReader;

/// The largest number of samples in a batch.
inline constexpr std::int64_t kMaxBatch = 1'000'000'000;

struct ModelSection {
  SharedValue<Model> model;  ///< Without layers if `transformer` is set: they follow later.
  std::optional<TransformerChoice> transformer;
  /// The network that is executed; null if only the model's times are known.
  std::shared_ptr<const Network> network;
  std::optional<Marked<std::int64_t>> batch;  ///< The batch in the section.
};

/// Reads the section and the files that it names. It has exactly one of profile, uniform, layers,
/// pipedream and huggingface, or a network together with its profile. Adds all errors to
/// `problems`.
ModelSection read_model_section(SectionReader& section, Diagnostics& problems);

}  // namespace plumbline
