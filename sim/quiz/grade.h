// A student's answers, checked anew.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/quiz/quiz.h"
#include "sim/quiz/result_code.h"

namespace plumbline {

/// What an answer is worth.
enum class AnswerState {
  right,
  wrong,
  unreadable,  ///< The engine cannot read it.
  missing,     ///< The student gave none.
};

/// "right", "wrong", "unreadable", "none".
const char* name(AnswerState state);

/// A question and what a student answered.
struct GradedAnswer {
  std::string question;  ///< Its id.
  int page = 1;
  AnswerState state = AnswerState::missing;
  std::string answer;
  std::int64_t tries = 0;
  std::string said;  ///< What the engine says of it, or why it cannot be read.
};

/// All questions of a student.
struct Grade {
  std::string name;                   ///< Who handed the code in, if a file says so; "" = unknown.
  std::string student;                ///< The number in the code.
  std::vector<GradedAnswer> answers;  ///< One per question, by page.
  std::vector<std::string> unknown;   ///< Ids in the code that are no question.

  /// How many answers are right.
  std::size_t right() const;
};

/// Checks all answers with the engine. Errors: those of questions_for().
Result<Grade> grade_of(const StudentAnswers& answers);

/// Reads a file with a code in each line: CSV with commas, semicolons or tabs, whichever the first
/// line with a code has. The fields before the code are the name. A first line without a code is a
/// header, and `notes` say so; they also name students that come twice. The grades are in the order
/// of the lines. What is wrong with a line is added to `problems`, and the line is left out: no
/// code in it, two, a damaged one. So is a file without a code.
std::vector<Grade> grade_file(const std::shared_ptr<const Source>& source, Diagnostics& problems,
                              std::vector<std::string>& notes);

}  // namespace plumbline
