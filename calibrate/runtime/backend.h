// What runs ops for real: the interface between the runner and devices of one kind.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"

namespace plumbline {

/// One op that a device is to do now: an F, B, I, W, U, or a part of a B.
struct Task {
  std::uint32_t node = 0;       ///< Of the op graph: its activity names stage and micro-batch.
  std::uint32_t iteration = 0;  ///< Counted from 0, warm-up included.
  std::uint32_t version = 0;    ///< Of the weights that it uses, or that an update makes.
  std::uint32_t oldest = 0;     ///< The oldest version that this device needs from here on.
  RealTime begin = 0;           ///< Now.
};

/// What it took.
struct Work {
  RealTime end = 0;
  RealTime lost = 0;  ///< Nanoseconds in which the device was kept from working by others.
};

/// One device at work. All calls come from the one thread that drives it, but for min_time.
class Worker {
 public:
  virtual ~Worker() = default;

  /// Comes first: pins the thread, allocates, warms up. Errors: an exception.
  virtual void prepare() {}

  /// Does the task and returns when its result is there. Where `stop` is set it may return early.
  /// Errors: an exception, whose text ends the run; a Bug leaves run().
  virtual Work run(const Task& task, const std::atomic<bool>& stop) = 0;

  /// A time that one of this device's ops takes at least, given what is predicted for it: waiters
  /// sleep for so long. Called from any thread.
  virtual Duration min_time(std::uint32_t iteration, std::uint32_t node, Duration predicted) const {
    static_cast<void>(iteration);
    static_cast<void>(node);
    return predicted / 2;
  }

  /// A tensor for this device has come: `transfer` is an activation or gradient transfer whose
  /// set latency and bandwidth have passed. Comes before the op that consumes it.
  virtual void take(std::uint32_t transfer) { static_cast<void>(transfer); }
};

/// A kind of device. A backend whose work is done on the calling thread (synthetic, cpu) gives one
/// worker a device, and a thread drives each. One whose devices work by themselves (cuda) has a
/// run() of its own: one thread enqueues everything in the order of the op graph, and of the runner
/// it needs only the ledger and the record.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  /// What the devices are, for provenance: "waits for the time that the model says".
  virtual std::string device_text() const = 0;
  /// Whether gaps between ops, hand-overs and the ends of iterations cost time by themselves here;
  /// if not, the scenario's `overhead` is added.
  virtual bool has_own_overheads() const = 0;
  /// What a profile that is measured on the devices of the last run says of them; nothing where
  /// their times are not measured.
  virtual std::map<std::string, std::string> provenance() const { return {}; }
  /// What a run has to say after it: "loss 2.31 in the first iteration, 0.43 in the last".
  virtual std::vector<std::string> remarks() const { return {}; }

  /// Executes the orders, the nodes of each slot, and ends with a record or with the reason why it
  /// was given up. The plan and its parts outlive the call, and after a hang the process; the costs
  /// of its graph are what the ops are predicted to take. By default the threads of runner.h run
  /// workers().
  virtual RunResult run(const RunPlan& plan, const DeviceOrders& orders, const RunOptions& options);
  /// The workers of all slots, for the default run().
  virtual std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) = 0;
};

}  // namespace plumbline
