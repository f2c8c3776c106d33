// `plumbline kernels`: which kernels the layouts of a model need.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/table.h"
#include "cli/command.h"
#include "cli/import.h"
#include "cli/option_checks.h"
#include "cli/preset_kernels.h"
#include "models/architectures/huggingface.h"
#include "models/hardware/device_presets.h"
#include "models/tables/kernel_list.h"

namespace plumbline {
namespace {

void tell_note(const std::string& text) { say(fmt::format("note: {}\n", text)); }

struct ListArguments {
  std::string config;
  std::string output;
  TransformerWords words;
  std::string stack;
  std::string device = "h100-sxm";
  std::string table;
  bool list = false;
  bool json = false;
  ListedLayouts layouts{
      .sequences = {}, .batches = {1}, .tensor = {1}, .context = {1}, .expert = {1}, .options = {}};
};

/// Refuses a device that has no arithmetic in a format in which the layers multiply.
std::optional<Diagnostic> lacks_arithmetic(const ListArguments& arguments,
                                           const DevicePreset& device) {
  const auto lacks = [&](NumberFormat format,
                         std::string_view option) -> std::optional<Diagnostic> {
    if (device.peak(format)) return std::nullopt;
    std::vector<std::string_view> able;
    for (const DevicePreset& other : device_presets()) {
      if (other.peak(format)) able.push_back(other.name);
    }
    return input_error(
        {},
        fmt::format("--device is '{}', which has no {} arithmetic", device.name, name_of(format)),
        fmt::format("leave {} out, or name a device that has it: {}", option,
                    fmt::join(able, ", ")));
  };
  const NumberFormat dtype = number_format(arguments.words.dtype);
  if (auto lacking = lacks(dtype, "--dtype " + arguments.words.dtype)) return lacking;
  if (!arguments.layouts.options.fp8_linear) return std::nullopt;
  return lacks(NumberFormat::fp8, "--fp8-linear");
}

/// The kernels of the device with the stack and the table of the arguments.
Result<KernelModel> kernel_model(const ListArguments& arguments) {
  if (auto lacking = lacks_arithmetic(arguments, *find_device_preset(arguments.device)))
    return *std::move(lacking);
  std::shared_ptr<const MeasuredKernels> measured;
  if (!arguments.table.empty()) {
    auto kernels = shared_kernels(arguments.table);
    if (!kernels) return kernels.problems();
    measured = *std::move(kernels);
  }
  return preset_kernels(arguments.device, arguments.stack, number_format(arguments.words.dtype),
                        std::move(measured));
}

int list_kernels(const ListArguments& arguments) {
  const auto shape = read_huggingface(arguments.config);
  if (!shape) return fail(shape.problems());
  const auto model = kernel_model(arguments);
  if (!model) return fail(model.problems());
  const NeededKernels needed = needed_kernels(*shape, arguments.layouts, *model);
  if (needed.layouts == 0)
    return fail({input_error({}, "no layout is possible: " + needed.misfits.begin()->first)});
  const int written = write_output(
      arguments.json ? kernel_list_json(needed.kernels) : kernel_list_csv(needed.kernels),
      arguments.output);
  if (written != ExitCode::done) return written;
  tell_note(fmt::format("{}{} of {}", plural(needed.kernels.size(), "kernel"),
                        arguments.table.empty() ? "" : " without a measured time",
                        plural(static_cast<std::uint64_t>(needed.layouts), "layout")));
  for (const auto& [why, count] : needed.misfits) {
    tell_note(
        fmt::format("{} left out: {}", plural(static_cast<std::uint64_t>(count), "layout"), why));
  }
  return ExitCode::done;
}

void add_sizes(CLI::App& command, ListArguments& arguments) {
  ListedLayouts& layouts = arguments.layouts;
  const auto add = [&](const char* name, std::vector<std::int64_t>& sizes, std::int64_t max,
                       const char* what) {
    return command.add_option(name, sizes, what)
        ->delimiter(',')
        ->check(between(1, max))
        ->type_name("N,...");
  };
  add("--sequence", layouts.sequences, 100'000'000, "tokens of a sample")->required();
  add("--batch", layouts.batches, 100'000'000, "samples of a micro-batch; 1 if absent");
  add("--tensor-parallel", layouts.tensor, 1024, "devices that share each layer; 1 if absent");
  add("--context-parallel", layouts.context, 65536,
      "devices that share the tokens of each sample; 1 if absent");
  add_context_exchange(command, arguments.words);
  add("--expert-parallel", layouts.expert, 65536,
      "devices that share the experts of each layer; 1 if absent");
  add_divided_experts(command, arguments.words, layouts.options);
}

void add_training(CLI::App& command, ListArguments& arguments) {
  TransformerOptions& options = arguments.layouts.options;
  add_dtype(command, arguments.words);
  add_fp8_linear(command, options);
  add_flash_attention(command, options);
  add_cross_entropy(command, arguments.words);
  add_mtp(command, options);
  command
      .add_option("--stack", arguments.stack,
                  "the training framework, which decides what kernels there are")
      ->check(one_of(software_stack_names()))
      ->capture_default_str();
  command
      .add_option(
          "--device", arguments.device,
          "the device by whose modelled times the list is ordered: one of plumbline list presets")
      ->check(one_of(device_preset_names()).description(""))
      ->type_name("PRESET")
      ->capture_default_str();
}

}  // namespace

void add_kernels(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ListArguments>();
  arguments->stack = usual_stack().name;
  CLI::App* command = app.add_subcommand(
      "kernels", "which kernels the layouts of a model need, each once: what there is to measure");
  command->add_option("config", arguments->config, "config.json of a Hugging Face model")
      ->required()
      ->type_name("FILE");
  add_sizes(*command, *arguments);
  add_training(*command, *arguments);
  command->add_option("--table", arguments->table, "list only kernels that this table lacks")
      ->type_name("FILE");
  command->add_flag("--list", arguments->list, "list them; no device is needed")->required();
  command->add_flag("--json", arguments->json, "print JSON instead of CSV");
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout")
      ->type_name("FILE");
  command->callback([arguments, command, &exit_code] {
    arguments->words.apply(*command, arguments->layouts.options);
    exit_code = list_kernels(*arguments);
  });
}

}  // namespace plumbline
