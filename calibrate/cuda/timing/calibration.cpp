// Walkers of all devices, driven by one thread.
//
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
#include "calibrate/cuda/layers/stage.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/program/provenance.h"
#include "calibrate/cuda/timing/kernel_bench.h"
#include "calibrate/cuda/timing/launch_times.h"
#include "calibrate/cuda/timing/link_benchmark.h"
#include "calibrate/cuda/timing/stage_timer.h"
#include "calibrate/cuda/timing/sum_times.h"
#include "calibrate/cuda/timing/work_beside.h"
#include "calibrate/training/stage_layout.h"

namespace plumbline {
namespace {

/// The longest warm-up between two rounds.
constexpr RealTime kWarmUpAfterPause = 200'000'000;
/// The length of a burst in ns.
constexpr double kBurst = 20e6;
constexpr std::size_t kMinTurns = 3;
/// The longest turn for which the time of events around passes matters, in ns.
constexpr double kLongestBare = 10e6;
/// After this many cycles a round ends even without bare turns.
constexpr std::size_t kMaxCycles = 16;
/// The time after which the gate of a burst opens by itself, in ns.
constexpr unsigned long long kPatience = 200'000'000;

/// The measurement of a device, with its stage of all.
CudaMeasuring measuring(const StageLayers& stages, const CalibrationOptions& options,
                        std::int64_t batch, std::uint32_t device) {
  return {stages[device].first, stages[device].second, batch, options.devices, device,
          options.optimizer,    options.seed};
}

class CudaStageTimers : public StageTimers {
 public:
  CudaStageTimers(CudaDevices& devices, DeviceLibraries& libraries, CudaLaunching& launching,
                  const Network& network, const StageLayers& stages,
                  const CalibrationOptions& options, std::int64_t batch, RealTime warm_up,
                  std::size_t max_turns, const CudaLaunchTimes& launches)
      : devices_(devices),
        launching_(launching),
        launches_(launches),
        warm_up_(warm_up),
        max_turns_(std::max(max_turns, kMinTurns)) {
    for (std::uint32_t device = 0; device < stages.size(); ++device) {
      use(device);
      const CudaDevice& on = devices.all()[device];
      timers_.push_back(std::make_unique<CudaStageTimer>(
          libraries.queue(device, on.compute), on.context, network,
          measuring(stages, options, batch, device), launching, launches.beside));
    }
  }

  RealTime warm_up(bool is_first) const override {
    return is_first ? warm_up_ : std::min(warm_up_, kWarmUpAfterPause);
  }
  void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
             std::uint32_t in_flight, Duration before,
             std::vector<StageSamples>& samples) override {
    measuring_ = devices;
    at_once_ = at_once;
    std::optional<double> stamps;
    if (takes_turns()) {
      const auto known = stamps_.find(at_once);
      stamps = known != stamps_.end()
                   ? known->second
                   : stamps_[at_once] = time_of_stamps(devices_, launching_, launches_, at_once);
    }
    for (const std::uint32_t device : measuring_) {
      use(device);
      timers_[device]->start(in_flight, before, samples[device], stamps);
    }
  }
  void count_from(RealTime time) override {
    for (const std::uint32_t device : measuring_) timers_[device]->count_from(time);
  }
  /// Runs a burst. All devices begin together, behind a gate that is closed while the host
  /// enqueues, as in a run. They end at about the same time.
  void go_on() override {
    const bool is_bare = ++bursts_ % 2 == 0 && wants_bare() && can_be_bare();
    CudaGate& gate = gates_[measuring_.front()];
    use(measuring_.front());
    gate.close(timers_[measuring_.front()]->queue(), /*holds=*/true, kPatience);
    for (const std::uint32_t device : measuring_) {
      use(device);
      PLUMBLINE_CUDA(devices_.driver(), cuStreamWaitEvent, timers_[device]->queue().stream,
                     gate.opens(), 0);
    }
    const bool updates = !is_bare && ++noted_bursts_ % 3 == 0;
    if (takes_turns()) {
      enqueue_in_turns(updates);
    } else {
      enqueue_together(is_bare, updates);
    }
    if (!is_bare && !updates && update_at_once()) enqueue_updates_at_once();
    gate.open();
    for (const std::uint32_t device : measuring_) {
      use(device);
      PLUMBLINE_CUDA(devices_.driver(), cuStreamSynchronize, timers_[device]->queue().stream);
    }
    // A burst whose gate opened by itself does not count, and the next ones are shorter, because it
    // may have filled the queues. The shortest ones count in any case.
    const bool counts = gate.was_in_time() || max_turns_ == kMinTurns;
    if (!counts) max_turns_ = std::max(max_turns_ / 2, kMinTurns);
    for (const std::uint32_t device : measuring_) {
      use(device);
      timers_[device]->finish(counts);
    }
  }
  void stop() override {}
  bool all_done() const override {
    return std::all_of(measuring_.begin(), measuring_.end(),
                       [&](std::uint32_t device) { return timers_[device]->is_done(); });
  }
  std::size_t cycle() const override { return timers_.front()->cycle(); }
  std::size_t min_turns() const override {
    std::size_t min = timers_[measuring_.front()]->turns();
    for (const std::uint32_t device : measuring_) {
      const CudaStageTimer& timer = *timers_[device];
      min = std::min(min, timer.turns());
      if (!timer.has_been_bare() && wants_bare() && timer.turns() < kMaxCycles * cycle()) return 0;
      if (!timer.has_updated(false) || (update_at_once() && !timer.has_updated(true))) return 0;
    }
    return min;
  }
  bool measures_clock() const override { return true; }
  std::optional<double> clock() override {
    for (const std::uint32_t device : measuring_) {
      use(device);
      timers_[device]->count_cycles();
    }
    std::optional<double> slowest;
    for (const std::uint32_t device : measuring_) {
      use(device);
      const double mhz = timers_[device]->clock();
      slowest = std::min(slowest.value_or(mhz), mhz);
    }
    return slowest;
  }
  const std::vector<PassTimes>& was_measured(std::uint32_t device) const override {
    return timers_[device]->was_measured();
  }

 private:
  void use(std::uint32_t device) {
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, devices_.all()[device].context);
  }
  /// Whether fewer devices work at a time than walk.
  bool takes_turns() const { return at_once_ < measuring_.size(); }
  /// Whether the time of events around passes matters on the fastest device. Then all devices have
  /// bare turns, too. Devices that take turns have none: events stand between them.
  bool wants_bare() const {
    return !takes_turns() &&
           std::any_of(measuring_.begin(), measuring_.end(), [&](std::uint32_t device) {
             return timers_[device]->turn_time() < kLongestBare;
           });
  }
  bool can_be_bare() const {
    return std::all_of(measuring_.begin(), measuring_.end(),
                       [&](std::uint32_t device) { return timers_[device]->can_be_bare(); });
  }
  /// Whether updates are made at once, as after a flush: if all of several devices walk together.
  bool update_at_once() const {
    return measuring_.size() > 1 && measuring_.size() == timers_.size() && !takes_turns();
  }
  void enqueue_together(bool is_bare, bool updates) {
    std::vector<std::size_t> turns;
    turns.reserve(measuring_.size());
    for (const std::uint32_t device : measuring_) turns.push_back(turns_of(*timers_[device]));
    for (std::size_t turn = 0; turn < *std::max_element(turns.begin(), turns.end()); ++turn) {
      for (std::size_t i = 0; i < measuring_.size(); ++i) {
        if (turn >= turns[i]) continue;
        CudaStageTimer& timer = *timers_[measuring_[i]];
        use(measuring_[i]);
        if (is_bare) {
          timer.enqueue_bare_turn(turn == 0, turn + 1 == turns[i]);
        } else {
          timer.enqueue_forward(updates);
          timer.enqueue_backward();
        }
      }
    }
  }
  /// Forwards up through all devices and backwards down again, as a micro-batch goes. So each
  /// device finds the caches as the others left them. A pass waits until the one has ended that
  /// comes as many passes before it as devices work at a time.
  void enqueue_in_turns(bool updates) {
    const CudaDriver& driver = devices_.driver();
    struct Ended {
      std::uint32_t device = 0;
      CUevent event = nullptr;
    };
    std::vector<Ended> ended;
    ended.reserve(2 * kMinTurns * measuring_.size());
    const auto in_turn = [&](std::uint32_t device, const auto& enqueue) {
      use(device);
      CudaEvents& events = passed_[device];
      if (events.all().empty()) events = CudaEvents(driver, 2 * kMinTurns, CU_EVENT_DISABLE_TIMING);
      const CUstream stream = timers_[device]->queue().stream;
      if (ended.size() >= at_once_ && ended[ended.size() - at_once_].device != device) {
        PLUMBLINE_CUDA(driver, cuStreamWaitEvent, stream, ended[ended.size() - at_once_].event, 0);
      }
      enqueue(*timers_[device]);
      const CUevent event = events[ended.size() / measuring_.size()];
      PLUMBLINE_CUDA(driver, cuEventRecord, event, stream);
      ended.push_back({device, event});
    };
    for (std::size_t turn = 0; turn < kMinTurns; ++turn) {
      for (const std::uint32_t device : measuring_)
        in_turn(device, [&](CudaStageTimer& timer) { timer.enqueue_forward(updates); });
      for (std::size_t i = measuring_.size(); i-- > 0;)
        in_turn(measuring_[i], [](CudaStageTimer& timer) { timer.enqueue_backward(); });
    }
  }
  void enqueue_updates_at_once() {
    const CudaDriver& driver = devices_.driver();
    for (const std::uint32_t device : measuring_) {
      use(device);
      CudaEvents& ended = ended_[device];
      if (ended.all().empty()) ended = CudaEvents(driver, 1, CU_EVENT_DISABLE_TIMING);
      PLUMBLINE_CUDA(driver, cuEventRecord, ended[0], timers_[device]->queue().stream);
    }
    for (const std::uint32_t device : measuring_) {
      use(device);
      for (const std::uint32_t other : measuring_) {
        if (other == device) continue;
        PLUMBLINE_CUDA(driver, cuStreamWaitEvent, timers_[device]->queue().stream, ended_[other][0],
                       0);
      }
      timers_[device]->enqueue_update_at_once();
    }
  }
  /// The number of turns for which a burst has time. The fastest device must not have too many.
  /// More important, the slowest must not have too few.
  std::size_t turns_of(const CudaStageTimer& timer) const {
    double slowest = 0;
    double fastest = kBurst;
    for (const std::uint32_t device : measuring_) {
      const double time = timers_[device]->turn_time();
      if (time == 0) return kMinTurns;
      slowest = std::max(slowest, time);
      fastest = std::min(fastest, time);
    }
    const double burst = std::max(static_cast<double>(kMinTurns) * slowest,
                                  std::min(kBurst, static_cast<double>(max_turns_) * fastest));
    const auto turns = static_cast<std::size_t>(std::llround(burst / timer.turn_time()));
    return std::max(turns, kMinTurns);
  }

  CudaDevices& devices_;
  CudaLaunching& launching_;
  CudaLaunchTimes launches_;
  RealTime warm_up_;
  std::map<std::uint32_t, CudaGate> gates_;  ///< By device, like the next two.
  std::map<std::uint32_t, CudaEvents> ended_;
  std::map<std::uint32_t, CudaEvents> passed_;  ///< Each pass of a burst in turns.
  std::map<std::uint32_t, double> stamps_;      ///< time_of_stamps, by how many work at once.
  std::size_t bursts_ = 0;
  std::size_t noted_bursts_ = 0;
  std::size_t max_turns_;
  std::vector<std::unique_ptr<CudaStageTimer>> timers_;
  std::vector<std::uint32_t> measuring_;
  std::uint32_t at_once_ = 1;
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
            std::make_unique<DeviceLibraries>(*devices_, network, options.builtin_kernels, nccl)),
        launching_(options.graphs ? launching_on(*devices_) : CudaLaunching{false, "--no-graphs"}) {
  }

  std::string_view backend() const override { return "cuda"; }
  bool takes_turns() const override { return true; }
  std::optional<Diagnostic> check_network_runs(const Network& network,
                                               const Mark& mark) const override {
    return check_for_cuda(network, mark);
  }
  std::optional<Diagnostic> check_count(std::uint32_t, const Mark&) const override {
    return std::nullopt;  // the devices are open
  }
  std::optional<Bytes> available_memory() const override {
    Bytes sum;
    for (const CudaDevice& device : devices_->all()) {
      std::size_t free = 0;
      std::size_t total = 0;
      PLUMBLINE_CUDA(*driver_, cuCtxSetCurrent, device.context);
      PLUMBLINE_CUDA(*driver_, cuMemGetInfo, &free, &total);
      sum += Bytes{static_cast<std::int64_t>(free)};
      if (devices_->split()) break;  // the devices share it
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
  std::unique_ptr<StageTimers> timers(const Network& network, const StageLayers& stages,
                                      const CalibrationOptions& options,
                                      std::int64_t batch) override {
    return std::make_unique<CudaStageTimers>(
        *devices_, *libraries_, launching_, network, stages, options, batch,
        static_cast<RealTime>(options_.warm_up_seconds * 1e9), options_.max_turns, launches());
  }
  Overheads overheads(const Network& network, const CalibrationOptions& options) override {
    Overheads overheads;
    overheads.per_op = Duration{std::llround(launches().beside + launches().signals)};
    overheads.hand_over = Duration{std::llround(launches().crossing)};
    const StageLayout whole(network, 0, network.layers.size() - 1, 1, kCudaAlignment);
    overheads.add_up = measure_cuda_sums(*devices_, network.element,
                                         whole.parameters() / (options.devices / options.copies));
    return overheads;
  }
  std::map<std::string, std::string> algorithms() const override { return libraries_->choices(); }
  void take_algorithms(const std::map<std::string, std::string>& algorithms) override {
    libraries_->take(algorithms);
  }
  std::unique_ptr<KernelBench> kernel_bench(const KernelForms& forms) override {
    const CudaDevice& device = devices_->all().front();
    PLUMBLINE_CUDA(*driver_, cuCtxSetCurrent, device.context);
    return cuda_kernel_bench(libraries_->queue(0, device.compute), forms);
  }
  std::vector<MeasuredLink> links(const Network& network, const StageLayers& stages,
                                  const CalibrationOptions& options,
                                  const std::vector<Bytes>& sizes) override {
    auto walkers = walkers_beside_transfers(network, stages, options);
    std::optional<CudaWorkBeside> beside;
    if (!walkers.empty()) beside.emplace(*devices_, walkers);
    // After the walkers: where these could not be recorded, nothing is replayed from then on.
    return measure_cuda_links(*devices_, launching_, launches(), libraries_->nccl(), sizes,
                              beside && launching_.replays ? &*beside : nullptr);
  }

 private:
  /// The stages of all devices but the first two, between which transfers are timed. None where
  /// nobody's work can matter or none is asked for: GPUs have memories of their own, and the work
  /// of a slow host would end before the transfers.
  std::vector<std::unique_ptr<CudaStageTimer>> walkers_beside_transfers(
      const Network& network, const StageLayers& stages, const CalibrationOptions& options) {
    std::vector<std::unique_ptr<CudaStageTimer>> walkers;
    if (!devices_->split() || !options.slowdown || !launching_.replays) return walkers;
    for (std::uint32_t device = 2; device < stages.size(); ++device) {
      const CudaDevice& on = devices_->all()[device];
      PLUMBLINE_CUDA(*driver_, cuCtxSetCurrent, on.context);
      walkers.push_back(std::make_unique<CudaStageTimer>(
          libraries_->queue(device, on.compute), on.context, network,
          measuring(stages, options, batches_of(options).back(), device), launching_,
          launches().beside));
    }
    return walkers;
  }

  /// The launch times. Measured before the first walk, as they are subtracted from bare turns, and
  /// again if something could not be recorded since.
  const CudaLaunchTimes& launches() {
    if (!launches_ || are_of_graphs_ != launching_.replays)
      launches_ = measure_launch_times(*devices_, launching_);
    are_of_graphs_ = launching_.replays;
    return *launches_;
  }

  std::unique_ptr<CudaDriver> driver_;  // first, as the others call it
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
  } catch (const std::runtime_error& error) {  // from the driver or a library
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
