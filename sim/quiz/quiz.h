// The questions of a lesson: each student has own figures, and the engine decides every answer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "sim/quiz/quiz_run.h"

namespace plumbline {

/// The form of an answer.
enum class QuestionKind {
  number,   ///< "18.75", "18,75 %", "1.5 ms"; a whole number where the question counts.
  choice,   ///< The id of one of Question::choices.
  order,    ///< A line of ops for each GPU: "F0 F1 B0 B1"; `;` or `|` parts lines, too.
  numbers,  ///< "2 3 1", "2,3,1", "[2, 3, 1]".
  text,     ///< Ops in a row: "F0 F1 B0".
};

/// "number", "choice", "order", "numbers", "text".
const char* name(QuestionKind kind);

/// The longest answer that is checked and that a result code holds, in bytes.
inline constexpr std::size_t kLongestAnswer = 2000;

/// One of the answers to choose from.
struct QuizChoice {
  std::string id;
  std::string text;
};

/// What the engine says of an answer.
struct CheckedAnswer {
  bool right = false;
  std::string said;              ///< One or two sentences: what the engine got for the answer.
  std::optional<QuizRun> shown;  ///< The run that shows it.
};

/// A right answer.
struct QuizKey {
  std::string answer;  ///< As a student may type it.
  std::string said;    ///< What the engine says of it.
};

/// A question with the figures of one student.
struct Question {
  std::string id;
  int page = 1;  ///< The page of the lesson, 1 to 10.
  QuestionKind kind = QuestionKind::number;
  std::string unit;  ///< Of a number: "%", "ms", "GPUs"; "" = it has none.
  std::string text;  ///< In English, with the figures.
  /// The figures by their names, as they stand in the text, for texts in other languages.
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<QuizChoice> choices;  ///< For QuestionKind::choice.
  std::optional<QuizRun> run;  ///< A run that may be seen before the answer; nothing: none may.

  /// See check_answer() and answer_of().
  std::function<Result<CheckedAnswer>(const std::string&)> check;
  std::function<std::string()> find_answer;
};

/// The student number as figures and codes know it: without blanks around it, in lower case.
/// Errors: more than 32 characters, or others than letters, digits, '-', '_' and '.'.
Result<std::string> student_number(const std::string& text);

/// All questions, by page. Figures follow from the student number alone, on every machine (see
/// sim/quiz/figures.h); "" = the figures of the course. Errors: those of student_number().
Result<std::vector<Question>> questions_for(const std::string& student);

/// The question of this id. Errors: those of questions_for(); no such question.
Result<Question> question_for(const std::string& student, const std::string& id);

/// Runs the engine on an answer. Errors: an answer that cannot be read, which is not a wrong one.
Result<CheckedAnswer> check_answer(const Question& question, const std::string& answer);

/// A right answer, found with the engine.
QuizKey answer_of(const Question& question);

}  // namespace plumbline
