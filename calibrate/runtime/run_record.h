// The options and the result of a real run: iterations as they happened, or the reason for none.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/engine/memory.h"
#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

struct RunOptions {
  std::uint32_t warm_up = 3;  ///< Iterations that are not measured.
  /// The least duration of the warm-up, for devices whose clocks rise under load (cuda).
  std::chrono::nanoseconds min_warm_up{0};
  std::uint32_t iterations = 20;  ///< The number of clean measured iterations wanted.
  /// The most iterations that are measured; 0 = twice `iterations`.
  std::uint32_t max_iterations = 0;
  /// An iteration is clean if no device loses more than this share of it to other work.
  double clean_below = 0.01;
  /// An op that takes longer than 20 times its predicted time plus this counts as hung.
  std::chrono::milliseconds patience{10'000};
  /// Called after iterations (some 50 times a second at most) and at the end of the run, from the
  /// thread that called run().
  std::function<void(std::uint32_t done, std::uint32_t max)> progress;
};

/// One iteration as it happened.
struct MeasuredIteration {
  Trace trace;  ///< Counted from the start of the iteration.
  /// The iteration's time without recording of its ops, where recording costs time. This makespan
  /// counts. Nothing = the trace's makespan.
  std::optional<Duration> untraced;
  std::vector<DeviceMemory> memory;  ///< One per slot, from its ledger.
  Duration lost{};                   ///< The time lost to other work, on the device that lost most.
  Duration hand_over{};  ///< The sum of the times from an op's (or part's) release to its begin.
  std::int64_t hand_overs = 0;  ///< The number of terms in that sum.
  bool clean = true;
};

/// Computes `hand_over` from the iteration's trace, and attributes its releases.
void count_hand_over(const OpGraph& graph, MeasuredIteration& iteration);

/// The measured iterations of a run that went well, in order.
struct RunRecord {
  std::vector<MeasuredIteration> iterations;
};

/// The state of one device when a run was given up.
struct DeviceStand {
  enum class State : std::uint8_t {
    waits,
    runs,
    failed,
    done,    ///< Done with this iteration, or not begun with any.
    starts,  ///< The next iteration is open; it has not reached its first op.
  };
  State state = State::done;
  std::uint32_t node = 0;                  ///< Its current op, unless it is done.
  std::optional<std::uint32_t> waits_for;  ///< The node whose result it lacks.
};

/// The reason why a run was given up, and the state of every device.
struct RunFailure {
  enum class Kind : std::uint8_t {
    deadlock,    ///< Every device waits, and nothing is under way.
    failed,      ///< An op raised an exception, or its operands were missing.
    hung,        ///< An op did not end in time.
    incomplete,  ///< All devices ended, but a node was never executed.
  };
  Kind kind = Kind::deadlock;
  std::string message;              ///< One sentence: the device, the op, the reason.
  std::vector<DeviceStand> stands;  ///< By slot.
};

/// The nodes that each device executes, in order: nodes_by_slot(graph), unless a fault is planted.
using DeviceOrders = std::vector<std::vector<std::uint32_t>>;

/// The result of a run: one of the two.
using RunResult = std::variant<RunRecord, RunFailure>;

/// `device 1: 1B0, which waits for 2B0`: a line for each device.
std::string to_text(const OpGraph& graph, const std::vector<DeviceStand>& stands);

}  // namespace plumbline
