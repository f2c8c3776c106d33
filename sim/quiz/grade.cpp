// Codes in, grades out.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/bug.h"
#include "base/csv.h"

namespace plumbline {
namespace {

/// The field of a row that holds a code; the end where none does.
std::vector<CsvField>::const_iterator code_in(const CsvRow& row) {
  return std::find_if(row.fields.begin(), row.fields.end(), [](const CsvField& field) {
    return field.text.find("PL1-") != field.text.npos;
  });
}

}  // namespace

const char* name(AnswerState state) {
  switch (state) {
    case AnswerState::right:
      return "right";
    case AnswerState::wrong:
      return "wrong";
    case AnswerState::unreadable:
      return "unreadable";
    case AnswerState::missing:
      return "none";
  }
  PLUMBLINE_CHECK(false, static_cast<int>(state));
  return "";
}

std::size_t Grade::right() const {
  return static_cast<std::size_t>(
      std::count_if(answers.begin(), answers.end(),
                    [](const GradedAnswer& one) { return one.state == AnswerState::right; }));
}

Result<Grade> grade_of(const StudentAnswers& answers) {
  const auto questions = questions_for(answers.student);
  if (!questions) return questions.problems();
  Grade grade;
  grade.student = answers.student;
  std::set<std::string> known;
  for (const Question& question : *questions) {
    known.insert(question.id);
    GradedAnswer graded;
    graded.question = question.id;
    graded.page = question.page;
    if (const auto given = answers.answers.find(question.id); given != answers.answers.end()) {
      graded.answer = given->second.answer;
      graded.tries = given->second.tries;
      const auto checked = check_answer(question, graded.answer);
      graded.state = !checked         ? AnswerState::unreadable
                     : checked->right ? AnswerState::right
                                      : AnswerState::wrong;
      graded.said = checked ? checked->said : checked.problems().front().message;
    }
    grade.answers.push_back(std::move(graded));
  }
  for (const auto& [id, given] : answers.answers) {
    if (known.count(id) == 0) grade.unknown.push_back(id);
  }
  return grade;
}

std::vector<Grade> grade_file(const std::shared_ptr<const Source>& source, Diagnostics& problems) {
  std::vector<Grade> grades;
  CsvReader rows(source, problems);
  CsvRow row;
  for (bool first = true; rows.next(row); first = false) {
    const auto code = code_in(row);
    if (code == row.fields.end()) {
      if (!first)
        problems.push_back(input_error(row.fields.front().mark, "there is no result code here",
                                       "a code begins with PL1-"));
      continue;
    }
    const auto read = read_code(code->text);
    if (!read) {
      for (Diagnostic& one : located(read.problems(), code->mark)) problems.push_back(one);
      continue;
    }
    auto grade = grade_of(*read);
    PLUMBLINE_CHECK(grade, read->student);
    for (auto field = row.fields.cbegin(); field != code; ++field)
      grade->name += (grade->name.empty() ? "" : ", ") + field->text;
    grades.push_back(*std::move(grade));
  }
  return grades;
}

}  // namespace plumbline
