// Threads that collect results one by one.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/work.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/parallel.h"

namespace plumbline {

std::optional<Diagnostics> open_partial(const WorkOptions& options, const std::string& noun,
                                        const std::string& header, const PartialFile::Reader& read,
                                        std::optional<PartialFile>& partial) {
  if (options.partial_path.empty()) return std::nullopt;
  auto opened = PartialFile::open(options.partial_path, noun, header, options.resume, read);
  if (!opened) return opened.problems();
  partial.emplace(*std::move(opened));
  return std::nullopt;
}

std::optional<Diagnostic> work_through(std::uint64_t count, const WorkOptions& options,
                                       std::optional<PartialFile>& partial,
                                       const std::function<Finished(std::uint64_t)>& work) {
  const std::atomic<bool> never{false};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<Diagnostic> failure;
  const unsigned threads = options.threads > 0 ? options.threads : available_cores();
  for_each_parallel(count, threads, options.stop ? *options.stop : never, [&](std::uint64_t i) {
    if (failed) return;
    const Finished finished = work(i);
    const std::lock_guard lock(mutex);
    if (failed) return;
    if (partial && !finished.line.empty() && !partial->append(finished.line)) {
      failure = input_error(
          {}, fmt::format("{} cannot be written: {}", partial->path(), std::strerror(errno)),
          "the rows in it are whole: go on with --resume");
      failure->fault = Fault::file;
      failed = true;
      return;
    }
    finished.take();
  });
  return failure;
}

}  // namespace plumbline
