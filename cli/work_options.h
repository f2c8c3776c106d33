// The common options of `sweep` and `search`: threads, a part of the work, and resuming an
// interrupted run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sweep_options.h"
#include "sim/whatif/work.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The options of the work.
struct WorkArguments {
  unsigned threads = 0;  ///< 0 = one per core.
  std::string shard;     ///< "i/n"; "" = all of the work.
  bool resume = false;
};

/// Adds --jobs, --shard and --resume.
void add_work_options(CLI::App& command, WorkArguments& arguments);

/// The requested part of the work; nothing = all. Errors: no such part; options that do not go
/// together. A part is printed completely and as JSON, and only -o FILE keeps finished work. `noun`
/// is the command.
Result<std::optional<Shard>> read_shard(const WorkArguments& arguments, const SweepOptions& told,
                                        const std::string& output, const std::string& noun);

/// While one exists, its options make work stop at a signal and report progress. Finished work is
/// kept in `output`.partial if there is an output.
class WatchedWork {
 public:
  /// `noun` is the command; `things` names what it counts: "points".
  WatchedWork(const WorkArguments& arguments, std::optional<Shard> shard, const std::string& output,
              const std::string& noun, const std::string& things);

  const WorkOptions& options() const { return options_; }

 private:
  InterruptGuard guard_;
  CountedProgress progress_;
  WorkOptions options_;
};

}  // namespace plumbline
