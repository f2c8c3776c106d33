// The checks of every model that a fuzz target reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "models/profile/profile.h"
#include "tests/fuzz/fuzz.h"

namespace plumbline::fuzz {

/// Prints what is wrong with it, or orders and costs its layers.
inline void use(const Result<Model>& model) {
  if (!model) return use(to_text(model.problems()));
  PLUMBLINE_CHECK(model->graph.topological_order().size() == model->graph.size(),
                  model->graph.size());
  for (const std::int64_t size : {1, 7, 1'000'000}) use(costs_at(model->profile, size).estimated);
}

}  // namespace plumbline::fuzz
