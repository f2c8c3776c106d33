// Walkers in rounds.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <thread>

#include "calibrate/measure/calibration_memory.h"
#include "calibrate/runtime/machine.h"
#include "models/network/network_content.h"
#include "schedules/stages/partition.h"

namespace plumbline {
namespace {

/// Rounds with less than this share of the usual clock are dropped: the devices were throttled.
constexpr double kThrottledClock = 0.75;
/// The rest after a throttled round. The n-th throttled round in a row rests n times as long.
constexpr std::chrono::milliseconds kRest{100};
/// After this many throttled rounds in a row, the low clock counts as the usual one.
constexpr int kMaxThrottled = 3;

/// The layers of each device. The chain is cut into stages as equal in FLOPs as possible. Each
/// stage is on as many devices as there are copies. Requires: copies divide the devices.
StageLayers layers_of_devices(const Network& network, const CalibrationOptions& options) {
  std::vector<Duration> work;
  work.reserve(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    work.emplace_back(std::llround(
        (layer.forward_flops + layer.backward_input_flops + layer.backward_weight_flops) / 1e3));
  }
  StageLayers ranges;
  std::size_t first = 0;
  for (const std::uint32_t count : balanced_counts(work, options.devices / options.copies)) {
    ranges.insert(ranges.end(), options.copies, {first, first + count - 1});
    first += count;
  }
  return ranges;
}

/// Devices that walk, and how many of them work at the same time.
struct ActiveDevices {
  std::vector<std::uint32_t> devices;
  std::uint32_t at_once = 1;
  bool one_in_flight = false;
  std::uint32_t neighbours() const { return at_once - 1; }
};

/// The numbers of neighbours that are measured in addition to all of them: 0, 1, 3, 7, ..., and all
/// but one, because the memory saturates near there. Numbers between them are interpolated.
std::vector<std::uint32_t> neighbour_counts(std::uint32_t devices) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t size = 1; size < devices; size *= 2) counts.push_back(size - 1);
  if (devices > 2 && counts.back() + 2 < devices) counts.push_back(devices - 2);
  return counts;
}

/// `count` devices from `first` on.
ActiveDevices active_of(std::uint32_t first, std::uint32_t count, std::uint32_t devices) {
  ActiveDevices active;
  active.at_once = count;
  for (std::uint32_t i = 0; i < count; ++i) active.devices.push_back((first + i) % devices);
  return active;
}

ActiveDevices everybody(std::uint32_t devices) { return active_of(0, devices, devices); }

/// Sets of active devices in which every device works once with each of these numbers of
/// neighbours.
std::vector<ActiveDevices> active_sets_of(std::uint32_t devices, bool takes_turns) {
  std::vector<ActiveDevices> active_sets;
  for (const std::uint32_t neighbours : neighbour_counts(devices)) {
    if (takes_turns) {
      active_sets.push_back(everybody(devices));
      active_sets.back().at_once = neighbours + 1;
      continue;
    }
    for (std::uint32_t first = 0; first < devices; first += neighbours + 1)
      active_sets.push_back(active_of(first, neighbours + 1, devices));
  }
  return active_sets;
}

BatchSamples no_samples(const StageLayers& stages, std::int64_t batch,
                        const CalibrationOptions& options) {
  StopLimits limits;
  limits.max_samples = options.max_samples;
  limits.max_time = round_up(options.max_seconds * 1e9);
  limits.min_time = round_up(options.min_seconds * 1e9);
  BatchSamples samples;
  samples.batch = batch;
  samples.stages.reserve(stages.size());
  for (const auto& [first, last] : stages) samples.stages.emplace_back(last - first + 1, limits);
  if (options.slowdown && batch == batches_of(options).back()) {
    for (const std::uint32_t neighbours : neighbour_counts(options.devices))
      samples.beside[neighbours] = samples.stages;
  }
  if (options.in_flight && batch == batches_of(options).back())
    samples.alone_in_flight = samples.stages;
  return samples;
}

/// The error for a line of a kept calibration that its head rules out.
Diagnostic not_kept_by_us(const KeptCalibration& kept, int line, std::string message) {
  return input_error({kept.source, line, 1, 1}, std::move(message),
                     "delete the file and calibrate anew");
}

/// The samples for passes with this number of neighbours (nothing = all), or with one micro-batch
/// in flight. Null where that is not measured.
std::vector<StageSamples>* samples_with(BatchSamples& samples,
                                        std::optional<std::uint32_t> neighbours,
                                        bool one_in_flight) {
  if (one_in_flight) return samples.alone_in_flight.empty() ? nullptr : &samples.alone_in_flight;
  if (!neighbours) return &samples.stages;
  const auto found = samples.beside.find(*neighbours);
  return found == samples.beside.end() ? nullptr : &found->second;
}

/// Adds the kept passes of an earlier calibration with this batch.
std::optional<Diagnostic> restore(const KeptCalibration& kept, BatchSamples& samples) {
  for (const KeptRound& round : kept.rounds) {
    if (round.batch != samples.batch) continue;
    std::vector<StageSamples>* const stages =
        samples_with(samples, round.neighbours, round.one_in_flight);
    if (!stages) {
      const std::string with = round.one_in_flight
                                   ? "one micro-batch in flight"
                                   : fmt::format("{} neighbours", *round.neighbours);
      return not_kept_by_us(kept, round.passes.empty() ? 0 : round.passes.front().line,
                            fmt::format("nothing is measured with {}", with));
    }
    if (round.is_of_all()) samples.measured += round.measured;
    const Duration elapsed = round.is_of_all() ? samples.measured : Duration{};
    for (const KeptPass& pass : round.passes) {
      if (pass.device >= stages->size())
        return not_kept_by_us(kept, pass.line, fmt::format("there is no device {}", pass.device));
      StageSamples& stage = (*stages)[pass.device];
      const std::size_t times = pass.times.layers.size();
      if (times > 1 && times != stage.layers()) {
        return not_kept_by_us(
            kept, pass.line,
            fmt::format("this pass has the times of {} layers, and device {} has {}", times,
                        pass.device, stage.layers()));
      }
      if (stage.takes(pass.times.pass)) stage.add(pass.times, elapsed);
    }
  }
  return std::nullopt;
}

/// The active sets with a device that was not yet measured with that number of neighbours.
std::vector<ActiveDevices> active_sets_left(const BatchSamples& samples,
                                            std::vector<ActiveDevices> all) {
  std::vector<ActiveDevices> left;
  for (ActiveDevices& active : all) {
    const auto& stages = samples.beside.at(active.neighbours());
    const bool is_done = std::all_of(active.devices.begin(), active.devices.end(),
                                     [&](std::uint32_t d) { return !stages[d].missing(); });
    if (!is_done) left.push_back(std::move(active));
  }
  return left;
}

/// The walkers of one batch, and the rounds in which they walk.
class Rounds {
 public:
  Rounds(CalibrationDevices& devices, const Network& network, const StageLayers& stages,
         const CalibrationOptions& options, BatchSamples& samples)
      : options_(options),
        samples_(samples),
        timers_(devices.timers(network, stages, options, samples.batch)) {}

  /// Lets the active devices walk for a round, or until the noise is small, the time is over, or it
  /// is interrupted. They walk at least one turn, as a round without passes says nothing.
  KeptRound measure_pass(const ActiveDevices& active) {
    KeptRound round;
    round.batch = samples_.batch;
    round.one_in_flight = active.one_in_flight;
    if (active.at_once < samples_.stages.size()) round.neighbours = active.neighbours();
    const bool is_all = round.is_of_all();
    const Duration before = is_all ? samples_.measured : Duration{};
    std::vector<StageSamples>& stages =
        *samples_with(samples_, round.neighbours, round.one_in_flight);
    std::vector<StageSamples> unspoilt;
    if (timers_->measures_clock()) unspoilt = stages;
    const auto max_in_flight = static_cast<std::uint32_t>(samples_.stages.size()) + 1;
    timers_->start(active.devices, active.at_once, active.one_in_flight ? 1 : max_in_flight, before,
                   stages);
    const RealTime begin = now();
    while (now() - begin < timers_->warm_up(is_first_) && !is_interrupted()) timers_->go_on();
    if (is_first_) {
      clock_ = timers_->clock();
      if (is_all) note_clock(clock_);
    }
    is_first_ = false;
    const RealTime start = now();
    timers_->count_from(start);
    const auto round_time = static_cast<RealTime>(round_seconds(active) * 1e9);
    // Only rounds of all devices need no more than one turn.
    const std::size_t min = is_all ? 1 : timers_->cycle();
    while (!is_over(before + Duration{now() - start}, now() - start, round_time, min)) {
      timers_->go_on();
      tell(active, before + Duration{now() - start});
    }
    const std::optional<double> clock = timers_->clock();
    timers_->stop();
    is_throttled_ = timers_->measures_clock() && !options_.one_more_round &&
                    *clock < kThrottledClock * usual_ && throttled_ < kMaxThrottled;
    if (!is_throttled_ && throttled_ == kMaxThrottled) usual_ = *clock;
    if (is_all && !is_throttled_) note_clock(clock);  // fewer devices may run faster
    round.measured = Duration{now() - start};
    if (is_all) samples_.measured += round.measured;
    for (const std::uint32_t device : active.devices) {
      for (const PassTimes& pass : timers_->was_measured(device))
        round.passes.push_back({device, pass, 0});
    }
    if (is_throttled_) {
      for (std::size_t i = 0; i < stages.size(); ++i) stages[i] = std::move(unspoilt[i]);
      for (KeptPass& pass : round.passes) {
        pass.times.layers.clear();
        if (stages[pass.device].takes(pass.times.pass))
          stages[pass.device].add(pass.times, is_all ? samples_.measured : Duration{});
      }
      std::this_thread::sleep_for(kRest * ++throttled_);
    } else {
      throttled_ = 0;
    }
    return round;
  }

  /// Whether the last round was dropped.
  bool is_throttled() const { return is_throttled_; }
  bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// The clock of the devices at work, in MHz.
  std::optional<double> clock() const { return clock_; }
  /// The slowest clock at the end of a round, as a share of the fastest.
  double min_clock() const { return fastest_ > 0 ? slowest_ / fastest_ : 1; }

 private:
  /// Devices that take turns work for a part of the time, so their round is longer. Active sets
  /// that do not take turns share one round.
  double round_seconds(const ActiveDevices& active) const {
    const auto devices = static_cast<double>(active.devices.size());
    const auto all = static_cast<double>(samples_.stages.size());
    const double share = active.one_in_flight ? 0.5 : 1;  // as often as rounds of all, but shorter
    return share * options_.round_seconds * devices / active.at_once * devices / all;
  }

  bool is_over(Duration measured, RealTime passed, RealTime round_time,
               std::size_t min_turns) const {
    if (is_interrupted()) return true;
    const std::size_t turns = timers_->min_turns();
    if (turns < min_turns) return false;
    if (timers_->all_done() || seconds(measured) >= options_.max_seconds) return true;
    return passed >= round_time && turns >= timers_->cycle();
  }

  void note_clock(std::optional<double> mhz) {
    if (!timers_->measures_clock() || !mhz) return;
    fastest_ = std::max(fastest_, *mhz);
    usual_ = std::max(usual_, *mhz);
    slowest_ = slowest_ == 0 ? *mhz : std::min(slowest_, *mhz);
  }

  void tell(const ActiveDevices& active, Duration measured) const {
    if (!options_.progress) return;
    const bool is_all = active.at_once == samples_.stages.size();
    options_.progress(
        fmt::format("micro-batches of {}{}{}", samples_.batch,
                    is_all ? std::string() : fmt::format(", {} at work", active.at_once),
                    active.one_in_flight ? ", one in flight" : ""),
        std::min(1.0, seconds(measured) / options_.max_seconds));
  }

  const CalibrationOptions& options_;
  BatchSamples& samples_;
  std::unique_ptr<StageTimers> timers_;
  bool is_first_ = true;
  std::optional<double> clock_;
  double fastest_ = 0;
  double slowest_ = 0;
  double usual_ = 0;   ///< The clock against which throttling is detected.
  int throttled_ = 0;  ///< Throttled rounds in a row.
  bool is_throttled_ = false;
};

/// What r devices send each other that hold the same stage: each sends every other one its share of
/// the stage's gradients. For all numbers r of which there are as many in every stage.
std::vector<Bytes> shares_of_gradients(const Network& network, CalibrationOptions options) {
  std::vector<Bytes> shares;
  for (std::uint32_t copies = 2; copies <= options.devices; ++copies) {
    if (options.devices % copies != 0 || options.devices / copies > network.layers.size()) continue;
    options.copies = copies;
    for (const auto& [first, last] : layers_of_devices(network, options)) {
      Bytes stage;
      for (std::size_t layer = first; layer <= last; ++layer)
        stage += parameter_bytes(network, network.layers[layer]);
      shares.push_back({(stage.count + copies - 1) / copies});
    }
  }
  return shares;
}

/// The sizes that the devices of a run send, as far as `kMaxSent`: activations, which are as large
/// as their gradients, and shares of the gradients of parameters.
std::vector<Bytes> sent_sizes(const Network& network, const CalibrationOptions& options) {
  constexpr Bytes kMaxSent{1 << 28};
  std::vector<Bytes> sizes = shares_of_gradients(network, options);
  for (const std::int64_t batch : batches_of(options)) {
    for (std::size_t layer = 0; layer + 1 < network.layers.size(); ++layer)
      sizes.push_back(output_bytes(network, network.layers[layer], batch));
  }
  std::erase_if(sizes, [&](Bytes size) { return size.count == 0 || size > kMaxSent; });
  return sizes;
}

/// The sizes that are sent, and powers of four around those of the layers' outputs, with room for
/// batches that are not measured: from a quarter of the smallest to 16 times the largest.
std::vector<Bytes> transfer_sizes(const Network& network, const CalibrationOptions& options) {
  constexpr std::int64_t kMin = 1 << 10;
  constexpr std::int64_t kMax = 1 << 26;
  const std::vector<std::int64_t> batches = batches_of(options);
  std::int64_t min = kMax;
  std::int64_t max = kMin;
  for (const NetworkLayer& layer : network.layers) {
    if (&layer == &network.layers.back()) break;  // its output goes to no other layer
    min = std::min(min, output_bytes(network, layer, batches.front()).count / 4);
    max = std::max(max, output_bytes(network, layer, batches.back()).count);
  }
  std::vector<Bytes> sizes = sent_sizes(network, options);
  for (std::int64_t size = kMin; size <= kMax; size *= 4) {
    if (size * 4 <= min) continue;
    sizes.push_back(Bytes{size});
    if (size / 16 >= max) break;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

std::vector<std::int64_t> batches_of(const CalibrationOptions& options) {
  std::vector<std::int64_t> batches = options.batches;
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

CalibrationHead calibration_head(const CalibrationDevices& devices, const Network& network,
                                 const CalibrationOptions& options, std::string_view tool) {
  CalibrationHead head = {{"network", printable(fmt::format("{}, {}", clipped(network.name),
                                                            network_fingerprint(network)))},
                          {"batches", fmt::format("{}", fmt::join(batches_of(options), ", "))},
                          {"devices", std::to_string(options.devices)},
                          {"copies", std::to_string(options.copies)},
                          {"optimizer", std::string(name(options.optimizer))},
                          {"seed", std::to_string(options.seed)},
                          {"slowdown", options.slowdown ? "measured" : "not measured"},
                          {"in flight", options.in_flight ? "measured" : "not measured"},
                          {"backend", std::string(devices.backend())}};
  const CalibrationHead own = devices.head();
  head.insert(head.end(), own.begin(), own.end());
  head.emplace_back("tool", tool);
  return head;
}

std::optional<Diagnostic> check_calibration(const CalibrationDevices& devices,
                                            const Network& network, const Mark& mark,
                                            const CalibrationOptions& options) {
  if (auto refused = devices.check_network_runs(network, mark)) return refused;
  if (options.devices % options.copies != 0) {
    return input_error(mark,
                       fmt::format("{} copies on {} devices", options.copies, options.devices),
                       "every copy has as many devices: --devices is a multiple of --copies");
  }
  if (options.devices / options.copies > network.layers.size()) {
    const std::string_view with = options.copies == 1 ? "" : " of each copy";
    return input_error(mark,
                       fmt::format("{} devices{}, but the network '{}' has {} layers",
                                   options.devices / options.copies, with, clipped(network.name),
                                   network.layers.size()),
                       "every device has at least one layer");
  }
  if (auto refused = devices.check_count(options.devices, mark)) return refused;
  const std::optional<Bytes> available = devices.available_memory();
  if (!available) return std::nullopt;
  return check_for_memory(network, mark, layers_of_devices(network, options),
                          batches_of(options).back(), options.optimizer, *available);
}

Result<Measured> measure_layers(CalibrationDevices& devices, const Network& network,
                                const Mark& mark, const CalibrationOptions& options) {
  if (auto refused = check_calibration(devices, network, mark, options)) return *refused;
  const StageLayers stages = layers_of_devices(network, options);
  Measured measured;
  measured.load = load_now();
  // Kept rounds come first; then each batch in turn, round by round.
  const std::vector<std::int64_t> sizes = batches_of(options);
  for (const KeptRound& round : options.kept.rounds) {
    if (std::find(sizes.begin(), sizes.end(), round.batch) == sizes.end())
      return not_kept_by_us(options.kept, round.passes.empty() ? 0 : round.passes.front().line,
                            fmt::format("no batch of {} is asked for", round.batch));
  }
  std::vector<BatchSamples>& batches = measured.batches;
  batches.reserve(sizes.size());
  for (const std::int64_t batch : sizes) {
    batches.push_back(no_samples(stages, batch, options));
    if (auto wrong = restore(options.kept, batches.back())) return *wrong;
  }
  auto told = options.kept.algorithms();
  devices.take_algorithms(told);
  for (BatchSamples& samples : batches) {
    std::uint32_t rounds_measured = 0;
    const auto is_over = [&] {
      if (options.one_more_round) return rounds_measured > 0;
      return samples.is_done() || seconds(samples.measured) >= options.max_seconds;
    };
    // Rounds of all devices, and between them one of each active set.
    std::vector<ActiveDevices> active_sets;
    if (!samples.beside.empty())
      active_sets = active_sets_of(options.devices, devices.takes_turns());
    if (!options.one_more_round) active_sets = active_sets_left(samples, std::move(active_sets));
    // After each round of all devices, a short one with one micro-batch in flight.
    const auto& one = samples.alone_in_flight;
    bool wants_one = any_missing(one);
    if (is_over() && active_sets.empty() && !wants_one) continue;
    measured.interrupted = options.interrupted && options.interrupted();
    if (measured.interrupted) return measured;  // between two sizes: no round of the next one
    Rounds rounds(devices, network, stages, options, samples);
    const auto measure_pass = [&](const ActiveDevices& active) -> std::optional<Diagnostic> {
      KeptRound round = rounds.measure_pass(active);
      const auto given = devices.algorithms();
      std::set_difference(given.begin(), given.end(), told.begin(), told.end(),
                          std::inserter(round.algorithms, round.algorithms.end()));
      told = given;
      measured.interrupted = rounds.is_interrupted();
      return options.keep && !round.passes.empty() ? options.keep(round) : std::nullopt;
    };
    while (!is_over() || !active_sets.empty() || wants_one) {
      // Walks that are compared alternate, and all buffers are filled first.
      if (!is_over() || (wants_one && rounds_measured == 0)) {
        if (auto trouble = measure_pass(everybody(options.devices))) return *trouble;
        ++rounds_measured;
        wants_one = !one.empty();
      }
      if (wants_one && !measured.interrupted) {
        ActiveDevices active = everybody(options.devices);
        active.one_in_flight = true;
        if (auto trouble = measure_pass(active)) return *trouble;
        wants_one = rounds.is_throttled();
      }
      if (!active_sets.empty() && !measured.interrupted) {
        if (auto trouble = measure_pass(active_sets.front())) return *trouble;
        if (!rounds.is_throttled()) active_sets.erase(active_sets.begin());
      }
      if (measured.interrupted) return measured;
    }
    measured.clock = rounds.clock();
    measured.min_clock = std::min(measured.min_clock, rounds.min_clock());
  }
  return measured;
}

Diagnostic failed_device(const std::runtime_error& error) {
  Diagnostic failed = input_error({}, error.what());
  failed.fault = Fault::infeasible;
  return failed;
}

void measure_between(CalibrationDevices& devices, const Network& network,
                     const CalibrationOptions& options, Profile& profile) {
  profile.algorithms = devices.algorithms();
  profile.overheads = devices.overheads(network, options);
  profile.links = devices.links(network, layers_of_devices(network, options), options,
                                transfer_sizes(network, options));
}

}  // namespace plumbline
