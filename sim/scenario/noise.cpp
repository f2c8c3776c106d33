// Draws noise factors, and reads the noise section.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/noise.h"

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"
#include "base/section_reader.h"

namespace plumbline {
namespace {

/// A log-normal factor of mean 1 and this relative standard deviation.
double spread_factor(double spread, std::uint64_t seed, std::uint64_t place) {
  if (spread <= 0) return 1;
  const double variance = std::log1p(spread * spread);
  return std::exp(std::sqrt(variance) * random_normal(seed, place) - variance / 2);
}

double rare_factor(const Rare& rare, std::uint64_t seed, std::uint64_t place) {
  const bool is_slow = rare.probability > 0 && random_uniform(seed, place) < rare.probability;
  return is_slow ? rare.factor : 1;
}

std::uint64_t place_of(std::uint32_t run, std::uint32_t index) {
  return std::uint64_t{run} << 32U | index;
}

void read_spread(SectionReader& section, NoiseSection& read) {
  const YamlNode* node = section.child("spread");
  if (node && node->kind == YamlNode::Kind::scalar && node->text == "measured") {
    read.measured = node->mark;
  } else if (auto spread = section.real("spread")) {
    read.noise.spread = spread->value;
  }
}

void read_rare(SectionReader& noise, std::string_view key, std::string_view what, Rare& rare) {
  auto section = noise.section(key);
  if (!section) return;
  section->require("probability", fmt::format("the share of {} that take longer", what));
  if (auto probability = section->real("probability")) rare.probability = probability->value;
  if (auto factor = section->real("factor")) {
    rare.factor = factor->value;
    if (factor->value < 1) {
      section->error(factor->mark,
                     fmt::format("noise.{}.factor is {}, below 1", key, factor->value),
                     "what is slow takes so many times longer");
    }
  }
  section->finish();
}

}  // namespace

double noise_factor(const Noise& noise, std::uint32_t run, std::uint32_t node) {
  const std::uint64_t place = place_of(run, node);
  return spread_factor(noise.spread, noise.seed, place) *
         rare_factor(noise.stragglers, noise.seed + 1, place);
}

double device_factor(const Noise& noise, std::uint32_t run, std::uint32_t device) {
  const std::uint64_t place = place_of(run, device);
  return spread_factor(noise.device_spread, noise.seed + 2, place) *
         rare_factor(noise.slow_devices, noise.seed + 3, place);
}

double link_factor(const Noise& noise, std::uint32_t run, std::uint32_t link) {
  return rare_factor(noise.slow_links, noise.seed + 4, place_of(run, link));
}

NoiseSection read_noise_section(SectionReader& section) {
  NoiseSection read;
  read_spread(section, read);
  read_rare(section, "stragglers", "ops", read.noise.stragglers);
  if (auto spread = section.real("device_spread")) read.noise.device_spread = spread->value;
  read_rare(section, "slow_devices", "devices", read.noise.slow_devices);
  read_rare(section, "slow_links", "links", read.noise.slow_links);
  if (auto seed = section.count("seed")) read.noise.seed = static_cast<std::uint64_t>(seed->value);
  if (auto samples = section.count("samples"))
    read.samples = static_cast<std::uint32_t>(samples->value);
  section.finish();
  return read;
}

}  // namespace plumbline
