// Normal numbers from a seed.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/initial_parameters.h"

#include <cmath>
#include <string>
#include <utility>
#include <variant>

namespace plumbline {
namespace {

/// SplitMix64 (Steele, Lea and Flood 2014): a bijection whose result shows no order of its
/// argument.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Numbers of mean 0 and variance 1 from a seed. Each is the sum of twelve uniform ones, which is
/// close to normal. Unlike a method with log and cos, it gives the same bits on every machine.
class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t seed) : state_(seed) {}

  double next() {
    // Twelve numbers of 32 bits, each at the middle of its step: all exact.
    std::int64_t sum = 0;
    for (int i = 0; i < 6; ++i) {
      state_ += 0x9e3779b97f4a7c15ULL;
      const std::uint64_t bits = mixed(state_);
      sum += static_cast<std::int64_t>(bits >> 32) + static_cast<std::int64_t>(bits & 0xffffffffU);
    }
    return std::ldexp(static_cast<double>(sum + 6), -32) - 6;
  }

 private:
  std::uint64_t state_;
};

/// The standard deviation of a matrix, a kernel or a table.
double starting_deviation(const Shape& shape, bool table) {
  if (table) return 0.02;
  const std::int64_t inputs = shape.elements() / shape.extents.front();
  return 1 / std::sqrt(static_cast<double>(inputs));
}

}  // namespace

std::vector<Values> initial_parameters(const NetworkLayer& layer, std::uint64_t seed) {
  const bool table = std::holds_alternative<Embedding>(layer.settings);
  std::vector<Values> values;
  values.reserve(layer.parameters.size());
  for (const Parameter& parameter : layer.parameters) {
    // Every parameter has a stream of its own.
    NormalNumbers numbers(mixed(mixed(seed) + values.size()));
    Values value(parameter.shape.elements(), 0.0);
    const std::string& name = parameter.name;
    if (name.ends_with("scale")) {
      for (double& element : value) element = 1;
    } else if (!name.ends_with("shift") && !name.ends_with("bias")) {
      const double deviation = starting_deviation(parameter.shape, table);
      for (double& element : value) element = deviation * numbers.next();
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace plumbline
