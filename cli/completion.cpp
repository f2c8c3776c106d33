// `plumbline completion`: the script that completes its commands, made from the program's own
// tables.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <memory>
#include <sstream>

#include "cli/command.h"
#include "cli/completion_script.h"
#include "cli/option_checks.h"
#include "cli/real.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

/// The words between the braces of "TEXT:{a,b}", the type name that CLI::IsMember makes.
std::vector<std::string> offered(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos || type.back() != '}') return {};
  std::vector<std::string> words;
  std::istringstream list(type.substr(begin + 2, type.size() - begin - 3));
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

CompletionValue value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {{}, true};
  if (option.get_name() != "--backend") return {offered(option), false};
  CompletionValue backends;
  for (const BackendName& backend : kBackends) backends.words.emplace_back(backend.name);
  return backends;
}

void add_levels(const CLI::App& app, const std::string& path,
                std::vector<CompletionLevel>& levels) {
  CompletionLevel level{path, {}, {}, {}, false};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames())
      level.options.push_back({'-' + name, value_of(*option)});
    for (const std::string& name : option->get_lnames())
      level.options.push_back({"--" + name, value_of(*option)});
    if (!option->get_positional()) continue;
    const std::vector<std::string> words = offered(*option);
    if (level.words.empty()) level.words = words;
    level.takes_keys =
        level.takes_keys || option->get_type_name().find("key=") != std::string::npos;
  }
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  level.commands.reserve(commands.size());
  for (const CLI::App* command : commands) level.commands.push_back(command->get_name());
  levels.push_back(std::move(level));
  for (const CLI::App* command : commands) {
    const std::string below = path.empty() ? "" : path + ' ';
    add_levels(*command, below + command->get_name(), levels);
  }
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "print a script that completes plumbline in a shell");
  command->add_option("shell", *shell, "bash or zsh")->required()->check(one_of({"bash", "zsh"}));
  command->callback([shell, &app, &exit_code] {
    std::vector<CompletionLevel> levels;
    add_levels(app, "", levels);
    const std::vector<KeyPath> keys = key_paths(scenario_format());
    exit_code = write_output(
        *shell == "bash" ? bash_completion(levels, keys) : zsh_completion(levels, keys), "");
  });
}

}  // namespace plumbline
