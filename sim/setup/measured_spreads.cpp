// Quartiles of layers as spreads of ops.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/measured_spreads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "sim/graph/op_graph.h"
#include "sim/setup/split_backward.h"

namespace plumbline {
namespace {

/// Mean and variance of a time that is a sum.
struct Spread {
  double mean = 0;
  double variance = 0;

  void add(Duration mean_time, double deviation) {
    mean += static_cast<double>(mean_time.count());
    variance += deviation * deviation;
  }
  void add(const Spread& other) {
    mean += other.mean;
    variance += other.variance;
  }
  double relative() const { return mean > 0 ? std::sqrt(variance) / mean : 0; }
};

/// The distance of a normal distribution's quartiles in standard deviations: 2 x 0.6745.
constexpr double kQuartilesApart = 1.349;

/// The relative standard deviation of a measured time; 0 where its quartiles are not known.
double relative_spread(const MeasuredTime& time) {
  if (!time.q1 || !time.q3 || time.mean.count() == 0) return 0;
  return static_cast<double>((*time.q3 - *time.q1).count()) / kQuartilesApart /
         static_cast<double>(time.mean.count());
}

/// The measurement at the nearest batch size. Its spreads are used unchanged.
const Measurement& nearest(const Profile& profile, std::int64_t size) {
  return *std::min_element(profile.measurements.begin(), profile.measurements.end(),
                           [&](const Measurement& a, const Measurement& b) {
                             return std::abs(a.batch.value_or(size) - size) <
                                    std::abs(b.batch.value_or(size) - size);
                           });
}

}  // namespace

std::vector<OpSpreads> measured_spreads(const TrainingSetup& setup) {
  std::vector<LayerCosts> measured = nearest(setup.model->profile, setup.micro_batch_size).layers;
  split_backwards(setup, measured);
  std::vector<OpSpreads> stages;
  const std::vector<Stage>& all = setup.partition.stages;
  for (std::size_t s = 0; s < all.size(); ++s) {
    const Stage& stage = all[s];
    std::array<Spread, kOpKinds> ops;
    for (std::size_t place = 0; place < stage.layers.size(); ++place) {
      const LayerCosts& layer = measured[stage.layers[place].value];
      const auto add = [&](ActivityKind kind, const MeasuredTime& time) {
        ops[static_cast<std::size_t>(kind)].add(
            time.mean, relative_spread(time) * static_cast<double>(time.mean.count()));
      };
      add(ActivityKind::forward, layer.forward);
      add(ActivityKind::backward, layer.backward);
      add(ActivityKind::backward_input, layer.split ? layer.split->input : layer.backward);
      if (layer.split) add(ActivityKind::backward_weight, layer.split->weight);
      if (setup.rules.recompute == Recompute::none) continue;
      if (!setup.recomputes(s, place)) continue;
      add(ActivityKind::backward, layer.again());
      add(ActivityKind::backward_input, layer.again());
    }
    for (const LayerId id : stage.layers) {
      const MeasuredTime& update = measured[id.value].update;
      ops[kOpKinds - 1].add(update.mean,
                            relative_spread(update) * static_cast<double>(update.mean.count()));
    }
    OpSpreads spreads{};
    for (std::size_t kind = 0; kind < kOpKinds; ++kind) spreads[kind] = ops[kind].relative();
    stages.push_back(spreads);
  }
  return stages;
}

}  // namespace plumbline
