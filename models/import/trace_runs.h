// The runs of layers' passes that a trace tells of, and those of them that count.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/trace_events.h"
#include "models/import/trace_kernels.h"

namespace plumbline {

/// What told how long a run took.
enum class RunClock : std::uint8_t {
  cpu,        ///< Its range on the CPU.
  gpu_range,  ///< Its ranges on GPUs.
  kernels,    ///< The kernels that were launched within its range on the CPU.
};
inline constexpr std::size_t kRunClocks = 3;

/// One run of a layer's pass. Times in microseconds.
struct LayerRun {
  std::uint32_t layer;
  RangePass pass;
  RunClock clock;
  double cpu_start;  ///< Of its range on the CPU, or where there is none its own.
  double length;
  double busy = 0;  ///< Of the length: some kernel ran. Of runs by kernels.
};

/// All runs, in the order in which the CPU started them. A range on the CPU is a run on its clock,
/// and one on that of its kernels. Ranges on GPUs belong to the range on the CPU with their id: it
/// tells their step, and those of several streams are one run.
std::vector<LayerRun> layer_runs(const std::vector<TraceRange>& ranges, const TraceWork& work);

/// The runs that count.
struct CountedRuns {
  std::vector<LayerRun> runs;
  std::size_t steps = 0;           ///< In which they are; 0 where the trace has none.
  std::vector<std::string> notes;  ///< What was left out, as sentences.
};

/// Leaves out the runs of the first `skip` steps and those outside of all; where the trace has no
/// steps, the first `skip` runs of each pass on each clock. Errors: no step is left.
Result<CountedRuns> skip_steps(const std::vector<LayerRun>& runs, std::vector<TraceStep> steps,
                               std::int64_t skip, const std::shared_ptr<const Source>& source);

}  // namespace plumbline
