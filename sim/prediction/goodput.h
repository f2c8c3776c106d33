// The goodput of a training that fails now and then: closed forms, and sampled trainings.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace plumbline {

inline constexpr double kSecondsOfDay = 86'400;

/// A job that fails at random instants, a Poisson process. It saves a checkpoint after every so
/// many iterations, and starts again from the last one that is written whole. All in seconds.
struct FailingJob {
  double iteration_s = 0;     ///< More than 0.
  double failures_per_s = 0;  ///< Of the whole job; more than 0.
  double pause_s = 0;         ///< Training stands still for a checkpoint.
  double write_s = 0;         ///< From the end of the pause until the checkpoint counts.
  double restart_s = 0;  ///< From a failure until training goes on; a failure in it begins it anew.
};

/// The shares of all time, which add up to 1, and what they come from.
struct Goodput {
  double fraction = 1;             ///< Iterations that are kept.
  double checkpoint_fraction = 0;  ///< Pauses for checkpoints that are kept.
  double lost_fraction = 0;        ///< Iterations and pauses that a failure undid.
  double restart_fraction = 0;
  std::int64_t iterations = 1;   ///< Between two checkpoints.
  bool is_best = false;          ///< No other number of iterations has more goodput.
  bool waits_for_write = false;  ///< Fewer iterations were wanted, but take less than a write.
  FailingJob job{};

  /// The training between two checkpoints, in seconds.
  double interval_s() const { return static_cast<double>(iterations) * job.iteration_s; }
  /// What a failure undoes, on average over all of them, also those that hit a restart and undo
  /// nothing.
  double lost_s() const { return lost_fraction / job.failures_per_s; }
};

/// The expected goodput with a checkpoint after every `iterations`. With T = iterations x
/// iteration, rate l, pause d, write w, restart r: l T e^(-l (r + w)) / (e^(l (T + d)) - 1). It is
/// the reciprocal of Daly's expected time (A higher order estimate of the optimum checkpoint
/// interval for restart dumps, 2006, equation 13) where w = 0. Requires: T >= w.
double goodput_fraction(const FailingJob& job, std::int64_t iterations);

/// The fewest iterations between two checkpoints, so that one is written before the next begins.
std::int64_t least_iterations(const FailingJob& job);

/// The number of iterations between checkpoints with the most goodput. The formula has one peak,
/// where T = M (1 - e^(-(T + d) / M)), M = 1 / l; the whole number on one of its sides is the best.
std::int64_t best_iterations(const FailingJob& job);

/// The goodput and its shares. `iterations` between checkpoints: nothing = the best number; fewer
/// than least_iterations() are raised to it, and more than the `work` of the whole training, if
/// that is known, are lowered to it.
Goodput goodput_of(const FailingJob& job, std::optional<std::int64_t> iterations,
                   std::optional<std::int64_t> work = std::nullopt);

/// Below this goodput, a training counts as one that never ends.
inline constexpr double kLeastGoodput = 1e-3;

/// The best interval between checkpoints by the approximations sqrt(2 d M) (Young, A first order
/// approximation to the optimum checkpoint interval, 1974) and its second order (Daly 2006,
/// equation 37), in seconds of training.
double young_interval_s(const FailingJob& job);
double daly_interval_s(const FailingJob& job);

/// The same job in whole nanoseconds.
struct TickingJob {
  std::int64_t iteration = 1, pause = 0, write = 0, restart = 0;

  static TickingJob of(const FailingJob& job);
};

/// One training from its first iteration to the end of its last.
struct SampledTraining {
  std::int64_t time = 0;      ///< In nanoseconds.
  std::int64_t failures = 0;  ///< Those during restarts included.
  std::int64_t lost = 0;      ///< Iterations, also begun ones, that had to be done again; in
                              ///< nanoseconds, with the pauses among them.
  std::int64_t restarts = 0;  ///< Time between failures and the training after them.
  bool ends = true;           ///< False: it was given up after 250 years.

  friend bool operator==(const SampledTraining&, const SampledTraining&) = default;
};

/// Runs a training of `work` iterations. `next_gap()` gives the time from one failure to the next,
/// in nanoseconds. A failure at the very end of the training, a write or a restart comes too late.
SampledTraining run_training(const TickingJob& job, std::int64_t iterations, std::int64_t work,
                             const std::function<std::int64_t()>& next_gap);

/// Many trainings of `work` iterations each.
struct SampledGoodput {
  std::int64_t work = 0;
  std::vector<double> days;  ///< What each of them took, ascending.
  double failures = 0;       ///< In one of them, on average.

  /// The days that `share` of the trainings do not exceed: the nearest rank. `share` in [0, 1].
  double at(double share) const;
};

/// Samples up to `samples` trainings; fewer if they would have more than 20 million failures in
/// all. Nothing where one takes more than a century or fails more than a million times on average,
/// where a pause, a write or a restart takes more than 30 days, or where one of them has not ended
/// after 250 years.
std::optional<SampledGoodput> sample_goodput(const Goodput& goodput, std::int64_t work,
                                             std::uint32_t samples, std::uint64_t seed);

}  // namespace plumbline
