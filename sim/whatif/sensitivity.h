// What the iteration time depends on, and by how much: exact derivatives, and how far they hold.
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
  latency,    ///< Of a link.
  bandwidth,  ///< Of a link: the time that its bytes take.
  overhead,   ///< Per iteration.
};

/// A time that one could try to make shorter: of one kind of op of one stage, or of what goes over
/// one link. With x the share by which it is made shorter (a bandwidth grows to 1 / (1 - x) of
/// itself), the iteration time T(x) is piecewise linear: it falls by gain_s for each whole of x
/// until another path takes over.
struct Sensitivity {
  SensitivityKind kind = SensitivityKind::forward;
  bool every = false;  ///< Of all stages, or of all links, together.
  StageId stage;       ///< Of an op.
  DeviceId from;       ///< Of a link.
  DeviceId to;
  /// Links that are moved together: those that the copies of a pipeline have in its place, or that
  /// a ring has between them. One of them alone would have to wait for the others.
  std::uint32_t links = 1;
  Duration now{};         ///< What one op takes, or one transfer; the longest of several.
  double gain_s = 0;      ///< -dT/dx at x = 0: how much of T lies in it on every longest path.
  double derivative = 0;  ///< dT/d(now): how many of them T holds in a row, for an iteration.
  /// Until this x T falls at that rate; 1 = down to nothing. Nothing where it was not looked for.
  std::optional<double> until;
  /// T where it takes no time at all. Nothing where it was not looked for.
  std::optional<double> min_s;

  double gain_until_s() const { return gain_s * until.value_or(0); }
};

/// The sensitivities of a prediction.
struct Sensitivities {
  std::vector<Sensitivity>
      all;  ///< By gain_s, the greatest first; those without any gain come last.
  /// Derivatives are those of the longest path. Where rates change under way they are what steps of
  /// up to a tenth save in simulations instead, and `until` is not known.
  bool exact = true;
};

/// So many of them get `until` and `min_s`: those of every stage or link, then the greatest.
inline constexpr std::size_t kSensitivitiesFollowed = 16;

/// Every F, B, I, W and U of every stage and every link that takes time. Left derivatives (what
/// making it shorter gives) in one pass over the graph for 16 sensitivities at a time: the times
/// are multiplied by a large number and those of the sensitivity made one less, so that the end of
/// the run tells both its time and the fewest of them on a longest path.
Sensitivities sensitivities(const Outcome& outcome);

}  // namespace plumbline
