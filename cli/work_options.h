// What `sweep` and `search` have in common: many predictions on all cores, a part of them on each
// of several machines, kept as they come.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/partial_file.h"
#include "cli/sweep_options.h"
#include "sim/whatif/shards.h"

namespace CLI {
class App;
}

namespace plumbline {

/// How the work is done.
struct WorkOptions {
  unsigned threads = 0;  ///< 0 = one a core.
  std::string shard;     ///< "i/n"; "" = all of the work.
  bool resume = false;

  unsigned jobs() const;
};

/// Adds --jobs, --shard and --resume.
void add_work_options(CLI::App& command, WorkOptions& options);

/// The part of the work that was asked for; nothing = all. Errors: no such part; options that do
/// not go together: a part is told whole and as JSON, and only -o FILE keeps what is done. `noun`
/// is the command.
Result<std::optional<Shard>> read_shard(const WorkOptions& options, const SweepOptions& told,
                                        const std::string& output, const std::string& noun);

/// What a piece of work came to.
struct Finished {
  std::string line;                     ///< To keep; "" = it is not whole.
  std::function<std::uint64_t()> take;  ///< Takes the result in; returns how much is done.
};

/// Does `work(i)` for i below `count` on so many threads, until all is done or a signal comes, and
/// keeps the lines in `partial`, where there is one. `take` is called by one thread at a time.
/// Errors: a line that cannot be kept, which ends the work.
std::optional<Diagnostic> work_through(std::uint64_t count, unsigned jobs, PartialFile* partial,
                                       const std::function<void(std::uint64_t)>& progress,
                                       const std::function<Finished(std::uint64_t)>& work);

}  // namespace plumbline
