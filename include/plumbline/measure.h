// Plumbline for programs: real runs beside their predictions, and layers timed on this machine.
//
// With the backend `cuda` they set CUDA_DEVICE_MAX_CONNECTIONS for this process before it opens a
// device. These functions need the library `plumbline::measure`, which has all of
// `plumbline::predict`, too.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <plumbline/plumbline.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plumbline {
// Plumbline's own sources have other names in namespace plumbline. For them alone, v1 is not
// inline.
#ifdef PLUMBLINE_OWN_SOURCES
namespace v1 {
#else
inline namespace v1 {
#endif

/// What runs the ops of a schedule.
struct Backend {
  std::string name = "cpu";  ///< synthetic (threads that wait), cpu or cuda.
  std::uint64_t seed = 1;    ///< Of weights and data.
  bool one_gpu = false;      ///< cuda: parts of one GPU, even where there are enough of them.
  bool graphs = true;        ///< cuda: kernels are launched as a graph for each op.
  bool nccl = false;         ///< cuda: tensors go between GPUs by NCCL.
};

/// How a prediction is judged.
enum class Verdict {
  same,          ///< Within 1 %, or within the noise of the measurement.
  close,         ///< Within the tolerance.
  off,           ///< Beyond the tolerance, by more than the machine itself changed.
  inconclusive,  ///< Too few clean iterations, or too much noise.
};

/// "SAME", "CLOSE", "OFF", "INCONCLUSIVE".
const char* name(Verdict verdict);

/// A run beside its prediction. Without a clean iteration nothing is measured, and `measured_s`
/// has no value.
struct ValidatedRun {
  Settings settings;  ///< Those that differ between the runs.
  double predicted_s = 0;
  std::optional<double> measured_s;  ///< The median of the clean iterations.
  std::optional<double> error;       ///< predicted / measured - 1.
  std::optional<double> noise;       ///< Half the 95 % interval of the median, relative.
  std::uint32_t clean = 0;           ///< Clean iterations.
  std::string
      memory;  ///< Measured peaks beside predicted ones: "exact", "ties", "order", "differs".
  Verdict verdict = Verdict::inconclusive;
};

/// Several runs beside their predictions.
struct Validation {
  std::vector<ValidatedRun> runs;
  Verdict verdict = Verdict::inconclusive;  ///< Off if any is off, else inconclusive if any is.
  std::string json;                         ///< As `validate --json` prints it.
  std::string text;                         ///< As `validate` prints it, 100 columns wide.
};

/// How long runs are measured, and how exactly.
struct ValidationLimits {
  std::uint32_t iterations = 20;  ///< Clean iterations of each run.
  std::uint32_t warm_up = 3;      ///< Iterations before them.
  std::uint32_t rounds = 1;       ///< In each round every run has its part of the iterations.
  double tolerance = 0.05;        ///< The relative error that still passes.
  bool recalibrate = false;       ///< The layers are timed again between the rounds.
  /// Told now and then: the numbers of the run, of all runs, and of the iteration, from 1. false =
  /// give up.
  std::function<bool(std::size_t run, std::size_t runs, std::uint32_t iteration)> progress = {};
};

/// Runs every combination of the settings' values for real, in each scenario, and compares it
/// with its prediction. A round counts as a run of its own in the progress. Errors: those of
/// load(); no such backend, or no device for it; training.flush: none; numbers of iterations or
/// rounds that are 0; given up.
Result<Validation> validate(const std::vector<Input>& scenarios, const Settings& settings = {},
                            const Backend& backend = {}, const ValidationLimits& limits = {});

/// What is timed, and for how long.
struct CalibrationLimits {
  std::vector<std::int64_t> batches = {8};  ///< Samples of a micro-batch; each is measured.
  std::uint32_t devices = 1;                ///< Devices that work at the same time.
  std::uint32_t copies = 1;                 ///< Devices that hold the same part.
  bool adam = false;        ///< Updates are those of Adam; else of gradient descent.
  double min_seconds = 1;   ///< For each batch, at least.
  double max_seconds = 20;  ///< At most; between the two the noise decides.
  /// Told now and then what is measured, and the share of the time that has passed; false = give
  /// up.
  std::function<bool(const std::string& what, double share)> progress = {};
};

/// A profile that was measured.
struct Profile {
  std::string yaml;                   ///< The file.
  std::vector<std::string> left_out;  ///< A sentence for each batch without a result.
  double noise = 0;  ///< Half the 95 % interval of a stage's pass, relative, at most.
};

/// Times the layers of a network file on devices of this machine. Errors: those of reading it; no
/// such backend, or no device for it; nothing was measured; given up.
Result<Profile> calibrate(const std::string& network, const Backend& backend = {},
                          const CalibrationLimits& limits = {});

}  // namespace v1
}  // namespace plumbline
