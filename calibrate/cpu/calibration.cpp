// A thread for each core that walks.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/parallel.h"
#include "calibrate/cpu/backend.h"
#include "calibrate/cpu/kernel_bench.h"
#include "calibrate/cpu/layer.h"
#include "calibrate/cpu/overheads.h"
#include "calibrate/cpu/stage_timer.h"
#include "calibrate/runtime/machine.h"
#include "calibrate/training/stage_layout.h"

namespace plumbline {
namespace {

constexpr RealTime kWarmUp = 500'000'000;
/// The warm-up after a pause between two rounds. The caches still have most of their content.
constexpr RealTime kShortWarmUp = 50'000'000;

class CpuStageTimers : public StageTimers {
 public:
  CpuStageTimers(const Network& network, const StageLayers& stages,
                 const CalibrationOptions& options, std::int64_t batch) {
    timers_.reserve(stages.size());
    for (std::uint32_t device = 0; device < stages.size(); ++device) {
      const TimerTask task{stages[device].first, stages[device].second, batch,       device,
                           options.devices,      options.optimizer,     options.seed};
      timers_.push_back(std::make_unique<StageTimer>(network, task));
    }
  }
  ~CpuStageTimers() override { join_all(); }

  RealTime warm_up(bool is_first) const override { return is_first ? kWarmUp : kShortWarmUp; }
  void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
             std::uint32_t in_flight, Duration before,
             std::vector<StageSamples>& samples) override {
    measuring_pass_.measuring = 0;
    measuring_pass_.stop = false;
    measuring_pass_.turns.restart(at_once);
    measuring_ = devices;
    threads_.reserve(devices.size());
    for (const std::uint32_t device : devices) {
      timers_[device]->start(in_flight, before, samples[device]);
      threads_.emplace_back([this, device] { walk(device); });
    }
  }
  void count_from(RealTime time) override { measuring_pass_.measuring = time; }
  void go_on() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (thrown_.is_kept()) stop();
  }
  void stop() override {
    join_all();
    thrown_.rethrow();
  }
  bool all_done() const override {
    return std::all_of(measuring_.begin(), measuring_.end(),
                       [&](std::uint32_t device) { return timers_[device]->is_done(); });
  }
  std::size_t min_turns() const override {
    std::size_t min = timers_[measuring_.front()]->turns();
    for (const std::uint32_t device : measuring_) min = std::min(min, timers_[device]->turns());
    return min;
  }
  std::optional<double> clock() override { return clock_now(); }
  const std::vector<PassTimes>& was_measured(std::uint32_t device) const override {
    return timers_[device]->was_measured();
  }

 private:
  /// The main function of one device's thread.
  void walk(std::uint32_t device) {
    try {
      timers_[device]->measure_pass(measuring_pass_);
    } catch (...) {
      thrown_.keep_current();
      measuring_pass_.stop = true;
    }
  }
  void join_all() {
    measuring_pass_.stop = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::vector<std::unique_ptr<StageTimer>> timers_;
  std::vector<std::uint32_t> measuring_;
  Measuring measuring_pass_;
  FirstException thrown_;
  std::vector<std::thread> threads_;
};

class Cores : public CalibrationDevices {
 public:
  std::string_view backend() const override { return "cpu"; }
  bool takes_turns() const override { return true; }
  std::optional<Diagnostic> check_network_runs(const Network& network,
                                               const Mark& mark) const override {
    return check_for_cpu(network, mark);
  }
  std::optional<Diagnostic> check_count(std::uint32_t devices, const Mark& mark) const override {
    if (devices <= usable_cores()) return std::nullopt;
    Diagnostic missing = input_error(mark,
                                     fmt::format("{} devices, but there {} {} core{}", devices,
                                                 usable_cores() == 1 ? "is" : "are", usable_cores(),
                                                 usable_cores() == 1 ? "" : "s"),
                                     "every device is a core of its own");
    missing.fault = Fault::no_device;
    return missing;
  }
  std::optional<Bytes> available_memory() const override { return plumbline::available_memory(); }
  CalibrationHead head() const override {
    return {{"processor", printable(processor_name())},
            {"cores", std::to_string(usable_cores())},
            {"library", cpu_library()}};
  }
  std::map<std::string, std::string> provenance(std::uint32_t devices) const override {
    return cpu_provenance(devices);
  }
  std::unique_ptr<StageTimers> timers(const Network& network, const StageLayers& stages,
                                      const CalibrationOptions& options,
                                      std::int64_t batch) override {
    return std::make_unique<CpuStageTimers>(network, stages, options, batch);
  }
  std::unique_ptr<KernelBench> kernel_bench(const KernelForms& forms) override {
    return cpu_kernel_bench(forms);
  }
  Overheads overheads(const Network& network, const CalibrationOptions& options) override {
    Overheads overheads = measure_overheads();
    const StageLayout whole(network, 0, network.layers.size() - 1, 1, sizeof(float));
    const std::size_t stages = options.devices / options.copies;
    const std::size_t parameters = whole.parameters() / sizeof(float) / stages;
    overheads.add_up = measure_add_up(options.optimizer, parameters);
    overheads.stash = measure_stash(options.optimizer, parameters);
    return overheads;
  }
};

}  // namespace

std::unique_ptr<CalibrationDevices> cpu_devices() { return std::make_unique<Cores>(); }

CalibrationHead calibration_head(const Network& network, const CalibrationOptions& options,
                                 std::string_view tool) {
  return calibration_head(Cores(), network, options, tool);
}

std::optional<Diagnostic> check_calibration(const Network& network, const Mark& mark,
                                            const CalibrationOptions& options) {
  return check_calibration(Cores(), network, mark, options);
}

Result<Measured> measure_layers(const Network& network, const Mark& mark,
                                const CalibrationOptions& options) {
  Cores cores;
  return measure_layers(cores, network, mark, options);
}

Result<Calibration> calibration_of(const Network& network, const Mark& mark,
                                   const CalibrationOptions& options, const Measured& measured) {
  return calibration_of(Cores(), network, mark, options, measured);
}

}  // namespace plumbline
