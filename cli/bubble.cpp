// `plumbline bubble`: the formulas beside the simulated values.
// SPDX-License-Identifier: MIT
#include "sim/bubble.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "models/quantity.h"

namespace plumbline {
namespace {

/// The mark of an option's value, which is a text of its own.
Mark option_mark(const std::string& option, const std::string& value) {
  auto source = std::make_shared<Source>();
  source->name = "<command line>";
  source->text = option + " " + value;
  return {source, 1, static_cast<int>(option.size()) + 2, static_cast<int>(value.size())};
}

/// One time for all stages, or one for each, separated by commas.
std::vector<Duration> stage_times(const std::string& option, const std::vector<std::string>& texts,
                                  std::size_t stages, Diagnostics& problems) {
  std::vector<Duration> times;
  for (const std::string& text : texts) {
    const Parsed<Duration> time = parse_duration(text);
    if (time.value) {
      times.push_back(*time.value);
    } else {
      problems.push_back(input_error(option_mark(option, text), option + " is '" + clipped(text) +
                                                                    "', which " + time.problem));
    }
  }
  if (times.size() == 1) times.assign(stages, times.front());
  if (times.size() != stages && times.size() == texts.size()) {
    problems.push_back(input_error({}, option + " gives " + std::to_string(texts.size()) +
                                           " times, but the number of stages is " +
                                           std::to_string(stages)));
  }
  return times;
}

}  // namespace

void add_bubble(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::int64_t stages = 0;
    std::int64_t micro_batches = 0;
    std::vector<std::string> forward = {"1 ms"};
    std::vector<std::string> backward = {"2 ms"};
    std::string latency = "0 ms";
    std::string output;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("bubble", "the bubble formulas beside the simulated values");
  command->add_option("--stages", arguments->stages, "stages, one a device (1 to 1000)")
      ->required();
  command->add_option("--micro-batches", arguments->micro_batches, "micro-batches (1 to 100000)")
      ->required();
  command
      ->add_option("--forward", arguments->forward, "forward time of a stage, or of each: 1ms,2ms")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--backward", arguments->backward, "backward time, likewise")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--latency", arguments->latency, "latency of each link")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout");
  command->callback([arguments, &exit_code] {
    Diagnostics problems;
    const auto count = [&](const std::string& option, std::int64_t value, std::int64_t most) {
      if (value >= 1 && value <= most) return;
      problems.push_back(input_error(option_mark(option, std::to_string(value)),
                                     option + " is " + std::to_string(value) +
                                         ", which is not between 1 and " + std::to_string(most)));
    };
    count("--stages", arguments->stages, 1000);
    count("--micro-batches", arguments->micro_batches, 100'000);
    if (problems.empty() && arguments->stages * arguments->micro_batches > 5'000'000) {
      problems.push_back(input_error({}, "--stages times --micro-batches is more than 5000000"));
    }
    BubbleQuestion question;
    const auto stages = static_cast<std::size_t>(std::max<std::int64_t>(arguments->stages, 0));
    if (problems.empty()) {
      question.forward = stage_times("--forward", arguments->forward, stages, problems);
      question.backward = stage_times("--backward", arguments->backward, stages, problems);
      const std::vector<Duration> latency =
          stage_times("--latency", {arguments->latency}, 1, problems);
      if (!latency.empty()) question.latency = latency.front();
    }
    if (!problems.empty()) return void(exit_code = fail(problems));
    question.micro_batches = static_cast<std::uint32_t>(arguments->micro_batches);
    exit_code = write_output(to_text(question, compare_bubbles(question)), arguments->output);
  });
}

}  // namespace plumbline
