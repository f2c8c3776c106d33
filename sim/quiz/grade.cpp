// Codes in, grades out.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/bug.h"
#include "base/csv.h"

namespace plumbline {
namespace {

bool has_code(const CsvField& field) { return field.text.find("PL1-") != field.text.npos; }

/// What separates the fields: of the candidates the one that the first line with a code has most
/// often.
CsvForm form_of_codes(std::string_view text) {
  const std::size_t code = text.find("PL1-");
  if (code == text.npos) return {',', false};
  const std::size_t before = text.rfind('\n', code);
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  const std::string_view line = text.substr(begin, text.find('\n', code) - begin);
  const auto count = [&](char one) { return std::count(line.begin(), line.end(), one); };
  char best = ',';
  for (const char one : {';', '\t'}) {
    if (count(one) > count(best)) best = one;
  }
  return {best, false};
}

/// Grades the code of a row that has one; nothing, with a problem, where it cannot be read.
std::optional<Grade> grade_row(const CsvRow& row, std::vector<CsvField>::const_iterator code,
                               Diagnostics& problems) {
  if (std::find_if(code + 1, row.fields.end(), has_code) != row.fields.end()) {
    problems.push_back(input_error(code->mark, "there are two result codes in one line", ""));
    return std::nullopt;
  }
  const auto read = read_code(code->text);
  if (!read) {
    for (Diagnostic& one : located(read.problems(), code->mark)) problems.push_back(one);
    return std::nullopt;
  }
  auto grade = grade_of(*read);
  PLUMBLINE_CHECK(grade, read->student);
  for (auto field = row.fields.cbegin(); field != code; ++field)
    grade->name += (grade->name.empty() ? "" : ", ") + field->text;
  return *std::move(grade);
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

std::vector<Grade> grade_file(const std::shared_ptr<const Source>& source, Diagnostics& problems,
                              std::vector<std::string>& notes) {
  std::vector<Grade> grades;
  const std::size_t before = problems.size();
  CsvReader rows(source, problems, form_of_codes(source->text));
  std::set<std::string> students;
  CsvRow row;
  for (bool first = true; rows.next(row); first = false) {
    if (row.count > row.fields.size()) {
      problems.push_back(input_error(
          row.fields.front().mark,
          fmt::format("this line has {} fields, more than {}", row.count, kMaxCsvFields), ""));
      continue;
    }
    const auto code = std::find_if(row.fields.cbegin(), row.fields.cend(), has_code);
    if (code != row.fields.cend()) {
      auto grade = grade_row(row, code, problems);
      if (!grade) continue;
      if (!students.insert(grade->student).second)
        notes.push_back(fmt::format("line {} is a further code of student number '{}'",
                                    code->mark.line, grade->student));
      grades.push_back(*std::move(grade));
    } else if (first) {
      notes.push_back(
          fmt::format("line {} has no code, and counts as a header", row.fields.front().mark.line));
    } else {
      problems.push_back(input_error(row.fields.front().mark, "there is no result code here",
                                     "a code begins with PL1-"));
    }
  }
  if (grades.empty() && problems.size() == before)
    problems.push_back(input_error({source, 1, 1, 1}, "there is no result code in this file",
                                   "a code begins with PL1-"));
  return grades;
}

}  // namespace plumbline
