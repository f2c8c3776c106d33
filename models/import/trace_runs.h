// The runs of layers' passes in a trace, and the choice of those that count.
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

/// The source of a run's length.
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
  double cpu_start;  ///< Start of its range on the CPU; without one, its own start.
  double length;
  double busy = 0;  ///< Time in which some kernel ran; only for RunClock::kernels.
};

/// All runs, in the order in which the CPU started them. A range on the CPU gives one run on the
/// CPU's clock, and one on the clock of its kernels. Ranges on GPUs belong to the CPU range with
/// their id, which gives their step. Those of several streams are one run.
std::vector<LayerRun> layer_runs(const std::vector<TraceRange>& ranges, const TraceWork& work);

/// The runs that count.
struct CountedRuns {
  std::vector<LayerRun> runs;
  std::size_t steps = 0;           ///< The steps that count; 0 where the trace has none.
  std::vector<std::string> notes;  ///< Sentences about the runs that were left out.
};

/// Leaves out the runs of the first `skip` steps and the runs outside of all steps. In a trace
/// without steps it leaves out the first `skip` runs of each pass on each clock. Errors: no step is
/// left.
Result<CountedRuns> skip_steps(const std::vector<LayerRun>& runs, std::vector<TraceStep> steps,
                               std::int64_t skip, const std::shared_ptr<const Source>& source);

}  // namespace plumbline
