// What a trace says: makespan, bubbles, idle time by cause, steady state. Pure functions of graph
// and trace.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/order/weight_versions.h"
#include "sim/engine/idle.h"
#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The idle time of one device, split by what it waited for; the parts add up to it exactly.
struct IdleByCause {
  Duration fill{};        ///< Before the first activity of a mini-batch.
  Duration drain{};       ///< After the last one, until all devices have ended.
  Duration dependency{};  ///< An input that another device had not made yet.
  Duration transfer{};    ///< An input that was on its way, queueing included.
  Duration all_reduce{};  ///< Gradients of other replicas or copies, or weights they updated.
  Duration rendezvous{};  ///< The other end of a blocking transfer.
  Duration update{};      ///< The updates of other devices.
  Duration overhead{};    ///< Time per iteration that belongs to no device.

  Duration& of(IdleCause cause) { return this->*member(cause); }
  Duration of(IdleCause cause) const { return this->*member(cause); }
  Duration sum() const;

 private:
  static constexpr Duration IdleByCause::*member(IdleCause cause) {
    constexpr Duration IdleByCause::*members[] = {
        &IdleByCause::fill,     &IdleByCause::drain,      &IdleByCause::dependency,
        &IdleByCause::transfer, &IdleByCause::all_reduce, &IdleByCause::rendezvous,
        &IdleByCause::update,   &IdleByCause::overhead};
    return members[static_cast<std::size_t>(cause)];
  }
};

/// One device over the whole run.
struct DeviceMetrics {
  Duration busy{};  ///< F, B, I, W, U, and blocking transfers, which hold the stream.
  Duration idle{};  ///< makespan - busy.
  Duration span{};  ///< From its first activity to the end of its last that took time.
  IdleByCause idle_by_cause;
};

/// The steady state of an asynchronous run.
struct SteadyState {
  std::uint32_t first = 0;  ///< Micro-batches first..last of stage 0 bound it.
  std::uint32_t last = 0;
  Duration fill{};    ///< Before it.
  Duration drain{};   ///< After it.
  Duration length{};  ///< It takes this long for last - first micro-batches.
  double period_s = 0;
  double bubble_fraction = 0;
  /// The longest time for which one device or link is held by one micro-batch, on average over the
  /// micro-batches after which the replicas meet again: no period is shorter.
  double bottleneck_s = 0;
  /// The period is above the bottleneck, and neither a shared card nor an update that replicas wait
  /// for explains it.
  bool warm_up_limited = false;
  bool settled = true;  ///< The later half of it has the same period to one part in a thousand.
};

/// What a rate of all devices comes to on each of them. Requires: devices >= 1.
inline std::optional<double> per_device(std::optional<double> rate, std::int64_t devices) {
  if (!rate) return std::nullopt;
  return *rate / static_cast<double>(devices);
}

struct Metrics {
  Duration makespan{};
  std::vector<DeviceMetrics> devices;  ///< By slot.
  std::int64_t operations = 0;         ///< F, B, I and W.
  std::int64_t transfers = 0;
  Bytes transfer_bytes;
  std::int64_t all_reduces = 0;  ///< And halves of them; only those that carry bytes.
  Bytes all_reduce_bytes;        ///< What all their members send.
  /// Device idle by transfer and rendezvous, and the stream time that blocking transfers hold.
  Duration exposed{};
  std::optional<SteadyState> steady;  ///< Of an asynchronous run.

  Duration busy() const;
  Duration idle() const;
  /// Of all devices, for one cause.
  Duration idle_for(IdleCause cause) const;
  /// Idle / (devices x makespan), in [0, 1). GPipe and 1F1B with equal stages and free links:
  /// (p-1)/(m+p-1). 0 for a run that takes no time.
  double bubble_fraction() const;
  /// Idle / busy (Narayanan et al. 2021, section 2.2): (p-1)/m for the same.
  double bubble_overhead() const;
  /// Idle by transfer, all-reduce and rendezvous over devices x makespan.
  double communication_stall_fraction() const;

 private:
  double share_of_device_time(Duration time) const;
};

/// What bounds the steady state of an asynchronous run: N micro-batches in flight, and L after
/// which replicas and updates stand as before. With c(k) the end of stage 0's backward of
/// micro-batch k, it lies between c(k0), k0 the first multiple of L that is at least N, and c(k1),
/// k1 the largest k <= n-1-N for which k1-k0 is a multiple of L.
struct SteadyWindow {
  std::uint32_t in_flight = 1;  ///< N
  std::uint32_t multiple = 1;   ///< L
  bool update_limited = false;  ///< Replicas wait for each other's updates (lag 0).

  /// How many micro-batches a run needs for it to show: 2N + 5L.
  std::uint32_t min_run() const { return 2 * in_flight + 5 * multiple; }
};

/// N is the sum of the replica counts, or what a given warm-up (one a stage; empty = by the rule)
/// puts in flight where that is more; L the least common multiple of the replica counts and of the
/// micro-batches of an update.
SteadyWindow steady_window(const std::vector<std::uint32_t>& replicas,
                           const UpdateRule& updates = {},
                           const std::vector<std::int64_t>& warm_up = {});

/// Reads the metrics off a trace of `graph`. `window` is that of an asynchronous run.
Metrics measure(const OpGraph& graph, const Trace& trace, const SteadyWindow& window);

}  // namespace plumbline
