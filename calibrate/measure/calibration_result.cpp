// The calibration from its samples.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "calibrate/measure/calibration.h"
#include "calibrate/runtime/machine.h"

namespace plumbline {
namespace {

/// A clock that falls below this share is reported.
constexpr double kSteadyClock = 0.97;

double mean_of(const std::vector<double>& all) {
  return static_cast<double>(measured_time(all).mean.count());
}

/// The cost of timing passes of a stage, in ns. Measured times contain it; a run does not.
struct StampTimes {
  double of_pass = 0;   ///< As one piece: half of (F + B - turn).
  double of_layer = 0;  ///< Per layer, in a pass timed layer by layer.
};

/// All 0 where there are no turns: then stamps take no time.
StampTimes stamps_of(const StageSamples& stage) {
  StampTimes stamps;
  const std::vector<double>& turns = stage.piece_or_whole(Pass::turn);
  if (turns.empty()) return stamps;
  double pieces = 0;
  double layers = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (stage.piece_or_whole(pass).empty() || stage.whole(pass).empty()) return stamps;
    pieces += mean_of(stage.piece_or_whole(pass));
    layers += mean_of(stage.whole(pass));
  }
  stamps.of_pass = (pieces - mean_of(turns)) / 2;
  stamps.of_layer =
      stage.layers() > 1
          ? std::max(0.0, (layers - pieces) / 2 / static_cast<double>(stage.layers() - 1))
          : stamps.of_pass;
  return stamps;
}

/// A time without its stamps; at least a tenth of it is left.
double without(double stamps, double time) {
  constexpr double kMinShare = 0.1;
  return std::max(time - stamps, kMinShare * time);
}

/// The times of a stage's layers in one kind of pass, without stamps. They are scaled to the time
/// of the pass as one piece, where that was measured. `first` is the stage's first layer. Only
/// layers with parameters have updates; the time between the stamps of other layers is not one.
std::vector<MeasuredTime> times_of(const Network& network, const StageSamples& stage,
                                   std::size_t first, Pass pass) {
  const StampTimes stamps = stamps_of(stage);
  std::vector<MeasuredTime> times;
  times.reserve(stage.layers());
  std::vector<double> means;
  means.reserve(stage.layers());
  for (std::size_t i = 0; i < stage.layers(); ++i) {
    times.push_back(measured_time(stage.of_layer(pass, i)));
    const bool counts = pass != Pass::update || network.layers[first + i].parameter_count() > 0;
    const auto mean = static_cast<double>(times.back().mean.count());
    means.push_back(counts ? without(stamps.of_layer, mean) : 0);
  }
  if (stage.piece_or_whole(Pass::turn).empty() && stage.piece(pass).empty()) return times;
  const double piece = without(stamps.of_pass, mean_of(stage.piece_or_whole(pass)));
  const std::vector<double> factors = closing_factors(means, piece);
  for (std::size_t i = 0; i < times.size(); ++i) {
    MeasuredTime& time = times[i];
    const auto mean = static_cast<double>(time.mean.count());
    const double factor = mean > 0 ? factors[i] * means[i] / mean : 1;
    const auto close = [&](Duration one) {
      return Duration{std::llround(static_cast<double>(one.count()) * factor)};
    };
    time.mean = close(time.mean);
    for (std::optional<Duration>* one : {&time.median, &time.q1, &time.q3}) {
      if (*one) *one = close(**one);
    }
  }
  return times;
}

Measurement measurement_of(const Network& network, std::int64_t batch,
                           const std::vector<StageSamples>& stages) {
  Measurement measurement;
  measurement.batch = batch;
  measurement.layers.reserve(network.layers.size());
  for (const StageSamples& stage : stages) {
    std::array<std::vector<MeasuredTime>, kAllPasses.size()> times;
    for (const Pass pass : kAllPasses)
      times[static_cast<std::size_t>(pass)] =
          times_of(network, stage, measurement.layers.size(), pass);
    for (std::size_t i = 0; i < stage.layers(); ++i) {
      const NetworkLayer& layer = network.layers[measurement.layers.size()];
      const auto time = [&](Pass pass) { return times[static_cast<std::size_t>(pass)][i]; };
      LayerCosts costs;
      costs.forward = time(Pass::forward);
      costs.backward = time(Pass::backward);
      if (layer.splits)
        costs.split = SplitBackward{time(Pass::backward_input), time(Pass::backward_weight)};
      if (layer.parameter_count() > 0) costs.update = time(Pass::update);
      costs.output = output_bytes(network, layer, batch);
      costs.activation = activation_bytes(network, layer, batch);
      measurement.layers.push_back(costs);
    }
  }
  return measurement;
}

/// Each stage's layers as one piece, without stamps.
std::vector<Block> blocks_of(const std::vector<StageSamples>& stages) {
  std::vector<Block> blocks;
  blocks.reserve(stages.size());
  std::uint32_t next = 0;
  for (const StageSamples& stage : stages) {
    Block block;
    for (std::size_t i = 0; i < stage.layers(); ++i) block.layers.push_back({next++});
    const double stamps = stamps_of(stage).of_pass;
    const auto time = [&](Pass pass) {
      return Duration{std::llround(without(stamps, mean_of(stage.piece_or_whole(pass))))};
    };
    block.forward = time(Pass::forward);
    block.backward = time(Pass::backward);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// The stamps of the stage where they take the most time; nothing where there are no turns.
std::optional<Duration> max_stamps(const std::vector<BatchSamples>& batches) {
  std::optional<Duration> max;
  for (const BatchSamples& samples : batches) {
    for (const StageSamples& stage : samples.stages) {
      if (stage.piece_or_whole(Pass::turn).empty()) continue;
      const Duration one{std::max<std::int64_t>(std::llround(stamps_of(stage).of_pass), 0)};
      max = std::max(max.value_or(Duration{}), one);
    }
  }
  return max;
}

/// The largest relative difference, with its sign, between F or B as one piece and the sum of its
/// layers. Both are without stamps. Nothing where no pass was timed as one piece.
std::optional<double> closure_of(const BatchSamples& samples) {
  std::optional<double> worst;
  for (const StageSamples& stage : samples.stages) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (stage.piece(pass).empty()) continue;
      const StampTimes stamps = stamps_of(stage);
      const auto time = [](double ns) { return Duration{std::llround(ns)}; };
      const double layers = without(stamps.of_layer * static_cast<double>(stage.layers()),
                                    mean_of(stage.whole(pass)));
      const auto off =
          closure(time(without(stamps.of_pass, mean_of(stage.piece(pass)))), {time(layers)});
      if (off && std::abs(*off) >= std::abs(worst.value_or(0))) worst = off;
    }
  }
  return worst;
}

/// The time of F and B of each kind of layer, in ns.
std::map<std::string, double> time_of_kinds(const Network& network,
                                            const std::vector<StageSamples>& by_device,
                                            std::uint32_t copies) {
  std::map<std::string, double> times;
  std::size_t layer = 0;
  for (const StageSamples& stage : pooled(by_device, copies)) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto of_layers = times_of(network, stage, layer, pass);
      for (std::size_t i = 0; i < stage.layers(); ++i) {
        times[std::string(kind_name(network.layers[layer + i].settings))] +=
            static_cast<double>(of_layers[i].mean.count());
      }
    }
    layer += stage.layers();
  }
  return times;
}

/// The factors of each kind of layer with 0, 1, ... neighbours. Factors between two measured
/// numbers are interpolated linearly. Nothing where a device has no clean passes with some number.
std::optional<std::map<std::string, std::vector<double>>> slowdown_of(const Network& network,
                                                                      const BatchSamples& samples,
                                                                      std::uint32_t copies) {
  std::map<std::string, std::vector<double>> factors;
  const auto max = static_cast<std::uint32_t>(samples.stages.size() - 1);
  const auto loaded = time_of_kinds(network, samples.stages, copies);
  for (const auto& [kind, time] : loaded) factors[kind].assign(max + 1, 1.0);
  std::uint32_t before = 0;
  const auto add = [&](std::uint32_t neighbours, const std::map<std::string, double>& times) {
    for (auto& [kind, list] : factors) {
      if (loaded.at(kind) > 0) list[neighbours] = times.at(kind) / loaded.at(kind);
      for (std::uint32_t k = before + 1; k < neighbours; ++k) {
        const double way = static_cast<double>(k - before) / (neighbours - before);
        list[k] = list[before] + way * (list[neighbours] - list[before]);
      }
    }
    before = neighbours;
  };
  for (const auto& [neighbours, stages] : samples.beside) {
    if (any_missing(stages)) return std::nullopt;
    add(neighbours, time_of_kinds(network, stages, copies));
  }
  add(max, loaded);
  return factors;
}

/// Adds the measurements with fewer neighbours to calibration and profile.
void add_slowdown(const Network& network, const BatchSamples& samples, std::uint32_t copies,
                  Calibration& calibration) {
  if (samples.beside.empty()) return;
  auto factors = slowdown_of(network, samples, copies);
  if (!factors) {
    calibration.left_out.emplace_back(
        "the slow-down by neighbours is left out: a device had no clean passes with fewer of them");
    return;
  }
  calibration.slowdown = *std::move(factors);
  const double min = calibration.min_slowdown();
  for (const auto& [kind, list] : calibration.slowdown) {
    const bool tells =
        std::any_of(list.begin(), list.end(), [&](double f) { return std::abs(f - 1) >= min; });
    if (tells) calibration.model.profile.slowdown[kind] = list;
  }
}

/// Adds the slowdown of updates on all devices at once to calibration and profile. Numbers between
/// none and all are interpolated linearly.
void add_updates_at_once(const BatchSamples& samples, Calibration& calibration) {
  double among_others = 0;
  double at_once = 0;
  double noise = 0;
  for (const StageSamples& stage : samples.stages) {
    if (stage.whole(Pass::update_at_once).empty()) return;
    const auto time = [&](Pass pass) {
      const std::vector<double>& all = stage.piece_or_whole(pass);
      noise = std::max(noise, relative_half_width(all).value_or(1));
      return without(stamps_of(stage).of_pass, mean_of(all));
    };
    among_others += time(Pass::update);
    at_once += time(Pass::update_at_once);
  }
  if (among_others <= 0 || samples.stages.size() < 2) return;
  const double factor = at_once / among_others;
  calibration.updates_at_once = factor;
  if (std::abs(factor - 1) < std::max(calibration.min_slowdown(), 2 * noise)) return;
  std::vector<double>& list = calibration.model.profile.slowdown[std::string(kUpdatesAtOnce)];
  const std::size_t all = samples.stages.size();
  for (std::size_t k = 0; k < all; ++k)
    list.push_back(1 + (factor - 1) * static_cast<double>(k) / static_cast<double>(all - 1));
}

/// Adds the measurements with one micro-batch in flight to calibration and profile. Numbers between
/// one and all are interpolated linearly.
void add_in_flight(const Network& network, const BatchSamples& samples, std::uint32_t copies,
                   Calibration& calibration) {
  if (samples.alone_in_flight.empty()) return;
  if (any_missing(samples.alone_in_flight)) {
    calibration.left_out.emplace_back(
        "what micro-batches in flight change is left out: a device had no clean passes with one");
    return;
  }
  for (const StageSamples& stage : samples.alone_in_flight)
    calibration.noise_one_in_flight = std::max(calibration.noise_one_in_flight, stage.noise());
  const std::size_t all = samples.stages.size() + 1;
  const auto times = time_of_kinds(network, samples.stages, copies);
  for (const auto& [kind, alone] : time_of_kinds(network, samples.alone_in_flight, copies)) {
    const double factor = times.at(kind) > 0 ? alone / times.at(kind) : 1;
    std::vector<double>& list = calibration.in_flight[kind];
    for (std::size_t k = 0; k < all; ++k) {
      const double way = static_cast<double>(k) / static_cast<double>(all - 1);
      list.push_back(factor + way * (1 - factor));
    }
    if (std::abs(factor - 1) >= calibration.min_in_flight())
      calibration.model.profile.in_flight[kind] = list;
  }
}

LayerGraph graph_of(const Network& network) {
  std::vector<Layer> layers;
  layers.reserve(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    layers.push_back(
        {layer.name, std::string(kind_name(layer.settings)), parameter_bytes(network, layer)});
  }
  return LayerGraph::chain(std::move(layers));
}

}  // namespace

double Calibration::min_slowdown() const { return std::max({0.005, 2 * drift, 2 * noise}); }

double Calibration::min_in_flight() const {
  return std::max({0.01, 2 * noise, 2 * noise_one_in_flight});
}

Result<Calibration> calibration_of(const CalibrationDevices& devices, const Network& network,
                                   const Mark& mark, const CalibrationOptions& options,
                                   const Measured& measured) {
  Calibration calibration;
  Model& model = calibration.model;
  model.name = network.name;
  model.graph = graph_of(network);
  calibration.stamps = max_stamps(measured.batches);
  std::int64_t dropped = 0;
  std::string missing;
  for (const BatchSamples& samples : measured.batches) {
    if (const auto what = samples.missing()) {
      missing = *what;
      calibration.left_out.push_back(
          fmt::format("micro-batches of {} samples are left out: {}", samples.batch, missing));
      continue;
    }
    const std::vector<StageSamples> stages = pooled(samples.stages, options.copies);
    model.profile.measurements.push_back(measurement_of(network, samples.batch, stages));
    model.profile.blocks = blocks_of(stages);
    if (const auto off = closure_of(samples);
        off && std::abs(*off) >= std::abs(calibration.closure.value_or(0)))
      calibration.closure = off;
    calibration.passes += samples.passes();
    dropped += samples.dropped();
    calibration.drift = std::max(calibration.drift, samples.drift());
    calibration.noise = std::max(calibration.noise, samples.noise());
    add_slowdown(network, samples, options.copies,
                 calibration);  // for the last batch only, when all noise is known
    add_in_flight(network, samples, options.copies, calibration);
    if (options.slowdown && &samples == &measured.batches.back())
      add_updates_at_once(samples, calibration);
  }
  if (model.profile.measurements.empty()) {
    return input_error(mark, fmt::format("too much other work on this machine: {}", missing),
                       "try again when it is quiet, or with more time");
  }
  if (model.profile.measurements.size() > 1) model.profile.blocks.clear();  // of which batch?
  calibration.dropped = static_cast<double>(dropped) /
                        static_cast<double>(std::max<std::int64_t>(calibration.passes, 1));
  auto& provenance = model.profile.provenance;
  provenance = devices.provenance(options.devices);
  if (options.copies > 1) provenance["copies"] = std::to_string(options.copies);
  provenance["source"] = "measured";
  provenance["backend"] = devices.backend();
  provenance["host"] = host_name();
  provenance["system"] = system_name();
  provenance["compiler"] = compiler_name();
  provenance["optimizer"] = name(options.optimizer);
  provenance["seed"] = std::to_string(options.seed);
  provenance["passes"] = std::to_string(calibration.passes);
  provenance["dropped"] = fmt::format("{:.4f}", calibration.dropped);
  provenance["drift"] = fmt::format("{:.4f}", calibration.drift);
  provenance["noise"] = fmt::format("{:.4f}", calibration.noise);
  if (calibration.closure) provenance["closure"] = fmt::format("{:+.4f}", *calibration.closure);
  if (calibration.stamps) provenance["stamps"] = to_text(*calibration.stamps);
  if (measured.min_clock < kSteadyClock) {
    calibration.left_out.push_back(fmt::format(
        "the devices' clock fell by {:.1f} % while it was measured: they are too hot or "
        "draw too much power, and the times are of no one clock",
        100 * (1 - measured.min_clock)));
    provenance["clock_fell"] = fmt::format("{:.4f}", 1 - measured.min_clock);
  }
  if (measured.clock) provenance["clock"] = fmt::format("{:.0f} MHz", *measured.clock);
  if (measured.load) provenance["load"] = fmt::format("{:.2f}", *measured.load);
  return calibration;
}

}  // namespace plumbline
