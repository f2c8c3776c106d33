// The runs that decide answers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory_files.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// A run as `plumbline simulate` takes it.
struct QuizRun {
  std::string scenario;               ///< YAML.
  std::vector<std::string> settings;  ///< `key=value`.
  FileTexts files;                    ///< The files that the scenario names, by their paths.

  /// The same run under more settings.
  QuizRun with(std::vector<std::string> more) const;
};

/// Runs it. Errors: those of reading and of predict(), such as an order that hangs.
Result<Outcome> try_quiz_run(const QuizRun& run);

/// The same for a run that has no mistake. A mistake is a Bug.
Outcome outcome_of(const QuizRun& run);

/// The idle device time of a run and all its device time, in nanoseconds.
struct IdleShare {
  std::int64_t idle = 0;
  std::int64_t whole = 1;

  double percent() const { return 100.0 * static_cast<double>(idle) / static_cast<double>(whole); }
  /// Whether it is below so many percent, exactly.
  bool is_below(std::int64_t limit) const { return idle * 100 < whole * limit; }
};
IdleShare idle_share_of(const Outcome& outcome);

/// p equal stages on p GPUs with free links, forward 1 ms and backward 2 ms.
QuizRun equal_stages(std::int64_t stages, const std::string& schedule, std::int64_t micro_batches);

/// "schedule.micro_batches=8".
std::string setting(const std::string& key, std::int64_t value);

/// "27 ms": the time of the run.
std::string time_of(const Outcome& outcome);
/// "6.98 %".
std::string percent_text(double percent);
/// "1 micro-batch", "4 micro-batches"; `many` is the word for several.
std::string counted(std::int64_t count, const std::string& one, const std::string& many);

}  // namespace plumbline
