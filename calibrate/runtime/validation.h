// A prediction beside a real run of the same schedule: how far off it was, and why.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/runtime/real_run.h"

namespace plumbline {

enum class Verdict : std::uint8_t {
  same,   ///< Within one part in a hundred, or within the measurement's own noise.
  close,  ///< Within the tolerance.
  off,    ///< Beyond it, and by more than the machine itself has changed.
  /// Too few clean iterations, or the noise or the machine's change decides between close and off.
  inconclusive,
};

/// "SAME", "CLOSE", "OFF", "INCONCLUSIVE".
std::string_view name(Verdict verdict);

/// What of (predicted - measured) comes from where, in seconds; the parts add up to it exactly.
/// Measured lengths are put into the predicted run one kind after the other, and the run is
/// evaluated again each time.
struct ErrorShares {
  /// The profile's times are not those of now; all below is then counted against what the times of
  /// now predict. 0 where the layers were not timed again.
  double profile_s = 0;
  double compute_s = 0;  ///< Ops took another time than predicted.
  /// Transfers, all-reduces and what else no device computes did, from when they could begin on,
  /// but for the hand-over that is set for each.
  double transfer_s = 0;
  double hand_over_s = 0;  ///< Ops began later than they could have, and than is set for that.
  double waiting_s = 0;    ///< The rest: what the order of events changed on shared links.
  /// What it took to tell all that, where the iteration that is looked at was executed once more
  /// than the one whose time counts: it lies in the measured lengths above, of the other sign.
  double telling_s = 0;
};

/// How far the predicted start of each F, B, I and W is from the measured one.
struct StartErrors {
  double median_s = 0;
  double p95_s = 0;
  double max_s = 0;
  std::string worst;  ///< The op with the largest.
};

/// How measured peak memory compares with the prediction.
enum class MemoryVerdict : std::uint8_t {
  exact,    ///< To the byte.
  ties,     ///< What the prediction puts at one instant came in another order: a buffer more.
  order,    ///< More came in another order; of the measured order the same rules say what was held.
  differs,  ///< None of these.
};

/// "exact", "ties", "order", "differs".
std::string_view name(MemoryVerdict verdict);

/// A prediction, a run, and what lies between them.
struct Validation {
  Outcome predicted;
  RealRun measured;
  double tolerance = 0.05;
  /// What the same run takes by the layers' times at the time of the run.
  std::optional<double> again_s;
  double error = 0;  ///< predicted / measured - 1; negative = predicted too fast.
  ErrorShares shares;
  StartErrors starts;
  /// The share of the measured critical path's time that lies in what is critical in the
  /// prediction too: on any of its longest paths.
  double critical_path_agreement = 0;
  std::vector<MemoryVerdict> memory;  ///< Of each slot.
  Verdict verdict = Verdict::inconclusive;

  double predicted_s() const { return predicted.iteration_time_s; }
  double measured_s() const { return measured.outcome.iteration_time_s; }
  /// Whether any iteration was clean. Where none was, what was measured and all that follows from
  /// it (error, shares, starts, noise, memory) is that of a disturbed run: reports do not tell it.
  bool clean() const { return measured.clean > 0; }
  /// Half the 95 % interval of the measured median, relative; not less than the spread of rounds.
  double noise() const;
  /// The error against again_s; nothing where that is not known.
  std::optional<double> again_error() const;
  /// The prediction's own error, which the verdict is about: again_error(), else `error`.
  double own_error() const { return again_error().value_or(error); }
  /// By how much this machine has changed since it was calibrated: the run by the layers' times of
  /// now / by the profile's - 1, positive = it has become slower; nothing where that is not known.
  std::optional<double> machine_change() const;
  /// The worst of all devices.
  MemoryVerdict memory_verdict() const { return *std::max_element(memory.begin(), memory.end()); }
};

/// Compares. `again` is the same run, predicted from the layers' times at the time of the run.
/// Requires: all are of the same schedule, so that their graphs have the same nodes.
Validation validate(Outcome predicted, RealRun measured, double tolerance,
                    const Outcome* again = nullptr);

/// One of several validations: the overrides that make it, and what came out.
struct ValidationPoint {
  std::vector<std::string> overrides;  ///< Those that differ from point to point.
  Validation validation;
};

/// Whether the order of several runs, by time for a sample, was predicted.
struct Ranking {
  std::size_t pairs = 0;  ///< Of runs of which something clean was measured.
  std::size_t ties = 0;   ///< The measured times differ by no more than their noise.
  std::size_t right = 0;  ///< Of the others: predicted in the measured order.
  std::size_t wrong = 0;  ///< Predicted in the other order, or as equal.

  /// (right - wrong) / (right + wrong); nothing where all are ties (Kendall 1938).
  std::optional<double> tau() const;
};

Ranking rank(const std::vector<ValidationPoint>& points);

}  // namespace plumbline
