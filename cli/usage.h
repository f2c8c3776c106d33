// What is said to a command line that cannot be read, and to one that asks for help: our words, not
// those of the library that reads it.
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

/// The subcommand that the first words name; an error where one of them names none. Words behind
/// the names are the command's own, and are not looked at.
Result<const CLI::App*> named_command(const CLI::App& app, const std::vector<std::string>& words);

/// What is wrong with a command line that CLI11 refuses.
Diagnostic refused_command_line(const CLI::App& app, const CLI::ParseError& error);

/// What is empty among the arguments of a command that was read, if anything is: mostly a variable
/// of the shell that has no value.
std::optional<Diagnostic> check_empty(const CLI::App& command);

/// What the program is for, and the first commands to try.
std::string overview(const CLI::App& app);

/// Adds `plumbline help [COMMAND...]` and `plumbline version`.
void add_help(CLI::App& app, int& exit_code);

}  // namespace plumbline
