// `plumbline list`: the available choices.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/quantity.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/list_json.h"
#include "cli/option_checks.h"
#include "cli/real.h"
#include "models/hardware/device_presets.h"
#include "models/kernels/kernel_traits.h"
#include "models/kernels/stack_numbers.h"
#include "schedules/generators/generators.h"

namespace plumbline {

namespace {

/// How far products were off that the numbers were not fitted to; "" if there are none.
std::string held_out_text(const KernelTraits& traits) {
  if (traits.bf16.held_out_error == 0) return "";
  const std::string fp8 =
      traits.fp8 && traits.fp8->held_out_error > 0
          ? fmt::format(", in fp8 by {:.1f} %", 100 * traits.fp8->held_out_error)
          : "";
  return fmt::format("          products kept aside are off by {:.1f} % in bf16{}\n",
                     100 * traits.bf16.held_out_error, fp8);
}

std::string kernels_text(const KernelTraits& traits) {
  return fmt::format("  kernels {}\n{}", traits.source, held_out_text(traits));
}

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
        "  link    {} each way by {}\n  source  {}\n          memory: {}\n{}",
        preset.name, peaks, static_cast<double>(preset.memory.count) / (1 << 30),
        to_text(preset.memory_bandwidth), to_text(preset.link_bandwidth), preset.link,
        preset.source, preset.memory_source, kernels_text(kernel_traits(preset.name)));
  }
  return text +
         "for cluster.device; peaks of dense matrix products, which nothing reaches. Kernels: "
         "where "
         "the numbers\nthat give their times come from; --json has the numbers, docs/kernels.md "
         "what they mean\n";
}

std::string number_text(const StackNumber& number, const SoftwareStack& stack) {
  const double value = number.of(stack);
  return number.is_choice() ? value == 1 ? "yes" : "no" : fmt::format("{:g}", value);
}

/// A column for each stack.
std::string stack_numbers_text() {
  Table table;
  std::vector<std::string> names = {""};
  std::vector<std::string> attention = {"attention"};
  for (const SoftwareStack& stack : software_stacks()) {
    names.emplace_back(stack.name);
    attention.emplace_back(name_of(stack.attention));
  }
  table.row(std::move(names));
  table.row(std::move(attention));
  for (const StackNumber& number : stack_numbers()) {
    std::vector<std::string> cells = {std::string(number.name)};
    for (const SoftwareStack& stack : software_stacks())
      cells.push_back(number_text(number, stack));
    table.row(std::move(cells));
  }
  return table.print();
}

std::string stack_meanings_text() {
  std::string text =
      fmt::format("  {:<21}  kernels of attention, where scores are not kept\n", "attention");
  for (const StackNumber& number : stack_numbers())
    text +=
        fmt::format("  {:<21}  {}{}\n", number.name, number.meaning, number.from_runs ? " *" : "");
  return text;
}

std::string stack_list() {
  std::string text;
  for (const SoftwareStack& stack : software_stacks()) {
    text += fmt::format("{}{}\n  {}\n  source  {}\n", stack.name,
                        stack.name == usual_stack().name ? " (where none is named)" : "",
                        stack.summary, stack.source);
  }
  return text + stack_numbers_text() + stack_meanings_text() +
         "for cluster.device.stack; names that end in _s are in seconds, those in _bytes in bytes, "
         "others are ratios\n* chosen on published runs, since no table has it; the rest is what "
         "the frameworks do\n";
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
  command->add_option("what", arguments->what, "schedules, backends, presets or stacks")
      ->required()
      ->check(one_of({"schedules", "backends", "presets", "stacks"}));
  command->add_flag("--json", arguments->json, "print JSON");
  command->callback([arguments, &exit_code] {
    const bool json = arguments->json;
    const std::string& what = arguments->what;
    const std::string text = what == "backends"  ? json ? backends_json() : backend_list()
                              : what == "presets" ? json ? presets_json() : preset_list()
                              : what == "stacks" ? json ? stacks_json() : stack_list()
                              : json ? schedules_json()
                                                 : schedule_list();
    exit_code = write_output(text, "");
  });
}

}  // namespace plumbline
