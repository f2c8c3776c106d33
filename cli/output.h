// The output of a command: stdout, or files that are written completely or not at all.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/wrap.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Writes `text` to stdout, or atomically to `path`: a temporary file in the same folder, then a
/// rename. A link stays, and its target is written; a file keeps its permissions. A path that is no
/// regular file (a device, a pipe, the target of /dev/stdout) is written to directly. Returns
/// ExitCode::done, or ExitCode::file_trouble after saying why. A recorder that holds outputs back
/// gets the text instead.
int write_output(const std::string& text, const std::string& path);

/// The usual columns of a page.
inline constexpr std::size_t kUsualColumns = 100;

/// The columns of stdout: those of its terminal, else what COLUMNS says, else the usual ones.
std::size_t stdout_columns();

/// Writes errors to stderr as `say` writes lines.
void say(const Diagnostics& problems);

/// Writes lines to stderr, broken to fit its terminal, or to what COLUMNS says; else each is one
/// line. Each ends in a newline.
void say(const std::string& text);

/// Checks whether write_output can write to `path`, and prints why not. It does not touch an
/// existing file. Long work calls it first. Returns ExitCode::done or file_trouble.
int try_output(const std::string& path);

/// Writes a Chrome trace as write_output does, compressed where the name ends in `.gz`.
int write_trace(const std::string& text, const std::string& path);

/// Whether outputs are held back, so that nothing may be written to files.
bool holds_outputs();

/// An error if a command would write over a file that it reads, or write a file twice. It checks
/// the files of the command line, and those that scenarios there name. `plan` may rewrite its
/// plan.file. Requires: the command line has been read.
std::optional<Diagnostic> check_outputs(const CLI::App& command);

}  // namespace plumbline
