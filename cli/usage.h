// The messages for a command line that cannot be read, and for one that asks for help. The words
// are ours, not those of the library that reads it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace plumbline {

/// "plumbline import huggingface".
std::string full_name(const CLI::App& command);

/// The subcommand that the first words name; an error if one of them names none. Words after the
/// names belong to the command, and are not checked.
Result<const CLI::App*> named_command(const CLI::App& app, const std::vector<std::string>& words);

/// The error of a command line that CLI11 refuses.
Diagnostic refused_command_line(const CLI::App& app, const CLI::ParseError& error);

/// An error if an argument of the command is empty: usually a shell variable without a value.
std::optional<Diagnostic> check_empty(const CLI::App& command);

/// The purpose of the program, and the first commands to try.
std::string overview(const CLI::App& app);

/// Adds `plumbline help [COMMAND...]` and `plumbline version`.
void add_help(CLI::App& app, int& exit_code);

}  // namespace plumbline
