// The waves of an issue order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "schedules/order/schedule.h"

namespace plumbline {

/// Whether an op ends its micro-batch on its stage, and makes gradients of its weights.
constexpr bool ends_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_weight;
}

/// Calls `visit(begin, end)` for each wave: a range of the issue order.
template <class Visit>
void each_wave(const Schedule& schedule, Visit&& visit) {
  for (std::size_t wave = 0; wave < schedule.waves.size(); ++wave) {
    visit(schedule.waves[wave], wave + 1 < schedule.waves.size() ? schedule.waves[wave + 1]
                                                                 : schedule.issue_order.size());
  }
}

}  // namespace plumbline
