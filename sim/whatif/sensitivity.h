// The sensitivities of the iteration time: exact derivatives, and how far they hold.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

enum class SensitivityKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  update,
  latency,    ///< A link's latency.
  bandwidth,  ///< The time that a link's bytes take.
  overhead,   ///< The overhead per iteration.
};

/// A time that one could try to make shorter: that of one kind of op of one stage, or of the
/// transfers over one link. Let x be the share by which it is made shorter (a bandwidth grows to 1
/// / (1 - x) of itself). The iteration time T(x) is piecewise linear: it falls by gain_s for each
/// whole of x until another path takes over.
struct Sensitivity {
  SensitivityKind kind = SensitivityKind::forward;
  bool every = false;  ///< For all stages, or all links, together.
  StageId stage;       ///< For an op only.
  DeviceId from;       ///< For a link only: the sender.
  DeviceId to;
  /// The number of links that are changed together: those in the same place of all copies of a
  /// pipeline, or those of a ring between the copies. One of them alone would have to wait for the
  /// others.
  std::uint32_t links = 1;
  Duration now{};         ///< The time of one op or transfer; the longest of several.
  double gain_s = 0;      ///< -dT/dx at x = 0: the part of T in it on every longest path.
  double derivative = 0;  ///< dT/d(now): how many are in a row in T, per iteration.
  /// The x until which T falls at that rate; 1 = down to nothing. Nullopt = not computed.
  std::optional<double> until;
  /// T if it takes no time at all. Nullopt = not computed.
  std::optional<double> min_s;

  double gain_until_s() const { return gain_s * until.value_or(0); }
};

/// The sensitivities of a prediction.
struct Sensitivities {
  std::vector<Sensitivity>
      all;  ///< By gain_s, the greatest first; those without any gain come last.
  /// If true, the derivatives are those of the longest path. If false, rates change during the run,
  /// or the time is that between two ends on a device (without a flush): the derivatives are what
  /// steps of up to a tenth save in simulations, and `until` is not known.
  bool exact = true;
};

/// The number of sensitivities that get `until` and `min_s`: those of every stage or link, then the
/// greatest.
inline constexpr std::size_t kSensitivitiesFollowed = 16;

/// The sensitivities of every F, B, I, W and U of every stage, of every link that takes time, and
/// of the overhead per iteration. Left derivatives (what making it shorter gives) take one pass
/// over the graph for 16 sensitivities at a time. The times are multiplied by a large number, and
/// those of the sensitivity are made one less. So the end of the run gives both its time and the
/// fewest of them on a longest path.
Sensitivities sensitivities(const Outcome& outcome);

}  // namespace plumbline
