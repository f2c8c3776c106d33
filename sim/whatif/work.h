// The common part of a sweep and a search: many predictions on several threads, shared between
// several machines, kept as they come.
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

/// The options of the work. By default all of it is done, on all cores, and kept in no file. A
/// process that has nothing else to do is faster after keep_freed_memory().
struct WorkOptions {
  unsigned threads = 0;        ///< 0 = one per core.
  std::optional<Shard> shard;  ///< Only this part of the work.
  /// The file that keeps results as they come, so that another run can continue: see PartialFile.
  /// "" = none.
  std::string partial_path;
  bool resume = false;  ///< Continues with the file's results; else existing ones are an error.
  std::string version;  ///< The tool's version; the file's results of another one are refused.
  /// Once it is set, started work is finished and no more is started. Null = never.
  const std::atomic<bool>* stop = nullptr;
  /// Called after each result of this run: `done` of `count` are done. Neither number counts
  /// results that the file had. One thread calls at a time.
  std::function<void(std::uint64_t done, std::uint64_t count)> progress;

  bool is_stopped() const { return stop && *stop; }
  bool holds(std::uint64_t number) const { return shard.value_or(Shard{}).holds(number); }
};

/// The result of a piece of work.
struct Finished {
  std::string line;            ///< The line to keep in the file; "" = none.
  std::function<void()> take;  ///< Stores the result; called by one thread at a time.
};

/// Opens the file that `options` name, if any, and puts it into `partial`: see PartialFile::open.
/// Errors: as there.
std::optional<Diagnostics> open_partial(const WorkOptions& options, const std::string& noun,
                                        const std::string& header, const PartialFile::Reader& read,
                                        std::optional<PartialFile>& partial);

/// Does `work(i)` for i below `count`, on the threads of `options`, until their stop is set. Keeps
/// the lines in `partial`, if there is one. Errors: a line that cannot be kept, which ends the
/// work.
std::optional<Diagnostic> work_through(std::uint64_t count, const WorkOptions& options,
                                       std::optional<PartialFile>& partial,
                                       const std::function<Finished(std::uint64_t)>& work);

}  // namespace plumbline
