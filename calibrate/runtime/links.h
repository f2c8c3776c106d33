// The connections between the devices of a real run: links with a set latency and bandwidth, and
// the points at which several devices synchronize.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <queue>
#include <vector>

#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/ledger.h"
#include "sim/engine/carriers.h"
#include "sim/engine/fair_share.h"
#include "sim/graph/consumers.h"

namespace plumbline {

/// The begin and end time of each node of one iteration. An end may lie in the future: a transfer's
/// arrival is known when it starts.
struct Progress {
  static constexpr RealTime kUnknown = -1;

  explicit Progress(std::uint32_t nodes) : begin(nodes, 0), end(nodes) { restart(); }
  void restart() {
    for (auto& time : end) time.store(kUnknown, std::memory_order_relaxed);
  }

  std::vector<RealTime> begin;  ///< Valid once the end is known.
  std::vector<std::atomic<RealTime>> end;
};

/// All nodes of an op graph that no device computes: transfers, hops of all-reduces, the events
/// around them, flushes. A channel carries one transfer at a time, for the hold time of its cost;
/// then the latency passes. Channels that share a network card share its bandwidth max-min fairly,
/// and their rates change while transfers run. Times follow from the graph's costs and from the
/// real times at which devices finish their results. The tensors of a real device move through
/// Worker::take, which is called when these times have passed. May be called from all workers.
class Links {
 public:
  /// The graph, the progress and the ledgers (by slot) outlive it.
  Links(const OpGraph& graph, Progress& progress, std::vector<Ledger>& ledgers);

  /// Clears the last iteration; the next one starts at `start`. No worker runs meanwhile.
  void restart(RealTime start);

  /// A device has finished an op. Its end is in the progress.
  void made(std::uint32_t node);
  /// A device has reached a blocking transfer in its order.
  void reached(std::uint32_t transfer, RealTime at);

  /// Advances the flows on shared cards to `time`. Returns when the next one ends, if any flow is
  /// under way.
  std::optional<RealTime> advance(RealTime time);
  /// Whether rates change while transfers run, so that waiting threads have to call advance().
  bool shares_cards() const { return carriers_.shares_any(); }
  /// Lets everything end that is under way.
  void drain();

 private:
  /// The start of a flow, or its end if the rates have not changed since.
  struct Due {
    RealTime at = 0;
    std::uint64_t sequence = 0;
    std::uint32_t node = 0;
    bool is_start = false;
    std::uint32_t version = 0;

    bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };

  bool is_ours(std::uint32_t node) const { return !is_compute(graph_.activities[node].kind); }
  bool is_blocking(std::uint32_t node) const {
    return graph_.nodes[node].resource < graph_.slots();
  }
  void satisfy(std::uint32_t node, RealTime at);
  void settle();
  void start(std::uint32_t node);
  void release(std::uint32_t node, RealTime at);
  void tell_consumers(std::uint32_t node, RealTime at);
  void advance_locked(RealTime time);
  void announce(const std::vector<FairShare::Change>& changes);
  SimTime since_start(RealTime time) const { return SimTime{Duration{time - start_}}; }

  const OpGraph& graph_;
  Progress& progress_;
  std::vector<Ledger>& ledgers_;

  Consumers consumers_;  ///< Only nodes that is_ours().
  Carriers carriers_;
  std::vector<std::uint32_t> next_;  ///< The next node on the same channel; size() = none.
  std::vector<std::uint32_t> needs_;

  std::mutex mutex_;
  RealTime start_ = 0;
  std::vector<std::uint32_t> waits_for_;
  std::vector<RealTime> ready_;  ///< Per node, the latest end among its inputs so far.
  std::vector<std::uint32_t> startable_;
  std::optional<FairShare> fair_share_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t sequence_ = 0;
  RealTime advanced_to_ = 0;
};

}  // namespace plumbline
