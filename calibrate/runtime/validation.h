// A prediction compared with a real run of the same schedule: its error and the causes.
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
  off,    ///< Beyond the tolerance, by more than the machine itself changed.
  /// Too few clean iterations, or the noise or the machine's change decides between close and off.
  inconclusive,
};

/// "SAME", "CLOSE", "OFF", "INCONCLUSIVE".
std::string_view name(Verdict verdict);

/// The causes of (predicted - measured), in seconds; the parts add up to it exactly. Measured
/// durations replace the predicted ones in the run, one kind after the other. The run is evaluated
/// again each time.
struct ErrorShares {
  /// The change of the layers' times since the profile was measured. All parts below then count
  /// against the prediction with the times measured now. 0 where the layers were not timed again.
  double profile_s = 0;
  double compute_s = 0;  ///< Ops whose duration differs from the prediction.
  /// Transfers, all-reduces and other nodes that no device computes, whose duration differs. It
  /// counts from when they could begin, without the hand-over that is set for each.
  double transfer_s = 0;
  double hand_over_s = 0;  ///< Ops that began later than possible, beyond the set hand-over.
  double waiting_s = 0;    ///< The rest: the effect of another order of events on shared links.
  /// The cost of recording the trace, where the traced iteration is a second execution of the one
  /// whose time counts. The measured durations above contain it with the opposite sign.
  double telling_s = 0;
};

/// The distance between the predicted and the measured start of each F, B, I and W.
struct StartErrors {
  double median_s = 0;
  double p95_s = 0;
  double max_s = 0;
  std::string worst;  ///< The op with the largest distance.
};

/// The comparison of measured peak memory with the prediction.
enum class MemoryVerdict : std::uint8_t {
  exact,    ///< Equal to the byte.
  ties,     ///< Another order of events that are simultaneous in the prediction: a buffer more.
  order,    ///< Another order of other events; the rules explain the peak from that order.
  differs,  ///< None of these.
};

/// "exact", "ties", "order", "differs".
std::string_view name(MemoryVerdict verdict);

/// A prediction, a real run, and the comparison of the two.
struct Validation {
  Outcome predicted;
  RealRun measured;
  double tolerance = 0.05;
  /// The predicted time of the same run with the layers' times measured beside it.
  std::optional<double> again_s;
  double error = 0;  ///< predicted / measured - 1; negative = predicted too fast.
  ErrorShares shares;
  StartErrors starts;
  /// The share of the measured critical path's time that is critical in the prediction too, on any
  /// of its longest paths.
  double critical_path_agreement = 0;
  std::vector<MemoryVerdict> memory;  ///< One per slot; empty: memory was not measured.
  Verdict verdict = Verdict::inconclusive;

  double predicted_s() const { return predicted.iteration_time_s; }
  double measured_s() const { return measured.outcome.iteration_time_s; }
  /// Whether any iteration was clean. If none was, the measurement and all that follows from it
  /// (error, shares, starts, noise, memory) belong to a disturbed run: reports leave them out.
  bool clean() const { return measured.clean > 0; }
  /// Half the 95 % interval of the measured median, relative; not less than the spread of rounds.
  double noise() const;
  /// The error of again_s; nothing where that is unknown.
  std::optional<double> again_error() const;
  /// The error that the verdict judges: again_error(), else `error`.
  double own_error() const { return again_error().value_or(error); }
  /// The change of this machine since it was calibrated: the run's time predicted with the layers'
  /// times measured now / with the profile's, - 1. Positive = the machine has become slower.
  /// Nothing where that is unknown.
  std::optional<double> machine_change() const;
  /// The worst of all devices; nothing where memory was not measured.
  std::optional<MemoryVerdict> memory_verdict() const {
    if (memory.empty()) return std::nullopt;
    return *std::max_element(memory.begin(), memory.end());
  }
};

/// Compares the two. `again` is the same run, predicted with the layers' times measured beside it.
/// Requires: all have the same schedule, so that their graphs have the same nodes.
Validation validate(Outcome predicted, RealRun measured, double tolerance,
                    const Outcome* again = nullptr);

/// One of several validations: the overrides that make it, and its result.
struct ValidationPoint {
  std::vector<std::string> overrides;  ///< Only those that differ from point to point.
  Validation validation;
};

/// How well the order of several runs, by time per sample, was predicted.
struct Ranking {
  std::size_t pairs = 0;  ///< Pairs of runs that both have a clean iteration.
  /// Pairs whose predicted times differ by less than 0.1 %: the prediction chooses neither.
  std::size_t equal = 0;
  /// Of the other pairs: those whose measured times differ by no more than their noise.
  std::size_t ties = 0;
  std::size_t right = 0;  ///< Of the rest: predicted in the measured order.
  std::size_t wrong = 0;  ///< Predicted in the other order.

  /// (right - wrong) / (right + wrong); nothing where none is left (Kendall 1938).
  std::optional<double> tau() const;
};

Ranking rank(const std::vector<ValidationPoint>& points);

}  // namespace plumbline
