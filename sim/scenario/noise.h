// The noise of a real run: the distribution of its ops' times around the predicted times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"

namespace plumbline {

class SectionReader;

/// What is slow now and then: the share of all that is, and how many times longer it takes.
struct Rare {
  double probability = 0;
  double factor = 2;
};

/// The noise of a run. Every op draws its own factor, from the seed, the run and the op's place in
/// the run. Devices and links draw theirs once for a whole run. So the same noise gives the same
/// times on every machine.
struct Noise {
  double spread = 0;         ///< Relative standard deviation of a log-normal factor of mean 1.
  Rare stragglers{};         ///< Of ops.
  double device_spread = 0;  ///< The same as `spread`, of devices.
  Rare slow_devices{};
  Rare slow_links{};  ///< Between two devices, both ways, or network cards.
  std::uint64_t seed = 1;

  /// Whether devices, or links, differ from run to run.
  bool of_devices() const { return device_spread > 0 || slow_devices.probability > 0; }
  bool of_links() const { return slow_links.probability > 0; }
};

/// The factor on the time of an op, node `node` of its run, in run number `run`. It is 1 without
/// spread and stragglers.
double noise_factor(const Noise& noise, std::uint32_t run, std::uint32_t node);

/// The factor on all ops of device number `device` in run number `run`.
double device_factor(const Noise& noise, std::uint32_t run, std::uint32_t device);

/// The factor on the time in which bytes flow over link number `link` in run number `run`.
double link_factor(const Noise& noise, std::uint32_t run, std::uint32_t link);

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
