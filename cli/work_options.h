// The options that `sweep` and `search` have in common: threads, a part of the work, what an
// interrupted run kept.
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

/// How the work was asked for.
struct WorkArguments {
  unsigned threads = 0;  ///< 0 = one a core.
  std::string shard;     ///< "i/n"; "" = all of the work.
  bool resume = false;
};

/// Adds --jobs, --shard and --resume.
void add_work_options(CLI::App& command, WorkArguments& arguments);

/// The part of the work that was asked for; nothing = all. Errors: no such part; options that do
/// not go together: a part is told whole and as JSON, and only -o FILE keeps what is done. `noun`
/// is the command.
Result<std::optional<Shard>> read_shard(const WorkArguments& arguments, const SweepOptions& told,
                                        const std::string& output, const std::string& noun);

/// As long as one exists, its options make work stop at a signal and tell how far it is. What is
/// done is kept in `output`.partial where there is an output.
class WatchedWork {
 public:
  /// `noun` is the command, `things` are what it counts: "points".
  WatchedWork(const WorkArguments& arguments, std::optional<Shard> shard, const std::string& output,
              const std::string& noun, const std::string& things);

  const WorkOptions& options() const { return options_; }

 private:
  InterruptGuard guard_;
  CountedProgress progress_;
  WorkOptions options_;
};

}  // namespace plumbline
