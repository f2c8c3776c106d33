// Two sums for each layer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/kernels/walked_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "base/bug.h"
#include "base/table.h"
#include "models/import/transformer_profile.h"
#include "models/kernels/launches.h"

namespace plumbline {
namespace {

constexpr KernelPass kPasses[] = {KernelPass::forward, KernelPass::input, KernelPass::weights};

/// Kernels without a measured time.
struct Missing {
  std::set<KernelKey> not_measured;
  bool has_windows = false;  ///< Attention with a window, which no table holds.
};

/// The time of the kernels that were measured, in seconds.
double measured_seconds(const LayerOps& ops, const KernelModel& kernels, Missing& missing) {
  double seconds = 0;
  for (const KernelPass pass : kPasses) {
    for (const Kernel& kernel : launches(ops, pass, kernels.stack())) {
      if (std::holds_alternative<CollectiveKernel>(kernel)) continue;
      const KernelTime time = kernels.time_of(kernel);
      if (time.origin == KernelOrigin::measured) {
        seconds += time.alone();
      } else if (const auto key = key_of(kernel, Accumulation::none)) {
        missing.not_measured.insert(*key);
      } else {
        missing.has_windows = true;
      }
    }
  }
  return seconds;
}

}  // namespace

double WalkedBlocks::walked_s() const {
  return std::accumulate(blocks.begin(), blocks.end(), 0.0,
                         [](double sum, const WalkedLayer& one) { return sum + one.walked_s; });
}

double WalkedBlocks::alone_s() const {
  return std::accumulate(blocks.begin(), blocks.end(), 0.0,
                         [](double sum, const WalkedLayer& one) { return sum + one.alone_s; });
}

Result<std::vector<double>> seconds_alone(const TransformerShape& shape, TransformerOptions options,
                                          const KernelModel& kernels) {
  options.split_blocks = true;
  const auto profile = transformer_profile("", shape, options);
  if (!profile) return profile.problems();
  std::vector<double> seconds;
  Missing missing;
  const std::vector<LayerCosts>& layers = profile->model.profile.measurements.front().layers;
  for (std::size_t i = 1; i < layers.size(); ++i) {  // behind the embedding
    PLUMBLINE_CHECK(layers[i].ops != nullptr, i);
    seconds.push_back(measured_seconds(*layers[i].ops, kernels, missing));
  }
  if (missing.has_windows)
    return input_error({}, "no table holds attention with a window, which these layers have");
  if (!missing.not_measured.empty()) {
    return input_error({}, fmt::format("{} of the layers that are walked {} no measured time",
                                       plural(missing.not_measured.size(), "kernel"),
                                       missing.not_measured.size() == 1 ? "has" : "have"));
  }
  return seconds;
}

Result<WalkedBlocks> walk_blocks(CalibrationDevices& devices, const Network& network,
                                 const TransformerShape& shape, const TransformerOptions& options,
                                 const KernelModel& kernels, double seconds,
                                 const std::function<bool()>& interrupted) {
  const auto alone = seconds_alone(shape, options, kernels);
  if (!alone) return alone.problems();
  CalibrationOptions walk;
  walk.batches = {options.batch};
  walk.min_seconds = std::min(walk.min_seconds, seconds);
  walk.max_seconds = seconds;
  walk.slowdown = false;
  walk.in_flight = false;
  walk.interrupted = interrupted;
  const auto measured = measure_layers(devices, network, {}, walk);
  if (!measured) return measured.problems();
  if (measured->interrupted) return input_error({}, "the walk was interrupted");
  const auto calibration = calibration_of(devices, network, {}, walk, *measured);
  if (!calibration) return calibration.problems();
  const std::vector<LayerCosts>& layers = calibration->model.profile.measurements.front().layers;
  PLUMBLINE_CHECK(layers.size() == alone->size() + 1, layers.size(), alone->size());
  WalkedBlocks walked;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const double time = static_cast<double>(layers[i].forward.mean.count()) +
                        static_cast<double>(layers[i].backward.mean.count());
    walked.blocks.push_back({network.layers[i].name, time * 1e-9, (*alone)[i - 1]});
  }
  walked.head = walked.blocks.back();
  walked.blocks.pop_back();
  return walked;
}

}  // namespace plumbline
