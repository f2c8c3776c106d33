// The `plumbline` command: a list of subcommands.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/output.h"

namespace {

/// What is wrong with the words at the front that should name a subcommand, and one of its own.
std::optional<plumbline::Diagnostic> wrong_subcommand(const CLI::App& app, int argc, char** argv) {
  const CLI::App* level = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<const CLI::App*> commands = level->get_subcommands({});
    if (commands.empty()) return std::nullopt;
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == argv[i];
    });
    if (found == commands.end()) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* command : commands) names.push_back(command->get_name());
      plumbline::Diagnostic wrong;
      wrong.message = "'" + plumbline::clipped(argv[i]) + "' is no subcommand";
      if (i > 1) wrong.message += " of " + level->get_name();
      wrong.help = plumbline::did_you_mean(argv[i], names);
      if (wrong.help.empty())
        wrong.help = (i > 1 ? "plumbline " + level->get_name() : std::string("plumbline")) +
                     " --help lists them";
      return wrong;
    }
    level = *found;
  }
  return std::nullopt;
}

/// What was said to a command, the first of those that were reached, and that it does not take: an
/// option, or else a word.
plumbline::Diagnostic unexpected(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (command->remaining().empty() && !command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
    name += " " + command->get_name();
  }
  const std::vector<std::string> rest = command->remaining();
  const auto is_option = [](const std::string& word) { return word.rfind('-', 0) == 0; };
  auto word = std::find_if(rest.begin(), rest.end(), is_option);
  if (word == rest.end()) word = rest.begin();
  plumbline::Diagnostic wrong;
  wrong.help = name + " --help tells what it takes";
  if (word == rest.end()) {
    wrong.message = "there is something that " + name + " does not take";
    return wrong;
  }
  const std::string said = word->substr(0, is_option(*word) ? word->find('=') : word->npos);
  wrong.message = "'" + plumbline::clipped(said) + "' is nothing that " + name + " takes";
  std::vector<std::string> names;
  for (const CLI::Option* known : command->get_options()) {
    for (const std::string& option : known->get_lnames()) names.push_back("--" + option);
  }
  const std::string meant = plumbline::did_you_mean(said, names);
  if (!meant.empty()) wrong.help = meant;
  return wrong;
}

/// A command that is not begun.
struct Refused {
  plumbline::Diagnostic why;
};

/// Looks at what a command was told, before it begins, here and in its subcommands.
void look_before(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->parse_complete_callback([command] {
      if (auto wrong = plumbline::refuse_outputs(*command)) throw Refused{*std::move(wrong)};
    });
    look_before(*command);
  }
}

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
  plumbline::add_compare(app, exit_code);
  plumbline::add_explain(app, exit_code);
  plumbline::add_sweep(app, exit_code);
  plumbline::add_search(app, exit_code);
  plumbline::add_merge(app, exit_code);
  plumbline::add_check(app, exit_code);
  plumbline::add_calibrate(app, exit_code);
  plumbline::add_run(app, exit_code);
  plumbline::add_validate(app, exit_code);
  plumbline::add_import(app, exit_code);
  plumbline::add_list(app, exit_code);
  plumbline::add_schema(app, exit_code);
  plumbline::add_completion(app, exit_code);
  if (const auto wrong = wrong_subcommand(app, argc, argv)) return plumbline::fail({*wrong});
  look_before(app);
  try {
    app.parse(argc, argv);
  } catch (const Refused& refused) {
    return plumbline::fail({refused.why});
  } catch (const CLI::ExtrasError&) {
    return plumbline::fail({unexpected(app)});
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
