// `plumbline list`: what there is to choose from.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "calibrate/cpu_layer.h"
#include "cli/command.h"
#include "cli/real.h"
#include "models/device_presets.h"
#include "models/quantity.h"
#include "schedules/generators.h"

namespace plumbline {

namespace {

std::string preset_list() {
  std::string text;
  for (const DevicePreset& preset : device_presets()) {
    std::string peaks;
    for (const std::string_view format : kNumberFormats) {
      const auto peak = preset.peak(number_format(format));
      if (peak) peaks += fmt::format("{}{} {}", peaks.empty() ? "" : ", ", format, to_text(*peak));
    }
    text += fmt::format(
        "{}\n  peak    {}\n  memory  {} at {}\n  link    {} each way by {}\n"
        "  source  {}\n",
        preset.name, peaks, to_text(preset.memory), to_text(preset.memory_bandwidth),
        to_text(preset.link_bandwidth), preset.link, preset.source);
  }
  return text +
         "for cluster.device; peaks of dense matrix products, which nothing reaches: efficiency "
         "says which share is counted on\n";
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list", "list what there is to choose from");
  command->add_option("what", *what, "schedules, backends or presets")
      ->required()
      ->check(CLI::IsMember({"schedules", "backends", "presets"}));
  command->callback([what, &exit_code] {
    if (*what == "backends") {
      std::string backends;
      for (const BackendName& backend : kBackends)
        backends += fmt::format(
            "{:<10} {}{}\n", backend.name, backend.text,
            backend.name == "cpu" && cpu_library().empty() ? " (not in this build)" : "");
      exit_code = write_output(backends, "");
      return;
    }
    if (*what == "presets") return void(exit_code = write_output(preset_list(), ""));
    std::string text;
    for (const ScheduleRule& rule : schedule_rules()) {
      text += fmt::format("{}\n  {}\n  order   {}\n  bubble  {}\n  source  {}\n", rule.name,
                          rule.summary, rule.order, rule.bubble, rule.source);
    }
    exit_code = write_output(text +
                                 "p = positions in the pipeline, m = micro-batches, s = position "
                                 "from 0; equal stages, free links\n",
                             "");
  });
}

}  // namespace plumbline
