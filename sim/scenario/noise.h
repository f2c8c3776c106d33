// The noise of a real run: the distribution of its ops' times around the predicted times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"

namespace plumbline {

class SectionReader;

/// The noise of a run. Every op draws its own factor, from the seed, the run and the op's place in
/// the run. So the same noise gives the same times on every machine.
struct Noise {
  double spread = 0;  ///< Relative standard deviation of a log-normal factor of mean 1.
  double straggler_probability = 0;
  double straggler_factor = 2;  ///< The factor by which a straggling op takes longer.
  std::uint64_t seed = 1;
};

/// The factor on the time of an op, node `node` of its run, in run number `run`. It is 1 without
/// spread and stragglers.
double noise_factor(const Noise& noise, std::uint32_t run, std::uint32_t node);

/// The noise section of a scenario.
struct NoiseSection {
  Noise noise;
  std::optional<Mark> measured;  ///< Set if the spread of each op comes from the profile.
  std::uint32_t samples = 1000;
};

/// The largest number of sampled runs.
inline constexpr std::int64_t kMaxSamples = 1'000'000;

/// The largest spread, and the largest factor of a straggler.
inline constexpr double kMaxSpread = 10;
inline constexpr double kMaxFactor = 1000;

/// Reads the section. Adds all errors to the reader's problems.
NoiseSection read_noise_section(SectionReader& section);

}  // namespace plumbline
