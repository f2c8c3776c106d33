// The interface between the runner and devices of one kind, which execute ops for real.
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
  std::uint32_t node = 0;       ///< In the op graph; its activity names stage and micro-batch.
  std::uint32_t iteration = 0;  ///< Counted from 0, warm-up included.
  std::uint32_t version = 0;    ///< Weights that it uses, or that an update makes.
  std::uint32_t oldest = 0;     ///< The oldest version that this device needs from here on.
  RealTime begin = 0;           ///< The time now.
};

/// The time that a task took.
struct Work {
  RealTime end = 0;
  RealTime lost = 0;  ///< Nanoseconds that the device lost to other work.
};

/// One device at work. One thread drives it and makes all calls except min_time.
class Worker {
 public:
  virtual ~Worker() = default;

  /// The first call: pins the thread, allocates, warms up. Errors: an exception.
  virtual void prepare() {}

  /// Executes the task and returns when its result is ready. It may return early once `stop` is
  /// set. Errors: an exception, whose text ends the run; a Bug propagates out of run().
  virtual Work run(const Task& task, const std::atomic<bool>& stop) = 0;

  /// The least time that an op of this device takes, given its predicted time. Waiting threads
  /// sleep for this long. Called from any thread.
  virtual Duration min_time(std::uint32_t iteration, std::uint32_t node, Duration predicted) const {
    static_cast<void>(iteration);
    static_cast<void>(node);
    return predicted / 2;
  }

  /// A tensor for this device has arrived. `transfer` is an activation or gradient transfer whose
  /// configured time (latency and bandwidth) has passed. Called before the op that consumes the
  /// tensor.
  virtual void take(std::uint32_t transfer) { static_cast<void>(transfer); }
};

/// A kind of device. A backend that works on the calling thread (synthetic, cpu) gives one worker
/// per device, and one thread drives each worker. A backend whose devices work by themselves (cuda)
/// has a run() of its own: one thread enqueues everything in the order of the op graph. It needs
/// only the ledger and the record of the runner.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  /// A description of the devices, for provenance: "waits for the time that the model says".
  virtual std::string device_text() const = 0;
  /// Whether gaps between ops, hand-overs and the ends of iterations cost real time on these
  /// devices. If not, the scenario's `overhead` is added.
  virtual bool has_own_overheads() const = 0;
  /// The provenance that a profile measured on the devices of the last run would have. Empty where
  /// their times are not measured.
  virtual std::map<std::string, std::string> provenance() const { return {}; }
  /// Remarks on the last run: "loss 2.31 in the first iteration, 0.43 in the last".
  virtual std::vector<std::string> remarks() const { return {}; }

  /// Executes the orders (the nodes of each slot). The result is a record, or the reason why the
  /// run was given up. The plan and its parts must outlive the call, and after a hang the process.
  /// The costs of its graph are the predicted times of the ops. By default the threads of runner.h
  /// drive workers().
  virtual RunResult run(const RunPlan& plan, const DeviceOrders& orders, const RunOptions& options);
  /// The workers of all slots, for the default run().
  virtual std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) = 0;
};

}  // namespace plumbline
