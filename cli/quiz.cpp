// `plumbline quiz`: the questions of the lesson with a student's own figures, and their answers.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/table.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "sim/quiz/quiz_json.h"

namespace plumbline {
namespace {

constexpr int kPages = 10;

struct QuizArguments {
  std::vector<std::string> students;
  int page_of_lesson = 0;  ///< 0 = all.
  bool key = false;
  bool json = false;
  bool csv = false;
  std::string output;
  PageArguments page;
};

Result<QuizSheet> sheet_of(const std::string& text, const QuizArguments& arguments) {
  const auto student = student_number(text);
  if (!student) return student.problems();
  auto questions = questions_for(*student);
  if (!questions) return questions.problems();
  QuizSheet sheet{*student, {}, {}};
  for (Question& one : *questions) {
    if (arguments.page_of_lesson != 0 && one.page != arguments.page_of_lesson) continue;
    if (arguments.key) sheet.keys.push_back(answer_of(one));
    sheet.questions.push_back(std::move(one));
  }
  if (sheet.questions.empty())
    return input_error(
        {}, fmt::format("page {} of the lesson has no question", arguments.page_of_lesson));
  return sheet;
}

/// "a number of ms", "one of smaller, same, larger".
std::string form_of(const Question& question) {
  switch (question.kind) {
    case QuestionKind::number:
      return question.unit.empty() ? "a number" : "a number, in " + question.unit;
    case QuestionKind::numbers:
      return "numbers, with blanks between them";
    case QuestionKind::order:
      return "a line of ops for each GPU";
    case QuestionKind::text:
      return "ops, such as F0 B0";
    case QuestionKind::choice:
      break;
  }
  std::string ids;
  for (const QuizChoice& one : question.choices) ids += (ids.empty() ? "" : ", ") + one.id;
  return "one of " + ids;
}

Document sheet_text(const QuizSheet& sheet) {
  Document text;
  text.sentence(sheet.student.empty() ? "The figures of the course"
                                      : "Student number " + sheet.student);
  for (std::size_t i = 0; i < sheet.questions.size(); ++i) {
    const Question& question = sheet.questions[i];
    text.blank_line();
    text.sentence(fmt::format("page {}, {}: {}", question.page, question.id, form_of(question)));
    text.sentence("  " + question.text, 2);
    if (i >= sheet.keys.size()) continue;
    const bool has_lines = sheet.keys[i].answer.find('\n') != std::string::npos;
    if (has_lines) {
      text.sentence("  key:");
      text.verbatim("    " + sheet.keys[i].answer.substr(0, sheet.keys[i].answer.find('\n')));
      text.verbatim("    " + sheet.keys[i].answer.substr(sheet.keys[i].answer.find('\n') + 1));
    } else {
      text.sentence("  key: " + sheet.keys[i].answer);
    }
    text.sentence("  " + sheet.keys[i].said, 2);
  }
  return text;
}

std::string sheets_csv(const std::vector<QuizSheet>& sheets, bool has_keys) {
  std::string csv =
      std::string("student,page,question,kind,unit,text") + (has_keys ? ",key,said" : "") + '\n';
  for (const QuizSheet& sheet : sheets) {
    for (std::size_t i = 0; i < sheet.questions.size(); ++i) {
      const Question& question = sheet.questions[i];
      csv += fmt::format("{},{},{},{},{},{}", csv_cell(sheet.student), question.page,
                         csv_cell(question.id), name(question.kind), csv_cell(question.unit),
                         csv_cell(question.text));
      if (has_keys)
        csv += fmt::format(",{},{}", csv_cell(sheet.keys[i].answer), csv_cell(sheet.keys[i].said));
      csv += '\n';
    }
  }
  return csv;
}

int quiz(const QuizArguments& arguments) {
  std::vector<std::string> students = arguments.students;
  if (students.empty()) students.emplace_back();
  Diagnostics problems;
  std::vector<QuizSheet> sheets;
  for (const std::string& student : students) {
    auto sheet = sheet_of(student, arguments);
    if (keep(sheet, problems)) sheets.push_back(*std::move(sheet));
  }
  if (!problems.empty()) return fail(problems);
  if (arguments.json) return write_output(sheets_json(sheets, kVersion), arguments.output);
  if (arguments.csv) return write_output(sheets_csv(sheets, arguments.key), arguments.output);
  Document text;
  for (const QuizSheet& sheet : sheets) {
    if (!text.empty()) text.blank_line();
    text.append(sheet_text(sheet));
  }
  return write_output(text.print(page_width(arguments.page, arguments.output)), arguments.output);
}

}  // namespace

void add_quiz(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<QuizArguments>();
  CLI::App* command =
      app.add_subcommand("quiz", "print the questions of the lesson with a student's own figures");
  command
      ->add_option("students", arguments->students,
                   "student numbers, from which the figures follow; absent: the course's figures")
      ->type_name("STUDENT");
  command->add_option("--page", arguments->page_of_lesson, "only the questions of this page")
      ->check(between(1, kPages))
      ->type_name("N");
  command->add_flag("--key", arguments->key, "print a right answer to each, found by simulation");
  CLI::Option* const json =
      command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command->add_flag("--csv", arguments->csv, "print CSV, a line for each question")->excludes(json);
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout")
      ->type_name("FILE");
  add_page_arguments(*command, arguments->page);
  command->callback([arguments, &exit_code] { exit_code = quiz(*arguments); });
}

}  // namespace plumbline
