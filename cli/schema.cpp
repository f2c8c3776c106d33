// `plumbline schema`: the JSON Schema of a file that plumbline reads.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <array>
#include <memory>

#include "base/json_schema.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/record/record.h"
#include "models/kernels/kernel_table_format.h"
#include "models/network/network_format.h"
#include "models/profile/profile_format.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

struct NamedFormat {
  std::string_view name;
  SectionFormatFunction format;
};

constexpr std::array kFormats = {
    NamedFormat{"scenario", &scenario_format}, NamedFormat{"profile", &profile_format},
    NamedFormat{"network", &network_format}, NamedFormat{"kernels", &kernels_format},
    NamedFormat{"record", &record_format}};

struct SchemaArguments {
  std::string what = "scenario";
  std::string output;
};

}  // namespace

void add_schema(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SchemaArguments>();
  CLI::App* command =
      app.add_subcommand("schema", "print the JSON Schema of a file, for editors and programs");
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const NamedFormat& known : kFormats) names.emplace_back(known.name);
  command
      ->add_option("what", arguments->what,
                   "scenario, profile, network, kernels or record; scenario if absent")
      ->check(one_of(names));
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout");
  command->callback([arguments, &exit_code] {
    for (const NamedFormat& known : kFormats) {
      if (known.name == arguments->what)
        exit_code = write_output(json_schema(known.format()), arguments->output);
    }
  });
}

}  // namespace plumbline
