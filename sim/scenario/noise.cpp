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

void read_spread(SectionReader& section, NoiseSection& read) {
  const YamlNode* node = section.child("spread");
  if (node && node->kind == YamlNode::Kind::scalar && node->text == "measured") {
    read.measured = node->mark;
  } else if (auto spread = section.real("spread")) {
    read.noise.spread = spread->value;
  }
}

void read_stragglers(SectionReader& noise, NoiseSection& read) {
  auto section = noise.section("stragglers");
  if (!section) return;
  section->require("probability", "the share of ops that take longer");
  if (auto probability = section->real("probability"))
    read.noise.straggler_probability = probability->value;
  if (auto factor = section->real("factor")) {
    read.noise.straggler_factor = factor->value;
    if (factor->value < 1) {
      section->error(factor->mark,
                     fmt::format("noise.stragglers.factor is {}, below 1", factor->value),
                     "a straggler takes so many times longer");
    }
  }
  section->finish();
}

}  // namespace

double noise_factor(const Noise& noise, std::uint32_t run, std::uint32_t node) {
  const std::uint64_t place = std::uint64_t{run} << 32U | node;
  double factor = 1;
  if (noise.spread > 0) {
    const double variance = std::log1p(noise.spread * noise.spread);
    factor = std::exp(std::sqrt(variance) * random_normal(noise.seed, place) - variance / 2);
  }
  if (noise.straggler_probability > 0 &&
      random_uniform(noise.seed + 1, place) < noise.straggler_probability) {
    factor *= noise.straggler_factor;
  }
  return factor;
}

NoiseSection read_noise_section(SectionReader& section) {
  NoiseSection read;
  read_spread(section, read);
  read_stragglers(section, read);
  if (auto seed = section.count("seed")) read.noise.seed = static_cast<std::uint64_t>(seed->value);
  if (auto samples = section.count("samples"))
    read.samples = static_cast<std::uint32_t>(samples->value);
  section.finish();
  return read;
}

}  // namespace plumbline
