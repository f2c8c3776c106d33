// The two parts of backwards that were given as one time, for orders that run them apart.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/profile/profile.h"
#include "schedules/order/schedule.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// What was assumed of backwards that were given as one time. All 0: nothing was.
struct AssumedSplit {
  std::uint32_t halved = 0;           ///< Layers of which I and W take half each.
  std::uint32_t without_weights = 0;  ///< Layers without parameters: all of the backward is I.

  /// What a reader of the result should know; "" = nothing.
  std::string note() const;
  /// How times were derived that nobody gave; "" = none were.
  std::string estimate() const;
};

/// Gives each layer the I and W that `schedule` runs, where it has W: a layer that gives
/// backward_input and backward_weight keeps them; of one that gives its backward as one time each
/// takes half, W the smaller half of an odd number of ns. A layer without parameters has no W,
/// where it is known which these are: some layer has parameters, or the network is known.
/// Requires: one entry of `layers` for each layer of the model.
AssumedSplit split_backwards(const Scenario& scenario, const Schedule& schedule,
                             std::vector<LayerCosts>& layers);

}  // namespace plumbline
