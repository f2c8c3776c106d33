// Failures of a constant rate, in closed form and one by one.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/statistics.h"

namespace plumbline {
namespace {

constexpr double kNanoseconds = 1e9;
constexpr double kLongest = 100 * 365.25 * kSecondsOfDay;
constexpr double kLongestStop = 30 * kSecondsOfDay;
constexpr double kMostFailures = 1e6;
constexpr double kMostFailuresInAll = 2e7;

/// The x in [0, 1] with x = 1 - e^(-(x + pause)): the best interval over the mean time between
/// failures. What is sought is where a function that only grows becomes positive.
double best_share(double pause) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (middle + std::expm1(-(middle + pause)) < 0 ? low : high) = middle;
  }
  return high;
}

std::int64_t in_range(double count) {
  constexpr double most = 1e15;
  return static_cast<std::int64_t>(std::clamp(count, 1.0, most));
}

}  // namespace

double goodput_fraction(const FailingJob& job, std::int64_t iterations) {
  const double rate = job.failures_per_s;
  const double interval = static_cast<double>(iterations) * job.iteration_s;
  return rate * interval * std::exp(-rate * (job.restart_s + job.write_s)) /
         std::expm1(rate * (interval + job.pause_s));
}

std::int64_t least_iterations(const FailingJob& job) {
  return in_range(std::ceil(job.write_s / job.iteration_s));
}

std::int64_t best_iterations(const FailingJob& job) {
  const double best = best_share(job.pause_s * job.failures_per_s) / job.failures_per_s;
  const std::int64_t below = in_range(std::floor(best / job.iteration_s));
  return goodput_fraction(job, below + 1) > goodput_fraction(job, below) ? below + 1 : below;
}

Goodput goodput_of(const FailingJob& job, std::optional<std::int64_t> iterations,
                   std::optional<std::int64_t> work) {
  Goodput goodput;
  goodput.job = job;
  const std::int64_t least = least_iterations(job);
  const std::int64_t most = work.value_or(std::numeric_limits<std::int64_t>::max());
  const std::int64_t best = best_iterations(job);
  const auto allowed = [&](std::int64_t count) { return std::min(std::max(count, least), most); };
  goodput.iterations = allowed(iterations.value_or(best));
  goodput.is_best = goodput.iterations == allowed(best);
  goodput.waits_for_write = iterations.value_or(best) < least && goodput.iterations == least;
  goodput.fraction = goodput_fraction(job, goodput.iterations);
  goodput.checkpoint_fraction = goodput.fraction * job.pause_s / goodput.interval_s();
  // A job trains for the share of time in which no restart is under way.
  const double trains = std::exp(-job.failures_per_s * job.restart_s);
  goodput.restart_fraction = 1 - trains;
  goodput.lost_fraction = std::max(0.0, trains - goodput.fraction - goodput.checkpoint_fraction);
  return goodput;
}

double young_interval_s(const FailingJob& job) {
  return std::sqrt(2 * job.pause_s / job.failures_per_s);
}

double daly_interval_s(const FailingJob& job) {
  const double mean = 1 / job.failures_per_s;
  if (job.pause_s >= 2 * mean) return mean;
  const double half = job.pause_s / (2 * mean);
  return young_interval_s(job) * (1 + std::sqrt(half) / 3 + half / 9) - job.pause_s;
}

TickingJob TickingJob::of(const FailingJob& job) {
  const auto ticks = [](double seconds) { return std::llround(seconds * kNanoseconds); };
  return {std::max<std::int64_t>(1, ticks(job.iteration_s)), ticks(job.pause_s), ticks(job.write_s),
          ticks(job.restart_s)};
}

SampledTraining run_training(const TickingJob& job, std::int64_t iterations, std::int64_t work,
                             const std::function<std::int64_t()>& next_gap) {
  const std::int64_t cycle = iterations * job.iteration + job.pause;
  SampledTraining training;
  constexpr std::int64_t most = std::int64_t{250} * 366 * 86'400 * 1'000'000'000;
  std::int64_t saved = 0;  // the iterations that the last written checkpoint holds
  std::int64_t gap = next_gap();
  while (true) {
    // The training goes on from there. Nothing is saved behind the last iteration.
    const std::int64_t left = work - saved;
    const std::int64_t rest = left * job.iteration + (left - 1) / iterations * job.pause;
    if (gap >= rest) {
      training.time += rest;
      return training;
    }
    const std::int64_t written = gap >= job.write ? (gap - job.write) / cycle : 0;
    saved += written * iterations;
    if (gap > most - training.time) {
      training.ends = false;
      return training;
    }
    training.time += gap;
    training.lost += gap - written * cycle;
    // A restart is over once none has failed for so long.
    for (++training.failures, gap = next_gap(); gap < job.restart && training.time < most;
         gap = next_gap()) {
      ++training.failures;
      training.time += gap;
      training.restarts += gap;
    }
    training.time += job.restart;
    training.restarts += job.restart;
    gap -= job.restart;
  }
}

double SampledGoodput::at(double share) const { return nearest_rank(days, share); }

std::optional<SampledGoodput> sample_goodput(const Goodput& goodput, std::int64_t work,
                                             std::uint32_t samples, std::uint64_t seed) {
  const FailingJob& job = goodput.job;
  const double expected_s = static_cast<double>(work) * job.iteration_s / goodput.fraction;
  const double failures = expected_s * job.failures_per_s;
  if (!(expected_s < kLongest) || failures > kMostFailures || work < 1) return std::nullopt;
  if (std::max({job.pause_s, job.write_s, job.restart_s}) > kLongestStop) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(
      std::min<double>(samples, std::max(1.0, kMostFailuresInAll / std::max(failures, 1.0))));
  if (count == 0) return std::nullopt;
  const TickingJob ticking = TickingJob::of(job);
  SampledGoodput sampled;
  sampled.work = work;
  const std::int64_t iterations = std::min(goodput.iterations, sampled.work);
  sampled.days.reserve(count);
  for (std::uint32_t run = 0; run < count; ++run) {
    std::uint32_t place = 0;
    const auto next_gap = [&] {
      const double uniform = random_uniform(seed, std::uint64_t{run} << 32U | place++);
      const double gap_s = -std::log1p(-uniform) / job.failures_per_s;
      return std::llround(std::min(gap_s, 2 * kLongest) * kNanoseconds);
    };
    const SampledTraining training = run_training(ticking, iterations, sampled.work, next_gap);
    if (!training.ends) return std::nullopt;
    sampled.days.push_back(static_cast<double>(training.time) / kNanoseconds / kSecondsOfDay);
    sampled.failures += static_cast<double>(training.failures) / count;
  }
  std::sort(sampled.days.begin(), sampled.days.end());
  return sampled;
}

}  // namespace plumbline
