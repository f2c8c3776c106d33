// The `plumbline` command: a list of subcommands.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/replay.h"
#include "cli/usage.h"

namespace {

/// Thrown for a command that must not start. What is wrong has been printed.
struct Refused {
  int exit_code = 0;
};

/// Calls `look` for each command before it starts, also for subcommands.
void look_before(CLI::App& app, const std::function<void(const CLI::App&)>& look) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->parse_complete_callback([command, look] { look(*command); });
    look_before(*command, look);
  }
}

/// Checks the arguments of a command.
void check_arguments(const CLI::App& command) {
  if (const auto wrong = plumbline::check_empty(command)) throw Refused{plumbline::fail({*wrong})};
  if (const auto wrong = plumbline::check_outputs(command))
    throw Refused{plumbline::fail({*wrong})};
}

bool holds(const std::vector<std::string>& words, std::initializer_list<const char*> wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  });
}

/// The words before the first option. The first of them name subcommands.
std::vector<std::string> leading(const std::vector<std::string>& words) {
  const auto option = std::find_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word.starts_with('-'); });
  return {words.begin(), option};
}

}  // namespace

int plumbline::run_command(std::vector<std::string> words) {
  CLI::App app{"predicts how pipeline-parallel training will behave"};
  app.name("plumbline");
  app.set_help_flag("-h,--help", "print this and end");
  app.set_version_flag("--version", std::string("plumbline ") + plumbline::kVersion,
                       "print the version and end");
  app.require_subcommand(1);
  int exit_code = plumbline::ExitCode::done;
  plumbline::add_simulate(app, exit_code);
  plumbline::add_schedule(app, exit_code);
  plumbline::add_bubble(app, exit_code);
  plumbline::add_order(app, exit_code);
  plumbline::add_plan(app, exit_code);
  plumbline::add_compare(app, exit_code);
  plumbline::add_explain(app, exit_code);
  plumbline::add_memory(app, exit_code);
  plumbline::add_sweep(app, exit_code);
  plumbline::add_search(app, exit_code);
  plumbline::add_merge(app, exit_code);
  plumbline::add_check(app, exit_code);
  plumbline::add_calibrate(app, exit_code);
  plumbline::add_run(app, exit_code);
  plumbline::add_validate(app, exit_code);
  plumbline::add_diagnose(app, exit_code);
  plumbline::add_import(app, exit_code);
  plumbline::add_kernels(app, exit_code);
  plumbline::add_quiz(app, exit_code);
  plumbline::add_grade(app, exit_code);
  plumbline::add_list(app, exit_code);
  plumbline::add_schema(app, exit_code);
  plumbline::add_completion(app, exit_code);
  plumbline::add_help(app, exit_code);
  plumbline::Recording::add_options(app);

  // Requests for text (help, version), anywhere on the command line.
  if (words.empty()) return plumbline::write_output(plumbline::overview(app), "");
  if (holds(words, {"--version"})) words = {"version"};
  if (holds(words, {"-h", "--help"})) {
    std::erase_if(words, [](const std::string& word) { return word.starts_with('-'); });
    words.insert(words.begin(), "help");
  }

  // Requests for work.
  const auto named = plumbline::named_command(app, leading(words));
  if (!named) return plumbline::fail(named.problems());
  plumbline::Recording recording;
  look_before(app, [&](const CLI::App& command) {
    check_arguments(command);
    if (const int code = recording.start(command, words); code != plumbline::ExitCode::done)
      throw Refused{code};
  });
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const Refused& refused) {
    return refused.exit_code;
  } catch (const CLI::ParseError& error) {
    return plumbline::fail({plumbline::refused_command_line(app, error)});
  } catch (...) {
    recording.finish(plumbline::ExitCode::bug);
    throw;
  }
  return recording.finish(exit_code);
}

namespace {

/// Prints a bug. Returns the exit code.
int tell(const plumbline::Bug& bug) {
  std::fprintf(stderr, "%s\n", bug.what());
  return plumbline::ExitCode::bug;
}

std::terminate_handler usual_end = nullptr;

/// Prints a bug that cannot be caught, as in a destructor, like any other.
[[noreturn]] void tell_and_end() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const plumbline::Bug& bug) {
    const int code = tell(bug);
    std::fflush(nullptr);
    std::_Exit(code);
  } catch (...) {  // the usual end prints it
  }
  usual_end();
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  usual_end = std::set_terminate(tell_and_end);
  try {
    return plumbline::run_command({argv + 1, argv + argc});
  } catch (const plumbline::Bug& bug) {
    return tell(bug);
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return plumbline::ExitCode::bug;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: bug: an exception reached main: %s\n", error.what());
    return plumbline::ExitCode::bug;
  }
}
