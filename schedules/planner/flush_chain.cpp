// Sums and maxima of three values.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/flush_chain.h"

#include <algorithm>

namespace plumbline {

FlushChain across(const FlushChain& chain, const FlushLink& link) {
  const double back = chain.in_two ? link.load : link.transfer;
  return {chain.round_trip + 2 * link.transfer,
          std::max(chain.span + 2 * link.transfer, link.load + chain.round_trip + back),
          chain.reduced + link.transfer, chain.update, chain.in_two};
}

double idle(const FlushStage& stage, double round_trip) {
  const double filling = std::max(0.0, round_trip - (stage.window - 1) * stage.forward);
  const double emptying = std::max(0.0, round_trip - (stage.window - 1) * stage.backward);
  return stage.own > stage.window ? filling + emptying : std::max(filling, emptying);
}

FlushChain with_front(const FlushChain& behind, const FlushStage& stage) {
  const double both = stage.forward + stage.backward;
  FlushChain chain;
  chain.in_two = behind.in_two && stage.window >= stage.own && stage.is_alone;
  chain.round_trip = both + behind.round_trip;
  chain.span = std::max({stage.work() + idle(stage, behind.round_trip), both + behind.span,
                         stage.windows() * chain.round_trip});
  chain.reduced = std::max(chain.span + stage.reduce, stage.forward + behind.reduced);
  chain.update = std::max(stage.update, behind.update);
  return chain;
}

}  // namespace plumbline
