// The options that `diagnose` and `validate --against` share.
//
// SPDX-License-Identifier: MIT
#include "cli/trace_options.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "cli/option_checks.h"

namespace plumbline {

void add_trace_options(CLI::App& command, TraceChoice& choice) {
  const auto add_template = [&](OpKind kind, const char* option, const char* what) {
    command.add_option(option, choice.names[static_cast<std::size_t>(kind)], what)
        ->type_name("TEMPLATE")
        ->allow_extra_args(false);
  };
  add_template(OpKind::forward, "--forward",
               "name of a range around a forward, such as 'stage{stage} F{micro_batch}'; absent: "
               "those that PyTorch, Megatron and DeepSpeed write");
  add_template(OpKind::backward, "--backward", "name of a range around a backward");
  add_template(OpKind::backward_input, "--backward-input",
               "name of a range around a backward for the input, where that is split");
  add_template(OpKind::backward_weight, "--backward-weight",
               "name of a range around a backward for the weights, where that is split");
  command.add_option("--update", choice.updates, "name of a range around the optimizer's step")
      ->type_name("TEMPLATE")
      ->allow_extra_args(false);
  command
      .add_option("--stages", choice.assembly.stages,
                  "how many stages there are, where names of ranges do not tell the stage; absent: "
                  "one for each trace")
      ->check(between(1, 10'000))
      ->type_name("N");
  command
      .add_option("--copy", choice.assembly.copy,
                  "which copy of the pipeline, where the traces have several")
      ->check(between(0, 10'000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--skip", choice.assembly.skip, "iterations to leave out at the beginning")
      ->check(between(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
}

Diagnostics check_templates(const OpNames& names, const std::vector<RankRecording>& recordings) {
  Diagnostics problems;
  const auto texts = names.texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool fits = std::any_of(recordings.begin(), recordings.end(), [&](const auto& recording) {
      return recording.fitting.count(static_cast<int>(i)) > 0;
    });
    if (fits || recordings.empty()) continue;
    const RankRecording& first = recordings.front();
    problems.push_back(input_error(
        {}, fmt::format("no range is called '{}'", clipped(texts[i])),
        first.other_ranges.empty() ? "its ranges have names that need no template, such as 'PP:0F3'"
                                   : first.other_ranges));
  }
  return problems;
}

Result<OpNames> names_of(const TraceChoice& choice) {
  OpNames names;
  Diagnostics problems;
  for (std::size_t kind = 0; kind < choice.names.size(); ++kind) {
    for (const std::string& text : choice.names[kind]) {
      if (auto wrong = names.add(static_cast<OpKind>(kind), text))
        problems.push_back(*std::move(wrong));
    }
  }
  for (const std::string& text : choice.updates) {
    if (auto wrong = names.add_update(text)) problems.push_back(*std::move(wrong));
  }
  if (!problems.empty()) return problems;
  return names;
}

}  // namespace plumbline
