// The metrics of a trace: makespan, bubbles, idle time by cause, steady state. Pure functions of
// graph and trace.
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

/// The idle time of one device by cause; the parts add up to it exactly.
struct IdleByCause {
  Duration fill{};   ///< Before the first activity of a mini-batch; without a flush, of the next.
  Duration drain{};  ///< After the last one, until all devices have ended.
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
  Duration busy{};  ///< F, B, I, W, U and blocking transfers, which hold the stream.
  Duration idle{};  ///< Metrics::whole() - busy.
  /// From its first activity to the end of the last one that took time; without a flush, to the end
  /// of its updates and of the gathers behind them.
  Duration span{};
  IdleByCause idle_by_cause;
};

/// The steady state of an asynchronous run.
struct SteadyState {
  std::uint32_t first = 0;  ///< Micro-batches first..last of stage 0 bound the state.
  std::uint32_t last = 0;
  Duration fill{};    ///< The time before it.
  Duration drain{};   ///< The time after it.
  Duration length{};  ///< Its time for last - first micro-batches.
  double period_s = 0;
  double bubble_fraction = 0;
  /// The longest time for which one micro-batch holds a device or a link: no period is shorter. It
  /// is an average over the micro-batches after which the same replicas meet again.
  double bottleneck_s = 0;
  /// The period is longer than the bottleneck, and neither a shared card nor an update that
  /// replicas wait for explains that.
  bool warm_up_limited = false;
  bool settled = true;  ///< Its later half has the same period, to one part in a thousand.
};

/// The rate per device, for a rate of all devices. Requires: devices >= 1.
inline std::optional<double> per_device(std::optional<double> rate, std::int64_t devices) {
  if (!rate) return std::nullopt;
  return *rate / static_cast<double>(devices);
}

struct Metrics {
  Duration makespan{};
  std::vector<DeviceMetrics> devices;  ///< One per slot.
  std::int64_t operations = 0;         ///< F, B, I and W.
  std::int64_t transfers = 0;
  Bytes transfer_bytes;
  std::int64_t all_reduces = 0;  ///< All-reduces and halves of them that carry bytes.
  Bytes all_reduce_bytes;        ///< Bytes that all their members send.
  /// Idle device time by transfer and rendezvous, plus the stream time of blocking transfers.
  Duration exposed{};
  std::optional<SteadyState> steady;  ///< For asynchronous runs only.
  /// Without a flush, the time from one mini-batch to the next: see shortest_period().
  std::optional<Duration> period;

  /// The time that the busy and the idle time of each device add up to: the period, if there is
  /// one, else the makespan.
  Duration whole() const { return period.value_or(makespan); }
  Duration busy() const;
  Duration idle() const;
  /// The idle time of all devices for one cause.
  Duration idle_for(IdleCause cause) const;
  /// Idle / (devices x whole()), in [0, 1). GPipe and 1F1B with equal stages and free links:
  /// (p-1)/(m+p-1). 0 for a run that takes no time.
  double bubble_fraction() const;
  /// Idle / busy (Narayanan et al. 2021, section 2.2): (p-1)/m for the same.
  double bubble_overhead() const;
  /// Idle by transfer, all-reduce and rendezvous over devices x whole().
  double communication_stall_fraction() const;

 private:
  double share_of_device_time(Duration time) const;
};

/// The bounds of an asynchronous run's steady state. N micro-batches are in flight; after L
/// micro-batches replicas and updates are in the same state again. Let c(k) be the end of stage 0's
/// backward of micro-batch k. The steady state lies between c(k0) and c(k1). k0 is the first
/// multiple of L that is at least N. k1 is the largest k <= n-1-N for which k1-k0 is a multiple of
/// L.
struct SteadyWindow {
  std::uint32_t in_flight = 1;  ///< N
  std::uint32_t multiple = 1;   ///< L
  bool update_limited = false;  ///< Replicas wait for each other's updates (lag 0).

  /// The number of micro-batches that a run needs to show its steady state: 2N + 5L.
  std::uint32_t min_run() const { return 2 * in_flight + 5 * multiple; }
};

/// The window of an asynchronous run. N is the sum of the replica counts, or the number that a
/// given warm-up (one per stage; empty = by the rule) puts in flight, if that is more. L is the
/// least common multiple of the replica counts and of the micro-batches of an update.
SteadyWindow steady_window(const std::vector<std::uint32_t>& replicas,
                           const UpdateRule& updates = {},
                           const std::vector<std::int64_t>& warm_up = {});

/// Computes the metrics from a trace of `graph`. `window` matters for asynchronous runs only.
Metrics measure(const OpGraph& graph, const Trace& trace, const SteadyWindow& window);

}  // namespace plumbline
