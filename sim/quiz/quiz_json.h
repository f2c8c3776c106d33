// Questions and checked answers as JSON, for the browser and for `--json`.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/quiz/grade.h"
#include "sim/quiz/quiz.h"

namespace plumbline {

/// {id, page, kind, unit, text, values: {name: text}, choices: [{id, text}], run: {scenario,
/// settings, files} or null}.
std::string question_json(const Question& question);

/// {right, said, shown: {scenario, settings, files} or null}.
std::string checked_json(const CheckedAnswer& checked);

/// The questions of a student.
struct QuizSheet {
  std::string student;  ///< As student_number() gives it; "" = the figures of the course.
  std::vector<Question> questions;
  std::vector<QuizKey> keys;  ///< One per question; empty = they are not told.
};

/// {schema_version, tool, students: [{student, questions: [as question_json(), with key: {answer,
/// said} where keys are told]}]}. Ends in a newline.
std::string sheets_json(const std::vector<QuizSheet>& sheets, const std::string& version);

/// {schema_version, tool, students: [{name, student, right, questions, answers: [{question, page,
/// state, answer, tries, said}], unknown: [id]}]}. Ends in a newline.
std::string grades_json(const std::vector<Grade>& grades, const std::string& version);

}  // namespace plumbline
