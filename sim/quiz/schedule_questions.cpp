// Page 9: interleaved stages, zero bubble, DualPipe.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>

#include "base/bug.h"
#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

/// p devices; a backward has two parts of 1 ms each.
QuizRun split_backwards(std::int64_t p, std::int64_t layers, std::int64_t m, const char* schedule) {
  return {fmt::format("version: 1\n"
                      "name: {3} on {0} GPUs\n"
                      "model:\n"
                      "  uniform: {{layers: {1}, forward: 1 ms, backward_input: 1 ms, "
                      "backward_weight: 1 ms, parameters: 10 MiB}}\n"
                      "cluster: {{devices: {0}}}\n"
                      "schedule: {{name: {3}, micro_batches: {2}}}\n",
                      p, layers, m, schedule),
          {},
          {}};
}

/// The weights that all devices hold, over the weights of the model.
double copies_of_weights(const QuizRun& run) {
  const Outcome outcome = outcome_of(run);
  std::int64_t held = 0;
  for (const DeviceMemory& device : outcome.memory) held += device.peak.weights.count;
  const auto model = outcome.parameters();
  PLUMBLINE_CHECK(model, run.scenario);
  return static_cast<double>(held) / static_cast<double>(model->count);
}

}  // namespace

Question ask_twice_weights(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 4) / 2 * 2;
  const std::int64_t m = figures.between(4, 2, 5) * p;
  const QuizRun run = split_backwards(p, 2 * p, m, "dualpipe");
  const auto run_of = [run](const std::string& schedule) {
    return run.with({"schedule.name=" + schedule});
  };
  Question question;
  question.kind = QuestionKind::choice;
  question.choices = {{"interleaved-1f1b", "interleaved 1F1B"},
                      {"zb-h1", "zero bubble (ZB-H1)"},
                      {"dualpipe", "DualPipe"}};
  question.text = fmt::format(
      "{} GPUs, {} micro-batches. With which of these schedules do the GPUs together hold the "
      "weights of the model twice?",
      p, m);
  question.values = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  question.find_answer = [run_of, choices = question.choices] {
    std::string twice;
    for (const QuizChoice& one : choices) {
      if (copies_of_weights(run_of(one.id)) == 2) twice = one.id;
    }
    return twice;
  };
  question.check = [run_of,
                    choices = question.choices](const std::string& text) -> Result<CheckedAnswer> {
    const auto choice = choice_in_answer(text, choices);
    if (!choice) return choice.problems();
    const double copies = copies_of_weights(run_of(*choice));
    return CheckedAnswer{copies == 2,
                         fmt::format("With {} the GPUs hold the weights of the model {}.", *choice,
                                     copies == 1   ? "once"
                                     : copies == 2 ? "twice"
                                                   : fmt::format("{} times", copies)),
                         run_of(*choice)};
  };
  return question;
}

Question ask_zero_bubble(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 8);
  const std::int64_t m = figures.between(8, p, 3 * p);
  const QuizRun run = split_backwards(p, p, m, "zb-h1");
  const auto times = [run] {
    return std::pair(outcome_of(run.with({"schedule.name=1f1b"})), outcome_of(run));
  };
  const auto saved_ms = [](const std::pair<Outcome, Outcome>& both) {
    return static_cast<double>(
               (both.first.metrics.makespan - both.second.metrics.makespan).count()) /
           1e6;
  };
  Question question;
  question.unit = "ms";
  question.text = fmt::format(
      "{} GPUs with one stage each, {} micro-batches, free links. A forward takes 1 ms; the two "
      "parts of a backward, the gradient of the input (I) and that of the weights (W), take 1 ms "
      "each. By how many ms is the iteration of ZB-H1 shorter than that of 1F1B? To a tenth.",
      p, m);
  question.values = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  question.find_answer = [times, saved_ms] { return fmt::format("{}", saved_ms(times())); };
  question.check = [run, times, saved_ms](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = number_in_answer(text, "ms");
    if (!answer) return answer.problems();
    const auto both = times();
    constexpr double half_digit = 0.05;
    return CheckedAnswer{
        std::abs(*answer - saved_ms(both)) <= half_digit + 1e-9,
        fmt::format("1F1B takes {} and ZB-H1 {}.", time_of(both.first), time_of(both.second)), run};
  };
  return question;
}

}  // namespace plumbline
