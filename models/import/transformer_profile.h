// A profile of a transformer, with nothing measured: FLOPs and bytes in the place of times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/transformer_layers.h"
#include "models/profile/profile_writer.h"

namespace plumbline {

/// What is told of the model as a whole, whatever its groups of devices share.
struct TransformerTotals {
  SaturatingCount parameters;
  SaturatingCount active_parameters;  ///< Of one token; fewer than all where there are experts.
  /// Of one micro-batch, in whole numbers up to 2^53; infinite where one layer has more.
  double forward_flops = 0;
  double backward_flops = 0;
};

/// A model to be written as a profile, and how its numbers came about.
struct TransformerProfile {
  Model model;  ///< No layer is timed, every one has work.
  ProfileComments comments;
  TransformerTotals totals;
  std::vector<std::string> notes;      ///< What the numbers stand for, and what they do not cover.
  std::vector<std::string> uncounted;  ///< Of these, what of the model they do not cover.
};

/// The profile of `shape`, called `name`. Errors: groups that do not divide what they
/// have to, a sequence beyond the table of positions, numbers that no profile may hold.
Result<TransformerProfile> transformer_profile(const std::string& name,
                                               const TransformerShape& shape,
                                               const TransformerOptions& options);

}  // namespace plumbline
