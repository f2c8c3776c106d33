// How far the ops of a real run are from their predicted times, as a distribution.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"

namespace plumbline {

class SectionReader;

/// Every op draws a factor for itself, from the seed, the run and its place in the run: the same
/// noise gives the same times on every machine.
struct Noise {
  double spread = 0;  ///< Relative standard deviation of a log-normal factor of mean 1.
  double straggler_probability = 0;
  double straggler_factor = 2;  ///< How many times longer a straggling op takes.
  std::uint64_t seed = 1;
};

/// The factor by which the time of an op, node `node` of its run, differs in run number `run`; 1
/// without spread and stragglers.
double noise_factor(const Noise& noise, std::uint32_t run, std::uint32_t node);

/// The noise section of a scenario: what the ops of each sampled run draw.
struct NoiseSection {
  Noise noise;
  std::optional<Mark> measured;  ///< Where the spread of each op is that of the profile.
  std::uint32_t samples = 1000;
};

/// The most runs that are sampled.
inline constexpr std::int64_t kMaxSamples = 1'000'000;

/// The largest spread, and the most times longer that a straggler takes.
inline constexpr double kMaxSpread = 10;
inline constexpr double kMaxFactor = 1000;

/// Reads the section. Adds all that is wrong to the reader's problems.
NoiseSection read_noise_section(SectionReader& section);

}  // namespace plumbline
