// Walkers, one a core, and what their samples become.
// SPDX-License-Identifier: MIT
#include "calibrate/cpu_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <thread>

#include "calibrate/buffer.h"
#include "calibrate/cpu_backend.h"
#include "calibrate/cpu_core.h"
#include "calibrate/cpu_stage.h"
#include "calibrate/matrix_product.h"
#include "calibrate/optimizer.h"
#include "calibrate/sampling.h"
#include "calibrate/training_data.h"
#include "models/bug.h"
#include "models/random.h"
#include "schedules/partition.h"

namespace plumbline {
namespace {

constexpr RealTime kWarmUp = 500'000'000;
constexpr std::size_t kMostSamples = 20'000;

/// The kinds of passes through a stage.
enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight, update };
constexpr Pass kAllPasses[] = {Pass::forward, Pass::backward, Pass::backward_input,
                               Pass::backward_weight, Pass::update};

/// Samples in nanoseconds, of clean passes in the order of time.
struct PassSamples {
  std::vector<std::vector<double>> of_layer;
  std::vector<double> whole;
};

/// One stage walked again and again by one thread.
class Walker {
 public:
  Walker(const Network& network, std::size_t first, std::size_t last, std::int64_t batch,
         std::uint32_t device, std::uint32_t devices, std::uint64_t seed, const StopLimits& limits)
      : device_(device),
        devices_(devices),
        stage_(network, first, last, batch),
        data_(network, batch, devices + 1, seed),
        is_first_(first == 0),
        is_last_(last + 1 == network.layers.size()),
        parameters_(stage_.parameter_floats()),
        gradients_(stage_.parameter_floats()),
        optimizer_(OptimizerKind::gradient_descent, stage_.parameter_floats(), 1e-6),
        loss_weights_(static_cast<std::size_t>(batch), 1.0F / static_cast<float>(batch)),
        rules_{StopRule(limits), StopRule(limits)} {
    stage_.initialise(parameters_.data(), seed);
    std::fill_n(gradients_.data(), stage_.parameter_floats(), 0.0F);
    for (std::uint32_t i = 0; i < devices + 1; ++i) {
      slots_.push_back({Buffer(stage_.input_floats()), Buffer(stage_.output_floats()),
                        Buffer(stage_.kept_floats()), Buffer(stage_.left_floats()),
                        Buffer(stage_.output_floats()), Buffer(stage_.input_floats())});
      fill(slots_.back().input, stage_.input_floats(), seed + std::uint64_t{2} * i, 1);
      fill(slots_.back().output_gradient, stage_.output_floats(), seed + std::uint64_t{2} * i + 1,
           1e-3);
    }
    for (PassSamples& pass : samples_) pass.of_layer.resize(stage_.layers());
  }

  /// Walks until `stop`; samples count from the time at which `measuring` is set on.
  void walk(const std::atomic<RealTime>& measuring, const std::atomic<bool>& stop) {
    use_one_thread();
    pin_to_core(device_, devices_);
    wake_exactly();
    const std::size_t window = slots_.size();
    for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      const RealTime counts = measuring.load(std::memory_order_relaxed);
      take(Pass::forward, counts,
           [&](Stamps* stamps) { stage_.forward(tensors(i % window), stamps); });
      if (i + 1 < window) continue;
      const std::size_t oldest = (i + 1) % window;
      if (i % 4 == 3) {
        take(Pass::backward_input, counts,
             [&](Stamps* stamps) { stage_.backward_input(tensors(oldest), stamps); });
        take(Pass::backward_weight, counts,
             [&](Stamps* stamps) { stage_.backward_weight(tensors(oldest), stamps); });
      } else {
        take(Pass::backward, counts,
             [&](Stamps* stamps) { stage_.backward(tensors(oldest), stamps); });
      }
      if (i % 8 == 7) take(Pass::update, counts, [&](Stamps* stamps) { update(stamps); });
      is_done_.store(rules_[0].stopped() && rules_[1].stopped(), std::memory_order_relaxed);
    }
  }

  const CpuStage& stage() const { return stage_; }
  /// Samples by pass; those of a backward stand in the order of the layers.
  const PassSamples& samples(Pass pass) const { return samples_[static_cast<std::size_t>(pass)]; }
  /// Whether more samples are not worth their time.
  bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
  /// The larger relative half-width of F and B.
  double noise() const {
    return std::max(relative_half_width(samples(Pass::forward).whole).value_or(1),
                    relative_half_width(samples(Pass::backward).whole).value_or(1));
  }
  std::int64_t passes() const { return passes_; }
  std::int64_t dropped() const { return dropped_; }

 private:
  struct Slot {
    Buffer input, output, kept, left, output_gradient, input_gradient;
  };

  static void fill(const Buffer& buffer, std::size_t floats, std::uint64_t seed, double scale) {
    for (std::size_t i = 0; i < floats; ++i)
      buffer.data()[i] = static_cast<float>(scale * random_normal(seed, i));
  }

  StageTensors tensors(std::size_t slot) {
    Slot& s = slots_[slot];
    const auto sample = static_cast<std::uint32_t>(slot);
    StageTensors t;
    t.input = is_first_ ? data_.input(sample) : s.input.data();
    if (is_first_) t.ids = data_.ids(sample);
    if (is_last_) t.labels = data_.labels(sample);
    t.output = s.output.data();
    t.kept = s.kept.data();
    t.left = s.left.data();
    t.output_gradient = is_last_ ? loss_weights_.data() : s.output_gradient.data();
    t.input_gradient = is_first_ ? nullptr : s.input_gradient.data();
    t.parameters = parameters_.data();
    t.gradients = gradients_.data();
    return t;
  }

  void update(Stamps* stamps) {
    optimizer_.step();
    for (std::size_t i = 0; i < stage_.layers(); ++i) {
      stamps->push_back(now());
      const auto [first, last] = stage_.parameters_of(i);
      optimizer_.update(first, last, {gradients_.data()}, parameters_.data(), parameters_.data());
      std::fill(gradients_.data() + first, gradients_.data() + last, 0.0F);
    }
    stamps->push_back(now());
  }

  template <class Body>
  void take(Pass pass, RealTime counts, Body&& body) {
    stamps_.clear();
    const RealTime cpu_before = thread_cpu_time();
    body(&stamps_);
    const RealTime cpu = thread_cpu_time() - cpu_before;
    PassSamples& samples = samples_[static_cast<std::size_t>(pass)];
    if (counts == 0 || samples.whole.size() >= kMostSamples) return;
    ++passes_;
    const RealTime wall = stamps_.back() - stamps_.front();
    const Duration elapsed{stamps_.back() - counts};
    StopRule* const rule = pass == Pass::forward    ? &rules_[0]
                           : pass == Pass::backward ? &rules_[1]
                                                    : nullptr;
    if (is_contaminated({Duration{wall}, Duration{cpu}})) {
      ++dropped_;
      if (rule) rule->drop(elapsed);
      return;
    }
    if (rule) rule->add(static_cast<double>(wall), elapsed);
    samples.whole.push_back(static_cast<double>(wall));
    const bool backwards = pass != Pass::forward && pass != Pass::update;
    const std::size_t layers = stage_.layers();
    for (std::size_t i = 0; i < layers; ++i) {
      samples.of_layer[backwards ? layers - 1 - i : i].push_back(
          static_cast<double>(stamps_[i + 1] - stamps_[i]));
    }
  }

  std::uint32_t device_;
  std::uint32_t devices_;
  CpuStage stage_;
  TrainingData data_;
  bool is_first_;
  bool is_last_;
  Buffer parameters_;
  Buffer gradients_;
  Optimizer optimizer_;
  std::vector<float> loss_weights_;
  std::vector<Slot> slots_;
  std::array<PassSamples, std::size(kAllPasses)> samples_;
  Stamps stamps_;
  std::int64_t passes_ = 0;
  std::int64_t dropped_ = 0;
  std::array<StopRule, 2> rules_;  ///< Of F and of B.
  std::atomic<bool> is_done_{false};
};

/// The layers of each core: as equal in FLOPs as a chain can be cut.
std::vector<std::pair<std::size_t, std::size_t>> cut(const Network& network, std::uint32_t stages) {
  std::vector<Duration> work;
  work.reserve(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    work.emplace_back(std::llround(
        (layer.forward_flops + layer.backward_input_flops + layer.backward_weight_flops) / 1e3));
  }
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::size_t first = 0;
  for (const std::uint32_t count : balanced_counts(work, stages)) {
    ranges.emplace_back(first, first + count - 1);
    first += count;
  }
  return ranges;
}

class BatchCalibration {
 public:
  BatchCalibration(const Network& network, std::int64_t batch, const CalibrationOptions& options)
      : network_(network), batch_(batch), options_(options) {
    const auto ranges = cut(network, options.devices);
    StopLimits limits;
    limits.most_samples = kMostSamples;
    limits.most_time = round_up(options.most_seconds * 1e9);
    limits.least_time = round_up(options.least_seconds * 1e9);
    for (std::uint32_t device = 0; device < ranges.size(); ++device) {
      walkers_.push_back(std::make_unique<Walker>(network, ranges[device].first,
                                                  ranges[device].second, batch, device,
                                                  options.devices, options.seed, limits));
    }
  }

  /// Lets all walk until the noise is small or the time is over.
  void measure() {
    std::atomic<RealTime> measuring{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.reserve(walkers_.size());
    for (const auto& walker : walkers_)
      threads.emplace_back([&] { walker->walk(measuring, stop); });
    const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    const RealTime begin = now();
    while (now() - begin < kWarmUp) rest();
    const RealTime start = now();
    measuring = start;
    double passed = 0;
    while (passed < options_.most_seconds && !is_done()) {
      rest();
      passed = static_cast<double>(now() - start) / 1e9;
      if (options_.progress) {
        options_.progress(fmt::format("micro-batches of {}", batch_),
                          std::min(1.0, passed / options_.most_seconds));
      }
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }

  double noise() const {
    double worst = 0;
    for (const auto& walker : walkers_) worst = std::max(worst, walker->noise());
    return worst;
  }

  /// Errors: a kind of pass of which no clean sample is there.
  std::optional<std::string> missing() const {
    for (const auto& walker : walkers_) {
      for (const Pass pass : kAllPasses) {
        if (walker->samples(pass).whole.empty())
          return fmt::format("{} of {} passes were clean, and of one kind none",
                             walker->passes() - walker->dropped(), walker->passes());
      }
    }
    return std::nullopt;
  }

  Measurement measurement() const {
    Measurement measurement;
    measurement.batch = batch_;
    for (const auto& walker : walkers_) {
      for (std::size_t i = 0; i < walker->stage().layers(); ++i) {
        const NetworkLayer& layer = walker->stage().layer(i);
        const auto time = [&](Pass pass) {
          return measured_time(walker->samples(pass).of_layer[i]);
        };
        LayerCosts costs;
        costs.forward = time(Pass::forward);
        costs.backward = time(Pass::backward);
        if (layer.splits)
          costs.split = SplitBackward{time(Pass::backward_input), time(Pass::backward_weight)};
        if (layer.parameter_count() > 0) costs.update = time(Pass::update);
        costs.output = output_bytes(network_, layer, batch_);
        costs.activation = activation_bytes(network_, layer, batch_);
        measurement.layers.push_back(costs);
      }
    }
    return measurement;
  }

  /// Each core's layers as one piece.
  std::vector<Block> blocks() const {
    std::vector<Block> blocks;
    std::uint32_t next = 0;
    for (const auto& walker : walkers_) {
      Block block;
      for (std::size_t i = 0; i < walker->stage().layers(); ++i) block.layers.push_back({next++});
      block.forward = measured_time(walker->samples(Pass::forward).whole).mean;
      block.backward = measured_time(walker->samples(Pass::backward).whole).mean;
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

  double drift() const {
    double worst = 0;
    for (const auto& walker : walkers_) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const auto& whole = walker->samples(pass).whole;
        const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2);
        worst = std::max(
            worst,
            std::abs(plumbline::drift({whole.begin(), middle}, {middle, whole.end()}).value_or(0)));
      }
    }
    return worst;
  }

  std::int64_t passes() const { return sum(&Walker::passes); }
  std::int64_t dropped() const { return sum(&Walker::dropped); }

 private:
  bool is_done() const {
    return std::all_of(walkers_.begin(), walkers_.end(),
                       [](const auto& walker) { return walker->is_done(); });
  }
  std::int64_t sum(std::int64_t (Walker::*count)() const) const {
    std::int64_t all = 0;
    for (const auto& walker : walkers_) all += (walker.get()->*count)();
    return all;
  }

  const Network& network_;
  std::int64_t batch_;
  const CalibrationOptions& options_;
  std::vector<std::unique_ptr<Walker>> walkers_;
};

/// "Intel(R) Xeon(R) ...": the first processor's name.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(':');
      if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace

Result<Calibration> calibrate_cpu(const Network& network, const Mark& mark,
                                  const CalibrationOptions& options) {
  if (auto refused = refuse_for_cpu(network, mark)) return *refused;
  if (options.devices > usable_cores() || options.devices > network.layers.size()) {
    return input_error(mark,
                       fmt::format("{} devices, but there are {} cores and {} layers",
                                   options.devices, usable_cores(), network.layers.size()),
                       "every device is a core and has at least one layer");
  }
  Calibration calibration;
  Model& model = calibration.model;
  model.name = network.name;
  std::vector<Layer> layers;
  layers.reserve(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    layers.push_back(
        {layer.name, std::string(kind_name(layer.settings)), parameter_bytes(network, layer)});
  }
  model.graph = LayerGraph::chain(std::move(layers));
  std::int64_t dropped = 0;
  std::vector<std::int64_t> batches = options.batches;
  std::sort(batches.begin(), batches.end());
  for (const std::int64_t batch : batches) {
    BatchCalibration one(network, batch, options);
    one.measure();
    if (const auto missing = one.missing()) {
      Diagnostic noisy =
          input_error(mark, fmt::format("too much other work on this machine: {}", *missing),
                      "try again when it is quiet, or with more time");
      return noisy;
    }
    model.profile.measurements.push_back(one.measurement());
    if (batches.size() == 1) model.profile.blocks = one.blocks();
    calibration.passes += one.passes();
    dropped += one.dropped();
    calibration.drift = std::max(calibration.drift, one.drift());
    calibration.noise = std::max(calibration.noise, one.noise());
  }
  calibration.dropped = static_cast<double>(dropped) /
                        static_cast<double>(std::max<std::int64_t>(calibration.passes, 1));
  model.profile.provenance = {{"source", "measured"},
                              {"backend", "cpu"},
                              {"device", processor_name()},
                              {"library", cpu_library()},
                              {"cores", std::to_string(usable_cores())},
                              {"busy_cores", std::to_string(options.devices)},
                              {"passes", std::to_string(calibration.passes)},
                              {"dropped", fmt::format("{:.4f}", calibration.dropped)},
                              {"drift", fmt::format("{:.4f}", calibration.drift)},
                              {"noise", fmt::format("{:.4f}", calibration.noise)},
                              {"seed", std::to_string(options.seed)}};
  return calibration;
}

}  // namespace plumbline
