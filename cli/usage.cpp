// Each of CLI11's errors as a sentence that names the command, the word and what to type.
//
// SPDX-License-Identifier: MIT
#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

#include "cli/command.h"
#include "cli/option_checks.h"

namespace plumbline {
namespace {

/// An example call of each command, without `plumbline`.
struct Example {
  std::string_view command;
  std::string_view arguments;
};
constexpr Example kExamples[] = {
    {"simulate", "scenario.yaml schedule.micro_batches=16"},
    {"schedule", "scenario.yaml"},
    {"bubble", "--stages 4 --micro-batches 16"},
    {"plan", "scenario.yaml -o plan.yaml"},
    {"compare", "scenario.yaml schedule.name=gpipe,1f1b"},
    {"explain", "scenario.yaml"},
    {"memory", "scenario.yaml model.tensor_parallel=4"},
    {"sweep", "scenario.yaml schedule.micro_batches=4,8,16"},
    {"search", "scenario.yaml --free"},
    {"merge", "1.json 2.json"},
    {"check", "scenario.yaml"},
    {"calibrate", "mlp.network.yaml --backend cpu -o mlp.profile.yaml"},
    {"run", "scenario.yaml --backend synthetic"},
    {"validate", "scenario.yaml --backend synthetic"},
    {"import", "huggingface config.json --sequence 2048 -o model.profile.yaml"},
    {"import pipedream", "graph.txt -o model.profile.yaml"},
    {"import huggingface", "config.json --sequence 2048 -o model.profile.yaml"},
    {"import csv", "layers.csv -o model.profile.yaml"},
    {"import kernels", "gemm.csv --from csv --device 'NVIDIA H100 80GB HBM3' -o h100.kernels.yaml"},
    {"import megatron", "pretrain.sh --gpus 64 -o run.yaml"},
    {"import torchtitan", "llama3_8b.toml --gpus 64 -o run.yaml"},
    {"import nanotron", "config.yaml -o run.yaml"},
    {"import deepspeed", "ds.json --model config.json --sequence 4096 --gpus 64 -o run.yaml"},
    {"import torch-trace", "trace.json --forward 'layer{layer}' -o model.profile.yaml"},
    {"kernels", "config.json --sequence 4096,8192 --tensor-parallel 1,2,4,8 --list -o needed.csv"},
    {"quiz", "1234567 --page 2"},
    {"grade", "--file handed-in.csv --csv"},
    {"list", "schedules"},
    {"schema", "scenario"},
    {"completion", "bash"},
    {"help", "simulate"}};

/// What an exit code means (cli/exit_code.h).
struct CodeMeaning {
  int code;
  const char* meaning;
  std::string_view command = "";  ///< The one that returns it; "" = any.
};
constexpr CodeMeaning kExitCodes[] = {
    {ExitCode::done, "done"},
    {ExitCode::check_failed, "a prediction is off", "validate"},
    {ExitCode::check_failed, "something differs from the record, or from --expect", "check"},
    {ExitCode::wrong_input, "wrong input"},
    {ExitCode::file_trouble, "a file cannot be read or written"},
    {ExitCode::infeasible, "it cannot run, or does not fit"},
    {ExitCode::no_device, "there is no such device"},
    {ExitCode::inconclusive, "inconclusive", "validate"},
    {ExitCode::interrupted, "interrupted"}};

/// The message for an empty word.
constexpr std::string_view kUnset =
    "a variable of the shell that is not set? give it a value, or leave it out";

/// The example of a command, as it is typed; "" = none.
std::string example_of(const CLI::App& command) {
  const std::string name = full_name(command);
  const auto* const example = std::find_if(
      std::begin(kExamples), std::end(kExamples),
      [&](const Example& one) { return name == fmt::format("plumbline {}", one.command); });
  return example == std::end(kExamples) ? "" : fmt::format("{} {}", name, example->arguments);
}

/// "such as: plumbline bubble --stages 4 --micro-batches 16 (plumbline bubble --help tells all)".
std::string such_as(const CLI::App& command) {
  const std::string name = full_name(command);
  std::string all = fmt::format("{} --help says what it takes", name);
  const std::string example = example_of(command);
  return example.empty() ? all : fmt::format("such as: {}; {}", example, all);
}

/// What stands below the options of each command.
Document footer(const CLI::App& command) {
  Document text;
  if (const std::string example = example_of(command); !example.empty()) {
    text.sentence("\nExample:");
    text.verbatim("  " + example);
  }
  const auto& options = command.get_options();
  const bool reads_scenario = std::any_of(options.begin(), options.end(), [](const auto* option) {
    return option->get_type_name().find("SCENARIO") != std::string::npos;
  });
  if (reads_scenario) {
    text.sentence("\nKeys of a scenario:");
    text.sentence(
        "  docs/reference/keys.md explains them; plumbline schema scenario prints them for "
        "editors");
  }
  Table codes;
  codes.has_no_header();
  for (const CodeMeaning& one : kExitCodes) {
    if (one.command.empty() || one.command == command.get_name())
      codes.row({std::to_string(one.code)}, one.meaning);
  }
  text.sentence("\nExit codes:");
  text.table(std::move(codes));
  return text;
}

std::string help_text(const CLI::App& command, PageWidth width) {
  const std::size_t description =
      width ? std::min<std::size_t>(30, *width / 2) : 30;  // CLI11's is 30
  const std::string help =
      command.get_formatter()->make_help(&command, full_name(command), CLI::AppFormatMode::Normal);
  std::string text;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    const std::string line = help.substr(at, end - at);
    text += wrapped(line, width, line.starts_with("  ") ? description : 2) + '\n';
    at = end + 1;
  }
  text.erase(text.find_last_not_of('\n') + 2);
  return text + footer(command).print(width);
}

std::vector<std::string> names_below(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands({})) names.push_back(below->get_name());
  return names;
}

Diagnostic no_subcommand(const CLI::App& level, const std::string& word) {
  const bool is_root = level.get_parent() == nullptr;
  const std::vector<std::string> names = names_below(level);
  if (word.empty())
    return input_error({}, "the name of the subcommand is empty", std::string(kUnset));
  std::string help = did_you_mean(word, names);
  if (help.empty()) {
    help = is_root ? "plumbline help lists them" : fmt::format("one of {}", fmt::join(names, ", "));
  }
  return input_error({},
                     fmt::format("'{}' is no subcommand{}", clipped(word),
                                 is_root ? "" : " of " + full_name(level)),
                     std::move(help));
}

/// The command that was being read: the last one reached.
const CLI::App& reached(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

/// The first command on the way there with words left that it does not take.
const CLI::App* with_rest(const CLI::App& app) {
  const CLI::App* command = &app;
  while (command->remaining().empty()) {
    if (command->get_subcommands().empty()) return nullptr;
    command = command->get_subcommands().back();
  }
  return command;
}

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// A word that the command does not take: an option, or else the first.
Diagnostic unexpected(const CLI::App& app, const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining();
  auto word = std::find_if(rest.begin(), rest.end(), is_option);
  if (word == rest.end()) word = rest.begin();
  const std::string said = word->substr(0, is_option(*word) ? word->find('=') : word->npos);
  std::string help = is_option(said) ? did_you_mean(said, options_of(command)) : "";
  if (const CLI::App& last = reached(app); help.empty() && &last != &command) {
    const auto known = options_of(last);
    if (std::find(known.begin(), known.end(), said) != known.end())
      help = fmt::format("options stand behind the subcommand: {} {}", full_name(last), said);
  }
  if (help.empty()) help = such_as(command);
  return input_error(
      {},
      fmt::format("'{}' is {} {}", clipped(said),
                  is_option(said) ? "no option of" : "one word too many for", full_name(command)),
      std::move(help));
}

/// "--trace", or "SCENARIO" for a positional argument.
std::string word_for(const CLI::Option& option) {
  if (!option.get_positional()) return option.get_name();
  const std::string type = option.get_type_name();
  if (type.empty() || type.starts_with("TEXT")) return lower_case(option.get_name());
  return type.substr(0, type.find(':'));
}

/// The error for a missing argument, with its description.
Diagnostic missing(const CLI::App& command) {
  const std::string name = full_name(command);
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return input_error(
        {}, fmt::format("{} needs {}: {}", name, word_for(*option), option->get_description()),
        such_as(command));
  }
  return input_error(
      {}, fmt::format("{} needs a subcommand: {}", name, fmt::join(names_below(command), ", ")),
      such_as(command));
}

/// The option that an error names; null if it names none.
const CLI::Option* option_in(const CLI::App& command, std::string_view text) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool whole =
          (at == 0 || text[at - 1] == ' ') &&
          (end == text.size() || text[end] == ' ' || text[end] == ':' || text[end] == ',');
      if (whole && (!found || name.size() > found->get_name().size())) found = option;
    }
  }
  return found;
}

/// The error for a value that a check refused.
Diagnostic refused_value(const CLI::App& command, const CLI::Option& option,
                         const RefusedValue& refused) {
  const std::string help = refused.help.empty() ? such_as(command) : refused.help;
  return input_error(
      {},
      option.get_positional()
          ? fmt::format("'{}' {}", refused.value, refused.rule)
          : fmt::format("{} is '{}', which {}", option.get_name(), refused.value, refused.rule),
      help);
}

/// The error for a value that is not of the option's type.
Diagnostic unread_value(const CLI::App& command, const CLI::Option& option) {
  const std::string name = option.get_name();
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() == 0)
    return input_error({}, fmt::format("{} takes no value", name),
                       fmt::format("write {} alone", name));
  const bool whole = type.starts_with("N") || type.starts_with("INT") || type.starts_with("UINT");
  return refused_value(command, option,
                       {option.results().empty() ? "" : clipped(option.results().front()),
                        whole ? "is no whole number, or one out of range" : "is no number", ""});
}

/// The error for a wrong number of values.
Diagnostic wrong_count(const CLI::App& command, const CLI::Option& option) {
  const std::string name = option.get_name();
  if (option.get_items_expected_max() == 0) return unread_value(command, option);
  if (option.results().size() > 1) {
    return input_error({}, fmt::format("{} is given {} times", name, option.results().size()),
                       "leave one of them out");
  }
  const std::string type = option.get_type_name();
  return input_error({},
                     fmt::format("{} stands without a value: {}", name, option.get_description()),
                     fmt::format("write {} {}", name, type.substr(0, type.find(':'))));
}

/// The error for two options that do not go together.
Diagnostic excluded(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const CLI::Option* other : option->get_excludes()) {
      if (option->count() == 0 || other->count() == 0) continue;
      return input_error(
          {}, fmt::format("{} and {} do not go together", option->get_name(), other->get_name()),
          "give one of them");
    }
  }
  return input_error({}, fmt::format("two options of {} do not go together", full_name(command)),
                     such_as(command));
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  return above ? full_name(*above) + ' ' + command.get_name() : command.get_name();
}

Result<const CLI::App*> named_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* level = &app;
  for (const std::string& word : words) {
    const std::vector<const CLI::App*> commands = level->get_subcommands({});
    if (commands.empty()) break;
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
    if (found == commands.end()) return no_subcommand(*level, word);
    level = *found;
  }
  return level;
}

Diagnostic refused_command_line(const CLI::App& app, const CLI::ParseError& error) {
  if (const CLI::App* left = with_rest(app)) return unexpected(app, *left);
  const CLI::App& command = reached(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return missing(command);
  if (dynamic_cast<const CLI::ExcludesError*>(&error)) return excluded(command);
  const std::string text = error.what();
  if (const CLI::Option* option = option_in(command, text)) {
    if (dynamic_cast<const CLI::ValidationError*>(&error)) {
      const std::size_t behind = text.find(": ");
      return refused_value(command, *option,
                           RefusedValue::of(behind == text.npos ? text : text.substr(behind + 2)));
    }
    if (dynamic_cast<const CLI::ConversionError*>(&error)) return unread_value(command, *option);
    return wrong_count(command, *option);
  }
  return input_error({}, fmt::format("{} cannot be called like this", full_name(command)),
                     such_as(command));
}

std::optional<Diagnostic> check_empty(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> values = option->results();
    const bool is_output = option->check_name("--output") || option->check_name("--report") ||
                           option->check_name("--trace");  // empty = stdout, or none
    if (is_output || option->count() == 0 || option->get_items_expected_max() == 0 ||
        std::find(values.begin(), values.end(), "") == values.end())
      continue;
    return input_error({},
                       option->get_positional()
                           ? fmt::format("an argument of {} is empty", full_name(command))
                           : fmt::format("the value of {} is empty", option->get_name()),
                       std::string(kUnset));
  }
  return std::nullopt;
}

std::string overview(const CLI::App& app) {
  Table commands;
  commands.has_no_header();
  for (const std::string_view name :
       {"bubble", "simulate", "explain", "compare", "sweep", "search", "check"}) {
    const CLI::App& command = *app.get_subcommand(std::string(name));
    commands.row({example_of(command)}, command.get_description());
  }
  Document text;
  text.sentence(fmt::format("plumbline {}: {}\n\n", kVersion, app.get_description()));
  text.table(std::move(commands));
  text.sentence(
      "\nplumbline help lists all subcommands; plumbline help simulate says what one takes");
  return text.print(page_width({}, ""));
}

void add_help(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "tell what there is, or what a subcommand takes");
  help->add_option("command", *words, "a subcommand: simulate, import csv")->type_name("COMMAND");
  help->callback([&app, words, &exit_code] {
    const auto command = named_command(app, *words);
    if (!command) return void(exit_code = fail(command.problems()));
    // Not help(), which would describe the subcommand that was read; this describes the named one.
    exit_code = write_output(help_text(**command, page_width({}, "")), "");
  });
  app.add_subcommand("version", "print the version")->callback([&exit_code] {
    exit_code = write_output(fmt::format("plumbline {}\n", kVersion), "");
  });
}

}  // namespace plumbline
