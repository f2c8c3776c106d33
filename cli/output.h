// Where a command's results go: stdout, or files that are there whole or not at all.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Writes `text` to stdout, or atomically to `path`: a temporary file in the same folder, then a
/// rename. A link stays, and what it leads to is written; a file keeps its permissions. What is no
/// file (a device, a pipe, what /dev/stdout leads to) is written to as it is. Returns
/// ExitCode::done, or ExitCode::file_trouble after saying why.
int write_output(const std::string& text, const std::string& path);

/// Whether write_output could write to `path`, without touching what is there; says why not. For
/// work that is too long to find out at its end. Returns ExitCode::done or file_trouble.
int try_output(const std::string& path);

/// Writes a Chrome trace as write_output does, compressed where the name ends in `.gz`.
int write_trace(const std::string& text, const std::string& path);

/// What a command was told to write over what it reads, or twice: files of its command line, and
/// those that scenarios there name. `plan` may write its plan.file anew. Requires: the command line
/// has been read.
std::optional<Diagnostic> check_outputs(const CLI::App& command);

}  // namespace plumbline
