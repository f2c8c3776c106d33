// Iterations on streams: enqueuing, waiting, reading events back, and giving up.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
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
#include "calibrate/cuda/program/spinner.h"
#include "calibrate/cuda/program/streams.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/ledger.h"

namespace plumbline {
namespace {

/// Questions come without a pause for so long after progress.
constexpr RealTime kEager = 1'000'000;

/// A device has not come on for too long.
struct Hang {
  std::uint32_t slot = 0;
  RealTime for_so_long = 0;
};

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
        lanes_(devices, program_),
        emulator_(devices, plan.graph, program_, lanes_, training.keeps_links),
        work_(work_of(devices, libraries, training, plan, program_)),
        on_device_(plan.graph.slots()) {
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) ledgers_.emplace_back(plan, slot);
    names_.reserve(program_.steps.size());
    for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
      const CudaStep& step = program_.steps[i];
      if (!step.sends) on_device_[step.slot].steps.push_back(i);
      names_.push_back(to_text(graph_.activities[step.node]));
    }
    if (options_.max_iterations == 0) options_.max_iterations = 2 * options_.iterations;
  }
  ~CudaRig() { forget_errors(); }
  CudaRig(const CudaRig&) = delete;
  CudaRig& operator=(const CudaRig&) = delete;

  RunResult run() {
    try {
      for (at_slot_ = 0; at_slot_ < graph_.slots(); ++at_slot_) prepare(at_slot_);
      at_slot_ = 0;
      is_prepared_ = true;
      return measure();
    } catch (const Hang& hang) {
      is_abandoned_ = true;
      return hung(hang);
    } catch (const Bug&) {  // no failure of the run
      throw;
    } catch (const std::exception& error) {
      return failed(error.what());
    }
  }

  bool is_abandoned() const { return is_abandoned_; }

  /// After a run that went well.
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

  /// Streams beyond the connections to a GPU share them, and then wait for each other.
  std::string streams_remark() const {
    constexpr std::size_t kConnections = 32;  // as load_cuda_driver asks for
    if (!devices_.split() || lanes_.size() <= kConnections) return "";
    return fmt::format(
        "{} streams share the {} connections to the GPU: some wait for others although they need "
        "not; fewer devices, or links without a latency, take fewer",
        lanes_.size(), kConnections);
  }

  /// What the books say beside what was allocated, of the device where they differ the most.
  std::string memory_remark(const RunRecord& record) const {
    double worst = -1;
    std::string text;
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      const auto booked =
          static_cast<double>(record.iterations.front().memory[slot].peak.sum().count);
      const auto bytes = work_->allocated(slot);
      if (!bytes) return "";
      const auto allocated = static_cast<double>(*bytes);
      const double off = std::abs(allocated - booked) / std::max(booked, 1.0);
      if (off <= worst) continue;
      worst = off;
      text =
          fmt::format("device {} allocated {:.1f} MiB for tensors of which its books hold {:.1f}",
                      graph_.devices[slot].value, allocated / 0x1p20, booked / 0x1p20);
    }
    return text;
  }

 private:
  struct OnDevice {
    std::vector<std::uint32_t> steps;  ///< Of its compute stream, in order.
    std::size_t ended = 0;             ///< So many of them are known to have ended.
    std::uint32_t awaits = kNone32;    ///< Behind all of them: the step that has not come yet.
    CudaEvents timing;                 ///< Origin and end of the iteration.
  };
  enum Timing : std::uint8_t { origin, end, timings };
  /// When it began, on its own stream, and ended, on that of its arrival.
  struct Told {
    CudaEvents begin;
    CudaEvents end;
  };

  // ---- what is there before the first iteration ----

  void use(std::uint32_t slot) {
    at_slot_ = slot;
    PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device(slot).context);
  }
  CudaDevice& device(std::uint32_t slot) { return devices_.all()[slot]; }

  void prepare(std::uint32_t slot) {
    use(slot);
    work_->prepare(slot);
    OnDevice& mine = on_device_[slot];
    mine.timing = CudaEvents(driver_, timings, CU_EVENT_DEFAULT);
    signals_.resize(program_.steps.size());
    traced_.resize(program_.steps.size());
    for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
      const CudaStep& step = program_.steps[i];
      if (step.slot != slot) continue;
      lanes_.use(step.stream);
      traced_[i].begin = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
      lanes_.use(emulator_.arrival_of(i));
      traced_[i].end = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
      if (step.signals) signals_[i] = CudaEvents(driver_, 1, CU_EVENT_DISABLE_TIMING);
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
    while (record.iterations.size() < wanted) {
      execute(/*tells=*/false);
      const Duration untraced = time_of_iteration();
      execute(/*tells=*/true);
      if (record.iterations.size() + 1 == wanted) count_cycles();
      record.iterations.push_back(read_back());
      record.iterations.back().untraced = untraced;
      tell_progress();
    }
    return record;
  }

  /// Only a remark comes of it: a run does not fail here.
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

  /// One iteration, from the first call to the end of all work.
  void execute(bool tells) {
    for (OnDevice& one : on_device_) one.ended = 0;
    record();
    std::int64_t& enqueuing = enqueuing_[tells ? 1 : 0];
    begin(enqueuing);
    const RealTime before = now();
    for (std::uint32_t i = 0; i < program_.steps.size(); i += program_.steps[i].together)
      enqueue(i, tells);
    // The shortest, as a closed gate may hold the host back too, where the driver's queues are
    // full.
    const std::int64_t took = CudaGate::time_for(now() - before);
    enqueuing = enqueuing == 0 ? took : std::min(enqueuing, took);
    at_step_.reset();
    finish();
    watch();
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      work_->bring_losses(slot);
      PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device(slot).compute);
    }
    has_run_[work_->phase()] = true;
    work_->end_iteration();
    if (const auto loss = work_->mean_loss()) losses_.push_back(*loss);
  }

  /// Records the ops of this phase once it has run: then nothing is loaded any more.
  void record() {
    auto& recorded = recordings_[work_->phase()];
    if (!launching_.replays || !recorded.empty() || !has_run_[work_->phase()]) return;
    const bool is_recorded = launching_.try_to(driver_, [&] {
      recorded.resize(program_.steps.size());
      for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
        const CudaStep& step = program_.steps[i];
        if (is_moving(step.kind)) continue;  // one call anyway
        at_slot_ = step.slot;
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

  /// All streams wait for one event; then each device notes the time.
  void begin(std::int64_t gate_time) {
    use(0);
    gate_.close(bare_queue(driver_, device(0), device(0).compute), gate_time);
    lanes_.start_behind(gate_.opens());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      PLUMBLINE_CUDA(driver_, cuEventRecord, on_device_[slot].timing[origin], device(slot).compute);
    }
  }

  /// The step, and those that begin together with it.
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
    at_slot_ = step.slot;
    lanes_.use(step.stream);
    const CUstream stream = lanes_[step.stream];
    for (const std::uint32_t before : step.waits)
      PLUMBLINE_CUDA(driver_, cuStreamWaitEvent, stream, signals_[before][0], 0);
    if (tells) PLUMBLINE_CUDA(driver_, cuEventRecord, traced_[i].begin[0], stream);
    emulator_.begin(i);
  }

  void end_step(std::uint32_t i, bool tells) {
    const CudaStep& step = program_.steps[i];
    lanes_.use(step.stream);  // a library may have left another one current
    emulator_.end(i);
    const CUstream arrived = lanes_[emulator_.arrival_of(i)];
    if (tells) PLUMBLINE_CUDA(driver_, cuEventRecord, traced_[i].end[0], arrived);
    if (step.signals) PLUMBLINE_CUDA(driver_, cuEventRecord, signals_[i][0], arrived);
  }

  /// Each device notes when its last op has ended; then the first one when all streams have. It
  /// takes some microseconds to wait for each of those, which are no part of the iteration.
  void finish() {
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      use(slot);
      for (const std::uint32_t before : program_.awaited[slot])
        PLUMBLINE_CUDA(driver_, cuStreamWaitEvent, device(slot).compute, signals_[before][0], 0);
      PLUMBLINE_CUDA(driver_, cuEventRecord, on_device_[slot].timing[end], device(slot).compute);
    }
    lanes_.join();
    PLUMBLINE_CUDA(driver_, cuEventRecord, ended_[0], device(0).compute);
  }

  /// Until the last of the devices has ended, each by its own clock.
  Duration time_of_iteration() {
    Duration longest{};
    for (const OnDevice& one : on_device_)
      longest = std::max(longest, between(one.timing[origin], one.timing[end]));
    return longest;
  }

  Duration between(CUevent first, CUevent second) {
    float milliseconds = 0;
    PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, first, second);
    return Duration{std::llround(double{milliseconds} * 1e6)};
  }

  // ---- waiting ----

  bool has_ended(CUevent event) {
    const CUresult result = driver_.cuEventQuery(event);
    if (result == CUDA_ERROR_NOT_READY) return false;
    check_cuda(driver_, "cuEventQuery", result);
    return true;
  }

  /// Asks until all has ended.
  void watch() {
    RealTime progress = now();
    while (true) {
      bool any = false;
      for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
        use(slot);
        any = come_on(slot) || any;
      }
      use(0);
      if (has_ended(ended_[0])) break;
      if (any) progress = now();
      const RealTime still = now() - progress;
      if (still > kEager) {
        look_for_hang(still);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    for (OnDevice& one : on_device_) {
      one.ended = one.steps.size();
      one.awaits = kNone32;
    }
  }

  /// Looks how far a device has come; returns whether that is further than before.
  bool come_on(std::uint32_t slot) {
    OnDevice& mine = on_device_[slot];
    const std::size_t before = mine.ended;
    for (std::size_t i = mine.ended; i < mine.steps.size(); ++i) {
      if (!program_.steps[mine.steps[i]].signals) continue;
      if (!has_ended(signals_[mine.steps[i]][0])) break;
      mine.ended = i + 1;
    }
    mine.awaits = mine.ended == mine.steps.size() ? first_awaited(slot) : kNone32;
    return mine.ended > before;
  }

  /// What has not come yet of that without which a device's iteration is not over.
  std::uint32_t first_awaited(std::uint32_t slot) {
    for (const std::uint32_t step : program_.awaited[slot]) {
      use(program_.steps[step].slot);
      if (!has_ended(signals_[step][0])) return step;
    }
    return kNone32;
  }

  void look_for_hang(RealTime still) {
    const auto patience =
        std::chrono::duration_cast<std::chrono::nanoseconds>(options_.patience).count();
    if (still <= patience) return;
    // The device that stands at the longest op is not late yet.
    RealTime longest = 0;
    std::uint32_t late = 0;
    const std::vector<DeviceStand> all = stands();
    for (std::uint32_t slot = 0; slot < all.size(); ++slot) {
      if (all[slot].state != DeviceStand::State::runs) continue;
      const RealTime hold = graph_.cost(all[slot].node).hold.count();
      if (hold < longest) continue;
      longest = hold;
      late = slot;
    }
    if (still > patience + 20 * longest) throw Hang{late, still};
  }

  // ---- what was measured ----

  MeasuredIteration read_back() {
    MeasuredIteration measured;
    Trace& trace = measured.trace;
    trace.spans.resize(graph_.size());
    std::vector<SimTime> on_stream(graph_.slots());
    const std::vector<const Join*> joins = joins_by_node(graph_);
    for (const std::uint32_t node : program_.order) {
      // Two devices' clocks may differ by a little: nothing begins before what it waited for.
      SimTime released;
      const auto after = [&](std::uint32_t one) {
        released = std::max(released, trace.spans[one].end);
      };
      if (graph_.nodes[node].input != graph_.size()) after(graph_.nodes[node].input);
      if (joins[node]) {
        for (const std::uint32_t one : joins[node]->inputs) after(one);
      }
      for (const std::uint32_t resource :
           {graph_.nodes[node].resource, graph_.nodes[node].peer_resource}) {
        if (resource < graph_.slots()) released = std::max(released, on_stream[resource]);
      }
      Span& span = trace.spans[node];
      span = {released, released, kNobody};
      if (const std::uint32_t last = program_.step_of[node]; last != kNone32) {
        const std::uint32_t first =
            program_.first_step_of[node] == kNone32 ? last : program_.first_step_of[node];
        const std::uint32_t slot = program_.steps[last].slot;
        use(slot);
        const CUevent own_origin = on_device_[slot].timing[origin];
        span.begin = std::max(released, SimTime{between(own_origin, traced_[first].begin[0])});
        span.end = std::max(span.begin, SimTime{between(own_origin, traced_[last].end[0])});
      }
      for (const std::uint32_t resource :
           {graph_.nodes[node].resource, graph_.nodes[node].peer_resource}) {
        if (resource < graph_.slots()) on_stream[resource] = span.end;
      }
    }
    count_hand_over(graph_, measured);
    measured.memory = books_of(trace);
    return measured;
  }

  /// What the ledgers say of an iteration that has ended.
  std::vector<DeviceMemory> books_of(const Trace& trace) {
    for (Ledger& ledger : ledgers_) ledger.restart();
    const auto ns = [](SimTime time) { return time.time_since_epoch().count(); };
    for (const std::uint32_t node : program_.order) {
      const Span& span = trace.spans[node];
      const ActivityKind kind = graph_.activities[node].kind;
      if (is_transfer(kind)) {
        ledgers_[graph_.receiver(node)].receives(node, ns(span.begin));
        ledgers_[graph_.sender(node)].has_sent(node, ns(span.end));
      } else if (is_compute(kind)) {
        Ledger& ledger = ledgers_[graph_.nodes[node].resource];
        ledger.version_of(node);
        ledger.begin(node, ns(span.begin));
        ledger.end(node, ns(span.end));
      }
    }
    std::vector<DeviceMemory> memory;
    memory.reserve(ledgers_.size());
    for (const Ledger& ledger : ledgers_) memory.push_back(ledger.peak());
    return memory;
  }

  // ---- when it goes wrong ----

  /// Where every device was when it was last looked at.
  std::vector<DeviceStand> stands() const {
    std::vector<DeviceStand> all(graph_.slots());
    std::vector<bool> ended(program_.steps.size(), false);
    for (const OnDevice& one : on_device_) {
      for (std::size_t i = 0; i < one.ended; ++i) ended[one.steps[i]] = true;
    }
    for (std::uint32_t slot = 0; slot < all.size(); ++slot) {
      const OnDevice& mine = on_device_[slot];
      if (!is_prepared_) all[slot].state = DeviceStand::State::starts;
      if (is_prepared_ && mine.awaits != kNone32) {
        all[slot].state = DeviceStand::State::runs;
        all[slot].node = program_.steps[mine.awaits].node;
      }
      if (!is_prepared_ || mine.ended == mine.steps.size()) continue;
      const CudaStep& step = program_.steps[mine.steps[mine.ended]];
      all[slot].state = DeviceStand::State::runs;
      all[slot].node = step.node;
      for (const std::uint32_t before : step.waits) {
        const CudaStep& other = program_.steps[before];
        if (other.sends || ended[before]) continue;
        all[slot].state = DeviceStand::State::waits;
        all[slot].waits_for = other.node;
        break;
      }
      for (const std::uint32_t before : step.waits) {
        const CudaStep& copy = program_.steps[before];
        if (!copy.sends || all[slot].state == DeviceStand::State::waits) continue;
        if (is_on_its_way(before, ended)) continue;
        all[slot].state = DeviceStand::State::waits;
        all[slot].waits_for = copy.node;
      }
    }
    return all;
  }

  /// Whether all ops have ended that a copy stands behind, itself or behind other copies and sums.
  bool is_on_its_way(std::uint32_t copy, const std::vector<bool>& ended) const {
    std::vector<std::uint32_t> open = {copy};
    std::vector<bool> seen(program_.steps.size(), false);
    while (!open.empty()) {
      const std::uint32_t one = open.back();
      open.pop_back();
      if (seen[one]) continue;
      seen[one] = true;
      const CudaStep& step = program_.steps[one];
      if (!step.sends) {
        if (!ended[one]) return false;
        continue;
      }
      open.insert(open.end(), step.waits.begin(), step.waits.end());
      for (std::uint32_t before = one; before-- > 0;) {
        if (program_.steps[before].stream != step.stream) continue;
        open.push_back(before);
        break;
      }
    }
    return true;
  }

  RunFailure failed(const std::string& why) {
    RunFailure failure;
    failure.kind = RunFailure::Kind::failed;
    failure.stands = stands();
    const std::uint32_t slot = std::min(at_slot_, graph_.slots() - 1);
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
    failure.stands = stands();
    const std::uint32_t node = failure.stands[hang.slot].node;
    failure.message =
        fmt::format("device {} hangs: {} has run for {:.1f} s, and {:.6g} s were predicted",
                    graph_.devices[hang.slot].value, to_text(graph_.activities[node]),
                    static_cast<double>(hang.for_so_long) / 1e9, seconds(graph_.cost(node).hold));
    return failure;
  }

  /// What is enqueued must end before its memory goes; errors have been told.
  void forget_errors() { lanes_.drain(); }

  CudaDevices& devices_;
  CudaLaunching& launching_;
  const CudaDriver& driver_;
  const OpGraph& graph_;
  const CudaProgram program_;
  RunOptions options_;
  StreamSet lanes_;
  LinkEmulator emulator_;
  std::unique_ptr<CudaWork> work_;
  CudaGate gate_;  ///< Of the first device.
  CudaEvents ended_;
  std::vector<OnDevice> on_device_;
  std::vector<Ledger> ledgers_;
  std::vector<std::string> names_;   ///< Of each step, as its slice of the trace.
  std::vector<CudaEvents> signals_;  ///< Of each step that others wait for.
  std::vector<Told> traced_;         ///< Of each step.
  /// By phase: of each step, where its ops are replayed.
  std::array<std::vector<CudaRecording>, 2> recordings_;
  std::array<bool, 2> has_run_{};  ///< By phase.
  std::array<std::int64_t, 2>
      enqueuing_{};  ///< How long the gate stays closed; [1] where it tells.
  std::vector<double> losses_;
  double clock_mhz_ = 0;  ///< Of the first device, behind the last iteration; 0 = not known.
  std::uint32_t iterations_done_ = 0;
  bool is_prepared_ = false;
  bool is_abandoned_ = false;
  std::uint32_t at_slot_ = 0;
  std::optional<std::uint32_t> at_step_;  ///< That is being enqueued.
};

/// The context that was current comes back.
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
    const std::string memory = execution->memory_remark(*record);
    for (const std::string& remark : {memory, execution->streams_remark()}) {
      if (!remark.empty()) run.remarks.push_back(remark);
    }
  }
  if (run.abandoned) leave_behind(std::move(execution));
  return run;
}

}  // namespace plumbline
