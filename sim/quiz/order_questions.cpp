// Page 4: orders that a student writes, and the loop that looks like 1F1B.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/bug.h"
#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

constexpr std::int64_t kOrderGpus = 2;

/// The run of an order: two equal stages, and the order as PyTorch writes it.
QuizRun run_of_order(const std::vector<std::vector<std::string>>& order, std::int64_t m) {
  QuizRun run{fmt::format("version: 1\n"
                          "name: an order for 2 GPUs\n"
                          "model:\n"
                          "  uniform: {{layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                          "cluster: {{devices: 2}}\n"
                          "plan: {{stages: 2}}\n"
                          "schedule: {{file: order.csv, micro_batches: {}}}\n",
                          m),
              {},
              {}};
  std::string& csv = run.files["order.csv"];
  for (std::size_t gpu = 0; gpu < order.size(); ++gpu) {
    for (std::size_t i = 0; i < order[gpu].size(); ++i) {
      const std::string& op = order[gpu][i];
      const bool has_stage = op.front() != 'F' && op.front() != 'B';
      csv += fmt::format("{}{}{}", i == 0 ? "" : ",", has_stage ? "" : std::to_string(gpu), op);
    }
    csv += '\n';
  }
  return run;
}

/// "F0", without the stage.
std::string op_of_loop(const Op& op) {
  return letter(op.kind) + std::to_string(op.micro_batch.value);
}

/// The ops of the first GPU.
std::vector<std::string> ops_of_first(const QuizRun& run) {
  std::vector<std::string> ops;
  const OpLists lists = outcome_of(run).setup.schedule.lists();
  ops.reserve(lists.front().size());
  for (const Op& op : lists.front()) ops.push_back(op_of_loop(op));
  return ops;
}

/// The ops of an answer about the loop, which runs whole micro-batches. Errors: those of
/// ops_in_answer(); an op with a stage.
Result<std::vector<std::string>> ops_of_loop_in(const std::string& text) {
  auto ops = ops_in_answer(text);
  if (!ops) return ops;
  for (const std::string& op : *ops) {
    if (op.front() != 'F' && op.front() != 'B')
      return input_error({}, fmt::format("'{}' has a stage", op),
                         "the loop runs whole micro-batches: F0 or B0");
  }
  return ops;
}

/// What the loop of option C runs without its condition: Python counts the index -1 from the end
/// of a list that grows by one in each turn.
std::vector<std::string> loop_without_condition(std::int64_t m) {
  std::vector<std::string> ran;
  std::vector<std::int64_t> outputs;
  const auto backward_at = [&](std::int64_t index) {
    const auto size = static_cast<std::int64_t>(outputs.size());
    const std::int64_t at = index < 0 ? index + size : index;
    PLUMBLINE_CHECK(at >= 0 && at < size, index, size);
    ran.push_back(fmt::format("B{}", outputs[static_cast<std::size_t>(at)]));
  };
  for (std::int64_t i = 0; i < m; ++i) {
    ran.push_back(fmt::format("F{}", i));
    outputs.push_back(i);
    backward_at(i - 1);
  }
  backward_at(m - 1);
  return ran;
}

/// The ops that run more than once.
std::vector<std::string> repeated_in(const std::vector<std::string>& ran) {
  std::map<std::string, int> times;
  for (const std::string& op : ran) ++times[op];
  std::vector<std::string> repeated;
  for (const auto& [op, count] : times) {
    if (count > 1) repeated.push_back(op);
  }
  return repeated;
}

/// How far an answer is right.
std::string first_difference(const std::vector<std::string>& answer,
                             const std::vector<std::string>& ran) {
  const auto differs = std::mismatch(answer.begin(), answer.end(), ran.begin(), ran.end());
  const auto at = differs.first - answer.begin() + 1;
  if (differs.first == answer.end())
    return fmt::format("The loop runs {} ops, the answer has {}.", ran.size(), answer.size());
  if (differs.second == ran.end())
    return fmt::format("The loop has ended before {}, which is op {} of the answer.",
                       *differs.first, at);
  return fmt::format("Op {} of the loop is {}, not {}.", at, *differs.second, *differs.first);
}

constexpr const char* kLoop =
    "A loop over micro-batches i = 0, 1, ... does: \"forward of i; if i > 0: backward of i - 1\". "
    "After the loop comes the backward of the last one.";

}  // namespace

Question ask_order_time(Figures& figures) {
  const std::int64_t m = figures.between(4, 3, 6);
  const QuizRun known = equal_stages(kOrderGpus, "1f1b", m);
  const Duration limit = outcome_of(known).metrics.makespan;
  const std::string limit_text = time_of(outcome_of(known));
  Question question;
  question.kind = QuestionKind::order;
  question.text = fmt::format(
      "Two GPUs hold one stage each; a forward takes 1 ms, a backward 2 ms. Write an order of the "
      "ops of {} micro-batches that takes at most {}: one line for each GPU, such as F0 B0 F1 B1.",
      m, limit_text);
  question.values = {{"m", std::to_string(m)}, {"limit", limit_text}};
  question.find_answer = [known] {
    std::string order;
    const OpLists lists = outcome_of(known).setup.schedule.lists();
    for (const auto& list : lists) {
      std::vector<std::string> ops;
      ops.reserve(list.size());
      for (const Op& op : list) ops.push_back(op_of_loop(op));
      order += (order.empty() ? "" : "\n") + ops_text(ops);
    }
    return order;
  };
  question.check = [m, limit, limit_text](const std::string& text) -> Result<CheckedAnswer> {
    const auto order = order_in_answer(text, kOrderGpus);
    if (!order) return order.problems();
    const QuizRun run = run_of_order(*order, m);
    const auto outcome = try_quiz_run(run);
    if (!outcome)
      return CheckedAnswer{
          false, fmt::format("This order does not run: {}.", outcome.problems().front().message),
          run};
    const Duration time = outcome->metrics.makespan;
    return CheckedAnswer{time <= limit,
                         fmt::format("This order takes {}, which is {} {}.", time_of(*outcome),
                                     time <= limit ? "at most" : "more than", limit_text),
                         run};
  };
  return question;
}

Question ask_loop_order(Figures& figures) {
  const std::int64_t m = figures.between(4, 3, 6);
  const QuizRun run = equal_stages(kOrderGpus, "delayed-backward", m);
  Question question;
  question.kind = QuestionKind::text;
  question.text = fmt::format(
      "{} There are {} micro-batches. Write all ops in the order in which they run, F for forward "
      "and B for backward, such as F0 B0.",
      kLoop, m);
  question.values = {{"m", std::to_string(m)}};
  question.find_answer = [run] { return ops_text(ops_of_first(run)); };
  question.check = [run](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = ops_of_loop_in(text);
    if (!answer) return answer.problems();
    const std::vector<std::string> ran = ops_of_first(run);
    const bool right = *answer == ran;
    return CheckedAnswer{
        right,
        right ? fmt::format("The loop runs {}.", ops_text(ran)) : first_difference(*answer, ran),
        run};
  };
  return question;
}

Question ask_loop_index(Figures& figures) {
  const std::int64_t m = figures.between(4, 3, 6);
  Question question;
  question.kind = QuestionKind::text;
  question.text = fmt::format(
      "{} Now the condition \"if i > 0\" is left out. The loop is Python, where the index -1 is "
      "the "
      "last element of the list so far. There are {} micro-batches. Which op runs twice?",
      kLoop, m);
  question.values = {{"m", std::to_string(m)}};
  question.find_answer = [m] { return ops_text(repeated_in(loop_without_condition(m))); };
  question.check = [m](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = ops_of_loop_in(text);
    if (!answer) return answer.problems();
    const std::vector<std::string> ran = loop_without_condition(m);
    return CheckedAnswer{*answer == repeated_in(ran),
                         fmt::format("Without the condition the loop runs {}.", ops_text(ran)),
                         std::nullopt};
  };
  return question;
}

}  // namespace plumbline
