// The `plumbline` command: a list of subcommands.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"predicts how pipeline-parallel training will behave"};
  app.name("plumbline");
  app.set_version_flag("--version", std::string("plumbline ") + plumbline::kVersion);
  app.require_subcommand(1);
  int exit_code = plumbline::ExitCode::done;
  plumbline::add_simulate(app, exit_code);
  plumbline::add_schedule(app, exit_code);
  plumbline::add_bubble(app, exit_code);
  plumbline::add_plan(app, exit_code);
  plumbline::add_check(app, exit_code);
  plumbline::add_calibrate(app, exit_code);
  plumbline::add_run(app, exit_code);
  plumbline::add_validate(app, exit_code);
  plumbline::add_import(app, exit_code);
  plumbline::add_list(app, exit_code);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    plumbline::Diagnostic wrong;
    wrong.message = "'" + plumbline::clipped(argv[1]) + "' is no subcommand";
    wrong.help = plumbline::did_you_mean(argv[1], names);
    if (wrong.help.empty()) wrong.help = "plumbline --help lists them";
    return plumbline::fail({wrong});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? plumbline::ExitCode::done : plumbline::ExitCode::wrong_input;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return plumbline::ExitCode::bug;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: bug: an exception reached main: %s\n", error.what());
    return plumbline::ExitCode::bug;
  }
}
