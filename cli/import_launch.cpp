// `plumbline import megatron`, `nanotron`, `torchtitan`, `deepspeed`: a scenario out of a
// launcher's configuration.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>

#include "base/json_tree.h"
#include "base/toml_tree.h"
#include "base/yaml.h"
#include "cli/command.h"
#include "cli/import.h"
#include "cli/option_checks.h"
#include "models/hardware/device_presets.h"
#include "sim/launch/deepspeed_reader.h"
#include "sim/launch/launch_scenario.h"
#include "sim/launch/megatron_reader.h"
#include "sim/launch/nanotron_reader.h"
#include "sim/launch/torchtitan_reader.h"
#include "sim/scenario/scenario.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxScript = std::size_t{16} << 20U;

struct ImportedLaunch {
  std::vector<std::string> words;
  std::string file;  ///< In the place of words: one configuration.
  std::string output;
  std::string model;
  std::string name;
  std::int64_t gpus = 0;      ///< 0 = as the arguments say.
  std::int64_t sequence = 0;  ///< Where no argument says it.
  LaunchSetting setting;
};

/// The path of the model's config.json beside a scenario, of a run that names none.
std::filesystem::path config_beside(const std::filesystem::path& scenario) {
  return std::filesystem::path(scenario).replace_extension().concat(".config.json");
}

/// Adds the arguments of files and of texts, in their order. Returns remarks on scripts.
std::vector<std::string> collect(const std::vector<std::string>& words, LaunchArguments& arguments,
                                 Diagnostics& problems) {
  std::vector<std::string> remarks;
  for (const std::string& word : words) {
    std::error_code none;
    std::vector<std::string> more;
    if (!std::filesystem::is_regular_file(word, none)) {
      const bool is_path = word.find(' ') == std::string::npos && !word.starts_with("--");
      if (is_path) {
        keep(read_file(word, kMaxScript), problems);  // says why it cannot be read
      } else {
        more =
            arguments.add_command(std::make_shared<const Source>(Source{"<arguments>", word, ""}));
      }
    } else if (const std::string kind = std::filesystem::path(word).extension().string();
               kind == ".yaml" || kind == ".yml") {
      const auto root = read_yaml(word);
      if (keep(root, problems)) arguments.add_tree(*root, false);
    } else {
      const auto script = read_file(word, kMaxScript);
      if (keep(script, problems)) more = arguments.add_command(*script);
    }
    remarks.insert(remarks.end(), more.begin(), more.end());
  }
  if (problems.empty() && arguments.empty()) {
    problems.push_back(input_error({}, "there are no arguments of Megatron-LM",
                                   "a script, a YAML file, or a command line in quotes"));
  }
  return remarks;
}

/// "64 GPUs: tensor 2, pipeline 4, ...".
std::string summary(const Launch& launch, const std::string& output) {
  std::vector<std::string> shares;
  const auto add = [&](std::string_view what, std::int64_t size) {
    if (size > 1) shares.push_back(fmt::format("{} {}", what, size));
  };
  add("tensor", launch.tensor);
  add("context", launch.context);
  add("pipeline", launch.pipeline);
  add("chunks", launch.chunks);
  add("experts", launch.expert);
  add("data parallel", launch.gpus / (launch.tensor * launch.context * launch.pipeline));
  return fmt::format("{}: {} GPUs{}{}; micro-batches of {}, mini-batches of {}\n", output,
                     launch.gpus, shares.empty() ? "" : ": ", fmt::join(shares, ", "),
                     launch.micro_batch_size, launch.mini_batch_size);
}

/// The path of --model as a scenario at `output` has to name it.
std::string path_from(const std::string& output, const std::string& model) {
  namespace fs = std::filesystem;
  if (output.empty() || fs::path(model).is_absolute()) return model;
  const fs::path folder = fs::path(output).parent_path();
  if (!folder.is_absolute()) return fs::path(model).lexically_proximate(folder).string();
  return fs::absolute(model).lexically_normal().string();
}

LaunchGiven given_of(const ImportedLaunch& given) {
  return {given.model, given.gpus > 0 ? std::optional(given.gpus) : std::nullopt};
}

/// Writes the scenario of a launch of `launcher`, and the model beside it. Returns the exit code.
int write_launch(ReadLaunch read, const ImportedLaunch& given, const std::string& launcher) {
  if (given.output.empty() && given.model.empty()) {
    return fail(
        {input_error({},
                     "the model's config.json is written beside the scenario, which needs a "
                     "place",
                     "-o run.yaml; or --model config.json")});
  }
  LaunchSetting setting = given.setting;
  const std::filesystem::path output(given.output);
  setting.name = !given.name.empty()    ? given.name
                 : given.output.empty() ? launcher
                                        : printable(output.stem().string());
  setting.from = fmt::format("From a configuration of {0}, by plumbline import {0}.", launcher);
  read.notes.push_back(
      fmt::format("the devices are taken to be {}, with {} for each GPU between servers "
                  "(cluster.device)",
                  setting.device, setting.network));
  setting.config = given.model.empty() ? config_beside(output).filename().string()
                                       : path_from(given.output, given.model);
  if (given.model.empty()) {
    const int code = write_output(read.launch.shape, config_beside(output).string());
    if (code != ExitCode::done) return code;
  }
  const int code = write_output(scenario_text(read, setting), given.output);
  if (code != ExitCode::done || given.output.empty()) return code;
  if (!read.not_modelled.empty())
    say(fmt::format("note: not modelled: {}\n", fmt::join(read.not_modelled, ", ")));
  for (const std::string& note : read.notes) say(fmt::format("note: {}\n", note));
  if (!holds_outputs()) {
    const auto scenario = read_scenario(given.output, {});
    if (!scenario) return fail(scenario.problems());
  }
  return write_output(summary(read.launch, given.output), "");
}

int import_megatron(const ImportedLaunch& given) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const std::vector<std::string> remarks = collect(given.words, arguments, problems);
  if (!problems.empty()) return fail(problems);
  auto read = read_megatron(std::move(arguments), problems, given_of(given));
  if (!read) return fail(read.problems());
  read->notes.insert(read->notes.end(), remarks.begin(), remarks.end());
  return write_launch(*std::move(read), given, "megatron");
}

int import_nanotron(const ImportedLaunch& given) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = read_yaml(given.file);
  if (!root) return fail(root.problems());
  arguments.add_tree(*root, /*by_path=*/true);
  auto read = read_nanotron(std::move(arguments), problems, given_of(given));
  return read ? write_launch(*std::move(read), given, "nanotron") : fail(read.problems());
}

int import_torchtitan(const ImportedLaunch& given) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = read_toml(given.file);
  if (!root) return fail(root.problems());
  arguments.add_tree(*root, /*by_path=*/true);
  auto read = read_torchtitan(std::move(arguments), problems, given_of(given));
  return read ? write_launch(*std::move(read), given, "torchtitan") : fail(read.problems());
}

int import_deepspeed(const ImportedLaunch& given) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = read_json(given.file);
  if (!root) return fail(root.problems());
  arguments.add_tree(*root, /*by_path=*/true);
  auto read = read_deepspeed(std::move(arguments), problems, given_of(given), given.sequence);
  return read ? write_launch(*std::move(read), given, "deepspeed") : fail(read.problems());
}

/// Adds the options that all launchers have.
void add_launch_options(CLI::App& command, ImportedLaunch& launch, bool has_model) {
  command
      .add_option("-o,--output", launch.output,
                  has_model ? "write the scenario to this file"
                            : "write the scenario to this file, and the model beside it as "
                              "FILE.config.json")
      ->type_name("FILE");
  CLI::Option* const model = command.add_option(
      "--model", launch.model,
      has_model ? "config.json of the model"
                : "config.json of the model, in the place of what is said of its sizes");
  model->type_name("FILE");
  if (has_model) model->required();
  command.add_option("--gpus", launch.gpus, "how many GPUs; absent = as the configuration says")
      ->check(between(1, 1'000'000))
      ->type_name("N");
  command.add_option("--device", launch.setting.device, "the GPUs, a preset")
      ->check(one_of(device_preset_names()))
      ->capture_default_str();
  command
      .add_option("--network", launch.setting.network,
                  "bandwidth of each GPU's own card between servers")
      ->capture_default_str()
      ->type_name("RATE");
  command.add_option("--name", launch.name, "of the scenario; absent = as its file")
      ->type_name("NAME");
}

void add_megatron(CLI::App& import, int& exit_code) {
  auto launch = std::make_shared<ImportedLaunch>();
  CLI::App* command = import.add_subcommand(
      "megatron", "a scenario from a launch of Megatron-LM, NeMo or Megatron-Bridge");
  command
      ->add_option("arguments", launch->words,
                   "a script, a YAML file, or a command line in quotes; of several the last "
                   "counts. One that begins with -- stands behind a -- of its own")
      ->required()
      ->type_name("FILE|TEXT");
  add_launch_options(*command, *launch, false);
  command->callback([launch, &exit_code] { exit_code = import_megatron(*launch); });
}

void add_nanotron(CLI::App& import, int& exit_code) {
  auto launch = std::make_shared<ImportedLaunch>();
  CLI::App* command =
      import.add_subcommand("nanotron", "a scenario from nanotron's configuration (YAML)");
  command->add_option("file", launch->file, "the configuration")->required()->type_name("FILE");
  add_launch_options(*command, *launch, false);
  command->callback([launch, &exit_code] { exit_code = import_nanotron(*launch); });
}

void add_torchtitan(CLI::App& import, int& exit_code) {
  auto launch = std::make_shared<ImportedLaunch>();
  CLI::App* command =
      import.add_subcommand("torchtitan", "a scenario from torchtitan's configuration (TOML)");
  command->add_option("file", launch->file, "the configuration")->required()->type_name("FILE");
  add_launch_options(*command, *launch, false);
  command->callback([launch, &exit_code] { exit_code = import_torchtitan(*launch); });
}

void add_deepspeed(CLI::App& import, int& exit_code) {
  auto launch = std::make_shared<ImportedLaunch>();
  CLI::App* command = import.add_subcommand(
      "deepspeed", "a scenario from DeepSpeed's configuration (JSON) and a model's config.json");
  command->add_option("file", launch->file, "the configuration")->required()->type_name("FILE");
  command->add_option("--sequence", launch->sequence, "tokens of a sample")
      ->required()
      ->check(between(1, 100'000'000))
      ->type_name("N");
  add_launch_options(*command, *launch, true);
  command->callback([launch, &exit_code] { exit_code = import_deepspeed(*launch); });
}

}  // namespace

void add_import_launch(CLI::App& import, int& exit_code) {
  add_megatron(import, exit_code);
  add_torchtitan(import, exit_code);
  add_nanotron(import, exit_code);
  add_deepspeed(import, exit_code);
}

}  // namespace plumbline
