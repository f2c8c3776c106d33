// The model section of a scenario: what is trained, and what that costs.
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

/// The most samples of a batch.
inline constexpr std::int64_t kMaxBatch = 1'000'000'000;

struct ModelSection {
  SharedValue<Model> model;  ///< Without layers where `transformer` says what they follow from.
  std::optional<TransformerChoice> transformer;
  /// What is really executed; nothing where the model is known by its times alone.
  std::shared_ptr<const Network> network;
  std::optional<Marked<std::int64_t>> batch;  ///< As the section gives it.
};

/// Reads the section and the files that it names: exactly one of profile, uniform, layers,
/// pipedream, huggingface, or a network with its profile beside it. Adds all that is wrong to
/// `problems`.
ModelSection read_model_section(SectionReader& section, Diagnostics& problems);

}  // namespace plumbline
