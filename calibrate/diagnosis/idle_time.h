// Why the devices of a recorded run did nothing, cause by cause.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"

namespace plumbline {

/// The causes, in the order of reports.
enum class RunIdle : std::uint8_t {
  fill,        ///< Before the first op of an iteration.
  dependency,  ///< Another device had not made the input yet.
  straggler,   ///< The same, for as long as the other device's op took longer than usual.
  transfer,    ///< The input was on its way.
  collective,  ///< A collective ran that is no part of an op, such as an all-reduce of gradients.
  send,        ///< On a CPU: it waited until another rank had taken what it sent.
  host,        ///< All was there, and the op or update had not begun: the CPU was late.
  drain,       ///< After its last op or update, until all devices have ended theirs.
  between,     ///< From there until the next iteration begins.
};
inline constexpr std::size_t kRunIdles = 9;

/// "fill", "dependency", ...
std::string_view name(RunIdle cause);
/// What it means, in a few words.
std::string_view meaning(RunIdle cause);

/// The time of one device in one iteration.
struct DeviceTime {
  Duration ops{};     ///< In its ops.
  Duration update{};  ///< In its update.
  std::array<Duration, kRunIdles> idle{};

  Duration busy() const { return ops + update; }
  Duration of(RunIdle cause) const { return idle[static_cast<std::size_t>(cause)]; }
  Duration all_idle() const;
};

/// By device. Busy and idle time of each device add up to the iteration's time exactly, where no op
/// overlaps another one. Where nothing recorded tells when data arrived, it took as long as the
/// costs say for waiting ops.
std::vector<DeviceTime> device_times(const RecordedRun& run, const RunIteration& iteration,
                                     const RunCosts& costs);

/// The mean of each over the timed iterations.
std::vector<DeviceTime> mean_device_times(const RecordedRun& run, const RunCosts& costs);

}  // namespace plumbline
