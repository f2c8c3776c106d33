// A pass over a layer in seconds: computing, and sending within the device's group.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/quantity.h"
#include "base/units.h"

namespace plumbline {

/// The parts of a pass, in seconds; its time is own_s + sent_s.
struct PassParts {
  double own_s = 0;   ///< It computes, or moves in its memory.
  double sent_s = 0;  ///< It sends, beyond what its computing hides.
  double free_s = 0;  ///< The part of own_s that hides nothing.

  /// Nothing where that is longer than kLargestQuantity.
  std::optional<Duration> time() const {
    const double time_ns = (own_s + sent_s) * 1e9;
    if (time_ns > static_cast<double>(kLargestQuantity)) return std::nullopt;
    return round_up(time_ns);
  }
  double share(double part_s) const { return part_s > 0 ? part_s / (own_s + sent_s) : 0; }
  double sent_share() const { return share(sent_s); }

  friend PassParts operator+(const PassParts& a, const PassParts& b) {
    return {a.own_s + b.own_s, a.sent_s + b.sent_s, a.free_s + b.free_s};
  }
};

/// The parts of all passes over a layer.
struct LayerParts {
  PassParts forward, input, weights;
  PassParts again;       ///< Selective recomputation.
  double skipped_s = 0;  ///< The part of the forward that no recomputation runs again.
};

}  // namespace plumbline
