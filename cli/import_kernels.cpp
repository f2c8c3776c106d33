// `plumbline import kernels`: tables of measured kernels out of those of others.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>

#include "base/table.h"
#include "cli/command.h"
#include "cli/import.h"
#include "cli/option_checks.h"
#include "models/kernels/kernel_table_writer.h"
#include "models/tables/imported_kernels.h"

namespace plumbline {
namespace {

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
  for (const auto& [why, count] : imported.left_out()) {
    say(fmt::format("note: {} left out: {}\n", plural(static_cast<std::uint64_t>(count), "row"),
                    why));
  }
  if (!problems.empty()) return fail(problems);
  const int written = write_output(kernel_table_yaml(table), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  return write_output(fmt::format("{}: {} of kernels, of {}\n", arguments.output,
                                  plural(table.rows.size(), "time"), clipped(table.device)),
                      "");
}

}  // namespace

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
