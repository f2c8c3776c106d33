// The threads of a run, their meetings between iterations, and how a run is given up.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/bug.h"
#include "base/parallel.h"
#include "calibrate/runtime/links.h"

namespace plumbline {
namespace {

/// A wake-up this late is usual for the machine, and does not count as lost time.
constexpr RealTime kUsualDelay = 100'000;
/// The pause before the start of an iteration, so that all threads are awake by then.
constexpr RealTime kPrelude = 300'000;
/// A hung device is left behind if it has not noticed the stop after this time.
constexpr std::chrono::milliseconds kGrace{200};

/// The state of a device, in one machine word that the watcher reads.
class DeviceStatus {
 public:
  void waits(std::uint32_t node, std::uint32_t for_node) {
    set(DeviceStand::State::waits, node, for_node);
  }
  void runs(std::uint32_t node) { set(DeviceStand::State::runs, node, 0); }
  void failed(std::uint32_t node) { set(DeviceStand::State::failed, node, 0); }
  void done() { set(DeviceStand::State::done, 0, 0); }
  void starts() { set(DeviceStand::State::starts, 0, 0); }

  DeviceStand read() const {
    const std::uint64_t bits = bits_.load(std::memory_order_acquire);
    DeviceStand stand;
    stand.state = static_cast<DeviceStand::State>(bits & 7U);
    stand.node = static_cast<std::uint32_t>(bits >> 3U & kNodes);
    if (stand.state == DeviceStand::State::waits)
      stand.waits_for = static_cast<std::uint32_t>(bits >> 33U & kNodes);
    return stand;
  }

 private:
  static constexpr std::uint64_t kNodes = (std::uint64_t{1} << 30U) - 1;
  static_assert(OpGraph::kMaxNodes <= kNodes + 1);

  void set(DeviceStand::State state, std::uint64_t node, std::uint64_t for_node) {
    bits_.store(static_cast<std::uint64_t>(state) | node << 3U | for_node << 33U,
                std::memory_order_release);
  }

  std::atomic<std::uint64_t> bits_{static_cast<std::uint64_t>(DeviceStand::State::done)};
};

/// The state of one device: no other device writes it.
struct alignas(64) DeviceState {
  std::unique_ptr<Worker> worker;
  std::vector<std::uint32_t> order;
  DeviceStatus stand;
  std::atomic<RealTime> since{0};  ///< The begin of its current op.
  std::atomic<std::uint64_t> steps{0};
  RealTime lost = 0;      ///< Lost in this iteration.
  RealTime last_end = 0;  ///< The end of its last op.
};

/// Everything that the threads of one run share. They own it together, so that a hung thread can be
/// left behind.
class Execution {
 public:
  Execution(const RunPlan& plan, Backend& backend, const DeviceOrders& orders,
            const RunOptions& options)
      : graph_(plan.graph),
        options_(options),
        progress_(plan.graph.size()),
        planned_(plan.graph.size()),
        ledgers_(make_ledgers(plan)),
        links_(plan.graph, progress_, ledgers_),
        device_states_(plan.graph.slots()) {
    if (options_.max_iterations == 0) options_.max_iterations = 2 * options_.iterations;
    joins_ = joins_by_node(graph_);
    auto workers = backend.workers(*plan_);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      device_states_[slot].worker = std::move(workers[slot]);
      device_states_[slot].order = orders[slot];
    }
  }

  /// The main function of one device's thread.
  void drive(std::uint32_t slot) {
    DeviceState& device_state = device_states_[slot];
    try {
      wake_exactly();
      device_state.worker->prepare();
      while (meet()) {
        wait_until(start_, stop_);
        for (const std::uint32_t node : device_state.order) {
          if (!execute(slot, node)) break;
          device_state.steps.fetch_add(1, std::memory_order_relaxed);
        }
        if (!stop_) device_state.stand.done();
      }
    } catch (const Bug&) {
      carry();
    } catch (const std::exception& error) {
      fail(slot, error.what());
    } catch (...) {
      fail(slot, "an exception of an unknown type");
    }
    leave();
  }

  /// Called in an exception handler. The exception goes to the caller of run(), and all threads
  /// stop.
  void carry() {
    thrown_.keep_current();
    stop_ = true;
  }

  /// Called when one device's thread ends, or cannot begin.
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      ++exited_;
    }
    changed_.notify_one();
  }

  /// The caller's part: waits for the end, for a failure, for a deadlock, for a hang.
  void watch() {
    try {
      look_until_over();
    } catch (...) {
      carry();
    }
    std::unique_lock lock(mutex_);
    stop_ = true;
    changed_.wait_for(lock, kGrace, [&] { return exited_ == device_states_.size(); });
  }

  bool all_exited() {
    const std::lock_guard lock(mutex_);
    return exited_ == device_states_.size();
  }

  /// Requires: watch() has ended. Throws exceptions that are no failure of the run: a bug, or an
  /// exception of the caller's own part.
  RunResult take() {
    const std::lock_guard lock(mutex_);
    thrown_.rethrow();
    if (failure_) return *failure_;
    return std::move(record_);
  }

 private:
  /// Tells the caller how many iterations are done, where that has changed.
  void tell_iterations() {
    const std::uint32_t done = iterations_done_.load(std::memory_order_relaxed);
    if (!options_.progress || done == told_) return;
    told_ = done;
    options_.progress(done, options_.warm_up + options_.max_iterations);
  }

  void look_until_over() {
    std::optional<std::uint64_t> steps_before;
    std::unique_lock lock(mutex_);
    while (exited_ < device_states_.size() && !stop_) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      if (stop_ || exited_ == device_states_.size()) break;
      tell_iterations();
      // It is a deadlock if two checks in a row show the same state.
      const std::uint64_t steps = all_steps();
      const bool stuck = all_wait();
      if (stuck && steps_before == steps) {
        give_up(RunFailure::Kind::deadlock,
                "deadlock: every device waits for another, and nothing is under way");
      } else {
        steps_before = stuck ? std::optional(steps) : std::nullopt;
        look_for_hangs();
      }
    }
    tell_iterations();  // a short run may end before the first look
  }

  std::vector<Ledger> make_ledgers(const RunPlan& plan) {
    plan_ = std::make_unique<RunPlan>(plan);
    std::vector<Ledger> ledgers;
    ledgers.reserve(graph_.slots());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) ledgers.emplace_back(*plan_, slot);
    return ledgers;
  }

  // ---- one op ----

  /// Returns false if the run is given up.
  bool execute(std::uint32_t slot, std::uint32_t node) {
    DeviceState& device_state = device_states_[slot];
    const ActivityKind kind = graph_.activities[node].kind;
    RealTime ready = device_state.last_end;
    if (!is_compute(kind)) {  // a blocking transfer, which holds this device
      links_.reached(node, now());
      if (!wait(device_state, node, node)) return false;
      if (slot == graph_.receiver(node)) {
        begin_step(device_state, node);
        device_state.worker->take(node);
      }
      device_state.last_end = progress_.end[node].load(std::memory_order_relaxed);
      return true;
    }
    const auto need = [&](std::uint32_t producer) {
      if (!wait(device_state, node, producer)) return false;
      ready = std::max(ready, progress_.end[producer].load(std::memory_order_relaxed));
      const bool comes_over_link =
          is_transfer(graph_.activities[producer].kind) && !graph_.blocking;
      if (comes_over_link) {
        begin_step(device_state, node);
        device_state.worker->take(producer);
      }
      return true;
    };
    if (graph_.nodes[node].input != graph_.size() && !need(graph_.nodes[node].input)) return false;
    if (joins_[node]) {
      for (const std::uint32_t producer : joins_[node]->inputs) {
        if (!need(producer)) return false;
      }
    }
    begin_step(device_state, node);
    Ledger& ledger = ledgers_[slot];
    Task task;
    task.node = node;
    task.iteration = iteration_;
    task.version = ledger.version_of(node);
    task.oldest = ledger.oldest_needed(node);
    task.begin = now();
    device_state.since.store(task.begin, std::memory_order_relaxed);
    planned_[node].store(task.begin + min_time(node), std::memory_order_relaxed);
    ledger.begin(node, task.begin);
    const Work work = device_state.worker->run(task, stop_);
    if (stop_) return false;
    ledger.end(node, work.end);
    progress_.begin[node] = task.begin;
    progress_.end[node].store(work.end, std::memory_order_release);
    links_.made(node);
    device_state.lost +=
        std::max<RealTime>(0, work.lost - kUsualDelay) +
        std::max<RealTime>(0, task.begin - std::max(ready, start_.load()) - kUsualDelay);
    device_state.last_end = work.end;
    return true;
  }

  /// The device is at `node` from here on. An exception or a hang is attributed to it.
  static void begin_step(DeviceState& device_state, std::uint32_t node) {
    device_state.since.store(now(),
                             std::memory_order_relaxed);  // first: a reader of `runs` sees it
    device_state.stand.runs(node);
  }

  RealTime min_time(std::uint32_t node) const {
    const Worker& worker = *device_states_[graph_.nodes[node].resource].worker;
    return worker.min_time(iteration_, node, graph_.cost(node).hold).count();
  }

  /// Waits until the result of `producer` is ready. Returns false if the run is given up.
  bool wait(DeviceState& device_state, std::uint32_t node, std::uint32_t producer) {
    const std::atomic<RealTime>& end = progress_.end[producer];
    RealTime there = end.load(std::memory_order_acquire);
    if (there != Progress::kUnknown && there <= now()) return true;
    device_state.stand.waits(node, producer);
    while (there == Progress::kUnknown) {
      if (stop_.load(std::memory_order_relaxed)) return false;
      if (links_.shares_cards()) links_.advance(now());
      pause_before(earliest_end(producer));
      there = end.load(std::memory_order_acquire);
    }
    wait_until(there, stop_);
    return !stop_.load(std::memory_order_relaxed);
  }

  /// A time before which a node whose end is not known cannot end.
  RealTime earliest_end(std::uint32_t node) const {
    RealTime on_the_way = 0;
    while (!is_compute(graph_.activities[node].kind)) {
      const Cost& cost = graph_.cost(node);
      on_the_way += cost.hold.count() + cost.latency.count();
      if (graph_.nodes[node].input != graph_.size()) {
        node = graph_.nodes[node].input;
      } else if (joins_[node] && !joins_[node]->inputs.empty()) {
        node = joins_[node]->inputs.front();
      } else {
        return now();
      }
      const RealTime known = progress_.end[node].load(std::memory_order_relaxed);
      if (known != Progress::kUnknown) return known + on_the_way;
    }
    const RealTime planned = planned_[node].load(std::memory_order_relaxed);
    return (planned > 0 ? planned : now() + min_time(node)) + on_the_way;
  }

  // ---- between iterations ----

  /// Waits until all devices have ended the iteration. The last one to arrive closes it and opens
  /// the next. Returns false if there is no next one.
  bool meet() {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == device_states_.size()) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_page();
      round_.store(round + 1, std::memory_order_release);
    } else {
      while (round_.load(std::memory_order_acquire) == round) {
        if (stop_.load(std::memory_order_relaxed)) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    return !over_ && !stop_;
  }

  void turn_page() {
    const bool first = start_ == 0;
    if (!first) {
      links_.drain();
      if (!close_iteration()) return;
      ++iteration_;
      iterations_done_.store(iteration_, std::memory_order_relaxed);
      over_ = clean_ >= options_.iterations || record_.iterations.size() >= options_.max_iterations;
      if (over_) return;
    }
    progress_.restart();
    for (auto& planned : planned_) planned.store(0, std::memory_order_relaxed);
    for (Ledger& ledger : ledgers_) ledger.restart();
    const RealTime start = now() + kPrelude;
    for (DeviceState& device_state : device_states_) {
      device_state.lost = 0;
      device_state.last_end = start;
      // A device that has not woken up yet is not done. So others that wait for it are not in a
      // deadlock.
      device_state.stand.starts();
    }
    start_ = start;
    links_.restart(start);
  }

  /// Returns false if a node was never executed.
  bool close_iteration() {
    Trace trace;
    trace.spans.reserve(graph_.size());
    SimTime last;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const RealTime end = progress_.end[node].load(std::memory_order_relaxed);
      if (end == Progress::kUnknown) {
        const std::lock_guard lock(mutex_);
        give_up(RunFailure::Kind::incomplete,
                fmt::format("all devices have ended, but {} was never run",
                            to_text(graph_.activities[node])));
        over_ = true;
        return false;
      }
      trace.spans.push_back({SimTime{Duration{progress_.begin[node] - start_}},
                             SimTime{Duration{end - start_}}, kNobody});
      last = std::max(last, trace.spans.back().end);
    }
    if (iteration_ < options_.warm_up) return true;
    MeasuredIteration measured;
    measured.trace = std::move(trace);
    count_hand_over(graph_, measured);
    for (const DeviceState& device_state : device_states_)
      measured.lost = std::max(measured.lost, Duration{device_state.lost});
    measured.clean =
        seconds(measured.lost) <= options_.clean_below * seconds(last.time_since_epoch());
    for (const Ledger& ledger : ledgers_) measured.memory.push_back(ledger.peak());
    clean_ += measured.clean ? 1 : 0;
    record_.iterations.push_back(std::move(measured));
    return true;
  }

  // ---- when it goes wrong ----

  std::uint64_t all_steps() const {
    std::uint64_t sum = 0;
    for (const DeviceState& device_state : device_states_)
      sum += device_state.steps.load(std::memory_order_relaxed);
    return sum;
  }

  /// Whether every device that is not done waits for a node whose end is unknown.
  bool all_wait() {
    bool any = false;
    for (const DeviceState& device_state : device_states_) {
      const DeviceStand stand = device_state.stand.read();
      if (stand.state == DeviceStand::State::done) continue;
      if (stand.state != DeviceStand::State::waits) return false;
      if (progress_.end[*stand.waits_for].load(std::memory_order_relaxed) != Progress::kUnknown)
        return false;
      any = true;
    }
    return any && !links_.advance(now());
  }

  /// Requires: the mutex.
  void look_for_hangs() {
    for (std::uint32_t slot = 0; slot < device_states_.size(); ++slot) {
      const DeviceStand stand = device_states_[slot].stand.read();
      if (stand.state != DeviceStand::State::runs) continue;
      const RealTime allowed =
          std::chrono::duration_cast<std::chrono::nanoseconds>(options_.patience).count() +
          20 * graph_.cost(stand.node).hold.count();
      const RealTime runs = now() - device_states_[slot].since.load(std::memory_order_relaxed);
      if (runs <= allowed) continue;
      give_up(RunFailure::Kind::hung,
              fmt::format("device {} hangs: {} has run for {:.1f} s, and {:.6g} s were predicted",
                          graph_.devices[slot].value, to_text(graph_.activities[stand.node]),
                          static_cast<double>(runs) / 1e9, seconds(graph_.cost(stand.node).hold)));
      return;
    }
  }

  void fail(std::uint32_t slot, const std::string& why) {
    const std::lock_guard lock(mutex_);
    const DeviceStand stand = device_states_[slot].stand.read();
    device_states_[slot].stand.failed(stand.node);
    const bool at_op =
        stand.state != DeviceStand::State::done && stand.state != DeviceStand::State::starts;
    give_up(RunFailure::Kind::failed,
            at_op ? fmt::format("device {} failed at {}: {}", graph_.devices[slot].value,
                                to_text(graph_.activities[stand.node]), why)
                  : fmt::format("device {} failed: {}", graph_.devices[slot].value, why));
  }

  /// Requires: the mutex. The first reason counts.
  void give_up(RunFailure::Kind kind, std::string message) {
    if (failure_) return;
    failure_ = RunFailure{kind, std::move(message), {}};
    for (const DeviceState& device_state : device_states_)
      failure_->stands.push_back(device_state.stand.read());
    stop_ = true;
  }

  const OpGraph& graph_;
  RunOptions options_;
  std::unique_ptr<RunPlan> plan_;
  Progress progress_;
  std::vector<std::atomic<RealTime>> planned_;  ///< The earliest end of each op that has begun.
  std::vector<Ledger> ledgers_;
  Links links_;
  std::vector<DeviceState> device_states_;
  std::vector<const Join*> joins_;

  // Between iterations; written by the last device to arrive.
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<RealTime> start_{0};
  std::atomic<bool> over_{false};
  std::uint32_t iteration_ = 0;
  std::uint32_t clean_ = 0;
  RunRecord record_;
  std::atomic<std::uint32_t> iterations_done_{0};
  std::uint32_t told_ = 0;  ///< How many iterations the caller knows of; watch() alone has it.

  std::atomic<bool> stop_{false};
  FirstException thrown_;
  std::mutex mutex_;  ///< Guards the members below.
  std::condition_variable changed_;
  std::uint32_t exited_ = 0;
  std::optional<RunFailure> failure_;
};

}  // namespace

RunResult run(const RunPlan& plan, Backend& backend, const DeviceOrders& orders,
              const RunOptions& options) {
  PLUMBLINE_CHECK(orders.size() == plan.graph.slots() && options.iterations > 0, orders.size(),
                  options.iterations);
  const auto execution = std::make_shared<Execution>(plan, backend, orders, options);
  std::vector<std::thread> threads;
  threads.reserve(orders.size());
  for (std::uint32_t slot = 0; slot < orders.size(); ++slot) {
    try {
      threads.emplace_back([execution, slot] { execution->drive(slot); });
    } catch (...) {
      execution->carry();
      execution->leave();
    }
  }
  execution->watch();
  const bool all_exited = execution->all_exited();
  for (std::thread& thread : threads) {
    if (all_exited) {
      thread.join();
    } else {
      thread.detach();
    }
  }
  return execution->take();
}

RunResult Backend::run(const RunPlan& plan, const DeviceOrders& orders, const RunOptions& options) {
  return plumbline::run(plan, *this, orders, options);
}

}  // namespace plumbline
