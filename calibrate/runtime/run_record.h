// What a real run is asked for and what it gives: iterations as they happened, or why there are
// none.
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
  /// For at least so long too, on devices whose clocks rise under load (cuda).
  std::chrono::nanoseconds min_warm_up{0};
  std::uint32_t iterations = 20;  ///< Measured ones that are wanted clean.
  /// No more than this many are measured; 0 = twice `iterations`.
  std::uint32_t max_iterations = 0;
  /// The share of an iteration that a device may lose to other work for it to count as clean.
  double clean_below = 0.01;
  /// How long one op may take before its device counts as hung, beyond 20 times its predicted time.
  std::chrono::milliseconds patience{10'000};
  /// Told of each iteration that has ended; called from the thread that called run().
  std::function<void(std::uint32_t done, std::uint32_t max)> progress;
};

/// One iteration as it happened.
struct MeasuredIteration {
  Trace trace;  ///< Counted from the start of the iteration.
  /// How long it took when nothing told of its ops, where telling costs time: the makespan that
  /// counts. Nothing = the trace's.
  std::optional<Duration> untraced;
  std::vector<DeviceMemory> memory;  ///< Of each slot, from its ledger.
  Duration lost{};                   ///< What the device that lost most lost to other work.
  Duration hand_over{};  ///< From the release of an op, or of a part of one, to its begin: summed.
  std::int64_t hand_overs = 0;  ///< Over so many.
  bool clean = true;
};

/// Reads `hand_over` off the iteration's trace, and attributes its releases.
void count_hand_over(const OpGraph& graph, MeasuredIteration& iteration);

/// The measured iterations of a run that went well, in order.
struct RunRecord {
  std::vector<MeasuredIteration> iterations;
};

/// What one device was at when a run was given up.
struct DeviceStand {
  enum class State : std::uint8_t {
    waits,
    runs,
    failed,
    done,    ///< With this iteration, or not begun with any.
    starts,  ///< The next iteration is open; it has not come to its first op.
  };
  State state = State::done;
  std::uint32_t node = 0;                  ///< Its current op, unless it is done.
  std::optional<std::uint32_t> waits_for;  ///< The node whose result it lacks.
};

/// Why a run was given up, and where every device stood.
struct RunFailure {
  enum class Kind : std::uint8_t {
    deadlock,    ///< Every device waits, and nothing is under way.
    failed,      ///< An op raised an exception, or its operands were not there.
    hung,        ///< An op did not end in time.
    incomplete,  ///< All devices ended, and something was never run.
  };
  Kind kind = Kind::deadlock;
  std::string message;              ///< One sentence: the device, the op, the reason.
  std::vector<DeviceStand> stands;  ///< By slot.
};

/// The nodes that each device executes, in order: nodes_by_slot(graph), unless a fault is planted.
using DeviceOrders = std::vector<std::vector<std::uint32_t>>;

/// A run ends with one of them.
using RunResult = std::variant<RunRecord, RunFailure>;

/// `device 1: 1B0, which waits for 2B0`: a line for each device.
std::string to_text(const OpGraph& graph, const std::vector<DeviceStand>& stands);

}  // namespace plumbline
