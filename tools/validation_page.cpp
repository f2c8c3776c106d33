// `validation_page`: keeps the parts of `plumbline validate --json` that documents need, and writes
// the documents.
//
// SPDX-License-Identifier: MIT
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <chrono>
#include <cstdio>

#include "base/bug.h"
#include "calibrate/cpu/layer.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/machine.h"
#include "cli/command.h"
#include "cli/record/commit.h"
#include "models/profile/profile_reader.h"
#include "tools/page.h"
#include "tools/resimulation.h"
#include "tools/result_file.h"

namespace plumbline {
namespace {

constexpr std::size_t kLargestDocument = std::size_t{16} << 20U;

struct Condense {
  std::string raw;
  std::string output;
  std::string group;
  std::string name;
  std::string command;
  std::string load;
  std::string profile;  ///< "" = nothing was calibrated.
  std::string there;    ///< A profile of the machine where it ran; "" = this machine.
  bool is_short = false;
};

/// The facts of this machine and this build for the results.
std::map<std::string, std::string> this_machine(const std::string& load) {
  const auto today = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string library = cpu_library();
  std::map<std::string, std::string> facts = {
      {"processor", printable(processor_name())},
      {"cores", std::to_string(usable_cores())},
      {"system", printable(system_name())},
      {"compiler", compiler_name()},
      {"library", library.empty() ? "without oneDNN" : library},
      {"tool", fmt::format("plumbline {}", kVersion)},
      {"commit", std::string(commit())},
      {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(today))}};
  if (!load.empty()) facts["load"] = load;
  return facts;
}

/// The facts, for the results, of the machine that a profile was measured on: a GPU elsewhere.
Result<std::map<std::string, std::string>> machine_of(const std::string& path) {
  const auto model = read_profile(path);
  if (!model) return model.problems();
  const auto& provenance = model->profile.provenance;
  const auto told = [&](const char* key) {
    const auto found = provenance.find(key);
    return found == provenance.end() ? std::string("not stated") : found->second;
  };
  std::map<std::string, std::string> facts = {
      {"processor", told("device")},
      {"cores", fmt::format("{} x {} SMs", told("busy_devices"), told("sms"))},
      {"library", fmt::format("{}, driver for {}", told("library"), told("driver"))}};
  for (const char* key : {"system", "compiler", "tool", "commit", "date", "load"})
    facts[key] = told(key);
  return facts;
}

/// The entries of a profile's provenance that show its quality.
Result<std::map<std::string, std::string>> calibration_of(const std::string& path) {
  const auto model = read_profile(path);
  if (!model) return model.problems();
  std::map<std::string, std::string> facts;
  for (const char* key : {"date", "load", "passes", "dropped", "noise", "drift", "resumed"}) {
    const auto& provenance = model->profile.provenance;
    if (const auto found = provenance.find(key); found != provenance.end()) facts.insert(*found);
  }
  return facts;
}

int condense(const Condense& arguments) {
  ResultHeader header;
  header.group = *group_named(arguments.group);
  header.name = arguments.name;
  header.command = arguments.command;
  header.is_short = arguments.is_short;
  header.machine = this_machine(arguments.load);
  if (!arguments.there.empty()) {
    auto facts = machine_of(arguments.there);
    if (!facts) return fail(facts.problems());
    header.machine = *std::move(facts);
  }
  if (!arguments.profile.empty()) {
    auto facts = calibration_of(arguments.profile);
    if (!facts) return fail(facts.problems());
    header.calibration = *std::move(facts);
  }
  const auto result = read_validation(arguments.raw, std::move(header));
  if (!result) return fail(result.problems());
  return write_output(to_json(*result), arguments.output);
}

/// The reason why the results of `file` are not valid for this build on this machine; "" if they
/// are.
std::string why_not_current(const ResultFile& file, bool is_short) {
  const auto now = this_machine("");
  for (const char* key : {"commit", "processor", "cores", "compiler", "library"}) {
    const auto found = file.machine.find(key);
    const std::string was = found == file.machine.end() ? "not stated" : found->second;
    if (was != now.at(key)) return fmt::format("{} was '{}' and is '{}'", key, was, now.at(key));
  }
  if (file.is_short != is_short)
    return file.is_short ? "it is of a short run" : "it is of a full run";
  return "";
}

int tell_current(const std::string& path, bool is_short) {
  const auto file = read_result(path);
  if (!file) return fail(file.problems());
  const std::string why = why_not_current(*file, is_short);
  if (why.empty()) return ExitCode::done;
  std::fputs(fmt::format("{}: {}\n", path, why).c_str(), stderr);
  return ExitCode::check_failed;
}

/// `again`: a file of results that were predicted again; "" = there are none.
int write_page(const std::string& folder, const std::string& again, const std::string& output) {
  const auto results = read_results(folder);
  if (!results) return fail(results.problems());
  if (again.empty()) return write_output(validation_page(*results), output);
  const auto resimulated = read_resimulation(again);
  if (!resimulated) return fail(resimulated.problems());
  return write_output(validation_page(*results, *resimulated), output);
}

int predict_again(const std::string& folder, const std::string& output) {
  const auto results = read_results(folder);
  if (!results) return fail(results.problems());
  const auto resimulated = resimulate(*results);
  if (!resimulated) return fail(resimulated.problems());
  return write_output(resimulation_json(*resimulated), output);
}

/// Puts the table between its two marks in `path`.
int write_table(const std::string& folder, const std::string& path) {
  const auto results = read_results(folder);
  if (!results) return fail(results.problems());
  const auto source = read_file(path, kLargestDocument);
  if (!source) return fail(source.problems());
  const std::string& text = (*source)->text;
  const std::size_t begin = text.find(kTableBegin);
  const std::size_t end = text.find(kTableEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    Diagnostic wrong = input_error(Mark{*source, 0, 0}, "has no place for the table of accuracy");
    wrong.help = fmt::format("it goes between the lines\n    {}\n    {}", kTableBegin, kTableEnd);
    return fail({wrong});
  }
  return write_output(text.substr(0, begin) + kTableBegin + "\n\n" + accuracy_table(*results) +
                          '\n' + text.substr(end),
                      path);
}

int dispatch(int argc, char** argv) {
  CLI::App app{"the documents that tell how predictions compare with measurements"};
  app.name("validation_page");
  app.require_subcommand(1);
  int exit_code = ExitCode::done;

  Condense kept;
  CLI::App* command =
      app.add_subcommand("condense", "keep of `plumbline validate --json` what the page needs");
  command->add_option("raw", kept.raw, "what validate wrote")->required()->type_name("FILE");
  command->add_option("-o,--output", kept.output, "the file of results")
      ->required()
      ->type_name("FILE");
  std::vector<std::string> groups;
  for (const ResultGroup group : kResultGroups) groups.emplace_back(name(group));
  command->add_option("--group", kept.group, "the section that it belongs to")
      ->required()
      ->check(CLI::IsMember(groups));
  command->add_option("--name", kept.name, "its row there")->required();
  command->add_option("--command", kept.command, "what was typed")->required();
  command->add_option("--load", kept.load, "the load average before it");
  command->add_option("--profile", kept.profile, "the profile it predicts from")->type_name("FILE");
  command
      ->add_option("--there", kept.there, "a profile of the machine it ran on; absent = this one")
      ->type_name("FILE");
  command->add_flag("--short", kept.is_short, "mark it as of a short run");
  command->callback([&] { exit_code = condense(kept); });

  std::string folder;
  std::string path;
  bool is_short = false;
  command = app.add_subcommand("current", "whether results are of this build and machine");
  command->add_option("file", path, "a file of results")->required()->type_name("FILE");
  command->add_flag("--short", is_short, "whether they are of a short run");
  command->callback([&] { exit_code = tell_current(path, is_short); });

  command = app.add_subcommand("page", "write docs/results/validation.md");
  command->add_option("folder", folder, "of results")->required()->type_name("FOLDER");
  command->add_option("-o,--output", path, "write here instead of stdout")->type_name("FILE");
  std::string again;
  command->add_option("--resimulated", again, "the same runs, predicted again")->type_name("FILE");
  command->callback([&] { exit_code = write_page(folder, again, path); });

  command = app.add_subcommand("resimulate",
                               "predict a GPU's runs again, from the profiles of examples/");
  command->add_option("folder", folder, "of results")->required()->type_name("FOLDER");
  command->add_option("-o,--output", path, "write here instead of stdout")->type_name("FILE");
  command->callback([&] { exit_code = predict_again(folder, path); });

  command = app.add_subcommand("table", "put the table of accuracy into a page");
  command->add_option("folder", folder, "of results")->required()->type_name("FOLDER");
  command->add_option("file", path, "the page")->required()->type_name("FILE");
  command->callback([&] { exit_code = write_table(folder, path); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::done : ExitCode::wrong_input;
  }
  return exit_code;
}

}  // namespace
}  // namespace plumbline

int main(int argc, char** argv) {
  try {
    return plumbline::dispatch(argc, argv);
  } catch (const plumbline::Bug& bug) {
    std::fprintf(stderr, "%s\n", bug.what());
    return plumbline::ExitCode::bug;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "validation_page: bug: an exception reached main: %s\n", error.what());
    return plumbline::ExitCode::bug;
  }
}
