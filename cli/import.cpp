// `plumbline import`: existing models as native profiles.
//
// SPDX-License-Identifier: MIT
#include "cli/import.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/quantity.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "models/import/csv_profile.h"
#include "models/import/pipedream_graph.h"
#include "models/import/range_names.h"
#include "models/import/torch_trace.h"
#include "models/profile/model_checks.h"
#include "models/profile/profile_writer.h"

namespace plumbline {
namespace {

/// The options of every format.
struct ImportArguments {
  std::string file;
  std::string output;
  std::string name;        ///< "" = the file's.
  std::int64_t batch = 0;  ///< 0 = unknown.
};

/// All options but the file.
CLI::App& add_format_of_files(CLI::App& command, const std::string& format, const std::string& what,
                              ImportArguments& arguments) {
  CLI::App& added = *command.add_subcommand(format, what);
  added.add_option("-o,--output", arguments.output, "write the profile here; absent = stdout")
      ->type_name("FILE");
  added
      .add_option("--batch", arguments.batch,
                  "samples of the forward that was timed; absent = unknown, and nothing is scaled")
      ->check(between(1, kLargestQuantity))
      ->type_name("N");
  added.add_option("--name", arguments.name, "of the model; absent = the file's")
      ->type_name("NAME");
  return added;
}

CLI::App& add_format(CLI::App& command, const std::string& format, const std::string& what,
                     ImportArguments& arguments) {
  CLI::App& added = add_format_of_files(command, format, what, arguments);
  added.add_option("file", arguments.file, "the file to import")->required()->type_name("FILE");
  return added;
}

/// "FILE: 4 layers" and their totals.
std::string summary(const Model& model, const std::string& output) {
  double forward = 0;
  double backward = 0;
  for (const LayerCosts& costs : model.profile.measurements.front().layers) {
    forward += static_cast<double>(costs.forward.mean.count());
    backward += static_cast<double>(costs.backward.mean.count());
  }
  double parameters = 0;
  for (const Layer& layer : model.graph.layers())
    parameters += static_cast<double>(layer.parameters.count);
  const auto whole = [](double sum) { return std::llround(std::min(sum, 9e18)); };
  return fmt::format(
      "{}: {} layer{}\n"
      "  forward     {}\n"
      "  backward    {}\n"
      "  parameters  {}\n",
      output, model.graph.size(), model.graph.size() == 1 ? "" : "s",
      to_text(Duration(whole(forward))), to_text(Duration(whole(backward))),
      to_text(Bytes{whole(parameters)}));
}

/// Sets the model's name and origin, and writes it; notes go to stderr. Returns the exit code.
int write_profile(Model model, const ImportArguments& arguments, const std::string& format,
                  const std::vector<std::string>& notes) {
  if (!arguments.name.empty()) model.name = arguments.name;
  if (arguments.batch > 0) model.profile.measurements.front().batch = arguments.batch;
  model.profile.provenance["source"] = "imported";
  model.profile.provenance["format"] = format;
  model.profile.provenance["file"] = arguments.file;
  model.profile.provenance["tool"] = fmt::format("plumbline {}", kVersion);
  Diagnostics problems;
  auto source = std::make_shared<Source>();
  source->name = arguments.file;
  report_unwritable(model, {std::move(source)}, problems);
  if (!problems.empty()) return fail(problems);
  for (const std::string& note : notes) {
    const bool is_warning = note.starts_with("warning: ");
    say(fmt::format("{}{}\n", is_warning ? "" : "note: ", note));
  }
  const int written = write_output(profile_yaml(model), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  return write_output(summary(model, arguments.output), "");
}

int import_csv(const ImportArguments& arguments) {
  const auto model = read_csv_profile(arguments.file);
  if (!model) return fail(model.problems());
  return write_profile(*model, arguments, "csv", {});
}

void add_csv(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App& csv =
      add_format(command, "csv",
                 "a table: layer, forward, backward, update, output, activation, parameters, kind",
                 *arguments);
  csv.callback([arguments, &exit_code] { exit_code = import_csv(*arguments); });
}

struct TraceArguments : ImportArguments {
  std::vector<std::string> files;
  std::int64_t skip = TraceOptions{}.skip;
  std::array<std::string, kRangePasses> names;  ///< "" = the default.
  std::string sizes;
};

/// Reads the traces one after another into one model, with their notes. Errors: those of the
/// traces.
Result<TraceModel> read_traces(const std::vector<std::string>& files, const TraceOptions& options) {
  std::vector<TraceModel> traces;
  Diagnostics problems;
  for (const std::string& file : files) {
    auto trace = read_torch_trace(file, options);
    if (keep(trace, problems)) traces.push_back(*std::move(trace));
  }
  if (!problems.empty()) return problems;
  return chain_traces(std::move(traces), files);
}

int import_torch_trace(TraceArguments& arguments) {
  TraceOptions options;
  options.skip = arguments.skip;
  Diagnostics problems;
  for (const RangePass pass : kAllRangePasses) {
    const std::string& name = arguments.names[static_cast<std::size_t>(pass)];
    if (name == RangeNames().text(pass)) continue;
    if (auto wrong = options.names.set(pass, name)) problems.push_back(*std::move(wrong));
  }
  if (problems.empty()) problems = options.names.misfits();
  std::vector<CsvLayer> table;
  if (!arguments.sizes.empty()) {
    auto read = read_csv_layers(arguments.sizes, CsvTimes::optional);
    if (keep(read, problems)) table = *std::move(read);
  }
  if (!problems.empty()) return fail(problems);
  arguments.file = fmt::format("{}", fmt::join(arguments.files, ", "));
  auto trace = read_traces(arguments.files, options);
  if (!trace) return fail(trace.problems());
  if (!arguments.sizes.empty()) {
    trace->model.profile.provenance["sizes"] = arguments.sizes;
    problems = add_sizes(table, *trace);
    if (!problems.empty()) return fail(problems);
  } else {
    trace->notes.emplace_back(
        "sizes are not in a trace: output, activation and parameters are 0; give them with "
        "--sizes FILE (CSV)");
  }
  return write_profile(std::move(trace->model), arguments, "torch-trace", trace->notes);
}

void add_torch_trace(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App& trace = add_format_of_files(
      command, "torch-trace",
      "a trace of PyTorch's profiler (JSON, plain or .gz) with a named range for each layer",
      *arguments);
  trace
      .add_option("file", arguments->files,
                  "the trace; several, one of each rank, are the stages of a pipeline in order")
      ->required()
      ->type_name("FILE");
  trace.add_option("--skip", arguments->skip, "steps to leave out at the beginning")
      ->check(between(0, kLargestQuantity))
      ->type_name("STEPS")
      ->capture_default_str();
  const auto add_template = [&](RangePass pass, const char* option, const char* what) {
    std::string& name = arguments->names[static_cast<std::size_t>(pass)];
    name = RangeNames().text(pass);
    trace.add_option(option, name, what)->type_name("TEMPLATE")->capture_default_str();
  };
  add_template(RangePass::forward, "--forward",
               "name of a layer's range in the forward; without {layer}: of the whole stage");
  add_template(RangePass::backward, "--backward", "name of its range in the backward");
  add_template(RangePass::backward_input, "--backward-input",
               "name of its range in the backward for the input, where that is split");
  add_template(RangePass::backward_weight, "--backward-weight",
               "name of its range in the backward for the weights, where that is split");
  add_template(RangePass::update, "--update", "name of its range in the optimizer; optional");
  trace
      .add_option("--sizes", arguments->sizes,
                  "a table (CSV) of layer, output, activation, parameters, kind")
      ->type_name("FILE");
  trace.callback([arguments, &exit_code] { exit_code = import_torch_trace(*arguments); });
}

int import_pipedream(const ImportArguments& arguments) {
  auto model = read_pipedream_graph(arguments.file);
  if (!model) return fail(model.problems());
  model->profile.provenance["measured_by"] = model->profile.provenance["tool"];
  const std::vector<std::string> notes = model->notes;
  return write_profile(*std::move(model), arguments, "pipedream", notes);
}

void add_pipedream(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App& pipedream =
      add_format(command, "pipedream", "a profile of PipeDream: graph.txt", *arguments);
  pipedream.callback([arguments, &exit_code] { exit_code = import_pipedream(*arguments); });
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "import",
      "turn a model into a profile, measured kernels into a table, or a launch into a scenario");
  command->require_subcommand(1);
  add_csv(*command, exit_code);
  add_import_huggingface(*command, exit_code);
  add_import_kernels(*command, exit_code);
  add_import_launch(*command, exit_code);
  add_torch_trace(*command, exit_code);
  add_pipedream(*command, exit_code);
}

}  // namespace plumbline
