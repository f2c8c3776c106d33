// `plumbline kernels`: which kernels layouts need; `plumbline import kernels`: tables of others.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/import.h"
#include "cli/option_checks.h"
#include "models/hardware/device_presets.h"
#include "models/import/huggingface.h"
#include "models/kernels/kernel_table_writer.h"
#include "models/tables/imported_kernels.h"
#include "models/tables/kernel_list.h"
#include "sim/scenario/device_section.h"

namespace plumbline {
namespace {

std::string plural_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void tell_note(const std::string& text) {
  std::fputs(fmt::format("note: {}\n", text).c_str(), stderr);
}

// ---- plumbline kernels ----

struct ListArguments {
  std::string config;
  std::string output;
  std::string dtype = "bf16";
  std::string stack;
  std::string device = "h100-sxm";
  std::string table;
  bool list = false;
  bool json = false;
  ListedLayouts layouts{
      .sequences = {}, .batches = {1}, .tensor = {1}, .context = {1}, .expert = {1}, .options = {}};
};

/// The kernels of the device with the stack and the table of the arguments.
Result<KernelModel> kernel_model(const ListArguments& arguments) {
  DeviceChoice device;
  device.preset = find_device_preset(arguments.device);
  device.fp8_peak = device.preset->peak(NumberFormat::fp8);
  device.memory_bandwidth = device.preset->memory_bandwidth;
  device.link_bandwidth = device.preset->link_bandwidth;
  device.stack = find_software_stack(arguments.stack);
  if (!arguments.table.empty()) {
    auto kernels = shared_kernels(arguments.table);
    if (!kernels) return kernels.problems();
    device.kernels = *std::move(kernels);
  }
  const auto roofline = roofline_of(device, number_format(arguments.dtype));
  if (!roofline) return roofline.problems();
  return kernels_of(device, *roofline);
}

int list_kernels(ListArguments& arguments) {
  arguments.layouts.options.dtype = number_format(arguments.dtype);
  const auto shape = read_huggingface(arguments.config);
  if (!shape) return fail(shape.problems());
  const auto model = kernel_model(arguments);
  if (!model) return fail(model.problems());
  const NeededKernels needed = needed_kernels(*shape, arguments.layouts, *model);
  if (needed.layouts == 0)
    return fail({input_error(
        {}, "no combination of the sizes divides the model: " + needed.misfits.begin()->first)});
  const int written = write_output(
      arguments.json ? kernel_list_json(needed.kernels) : kernel_list_csv(needed.kernels),
      arguments.output);
  if (written != ExitCode::done) return written;
  tell_note(fmt::format("{}{} of {}", plural_of(needed.kernels.size(), "kernel"),
                        arguments.table.empty() ? "" : " without a measured time",
                        plural_of(static_cast<std::size_t>(needed.layouts), "layout")));
  for (const auto& [why, count] : needed.misfits) {
    tell_note(
        fmt::format("{} left out: {}", plural_of(static_cast<std::size_t>(count), "layout"), why));
  }
  return ExitCode::done;
}

void add_sizes(CLI::App& command, ListedLayouts& layouts) {
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
  add("--expert-parallel", layouts.expert, 65536,
      "devices that share the experts of each layer; 1 if absent");
}

void add_training(CLI::App& command, ListArguments& arguments) {
  TransformerOptions& options = arguments.layouts.options;
  command.add_option("--dtype", arguments.dtype, "what numbers are kept and multiplied in")
      ->check(one_of({kNumberFormats.begin(), kNumberFormats.end()}))
      ->capture_default_str();
  command.add_flag("--fp8-linear", options.fp8_linear,
                   "linear layers but the head and routers multiply in fp8, the rest in --dtype");
  command.add_flag("--flash-attention,!--no-flash-attention", options.flash_attention,
                   "whether attention's scores are kept for the backward; default: they are not");
  command.add_flag("--mtp", options.mtp,
                   "the modules that predict further tokens are trained, too");
  command
      .add_option("--stack", arguments.stack,
                  "the training framework, which decides what kernels there are")
      ->check(one_of(software_stack_names()))
      ->capture_default_str();
  command
      .add_option("--device", arguments.device,
                  "the device by whose modelled times the list is ordered")
      ->check(one_of(device_preset_names()))
      ->capture_default_str();
}

// ---- plumbline import kernels ----

struct KernelFiles {
  std::vector<std::string> files;
  std::string from;
  std::string device;
  std::string output;
};

using ImportFunction = std::optional<Diagnostics> (*)(const std::string&, ImportedKernels&);

struct ImportFormat {
  std::string_view name;
  ImportFunction import;
};

constexpr ImportFormat kImportFormats[] = {{"csv", &import_csv_kernels},
                                           {"aiconfigurator", &import_aiconfigurator_kernels},
                                           {"simumax", &import_simumax_kernels}};

int import_all(const KernelFiles& arguments) {
  ImportedKernels imported;
  Diagnostics problems;
  for (const std::string& file : arguments.files) {
    for (const ImportFormat& format : kImportFormats) {
      if (format.name != arguments.from) continue;
      if (auto wrong = format.import(file, imported))
        problems.insert(problems.end(), wrong->begin(), wrong->end());
    }
  }
  if (!problems.empty()) return fail(problems);
  KernelTable table = imported.take();
  if (table.rows.empty())
    problems.push_back(input_error({}, "no row is a kernel that a table holds"));
  table.device = arguments.device;
  table.provenance["source"] = "imported";
  table.provenance["format"] = arguments.from;
  table.provenance["file"] = fmt::format("{}", fmt::join(arguments.files, ", "));
  table.provenance["tool"] = fmt::format("plumbline {}", kVersion);
  for (const auto& [why, count] : imported.left_out())
    tell_note(
        fmt::format("{} left out: {}", plural_of(static_cast<std::size_t>(count), "row"), why));
  if (!problems.empty()) return fail(problems);
  const int written = write_output(kernel_table_yaml(table), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  return write_output(fmt::format("{}: {} of kernels, of {}\n", arguments.output,
                                  plural_of(table.rows.size(), "time"), clipped(table.device)),
                      "");
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
  add_sizes(*command, arguments->layouts);
  add_training(*command, *arguments);
  command->add_option("--table", arguments->table, "list only kernels that this table lacks")
      ->type_name("FILE");
  command->add_flag("--list", arguments->list, "list them; no device is needed")->required();
  command->add_flag("--json", arguments->json, "print JSON instead of CSV");
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout")
      ->type_name("FILE");
  command->callback([arguments, &exit_code] { exit_code = list_kernels(*arguments); });
}

void add_import_kernels(CLI::App& import, int& exit_code) {
  auto arguments = std::make_shared<KernelFiles>();
  CLI::App* command =
      import.add_subcommand("kernels", "measured times of kernels, for cluster.device.kernels");
  command->add_option("file", arguments->files, "the files to import into one table")
      ->required()
      ->type_name("FILE");
  std::vector<std::string> names;
  for (const ImportFormat& format : kImportFormats) names.emplace_back(format.name);
  command
      ->add_option("--from", arguments->from,
                   "what the files are: CSV of our own columns, tables of aiconfigurator (CSV, "
                   "plain or .gz), a system file of SimuMax (JSON)")
      ->required()
      ->check(one_of(names));
  command->add_option("--device", arguments->device, "the name of the device that was measured")
      ->required()
      ->type_name("NAME");
  command->add_option("-o,--output", arguments->output, "write the table here; absent = stdout")
      ->type_name("FILE");
  command->callback([arguments, &exit_code] { exit_code = import_all(*arguments); });
}

}  // namespace plumbline
