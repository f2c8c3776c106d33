// `plumbline list`: the available choices.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/document.h"
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

/// Where the text of an entry begins: `  peak    989.5 TFLOP/s`.
constexpr std::size_t kEntryHang = 10;

/// How far products were off that the numbers were not fitted to; "" if there are none.
std::string held_out_text(const KernelTraits& traits) {
  if (traits.bf16.held_out_error == 0) return "";
  const std::string fp8 =
      traits.fp8 && traits.fp8->held_out_error > 0
          ? fmt::format(", in fp8 by {:.1f} %", 100 * traits.fp8->held_out_error)
          : "";
  return fmt::format("          held-out products are off by {:.1f} % in bf16{}\n",
                     100 * traits.bf16.held_out_error, fp8);
}

std::string kernels_text(const KernelTraits& traits) {
  return fmt::format("  kernels {}\n{}", traits.source, held_out_text(traits));
}

Document preset_list() {
  Document text;
  for (const DevicePreset& preset : device_presets()) {
    std::string peaks, network;
    if (preset.network_bandwidth.count > 0) {
      network = fmt::format("\n  network {} between servers, by {}",
                            to_text(preset.network_bandwidth), preset.network);
    }
    for (const std::string_view format : kNumberFormats) {
      const auto peak = preset.peak(number_format(format));
      if (peak) peaks += fmt::format("{}{} {}", peaks.empty() ? "" : ", ", format, to_text(*peak));
    }
    text.sentence(
        fmt::format("{}\n  peak    {}\n  memory  {:.2f} GiB as a driver shows it, at {}\n"
                    "  link    {} each way by {}{}\n  source  {}\n          memory: {}\n{}",
                    preset.name, peaks, static_cast<double>(preset.memory.count) / (1 << 30),
                    to_text(preset.memory_bandwidth), to_text(preset.link_bandwidth), preset.link,
                    network, preset.source, preset.memory_source,
                    kernels_text(kernel_traits(preset.name))),
        kEntryHang);
  }
  text.sentence(
      "These names go into cluster.device. Peaks are those of dense matrix products; no run "
      "reaches "
      "them.\nkernels: where the numbers come from that give kernels their times. --json has these "
      "numbers, docs/explanation/kernels.md says what they mean.");
  return text;
}

std::string number_text(const StackNumber& number, const SoftwareStack& stack) {
  const double value = number.of(stack);
  return number.is_choice() ? value == 1 ? "yes" : "no" : fmt::format("{:g}", value);
}

/// A column for each stack.
Table stack_numbers_table() {
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
  return table;
}

Table stack_meanings_table() {
  Table table;
  table.has_no_header();
  table.row({"attention"}, "kernels of attention, where scores are not kept");
  for (const StackNumber& number : stack_numbers())
    table.row({std::string(number.name)},
              fmt::format("{}{}", number.meaning, number.from_runs ? " *" : ""));
  return table;
}

Document stack_list() {
  Document text;
  for (const SoftwareStack& stack : software_stacks()) {
    text.sentence(fmt::format("{}{}\n  {}\n  source  {}", stack.name,
                              stack.name == usual_stack().name ? " (where none is named)" : "",
                              stack.summary, stack.source),
                  kEntryHang);
  }
  text.blank_line();
  text.table(stack_numbers_table());
  text.blank_line();
  text.table(stack_meanings_table());
  text.sentence(
      "\nThese names go into cluster.device.stack. Names that end in _s are in seconds, those in "
      "_bytes in bytes; the others are ratios.\n"
      "* chosen on published runs, since no table has it. The rest is what the frameworks do.");
  return text;
}

Document backend_list() {
  Table table;
  table.has_no_header();
  for (const BackendName& backend : kBackends) {
    const auto reason = why_unavailable(backend);
    table.row({std::string(backend.name)},
              fmt::format("{}{}", backend.text, reason ? "; not here: " + *reason : ""));
  }
  Document text;
  text.table(std::move(table));
  return text;
}

Document schedule_list() {
  constexpr std::size_t hang = 13;
  Document text;
  for (const ScheduleRule& rule : schedule_rules()) {
    std::string entry = fmt::format(
        "{}\n  {}\n  order      {}\n  bubble     {}\n  in flight  {}\n  makespan   {}\n", rule.name,
        rule.summary, rule.order, rule.bubble, rule.in_flight, rule.makespan);
    if (!rule.elsewhere.empty()) entry += fmt::format("             {}\n", rule.elsewhere);
    std::string_view head = "limits";
    for (const std::string& limit : limits_of(rule)) {
      entry += fmt::format("  {:<9}  {}\n", head, limit);
      head = "";
    }
    text.sentence(entry + fmt::format("  source     {}", rule.source), hang);
  }
  text.sentence(
      "\np = positions in the pipeline, m = micro-batches, s = position from 0; f, b = forward and "
      "backward of a stage. Stages are equal and links are free where nothing else is said. With "
      "chunks: p = devices, d = device from 0, v = stages of each device, b = i + w: the gradient "
      "of the input and that of the weights.\n"
      "Makespans with latency, and those of interleaved-zb, v-half, v-min, dualpipev, dualpipe and "
      "chimera, are not published: they were found and checked by exhaustive simulation.",
      0);
  return text;
}

Document list(const std::string& what) {
  return what == "backends"  ? backend_list()
         : what == "presets" ? preset_list()
         : what == "stacks"  ? stack_list()
                             : schedule_list();
}

std::string json_list(const std::string& what) {
  return what == "backends"  ? backends_json()
         : what == "presets" ? presets_json()
         : what == "stacks"  ? stacks_json()
                             : schedules_json();
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string what;
    bool json = false;
    PageArguments page;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("list", "list what there is to choose from");
  command->add_option("what", arguments->what, "schedules, backends, presets or stacks")
      ->required()
      ->check(one_of({"schedules", "backends", "presets", "stacks"}));
  command->add_flag("--json", arguments->json, "print JSON");
  add_page_arguments(*command, arguments->page);
  command->callback([arguments, &exit_code] {
    exit_code =
        write_output(arguments->json ? json_list(arguments->what)
                                     : list(arguments->what).print(page_width(arguments->page, "")),
                     "");
  });
}

}  // namespace plumbline
