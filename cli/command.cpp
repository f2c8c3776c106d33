// Shared plumbing of the subcommands.
// SPDX-License-Identifier: MIT
#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/report.h"

namespace plumbline {

void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments) {
  command.add_option("scenario", arguments.scenario, "scenario file (YAML)")
      ->required()
      ->type_name("SCENARIO");
  command
      .add_option("overrides", arguments.overrides,
                  "set a key of the scenario: schedule.micro_batches=16")
      ->type_name("key=value");
  command
      .add_option("-o,--output", arguments.output,
                  "write to this file instead of stdout, whole or not at all")
      ->type_name("FILE");
}

int fail(const Diagnostics& problems) {
  std::fputs(to_text(problems).c_str(), stderr);
  int code = ExitCode::infeasible;
  for (const Diagnostic& problem : problems) {
    if (problem.fault == Fault::input) return ExitCode::wrong_input;
    if (problem.fault == Fault::file) code = ExitCode::file_trouble;
  }
  return code;
}

int report_fit(const Prediction& prediction) {
  if (prediction.fits() != false) return ExitCode::done;
  std::fputs(fmt::format("error: {}\n", shortage(prediction)).c_str(), stderr);
  return ExitCode::infeasible;
}

namespace {

int cannot_write(const std::string& path, int error) {
  std::fputs(fmt::format("{}: error: cannot be written: {}\n", path, std::strerror(error)).c_str(),
             stderr);
  return ExitCode::file_trouble;
}

bool write_all(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

int write_output(const std::string& text, const std::string& path) {
  if (path.empty()) {
    errno = 0;
    return write_all(stdout, text) ? ExitCode::done : cannot_write("<stdout>", errno);
  }
  const std::string temporary = fmt::format("{}.{}.partial", path, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return cannot_write(path, errno);
  errno = 0;
  const bool written = write_all(file, text) && fsync(fileno(file)) == 0;
  int error = errno;
  if (std::fclose(file) != 0 && written) error = errno;
  if (written && error == 0 && std::rename(temporary.c_str(), path.c_str()) == 0)
    return ExitCode::done;
  if (written && error == 0) error = errno;
  std::remove(temporary.c_str());
  return cannot_write(path, error);
}

}  // namespace plumbline
