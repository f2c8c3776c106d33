// The list of the questions.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/quiz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bug.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

constexpr std::array kQuestions = {QuestionRow{"naive-share", 1, ask_naive_share},
                                   QuestionRow{"naive-devices", 1, ask_naive_devices},
                                   QuestionRow{"fill-least", 2, ask_fill_least},
                                   QuestionRow{"fill-share", 2, ask_fill_share},
                                   QuestionRow{"one-bubble", 3, ask_one_bubble},
                                   QuestionRow{"in-flight", 3, ask_in_flight},
                                   QuestionRow{"order-time", 4, ask_order_time},
                                   QuestionRow{"loop-order", 4, ask_loop_order},
                                   QuestionRow{"loop-index", 4, ask_loop_index},
                                   QuestionRow{"fixed-cost", 5, ask_fixed_cost},
                                   QuestionRow{"balance", 6, ask_balance},
                                   QuestionRow{"latency-choice", 6, ask_latency_choice},
                                   QuestionRow{"ranks", 7, ask_ranks},
                                   QuestionRow{"steps", 7, ask_steps},
                                   QuestionRow{"versions", 8, ask_versions},
                                   QuestionRow{"two-versions", 8, ask_two_versions},
                                   QuestionRow{"twice-weights", 9, ask_twice_weights},
                                   QuestionRow{"zero-bubble", 9, ask_zero_bubble}};

}  // namespace

std::span<const QuestionRow> question_list() { return kQuestions; }

const char* name(QuestionKind kind) {
  switch (kind) {
    case QuestionKind::number:
      return "number";
    case QuestionKind::choice:
      return "choice";
    case QuestionKind::order:
      return "order";
    case QuestionKind::numbers:
      return "numbers";
    case QuestionKind::text:
      return "text";
  }
  PLUMBLINE_CHECK(false, static_cast<int>(kind));
  return "";
}

Result<std::vector<Question>> questions_for(const std::string& student) {
  const auto number = student_number(student);
  if (!number) return number.problems();
  std::vector<Question> questions;
  for (const QuestionRow& row : question_list()) {
    Figures figures(*number, row.id);
    Question question = row.make(figures);
    question.id = row.id;
    question.page = row.page;
    questions.push_back(std::move(question));
  }
  return questions;
}

Result<Question> question_for(const std::string& student, const std::string& id) {
  auto questions = questions_for(student);
  if (!questions) return questions.problems();
  std::vector<std::string> ids;
  for (Question& one : *questions) {
    if (one.id == id) return std::move(one);
    ids.push_back(one.id);
  }
  std::string help = did_you_mean(id, ids);
  if (help.empty()) {
    for (const std::string& known : ids) help += (help.empty() ? "one of " : ", ") + known;
  }
  return input_error({}, fmt::format("there is no question '{}'", clipped(id)), std::move(help));
}

Result<CheckedAnswer> check_answer(const Question& question, const std::string& answer) {
  if (answer.size() > kLongestAnswer)
    return input_error({}, fmt::format("an answer has at most {} characters", kLongestAnswer));
  if (answer.find_first_not_of(" \t\r\n") == answer.npos)
    return input_error({}, "there is no answer");
  return question.check(answer);
}

QuizKey answer_of(const Question& question) {
  std::string answer = question.find_answer();
  const auto checked = check_answer(question, answer);
  PLUMBLINE_CHECK(checked, question.id, answer);
  return {std::move(answer), checked->said};
}

}  // namespace plumbline
