// `plumbline bubble`: the formulas beside the simulated values.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bubble.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/quantity.h"
#include "cli/command.h"

namespace plumbline {
namespace {

/// The mark of an option's value. The value is the whole source text.
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

struct BubbleArguments {
  std::vector<std::string> stages;
  std::vector<std::string> micro_batches;
  std::vector<std::string> forward = {"1 ms"};
  std::vector<std::string> backward = {"2 ms"};
  std::string latency = "0 ms";
  std::string output;
  PageArguments page;
};

/// Reads these texts as whole numbers from 1 to `max`.
std::vector<std::int64_t> counts(const std::string& option, const std::vector<std::string>& texts,
                                 std::int64_t max, Diagnostics& problems) {
  std::vector<std::int64_t> values;
  for (const std::string& text : texts) {
    const Parsed<std::int64_t> count = parse_count(text);
    if (count.value && *count.value >= 1 && *count.value <= max) {
      values.push_back(*count.value);
      continue;
    }
    problems.push_back(
        input_error(option_mark(option, text),
                    fmt::format("{} is '{}', which is no whole number between 1 and {}", option,
                                clipped(text), max),
                    fmt::format("{0} 4, or several: {0} 4,8,16", option)));
  }
  return values;
}

/// Every number of stages with every number of micro-batches.
std::vector<BubbleQuestion> questions_of(const BubbleArguments& arguments, Diagnostics& problems) {
  const auto stages = counts("--stages", arguments.stages, 1000, problems);
  const auto micro_batches = counts("--micro-batches", arguments.micro_batches, 100'000, problems);
  std::int64_t work = 0;
  for (const std::int64_t p : stages) {
    for (const std::int64_t m : micro_batches) work += p * m;
  }
  if (problems.empty() && work > 5'000'000)
    problems.push_back(input_error({}, "--stages times --micro-batches is more than 5000000"));
  std::vector<BubbleQuestion> questions;
  for (std::size_t i = 0; i < stages.size() && problems.empty(); ++i) {
    const auto p = static_cast<std::size_t>(stages[i]);
    BubbleQuestion question;
    question.forward = stage_times("--forward", arguments.forward, p, problems);
    question.backward = stage_times("--backward", arguments.backward, p, problems);
    const auto latency = stage_times("--latency", {arguments.latency}, 1, problems);
    if (!latency.empty()) question.latency = latency.front();
    for (const std::int64_t m : micro_batches) {
      question.micro_batches = static_cast<std::uint32_t>(m);
      questions.push_back(question);
    }
  }
  return questions;
}

int bubble(const BubbleArguments& arguments) {
  Diagnostics problems;
  const std::vector<BubbleQuestion> questions = questions_of(arguments, problems);
  if (!problems.empty()) return fail(problems);
  std::vector<AnsweredBubble> rows;
  rows.reserve(questions.size());
  for (const BubbleQuestion& question : questions)
    rows.push_back({question, compare_bubbles(question)});
  const Document text =
      rows.size() == 1 ? to_table(rows.front().question, rows.front().answers) : to_table(rows);
  return write_output(text.print(page_width(arguments.page, arguments.output)), arguments.output);
}

}  // namespace

void add_bubble(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<BubbleArguments>();
  CLI::App* command =
      app.add_subcommand("bubble", "the bubble formulas beside the simulated values");
  command
      ->add_option("--stages", arguments->stages,
                   "stages, one a device (1 to 1000); several, 2,4,8, make a table")
      ->required()
      ->delimiter(',')
      ->type_name("N");
  command
      ->add_option("--micro-batches", arguments->micro_batches,
                   "micro-batches (1 to 100000); several, 4,8,16, make a table")
      ->required()
      ->delimiter(',')
      ->type_name("N");
  command
      ->add_option("--forward", arguments->forward, "forward time of a stage, or of each: 1ms,2ms")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--backward", arguments->backward, "backward time, likewise")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--latency", arguments->latency, "latency of each link")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout")
      ->type_name("FILE");
  add_page_arguments(*command, arguments->page);
  command->callback([arguments, &exit_code] { exit_code = bubble(*arguments); });
}

}  // namespace plumbline
