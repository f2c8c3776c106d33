// Walkers of all devices, fed by one thread.
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/bug.h"
#include "calibrate/cuda/check/check.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/gate.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/program/provenance.h"
#include "calibrate/cuda/timing/launch_times.h"
#include "calibrate/cuda/timing/link_benchmark.h"
#include "calibrate/cuda/timing/stage_timer.h"

namespace plumbline {
namespace {

/// At most, between two rounds.
constexpr RealTime kWarmUpAfterPause = 200'000'000;
/// Nanoseconds.
constexpr double kBurst = 20e6;
constexpr std::size_t kFewestTurns = 3;
/// Of a turn, in ns, for which it matters what events around passes take.
constexpr double kLongestBare = 10e6;
/// After so many cycles a round ends without bare turns, too.
constexpr std::size_t kMostCycles = 16;
/// What is enqueued stays little: where a stream's queue is full, the host waits for the gate.
constexpr std::size_t kMostTurns = 48;

class CudaWalkers : public Walkers {
 public:
  CudaWalkers(CudaDevices& devices, DeviceLibraries& libraries, CudaLaunching& launching,
              const Network& network, const StageLayers& stages, const CalibrationOptions& options,
              std::int64_t batch, RealTime warm_up, double per_op)
      : devices_(devices), warm_up_(warm_up) {
    for (std::uint32_t device = 0; device < stages.size(); ++device) {
      use(device);
      const CudaWalk walk{
          stages[device].first, stages[device].second, batch, options.devices, device,
          options.optimizer,    options.seed};
      const CudaDevice& on = devices.all()[device];
      walkers_.push_back(std::make_unique<CudaWalker>(
          libraries.queue(device, on.compute), on.context, network, walk, launching, per_op));
    }
  }

  RealTime warm_up(bool is_first) const override {
    return is_first ? warm_up_ : std::min(warm_up_, kWarmUpAfterPause);
  }
  void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
             std::uint32_t in_flight, Duration before,
             std::vector<StageSamples>& samples) override {
    PLUMBLINE_CHECK(at_once == devices.size(), at_once, devices.size());
    walking_ = devices;
    for (const std::uint32_t device : walking_)
      walkers_[device]->start(in_flight, before, samples[device]);
  }
  void count_from(RealTime time) override {
    for (const std::uint32_t device : walking_) walkers_[device]->count_from(time);
  }
  /// A burst: all begin together, behind a gate that is closed for as long as it takes the host to
  /// enqueue, as in a run, and end at about the same time.
  void go_on() override {
    const RealTime begin = now();
    std::vector<std::size_t> turns;
    for (const std::uint32_t device : walking_) turns.push_back(turns_of(*walkers_[device]));
    const std::size_t all = std::accumulate(turns.begin(), turns.end(), std::size_t{0});
    const bool bare = ++bursts_ % 2 == 0 && wants_bare() &&
                      std::all_of(walking_.begin(), walking_.end(), [&](std::uint32_t device) {
                        return walkers_[device]->can_be_bare();
                      });
    double& enqueuing = enqueuing_[bare ? 1 : 0];
    if (enqueuing == 0) enqueuing = enqueuing_[0];  // more than it will be
    use(walking_.front());
    CudaGate& gate = gates_[walking_.front()];
    const CudaQueue& first = walkers_[walking_.front()]->queue();
    gate.close(first,
               enqueuing == 0 ? 0 : CudaGate::time_for(std::llround(enqueuing * double(all))));
    for (const std::uint32_t device : walking_) {
      use(device);
      PLUMBLINE_CUDA(devices_.driver(), cuStreamWaitEvent, walkers_[device]->queue().stream,
                     gate.opens(), 0);
    }
    const bool updates = !bare && ++told_bursts_ % 3 == 0;
    for (std::size_t turn = 0; turn < *std::max_element(turns.begin(), turns.end()); ++turn) {
      for (std::size_t i = 0; i < walking_.size(); ++i) {
        if (turn >= turns[i]) continue;
        use(walking_[i]);
        if (bare) {
          walkers_[walking_[i]]->enqueue_bare_turn(turn == 0, turn + 1 == turns[i]);
        } else {
          walkers_[walking_[i]]->enqueue_turn(updates);
        }
      }
    }
    if (!bare && !updates && update_at_once()) enqueue_updates_at_once();
    // The shortest, as a closed gate may hold the host back, too, where the driver's queues are
    // full.
    const double took = static_cast<double>(now() - begin) / static_cast<double>(all);
    enqueuing = enqueuing == 0 ? took : std::min(enqueuing, took);
    for (const std::uint32_t device : walking_) {
      use(device);
      walkers_[device]->finish();
    }
  }
  void stop() override {}
  bool all_done() const override {
    return std::all_of(walking_.begin(), walking_.end(),
                       [&](std::uint32_t device) { return walkers_[device]->is_done(); });
  }
  std::size_t cycle() const override { return walkers_.front()->cycle(); }
  std::size_t least_turns() const override {
    std::size_t least = walkers_[walking_.front()]->turns();
    for (const std::uint32_t device : walking_) {
      const CudaWalker& walker = *walkers_[device];
      least = std::min(least, walker.turns());
      if (!walker.has_been_bare() && wants_bare() && walker.turns() < kMostCycles * cycle())
        return 0;
      if (!walker.has_updated(false) || (update_at_once() && !walker.has_updated(true))) return 0;
    }
    return least;
  }
  bool measures_clock() const override { return true; }
  std::optional<double> clock() override {
    for (const std::uint32_t device : walking_) {
      use(device);
      walkers_[device]->count_cycles();
    }
    std::optional<double> slowest;
    for (const std::uint32_t device : walking_) {
      use(device);
      const double mhz = walkers_[device]->clock();
      slowest = std::min(slowest.value_or(mhz), mhz);
    }
    return slowest;
  }
  const std::vector<PassTimes>& walked(std::uint32_t device) const override {
    return walkers_[device]->walked();
  }

 private:
  void use(std::uint32_t device) {
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, devices_.all()[device].context);
  }
  /// Whether it matters what events around passes take, of the fastest device: then turns are bare,
  /// too, of all.
  bool wants_bare() const {
    return std::any_of(walking_.begin(), walking_.end(), [&](std::uint32_t device) {
      return walkers_[device]->turn_time() < kLongestBare;
    });
  }
  /// As behind a flush: where all devices walk, and are several.
  bool update_at_once() const { return walking_.size() > 1 && walking_.size() == walkers_.size(); }
  void enqueue_updates_at_once() {
    const CudaDriver& driver = devices_.driver();
    for (const std::uint32_t device : walking_) {
      use(device);
      CudaEvents& ended = ended_[device];
      if (ended.all().empty()) ended = CudaEvents(driver, 1, CU_EVENT_DISABLE_TIMING);
      PLUMBLINE_CUDA(driver, cuEventRecord, ended[0], walkers_[device]->queue().stream);
    }
    for (const std::uint32_t device : walking_) {
      use(device);
      for (const std::uint32_t other : walking_) {
        if (other == device) continue;
        PLUMBLINE_CUDA(driver, cuStreamWaitEvent, walkers_[device]->queue().stream,
                       ended_[other][0], 0);
      }
      walkers_[device]->enqueue_update_at_once();
    }
  }
  /// As many as a burst has time for: such that the fastest device has not too many of them, and,
  /// what matters more, the slowest not too few.
  std::size_t turns_of(const CudaWalker& walker) const {
    double slowest = 0;
    double fastest = kBurst;
    for (const std::uint32_t device : walking_) {
      const double time = walkers_[device]->turn_time();
      if (time == 0) return kFewestTurns;
      slowest = std::max(slowest, time);
      fastest = std::min(fastest, time);
    }
    const double burst = std::max(static_cast<double>(kFewestTurns) * slowest,
                                  std::min(kBurst, static_cast<double>(kMostTurns) * fastest));
    const auto turns = static_cast<std::size_t>(std::llround(burst / walker.turn_time()));
    return std::clamp(turns, kFewestTurns, kMostTurns);
  }

  CudaDevices& devices_;
  RealTime warm_up_;
  std::map<std::uint32_t, CudaGate> gates_;  ///< By device, as the next.
  std::map<std::uint32_t, CudaEvents> ended_;
  std::size_t bursts_ = 0;
  std::size_t told_bursts_ = 0;
  /// Of a turn, in ns of the host; 0 = not known yet; [1] of bare ones.
  std::array<double, 2> enqueuing_{};
  std::vector<std::unique_ptr<CudaWalker>> walkers_;
  std::vector<std::uint32_t> walking_;
};

class CudaCalibration : public CalibrationDevices {
 public:
  CudaCalibration(std::unique_ptr<CudaDriver> driver, std::unique_ptr<CudaDevices> devices,
                  const Network& network, const CudaCalibrationOptions& options,
                  const std::optional<Nccl>& nccl)
      : driver_(std::move(driver)),
        devices_(std::move(devices)),
        options_(options),
        libraries_(
            std::make_unique<DeviceLibraries>(*devices_, network, options.own_kernels, nccl)),
        launching_(options.graphs ? launching_on(*devices_) : CudaLaunching{false, "--no-graphs"}) {
  }

  std::string_view backend() const override { return "cuda"; }
  std::optional<Diagnostic> refuse_network(const Network& network,
                                           const Mark& mark) const override {
    return refuse_for_cuda(network, mark);
  }
  std::optional<Diagnostic> refuse_count(std::uint32_t, const Mark&) const override {
    return std::nullopt;  // they are open
  }
  std::optional<Bytes> available_memory() const override {
    Bytes sum;
    for (const CudaDevice& device : devices_->all()) {
      std::size_t free = 0;
      std::size_t total = 0;
      PLUMBLINE_CUDA(*driver_, cuCtxSetCurrent, device.context);
      PLUMBLINE_CUDA(*driver_, cuMemGetInfo, &free, &total);
      sum += Bytes{static_cast<std::int64_t>(free)};
      if (devices_->split()) break;  // they share it
    }
    return sum;
  }
  CalibrationHead head() const override {
    return {{"gpu", printable(devices_->name())},
            {"sms", std::to_string(devices_->all().front().sms)},
            {"split", devices_->split() ? "yes" : "no"},
            {"driver", cuda_driver_version(*driver_)},
            {"library", libraries_->name()},
            {"transfers", libraries_->nccl() == nullptr ? "copies" : name_of(*libraries_->nccl())},
            {"launches", launching_.replays ? "graphs" : "kernels"}};
  }
  std::map<std::string, std::string> provenance(std::uint32_t devices) const override {
    auto all = cuda_provenance(*devices_, *libraries_, launching_);
    all["busy_devices"] = std::to_string(devices);
    return all;
  }
  std::unique_ptr<Walkers> walkers(const Network& network, const StageLayers& stages,
                                   const CalibrationOptions& options, std::int64_t batch) override {
    return std::make_unique<CudaWalkers>(
        *devices_, *libraries_, launching_, network, stages, options, batch,
        static_cast<RealTime>(options_.warm_up_seconds * 1e9), launches().beside);
  }
  Overheads overheads(const Network&, const CalibrationOptions&) override {
    Overheads overheads;
    overheads.per_op = Duration{std::llround(launches().beside)};
    overheads.hand_over = Duration{std::llround(launches().crossing)};
    return overheads;
  }
  std::map<std::string, std::string> algorithms() const override { return libraries_->choices(); }
  void take_algorithms(const std::map<std::string, std::string>& algorithms) override {
    libraries_->take(algorithms);
  }
  std::vector<MeasuredLink> links(const std::vector<Bytes>& sizes) override {
    return measure_cuda_links(*devices_, launching_, launches(), libraries_->nccl(), sizes);
  }

 private:
  /// Measured before the first walk, as bare turns are counted without them, and again where
  /// something could not be recorded since.
  const CudaLaunchTimes& launches() {
    if (!launches_ || are_of_graphs_ != launching_.replays)
      launches_ = measure_launch_times(*devices_, launching_);
    are_of_graphs_ = launching_.replays;
    return *launches_;
  }

  std::unique_ptr<CudaDriver> driver_;  // before all that calls it
  std::unique_ptr<CudaDevices> devices_;
  CudaCalibrationOptions options_;
  std::unique_ptr<DeviceLibraries> libraries_;
  CudaLaunching launching_;
  std::optional<CudaLaunchTimes> launches_;
  bool are_of_graphs_ = true;
};

}  // namespace

Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    const CudaDriver& driver, const Network& network, std::uint32_t devices,
    const CudaCalibrationOptions& options, const Nccl* nccl) {
  auto own_driver = std::make_unique<CudaDriver>(driver);
  try {
    auto opened = open_cuda_devices(*own_driver, devices, options.one_gpu);
    if (!opened) return opened.problems();
    const auto communicating = nccl_for(**opened, options.nccl, nccl);
    if (!communicating) return communicating.problems();
    return std::unique_ptr<CalibrationDevices>(std::make_unique<CudaCalibration>(
        std::move(own_driver), *std::move(opened), network, options, *communicating));
  } catch (const std::runtime_error& error) {  // of the driver, of a library
    Diagnostic lost = input_error({}, error.what());
    lost.fault = Fault::no_device;
    return lost;
  }
}

Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    const Network& network, std::uint32_t devices, const CudaCalibrationOptions& options) {
  const auto driver = load_cuda_driver();
  if (!driver) return driver.problems();
  return cuda_calibration_devices(*driver, network, devices, options);
}

}  // namespace plumbline
