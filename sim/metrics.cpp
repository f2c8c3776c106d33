// Metrics are read device by device along its spans.
// SPDX-License-Identifier: MIT
#include "sim/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/bug.h"

namespace plumbline {
namespace {

/// The nodes that hold each slot's stream, in order.
std::vector<std::vector<std::uint32_t>> nodes_by_slot(const OpGraph& graph) {
  std::vector<std::vector<std::uint32_t>> nodes(graph.slots());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.resource < graph.slots()) nodes[node.resource].push_back(i);
    if (node.second != node.resource && node.second < graph.slots())
      nodes[node.second].push_back(i);
  }
  return nodes;
}

class Reader {
 public:
  Reader(const OpGraph& graph, const Trace& trace) : graph_(graph), spans_(trace.spans) {}

  DeviceMetrics device(const std::vector<std::uint32_t>& nodes, SimTime makespan) const {
    DeviceMetrics device;
    std::optional<SimTime> first, last;
    for (const std::uint32_t node : nodes) {
      const Duration took = held(node);
      device.busy += took;
      if (!first) first = spans_[node].begin;
      if (took.count() > 0) last = spans_[node].begin + took;
    }
    if (first && last) device.span = *last - *first;
    device.idle = makespan.time_since_epoch() - device.busy;
    auto at = nodes.begin();
    SimTime start;
    for (const MiniBatch& mini_batch : graph_.mini_batches) {
      at = read_mini_batch(mini_batch, at, nodes.end(), start, device.idle_by_cause);
      start = spans_[mini_batch.gate].end;
    }
    if (graph_.asynchronous()) {
      const SimTime end = read_gaps(nodes.begin(), nodes.end(), SimTime{}, device.idle_by_cause);
      device.idle_by_cause.drain += makespan - end;
    }
    PLUMBLINE_CHECK(device.idle == device.idle_by_cause.sum(), device.idle.count(),
                    device.idle_by_cause.sum().count());
    return device;
  }

  /// How long a node holds its stream.
  Duration held(std::uint32_t node) const {
    return spans_[node].end - spans_[node].begin - graph_.cost(node).latency;
  }

 private:
  using Iterator = std::vector<std::uint32_t>::const_iterator;

  Iterator read_mini_batch(const MiniBatch& mini_batch, Iterator first, Iterator end, SimTime start,
                           IdleByCause& idle) const {
    const Iterator updates =
        std::find_if(first, end, [&](std::uint32_t node) { return node > mini_batch.flush; });
    const Iterator next =
        std::find_if(updates, end, [&](std::uint32_t node) { return node > mini_batch.gate; });
    const SimTime flushed = spans_[mini_batch.flush].end;
    idle.drain += flushed - read_gaps(first, updates, start, idle);
    SimTime updated = flushed;
    for (Iterator at = updates; at != next; ++at) updated = spans_[*at].end;
    idle.update += spans_[mini_batch.gate].begin - updated;
    idle.overhead += spans_[mini_batch.gate].end - spans_[mini_batch.gate].begin;
    return next;
  }

  /// Splits the gaps before and between these nodes; returns the end of the last.
  SimTime read_gaps(Iterator first, Iterator end, SimTime start, IdleByCause& idle) const {
    SimTime cursor = start;
    for (Iterator at = first; at != end; ++at) {
      const SimTime begin = spans_[*at].begin;
      if (at == first) {
        idle.fill += begin - cursor;
      } else if (begin > cursor) {
        split_gap(*at, cursor, begin, idle);
      }
      cursor = begin + held(*at);
    }
    return cursor;
  }

  /// Up to the end of the producer the device waited for it, from then on for the data or the
  /// partner.
  void split_gap(std::uint32_t node, SimTime begin, SimTime end, IdleByCause& idle) const {
    std::uint32_t producer = graph_.nodes[node].after;
    const bool is_blocking_transfer = is_transfer(graph_.activities[node].kind);
    if (!is_blocking_transfer && producer != graph_.size() &&
        is_transfer(graph_.activities[producer].kind)) {
      producer = graph_.nodes[producer].after;
    }
    const SimTime made = producer == graph_.size() ? end : spans_[producer].end;
    const SimTime turn = std::clamp(made, begin, end);
    idle.dependency += turn - begin;
    (is_blocking_transfer ? idle.rendezvous : idle.transfer) += end - turn;
  }

  const OpGraph& graph_;
  const std::vector<Span>& spans_;
};

std::uint32_t total(const std::vector<std::uint32_t>& replicas) {
  return std::accumulate(replicas.begin(), replicas.end(), std::uint32_t{0});
}

std::uint32_t common_multiple(const std::vector<std::uint32_t>& replicas) {
  std::uint32_t multiple = 1;
  for (const std::uint32_t r : replicas) multiple = std::lcm(multiple, r);
  return multiple;
}

/// Time in [begin, end) during which the nodes hold their stream.
Duration busy_within(const Reader& reader, const Trace& trace,
                     const std::vector<std::uint32_t>& nodes, SimTime begin, SimTime end) {
  Duration busy{};
  for (const std::uint32_t node : nodes) {
    const SimTime from = std::max(begin, trace.spans[node].begin);
    const SimTime to = std::min(end, trace.spans[node].begin + reader.held(node));
    if (to > from) busy += to - from;
  }
  return busy;
}

SteadyState steady_state(const OpGraph& graph, const Trace& trace, const Reader& reader,
                         const std::vector<std::vector<std::uint32_t>>& nodes,
                         const std::vector<std::uint32_t>& replicas, SimTime makespan) {
  const std::uint32_t all = total(replicas);
  const std::uint32_t multiple = common_multiple(replicas);
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
  PLUMBLINE_CHECK(graph.micro_batches >= least_asynchronous_run(replicas), graph.micro_batches, all,
                  multiple);
  steady.last = steady.first + (graph.micro_batches - 1 - all - steady.first) / multiple * multiple;
  const SimTime begin = completed[steady.first];
  const SimTime end = completed[steady.last];
  steady.fill = begin.time_since_epoch();
  steady.length = end - begin;
  steady.drain = makespan - end;
  steady.period_s = seconds(steady.length) / (steady.last - steady.first);
  // The later half against the whole.
  const std::uint32_t middle =
      steady.first + (steady.last - steady.first) / 2 / multiple * multiple;
  const double late_s = seconds(end - completed[middle]) / (steady.last - middle);
  steady.settled = std::abs(late_s - steady.period_s) <= 1e-3 * steady.period_s;
  std::vector<Duration> held(graph.resources(), Duration{});
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.activities[i].micro_batch.value != steady.first) continue;
    held[graph.nodes[i].resource] += graph.cost(i).hold;
    if (graph.nodes[i].second != graph.nodes[i].resource)
      held[graph.nodes[i].second] += graph.cost(i).hold;
  }
  steady.bottleneck = *std::max_element(held.begin(), held.end());
  const std::vector<bool> shared = graph.shared_channels();
  const bool shares = std::find(shared.begin(), shared.end(), true) != shared.end();
  steady.warm_up_limited = !shares && steady.period_s > seconds(steady.bottleneck) * (1 + 1e-9);
  if (steady.length.count() > 0) {
    Duration busy{};
    for (const auto& list : nodes) busy += busy_within(reader, trace, list, begin, end);
    steady.bubble_fraction = 1.0 - seconds(busy) / (seconds(steady.length) * graph.slots());
  }
  return steady;
}

}  // namespace

Duration IdleByCause::sum() const {
  return fill + drain + dependency + transfer + all_reduce + rendezvous + update + overhead;
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
  const double all = static_cast<double>(makespan.count()) * static_cast<double>(devices.size());
  return all > 0 ? static_cast<double>(time.count()) / all : 0;
}

std::uint32_t least_asynchronous_run(const std::vector<std::uint32_t>& replicas) {
  return 2 * total(replicas) + 5 * common_multiple(replicas);
}

Metrics measure(const OpGraph& graph, const Trace& trace,
                const std::vector<std::uint32_t>& replicas) {
  Metrics metrics;
  SimTime end;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    end = std::max(end, trace.spans[i].end);
    const ActivityKind kind = graph.activities[i].kind;
    metrics.operations += is_op(kind) ? 1 : 0;
    if (is_transfer(kind)) {
      ++metrics.transfers;
      metrics.transfer_bytes += graph.cost(i).bytes;
      if (graph.blocking) metrics.exposed += 2 * (trace.spans[i].end - trace.spans[i].begin);
    }
  }
  metrics.makespan = end.time_since_epoch();
  const Reader reader(graph, trace);
  const auto nodes = nodes_by_slot(graph);
  for (const auto& list : nodes) {
    metrics.devices.push_back(reader.device(list, end));
    const IdleByCause& idle = metrics.devices.back().idle_by_cause;
    metrics.exposed += idle.transfer + idle.rendezvous;
  }
  if (graph.asynchronous())
    metrics.steady = steady_state(graph, trace, reader, nodes, replicas, end);
  return metrics;
}

}  // namespace plumbline
