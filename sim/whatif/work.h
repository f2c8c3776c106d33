// What a sweep and a search have in common: many predictions on several threads, a part of them on
// each of several machines, kept as they come.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "sim/whatif/partial_file.h"
#include "sim/whatif/shards.h"

namespace plumbline {

/// How the work is done. By default all of it, on all cores, kept in no file. A process that has
/// nothing else to do is faster after keep_freed_memory().
struct WorkOptions {
  unsigned threads = 0;        ///< 0 = one a core.
  std::optional<Shard> shard;  ///< Only this part of the work.
  /// The file in which results are kept as they come, for another run to go on with: see
  /// PartialFile. "" = none.
  std::string partial_path;
  bool resume = false;  ///< Goes on with what the file has; without it such a file is an error.
  std::string version;  ///< Of the tool, as the file tells it: another one's results are refused.
  /// Once it is set, what has begun is ended and no more is begun. Null = it never is.
  const std::atomic<bool>* stop = nullptr;
  /// Told after each result of this run: so many of so many are done, those that the file had not
  /// counted. One thread calls at a time.
  std::function<void(std::uint64_t done, std::uint64_t count)> progress;

  bool is_stopped() const { return stop && *stop; }
  bool holds(std::uint64_t number) const { return shard.value_or(Shard{}).holds(number); }
};

/// What a piece of work came to.
struct Finished {
  std::string line;            ///< To keep in the file; "" = nothing.
  std::function<void()> take;  ///< Takes the result in; called by one thread at a time.
};

/// Puts the file into `partial` that `options` name, if they name one: see PartialFile::open.
/// Errors: as there.
std::optional<Diagnostics> open_partial(const WorkOptions& options, const std::string& noun,
                                        const std::string& header, const PartialFile::Reader& read,
                                        std::optional<PartialFile>& partial);

/// Does `work(i)` for i below `count`, on the threads and until the stop of `options`, and keeps
/// the lines in `partial`, where there is one. Errors: a line that cannot be kept, which ends the
/// work.
std::optional<Diagnostic> work_through(std::uint64_t count, const WorkOptions& options,
                                       std::optional<PartialFile>& partial,
                                       const std::function<Finished(std::uint64_t)>& work);

}  // namespace plumbline
