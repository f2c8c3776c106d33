// The `plumbline` command: a list of subcommands.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"predicts how pipeline-parallel training will behave"};
  app.set_version_flag("--version", std::string("plumbline ") + plumbline::kVersion);
  app.require_subcommand(1);
  int exit_code = plumbline::kDone;
  plumbline::add_simulate(app, exit_code);
  plumbline::add_schedule(app, exit_code);
  plumbline::add_check(app, exit_code);
  plumbline::add_list(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? plumbline::kDone : plumbline::kWrongInput;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return plumbline::kBug;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: bug: an exception reached main: %s\n", error.what());
    return plumbline::kBug;
  }
}
