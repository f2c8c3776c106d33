// Iterations on streams: enqueuing, waiting, and giving up.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/bug.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/gate.h"
#include "calibrate/cuda/driver/leak_on_hang.h"
#include "calibrate/cuda/driver/range.h"
#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/program/device_progress.h"
#include "calibrate/cuda/program/measured_iteration.h"
#include "calibrate/cuda/program/run_remarks.h"
#include "calibrate/cuda/program/spinner.h"
#include "calibrate/cuda/program/streams.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/ledger.h"

namespace plumbline {
namespace {

/// The time after progress during which events are queried without a pause.
constexpr RealTime kEager = 1'000'000;
/// A step that takes the host so long to enqueue was blocked by the gate.
constexpr RealTime kBlocked = CudaGate::kPatience / 4;

std::unique_ptr<CudaWork> work_of(CudaDevices& devices, DeviceLibraries* libraries,
                                  const CudaTraining& training, const RunPlan& plan,
                                  const CudaProgram& program) {
  if (training.network == nullptr) return std::make_unique<CudaSpinner>(devices, plan.graph);
  return std::make_unique<CudaTrainer>(devices, *libraries, training, plan, program);
}

/// One run from its program to its record.
class CudaRig {
 public:
  CudaRig(CudaDevices& devices, DeviceLibraries* libraries, CudaLaunching& launching,
          const CudaTraining& training, const RunPlan& plan, CudaProgram program,
          const RunOptions& options)
      : devices_(devices),
        launching_(launching),
        driver_(devices.driver()),
        graph_(plan.graph),
        program_(std::move(program)),
        options_(options),
        current_(devices),
        lanes_(devices, program_),
        emulator_(devices, plan.graph, program_, lanes_, training.keeps_links),
        work_(work_of(devices, libraries, training, plan, program_)),
        progress_(current_, plan.graph, program_),
        timing_(plan.graph.slots()) {
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) ledgers_.emplace_back(plan, slot);
    names_.reserve(program_.steps.size());
    for (const CudaStep& step : program_.steps)
      names_.push_back(to_text(graph_.activities[step.node]));
    if (options_.max_iterations == 0) options_.max_iterations = 2 * options_.iterations;
  }
  ~CudaRig() { forget_errors(); }
  CudaRig(const CudaRig&) = delete;
  CudaRig& operator=(const CudaRig&) = delete;

  RunResult run() {
    try {
      for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) prepare(slot);
      current_.is_at(0);
      is_prepared_ = true;
      return measure();
    } catch (const Hang& hang) {
      is_abandoned_ = true;
      return hung(hang);
    } catch (const Bug&) {  // not a failure of the run
      throw;
    } catch (const std::exception& error) {
      return failed(error.what());
    }
  }

  bool is_abandoned() const { return is_abandoned_; }

  /// The parameters of each stage after a successful run.
  std::vector<std::vector<float>> parameters() {
    std::vector<std::vector<float>> all;
    for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s) {
      use(graph_.stage_slots[s].front());
      all.push_back(work_->parameters(s));
    }
    return all;
  }
  const std::vector<double>& losses() const { return losses_; }
  double clock_mhz() const { return clock_mhz_; }

  std::vector<std::string> remarks(const RunRecord& record) const {
    std::vector<std::string> remarks;
    for (std::string remark :
         {memory_remark(graph_, *work_, record), streams_remark(devices_, lanes_.size())}) {
      if (!remark.empty()) remarks.push_back(std::move(remark));
    }
    return remarks;
  }

 private:
  enum Timing : std::uint8_t { origin, end, timings };
  /// The events of a step: its begin on its own stream, its end on the stream of its arrival.
  struct Told {
    CudaEvents begin;
    CudaEvents end;
  };

  // ---- what is there before the first iteration ----

  void use(std::uint32_t slot) { current_.use(slot); }
  CudaDevice& device(std::uint32_t slot) { return devices_.all()[slot]; }

  void prepare(std::uint32_t slot) {
    use(slot);
    work_->prepare(slot);
    timing_[slot] = CudaEvents(driver_, timings, CU_EVENT_DEFAULT);
    traced_.resize(program_.steps.size());
    for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
      const CudaStep& step = program_.steps[i];
      if (step.slot != slot) continue;
      lanes_.use(step.stream);
      traced_[i].begin = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
      lanes_.use(emulator_.arrival_of(i));
      traced_[i].end = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
      if (step.signals) progress_.make_signal(i);
    }
    use(slot);
    if (slot == 0) ended_ = CudaEvents(driver_, 1, CU_EVENT_DISABLE_TIMING);
  }

  // ---- iterations ----

  RunResult measure() {
    RunRecord record;
    const RealTime begin = now();
    for (std::uint32_t i = 0; i < options_.warm_up; ++i) {
      execute(/*tells=*/i + 1 == options_.warm_up);
      tell_progress();
    }
    while (now() - begin < options_.min_warm_up.count()) execute(/*tells=*/false);
    const std::uint32_t wanted = std::min(options_.iterations, options_.max_iterations);
    std::uint32_t clean = 0;
    while (clean < wanted && record.iterations.size() < options_.max_iterations) {
      const bool in_time = execute(/*tells=*/false);
      const Duration untraced = time_of_iteration();
      const bool both_in_time = execute(/*tells=*/true) && in_time;
      clean += both_in_time ? 1 : 0;
      if (clean == wanted || record.iterations.size() + 1 == options_.max_iterations)
        count_cycles();
      record.iterations.push_back(read_back());
      record.iterations.back().untraced = untraced;
      record.iterations.back().clean = both_in_time;
      tell_progress();
    }
    return record;
  }

  /// Measures the clock rate. It only serves for a remark, so a failure here does not fail the run.
  void count_cycles() {
    use(0);
    const CudaQueue queue = bare_queue(driver_, device(0), device(0).compute);
    try {
      CudaClock clock;
      clock.count(queue);
      clock_mhz_ = clock.mhz(queue);
    } catch (const CudaError&) {
      clock_mhz_ = 0;
    }
  }

  void tell_progress() {
    ++iterations_done_;
    if (options_.progress)
      options_.progress(iterations_done_, options_.warm_up + options_.iterations);
  }

  /// One iteration, from the first call to the end of all work. Returns whether the host was in
  /// time: no device had to wait for it.
  bool execute(bool tells) {
    progress_.restart();
    record();
    // What runs for the first time may wait for the device while it is loaded.
    begin(/*holds=*/has_run_[work_->phase()]);
    const bool in_time = enqueue_all(tells);
    at_step_.reset();
    finish();
    gate_.open();
    watch();
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      work_->bring_losses(slot);
      PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device(slot).compute);
    }
    has_run_[work_->phase()] = true;
    work_->end_iteration();
    if (const auto loss = work_->mean_loss()) losses_.push_back(*loss);
    return in_time && gate_.was_in_time();
  }

  /// Enqueues all steps behind the gate. A stream takes some 1000 launches; then the host is
  /// blocked until the gate opens by itself. From then on the gate opens a good part earlier, and
  /// no device may come as far as the host is. Returns whether none did.
  bool enqueue_all(bool tells) {
    bool in_time = true;
    std::optional<std::uint32_t> told;  // the last step whose end can be asked for
    RealTime before = now();
    for (std::uint32_t i = 0; i < program_.steps.size(); i += program_.steps[i].together) {
      if (i >= opens_before_) gate_.open();
      if (gate_.is_open() && opens_before_ < program_.steps.size() && told) {
        use(program_.steps[*told].slot);
        in_time = in_time && !progress_.has_ended(progress_.signal(*told));
      }
      enqueue(i, tells);
      if (program_.steps[i].signals) told = i;
      const RealTime after = now();
      if (after - before > kBlocked) opens_before_ = std::min(opens_before_, i - i / 4);
      before = after;
    }
    return in_time;
  }

  /// Records the ops of this phase after it has run once, when nothing is left to load.
  void record() {
    auto& recorded = recordings_[work_->phase()];
    if (!launching_.replays || !recorded.empty() || !has_run_[work_->phase()]) return;
    const bool is_recorded = launching_.try_to(driver_, [&] {
      recorded.resize(program_.steps.size());
      for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
        const CudaStep& step = program_.steps[i];
        if (is_moving(step.kind)) continue;  // it is one call anyway
        current_.is_at(step.slot);
        lanes_.use(step.stream);
        at_step_ = i;
        const CUstream stream = lanes_[step.stream];
        recorded[i] = CudaRecording(driver_, stream, [&] { work_->enqueue(step, stream); });
      }
    });
    at_step_.reset();
    if (is_recorded) return;
    for (auto& of_phase : recordings_) of_phase.clear();
  }

  const CudaRecording* recording_of(std::uint32_t step) const {
    const auto& recorded = recordings_[work_->phase()];
    return recorded.empty() || !recorded[step] ? nullptr : &recorded[step];
  }

  /// All streams wait for one event. Then each device records its origin of time.
  void begin(bool holds) {
    use(0);
    gate_.close(bare_queue(driver_, device(0), device(0).compute), holds);
    lanes_.start_behind(gate_.opens());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      PLUMBLINE_CUDA(driver_, cuEventRecord, timing_[slot][origin], device(slot).compute);
    }
  }

  /// Enqueues the step, and those that begin together with it.
  void enqueue(std::uint32_t first, bool tells) {
    const std::uint32_t count = program_.steps[first].together;
    std::optional<CudaRange> range;
    if (tells) range.emplace(names_[first].c_str());
    if (count == 1) {
      const CudaStep& step = program_.steps[first];
      begin_step(first, tells);
      if (const CudaRecording* recorded = recording_of(first)) {
        recorded->replay(lanes_[step.stream]);
      } else {
        work_->enqueue(step, lanes_[step.stream]);
      }
      end_step(first, tells);
      return;
    }
    std::vector<CUstream> streams;
    streams.reserve(count);
    for (std::uint32_t i = first; i < first + count; ++i) {
      begin_step(i, tells);
      streams.push_back(lanes_[program_.steps[i].stream]);
    }
    work_->enqueue_together(std::span(program_.steps).subspan(first, count), streams);
    for (std::uint32_t i = first; i < first + count; ++i) end_step(i, tells);
  }

  void begin_step(std::uint32_t i, bool tells) {
    const CudaStep& step = program_.steps[i];
    at_step_ = i;
    current_.is_at(step.slot);
    lanes_.use(step.stream);
    const CUstream stream = lanes_[step.stream];
    for (const std::uint32_t before : step.waits)
      PLUMBLINE_CUDA(driver_, cuStreamWaitEvent, stream, progress_.signal(before), 0);
    if (tells) PLUMBLINE_CUDA(driver_, cuEventRecord, traced_[i].begin[0], stream);
    emulator_.begin(i);
  }

  void end_step(std::uint32_t i, bool tells) {
    const CudaStep& step = program_.steps[i];
    lanes_.use(step.stream);  // a library may have made another context current
    emulator_.end(i);
    const CUstream arrived = lanes_[emulator_.arrival_of(i)];
    if (tells) PLUMBLINE_CUDA(driver_, cuEventRecord, traced_[i].end[0], arrived);
    if (step.signals) PLUMBLINE_CUDA(driver_, cuEventRecord, progress_.signal(i), arrived);
  }

  /// Each device records an event when its last op has ended. Then the first device records one
  /// when all streams have ended. Waiting for each stream takes some microseconds, which are not
  /// part of the iteration.
  void finish() {
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      for (const std::uint32_t before : program_.awaited[slot])
        PLUMBLINE_CUDA(driver_, cuStreamWaitEvent, device(slot).compute, progress_.signal(before),
                       0);
      PLUMBLINE_CUDA(driver_, cuEventRecord, timing_[slot][end], device(slot).compute);
    }
    lanes_.join();
    PLUMBLINE_CUDA(driver_, cuEventRecord, ended_[0], device(0).compute);
  }

  /// The time until the last device has ended, each by its own clock.
  Duration time_of_iteration() {
    Duration longest{};
    for (const CudaEvents& timing : timing_)
      longest = std::max(longest, between(timing[origin], timing[end]));
    return longest;
  }

  Duration between(CUevent first, CUevent second) {
    float milliseconds = 0;
    PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, first, second);
    return Duration{std::llround(double{milliseconds} * 1e6)};
  }

  // ---- waiting ----

  /// Queries events until all work has ended.
  void watch() {
    const RealTime patience =
        std::chrono::duration_cast<std::chrono::nanoseconds>(options_.patience).count();
    RealTime progress = now();
    while (true) {
      bool any = false;
      for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
        use(slot);
        any = progress_.come_on(slot) || any;
      }
      use(0);
      if (progress_.has_ended(ended_[0])) break;
      if (any) progress = now();
      const RealTime still = now() - progress;
      if (still > kEager) {
        if (const auto hang = progress_.find_hang(still, patience)) throw *hang;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    progress_.end_all();
  }

  // ---- what was measured ----

  MeasuredIteration read_back() {
    return measured_iteration(graph_, program_, ledgers_,
                              [&](std::uint32_t first, std::uint32_t last) {
                                const std::uint32_t slot = program_.steps[last].slot;
                                use(slot);
                                const CUevent own_origin = timing_[slot][origin];
                                return std::pair{between(own_origin, traced_[first].begin[0]),
                                                 between(own_origin, traced_[last].end[0])};
                              });
  }

  // ---- when it goes wrong ----

  RunFailure failed(const std::string& why) {
    RunFailure failure;
    failure.kind = RunFailure::Kind::failed;
    failure.stands = progress_.stands(is_prepared_);
    const std::uint32_t slot = std::min(current_.slot(), graph_.slots() - 1);
    DeviceStand& stand = failure.stands[slot];
    if (at_step_) stand.node = program_.steps[*at_step_].node;
    const bool at_op = at_step_ || stand.state == DeviceStand::State::runs ||
                       stand.state == DeviceStand::State::waits;
    if (at_op) {
      failure.message = fmt::format("device {} failed at {}: {}", graph_.devices[slot].value,
                                    to_text(graph_.activities[stand.node]), why);
      stand = {DeviceStand::State::failed, stand.node, std::nullopt};
    } else {
      failure.message = fmt::format("device {} failed: {}", graph_.devices[slot].value, why);
    }
    return failure;
  }

  RunFailure hung(const Hang& hang) const {
    RunFailure failure;
    failure.kind = RunFailure::Kind::hung;
    failure.stands = progress_.stands(is_prepared_);
    const std::uint32_t node = failure.stands[hang.slot].node;
    failure.message =
        fmt::format("device {} hangs: {} has run for {:.1f} s, and {:.6g} s were predicted",
                    graph_.devices[hang.slot].value, to_text(graph_.activities[node]),
                    static_cast<double>(hang.for_so_long) / 1e9, seconds(graph_.cost(node).hold));
    return failure;
  }

  /// Enqueued work must end before its memory is freed. Its errors have been reported already.
  void forget_errors() { lanes_.drain(); }

  CudaDevices& devices_;
  CudaLaunching& launching_;
  const CudaDriver& driver_;
  const OpGraph& graph_;
  const CudaProgram program_;
  RunOptions options_;
  CurrentDevice current_;
  StreamSet lanes_;
  LinkEmulator emulator_;
  std::unique_ptr<CudaWork> work_;
  CudaGate gate_;  ///< On the first device.
  CudaEvents ended_;
  DeviceProgress progress_;
  std::vector<CudaEvents> timing_;  ///< By slot: the iteration's origin and end.
  std::vector<Ledger> ledgers_;
  std::vector<std::string> names_;  ///< One per step: its slice's name in the trace.
  std::vector<Told> traced_;        ///< One per step.
  /// By phase, one per step; empty unless ops are replayed.
  std::array<std::vector<CudaRecording>, 2> recordings_;
  std::array<bool, 2> has_run_{};  ///< By phase.
  /// The gate opens before this step; after all where the queues have room for them.
  std::uint32_t opens_before_ = std::numeric_limits<std::uint32_t>::max();
  std::vector<double> losses_;
  double clock_mhz_ = 0;  ///< The first device's, after the last iteration; 0 = not known.
  std::uint32_t iterations_done_ = 0;
  bool is_prepared_ = false;
  bool is_abandoned_ = false;
  std::optional<std::uint32_t> at_step_;  ///< The step that is being enqueued.
};

/// Restores the context that was current.
class OwnContext {
 public:
  explicit OwnContext(const CudaDriver& driver) : driver_(driver) {
    driver_.cuCtxGetCurrent(&before_);
  }
  ~OwnContext() { driver_.cuCtxSetCurrent(before_); }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;

 private:
  const CudaDriver& driver_;
  CUcontext before_ = nullptr;
};

}  // namespace

CudaRun run_on_cuda(CudaDevices& devices, DeviceLibraries* libraries, CudaLaunching& launching,
                    const CudaTraining& training, const RunPlan& plan, const DeviceOrders& orders,
                    const RunOptions& options) {
  PLUMBLINE_CHECK(devices.all().size() == plan.graph.slots() && options.iterations > 0,
                  devices.all().size(), plan.graph.slots(), options.iterations);
  CudaRun run;
  const bool communicates = libraries != nullptr && libraries->nccl() != nullptr;
  auto laid_out = cuda_program(plan, stage_bytes(plan, training), orders,
                               {training.recompute, training.updates, communicates});
  if (!laid_out.program) {
    run.result = std::move(laid_out.failure);
    return run;
  }
  const OwnContext own(devices.driver());
  std::unique_ptr<CudaRig> execution;
  try {
    execution = std::make_unique<CudaRig>(devices, libraries, launching, training, plan,
                                          *std::move(laid_out.program), options);
  } catch (const CudaError& error) {
    RunFailure failure;
    failure.kind = RunFailure::Kind::failed;
    failure.message = fmt::format("no streams or memory for the run: {}", error.what());
    failure.stands.assign(plan.graph.slots(), {DeviceStand::State::starts, 0, std::nullopt});
    run.result = std::move(failure);
    return run;
  }
  run.result = execution->run();
  run.learnt.losses = execution->losses();
  run.abandoned = execution->is_abandoned();
  if (const auto* record = std::get_if<RunRecord>(&run.result)) {
    run.learnt.parameters = execution->parameters();
    run.clock_mhz = execution->clock_mhz();
    run.remarks = execution->remarks(*record);
  }
  if (run.abandoned) leave_behind(std::move(execution));
  return run;
}

}  // namespace plumbline
