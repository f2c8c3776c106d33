// Metrics are computed in passes over all spans.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/bug.h"
#include "sim/engine/period.h"

namespace plumbline {
namespace {

DeviceMetrics measure_device(const StreamTimes& times, SimTime makespan) {
  DeviceMetrics device;
  device.busy = times.busy;
  if (times.first && times.last) device.span = *times.last - *times.first;
  device.idle = makespan.time_since_epoch() - device.busy;
  for (const IdleCause cause : kIdleCauses)
    device.idle_by_cause.of(cause) = times.idle[static_cast<std::size_t>(cause)];
  PLUMBLINE_CHECK(device.idle == device.idle_by_cause.sum(), device.idle.count(),
                  device.idle_by_cause.sum().count());
  return device;
}

/// Counts a device's time in the steady state of a run without a flush. `last` is its last node.
/// Gaps within its span stay. The rest of the period it waits for the next mini-batch.
void count_in_period(const OpGraph& graph, const Trace& trace, std::uint32_t last,
                     const DeviceSpan& span, Duration period, DeviceMetrics& device) {
  device.span = span.length();
  device.idle = period - device.busy;
  IdleByCause& idle = device.idle_by_cause;
  idle.fill = idle.drain = Duration{};
  idle.all_reduce += span.end - (trace.spans[last].begin + held(graph, trace, last));
  idle.fill = device.idle - idle.sum();
  PLUMBLINE_CHECK(idle.fill.count() >= 0, idle.fill.count());
}

/// Time in [begin, end) during which the nodes hold their stream.
Duration busy_within(const OpGraph& graph, const Trace& trace,
                     const std::vector<std::uint32_t>& nodes, SimTime begin, SimTime end) {
  Duration busy{};
  for (const std::uint32_t node : nodes) {
    const SimTime from = std::max(begin, trace.spans[node].begin);
    const SimTime to = std::min(end, trace.spans[node].begin + held(graph, trace, node));
    if (to > from) busy += to - from;
  }
  return busy;
}

SteadyState steady_state(const OpGraph& graph, const Trace& trace,
                         const std::vector<std::vector<std::uint32_t>>& nodes,
                         const SteadyWindow& window, SimTime makespan) {
  const std::uint32_t all = window.in_flight;
  const std::uint32_t multiple = window.multiple;
  std::vector<SimTime> completed(graph.micro_batches);
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities[i];
    const bool ends =
        activity.kind == ActivityKind::backward || activity.kind == ActivityKind::backward_weight;
    if (ends && activity.stage.value == 0)
      completed[activity.micro_batch.value] = trace.spans[i].end;
  }
  SteadyState steady;
  steady.first = (all + multiple - 1) / multiple * multiple;
  PLUMBLINE_CHECK(graph.micro_batches >= window.min_run(), graph.micro_batches, all, multiple);
  steady.last = steady.first + (graph.micro_batches - 1 - all - steady.first) / multiple * multiple;
  const SimTime begin = completed[steady.first];
  const SimTime end = completed[steady.last];
  steady.fill = begin.time_since_epoch();
  steady.length = end - begin;
  steady.drain = makespan - end;
  steady.period_s = seconds(steady.length) / (steady.last - steady.first);
  // Compare the later half with the whole.
  const std::uint32_t middle =
      steady.first + (steady.last - steady.first) / 2 / multiple * multiple;
  const double late_s = seconds(end - completed[middle]) / (steady.last - middle);
  steady.settled = std::abs(late_s - steady.period_s) <= 1e-3 * steady.period_s;
  std::vector<Duration> held(graph.resources(), Duration{});
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const std::uint32_t m = graph.activities[i].micro_batch.value;
    if (m < steady.first || m >= steady.first + multiple) continue;
    const bool is_paced = is_compute(graph.activities[i].kind) || graph.cost(i).beside_work != 0;
    const Duration hold = is_paced
                              ? trace.spans[i].end - trace.spans[i].begin - graph.cost(i).latency
                              : graph.cost(i).hold;
    held[graph.nodes[i].resource] += hold;
    if (graph.nodes[i].peer_resource != graph.nodes[i].resource)
      held[graph.nodes[i].peer_resource] += hold;
  }
  steady.bottleneck_s =
      seconds(*std::max_element(held.begin(), held.end())) / static_cast<double>(multiple);
  steady.warm_up_limited = !graph.rates_change() && !window.update_limited &&
                           steady.period_s > steady.bottleneck_s * (1 + 1e-9);
  if (steady.length.count() > 0) {
    Duration busy{};
    for (const auto& list : nodes) busy += busy_within(graph, trace, list, begin, end);
    // Not below 0 by rounding, where no device is ever idle.
    steady.bubble_fraction =
        std::max(0.0, 1.0 - seconds(busy) / (seconds(steady.length) * graph.slots()));
  }
  return steady;
}

}  // namespace

Duration IdleByCause::sum() const {
  Duration sum{};
  for (const IdleCause cause : kIdleCauses) sum += of(cause);
  return sum;
}

Duration Metrics::busy() const {
  Duration sum{};
  for (const DeviceMetrics& device : devices) sum += device.busy;
  return sum;
}

Duration Metrics::idle() const {
  Duration sum{};
  for (const DeviceMetrics& device : devices) sum += device.idle;
  return sum;
}

Duration Metrics::idle_for(IdleCause cause) const {
  Duration sum{};
  for (const DeviceMetrics& device : devices) sum += device.idle_by_cause.of(cause);
  return sum;
}

double Metrics::bubble_fraction() const { return share_of_device_time(idle()); }

double Metrics::bubble_overhead() const {
  const Duration busy_time = busy();
  return busy_time.count() > 0
             ? static_cast<double>(idle().count()) / static_cast<double>(busy_time.count())
             : 0;
}

double Metrics::communication_stall_fraction() const {
  Duration stalled{};
  for (const DeviceMetrics& device : devices) {
    const IdleByCause& cause = device.idle_by_cause;
    stalled += cause.transfer + cause.all_reduce + cause.rendezvous;
  }
  return share_of_device_time(stalled);
}

double Metrics::share_of_device_time(Duration time) const {
  const double all = static_cast<double>(whole().count()) * static_cast<double>(devices.size());
  return all > 0 ? static_cast<double>(time.count()) / all : 0;
}

SteadyWindow steady_window(const std::vector<std::uint32_t>& replicas, const UpdateRule& updates,
                           const std::vector<std::int64_t>& warm_up) {
  SteadyWindow window{std::accumulate(replicas.begin(), replicas.end(), std::uint32_t{0}),
                      updates.weights == WeightRule::two ? updates.accumulated : 1};
  for (std::size_t s = 0; s < replicas.size(); ++s) {
    window.multiple = std::lcm(window.multiple, replicas[s]);
    if (replicas[s] > 1 && updates.lag == 0) window.update_limited = true;
    if (warm_up.empty()) continue;
    const auto held = replicas[s] * (static_cast<std::uint32_t>(warm_up[s]) + 1);
    window.in_flight = std::max(window.in_flight, held);
  }
  return window;
}

Metrics measure(const OpGraph& graph, const Trace& trace, const SteadyWindow& window) {
  Metrics metrics;
  SimTime end;
  bool exchanges = false;  // whether this collective carries bytes; its hops are consecutive
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    end = std::max(end, trace.spans[i].end);
    const ActivityKind kind = graph.activities[i].kind;
    metrics.operations += is_op(kind) ? 1 : 0;
    if (is_collective(kind)) {
      metrics.all_reduce_bytes += graph.cost(i).bytes;
      exchanges = exchanges || graph.cost(i).bytes.count > 0;
    } else if (kind == ActivityKind::collective_end) {
      metrics.all_reduces += exchanges ? 1 : 0;
      exchanges = false;
    }
    if (is_transfer(kind)) {
      ++metrics.transfers;
      metrics.transfer_bytes += graph.cost(i).bytes;
      if (graph.blocking) metrics.exposed += 2 * (trace.spans[i].end - trace.spans[i].begin);
    }
  }
  metrics.makespan = end.time_since_epoch();
  const std::vector<StreamTimes> times = stream_times(graph, trace, end);
  for (const StreamTimes& device : times) {
    metrics.devices.push_back(measure_device(device, end));
    const IdleByCause& idle = metrics.devices.back().idle_by_cause;
    metrics.exposed += idle.transfer + idle.rendezvous;
  }
  if (!graph.asynchronous() && !graph.flushes) {
    metrics.period = shortest_period(graph, trace);
    const std::vector<DeviceSpan> spans = device_spans(graph, trace);
    for (std::size_t slot = 0; slot < spans.size(); ++slot)
      count_in_period(graph, trace, times[slot].last_node, spans[slot], *metrics.period,
                      metrics.devices[slot]);
  }
  if (graph.asynchronous())
    metrics.steady = steady_state(graph, trace, nodes_by_slot(graph), window, end);
  return metrics;
}

}  // namespace plumbline
