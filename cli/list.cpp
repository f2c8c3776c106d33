// `plumbline list`: the available choices.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/quantity.h"
#include "cli/command.h"
#include "cli/list_json.h"
#include "cli/option_checks.h"
#include "cli/real.h"
#include "models/hardware/device_presets.h"
#include "schedules/generators/generators.h"

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
        "{}\n  peak    {}\n  memory  {:.2f} GiB as a driver shows it, at {}\n"
        "  link    {} each way by {}\n  source  {}\n          memory: {}\n",
        preset.name, peaks, static_cast<double>(preset.memory.count) / (1 << 30),
        to_text(preset.memory_bandwidth), to_text(preset.link_bandwidth), preset.link,
        preset.source, preset.memory_source);
  }
  return text +
         "for cluster.device; peaks of dense matrix products, which nothing reaches: efficiency "
         "says which share is counted on\n";
}

std::string backend_list() {
  std::string text;
  for (const BackendName& backend : kBackends) {
    const auto reason = why_unavailable(backend);
    text += fmt::format("{:<10} {}{}\n", backend.name, backend.text,
                        reason ? fmt::format("\n{:<10} not here: {}", "", *reason) : "");
  }
  return text;
}

std::string schedule_list() {
  std::string text;
  for (const ScheduleRule& rule : schedule_rules()) {
    text += fmt::format(
        "{}\n  {}\n  order      {}\n  bubble     {}\n  in flight  {}\n  makespan   {}\n", rule.name,
        rule.summary, rule.order, rule.bubble, rule.in_flight, rule.makespan);
    if (!rule.elsewhere.empty()) text += fmt::format("             {}\n", rule.elsewhere);
    std::string_view head = "limits";
    for (const std::string& limit : limits_of(rule)) {
      text += fmt::format("  {:<9}  {}\n", head, limit);
      head = "";
    }
    text += fmt::format("  source     {}\n", rule.source);
  }
  return text +
         "p = positions in the pipeline, m = micro-batches, s = position from 0; f, b = forward "
         "and backward of\na stage; equal stages and free links where nothing else is said. With "
         "chunks p = devices, d = device from\n0, v = stages of each, b = i + w: the gradient of "
         "the input and that of the weights. Makespans with\nlatency, and those of interleaved-zb, "
         "v-half, v-min, dualpipev, dualpipe and chimera: found and checked by\nexhaustive "
         "simulation, not published.\n";
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string what;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("list", "list what there is to choose from");
  command->add_option("what", arguments->what, "schedules, backends or presets")
      ->required()
      ->check(one_of({"schedules", "backends", "presets"}));
  command->add_flag("--json", arguments->json, "print JSON");
  command->callback([arguments, &exit_code] {
    const bool json = arguments->json;
    const std::string& what = arguments->what;
    const std::string text = what == "backends"  ? json ? backends_json() : backend_list()
                              : what == "presets" ? json ? presets_json() : preset_list()
                              : json ? schedules_json()
                                                 : schedule_list();
    exit_code = write_output(text, "");
  });
}

}  // namespace plumbline
