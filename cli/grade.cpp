// `plumbline grade`: result codes of the lesson, whose answers the engine checks anew.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "base/table.h"
#include "cli/command.h"
#include "sim/quiz/quiz_json.h"

namespace plumbline {
namespace {

/// The largest file of codes.
constexpr std::size_t kLargestCodeFile = std::size_t{64} << 20U;

struct GradeArguments {
  std::vector<std::string> codes;
  std::string file;
  bool json = false;
  bool csv = false;
  std::string output;
  PageArguments page;
};

/// "Ada, 1234567", "1234567", "no student number".
std::string title_of(const Grade& grade) {
  const std::string number =
      grade.student.empty() ? std::string("the course's figures") : grade.student;
  return grade.name.empty() ? number : printable(grade.name) + ", " + number;
}

/// An answer on one line.
std::string on_one_line(std::string answer) {
  for (std::size_t at = answer.find('\n'); at != answer.npos; at = answer.find('\n', at))
    answer.replace(at, 1, "; ");
  return clipped(printable(answer));
}

Document grades_text(const std::vector<Grade>& grades) {
  Document text;
  for (const Grade& grade : grades) {
    if (!text.empty()) text.blank_line();
    text.sentence(
        fmt::format("{}: {} of {} right", title_of(grade), grade.right(), grade.answers.size()));
    text.blank_line();
    Table table;
    table.row({"question", "page", "result", "tries"}, "answer");
    for (const GradedAnswer& one : grade.answers)
      table.row({one.question, std::to_string(one.page), name(one.state),
                 one.state == AnswerState::missing ? "" : std::to_string(one.tries)},
                on_one_line(one.answer));
    text.table(std::move(table));
    for (const std::string& id : grade.unknown)
      text.sentence(fmt::format("note: this version has no question '{}'", clipped(id)));
  }
  if (grades.size() > 1) {
    text.blank_line();
    Table table;
    table.row({"student", "right", "of"});
    for (const Grade& grade : grades)
      table.row({clipped(title_of(grade)), std::to_string(grade.right()),
                 std::to_string(grade.answers.size())});
    text.table(std::move(table));
  }
  return text;
}

/// A line for each student; two columns for each question: 1 or 0, and the tries. Empty: no answer.
std::string grades_csv(const std::vector<Grade>& grades) {
  std::string csv = "name,student,right,questions";
  if (!grades.empty()) {
    for (const GradedAnswer& one : grades.front().answers)
      csv += fmt::format(",{0},{0} tries", one.question);
  }
  csv += '\n';
  for (const Grade& grade : grades) {
    csv += fmt::format("{},{},{},{}", csv_cell(grade.name), csv_cell(grade.student), grade.right(),
                       grade.answers.size());
    for (const GradedAnswer& one : grade.answers)
      csv += one.state == AnswerState::missing
                 ? std::string(",,")
                 : fmt::format(",{},{}", one.state == AnswerState::right ? 1 : 0, one.tries);
    csv += '\n';
  }
  return csv;
}

int grade(const GradeArguments& arguments) {
  if (arguments.codes.empty() && arguments.file.empty())
    return fail({input_error({}, "there is no code to grade",
                             "plumbline grade PL1-..., or --file with a code in each line")});
  Diagnostics problems;
  std::vector<Grade> grades;
  for (const std::string& code : arguments.codes) {
    const auto read = read_code(code);
    if (!keep(read, problems)) continue;
    auto graded = grade_of(*read);
    if (keep(graded, problems)) grades.push_back(*std::move(graded));
  }
  if (!arguments.file.empty()) {
    const auto source = read_file(arguments.file, kLargestCodeFile);
    if (!source) return fail(source.problems());
    std::vector<std::string> notes;
    for (Grade& one : grade_file(*source, problems, notes)) grades.push_back(std::move(one));
    for (const std::string& note : notes) say(fmt::format("note: {}: {}\n", arguments.file, note));
  }
  // The others are graded, too, where one code is damaged.
  if (!grades.empty() || problems.empty()) {
    const std::string text =
        arguments.json  ? grades_json(grades, kVersion)
        : arguments.csv ? grades_csv(grades)
                        : grades_text(grades).print(page_width(arguments.page, arguments.output));
    const int written = write_output(text, arguments.output);
    if (written != ExitCode::done) return written;
  }
  return problems.empty() ? ExitCode::done : fail(problems);
}

}  // namespace

void add_grade(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GradeArguments>();
  CLI::App* command = app.add_subcommand(
      "grade",
      "check the answers in result codes of the lesson; a code proves nothing about who "
      "wrote it");
  command->add_option("codes", arguments->codes, "result codes, as the lesson shows them: PL1-...")
      ->type_name("CODE");
  command
      ->add_option("--file", arguments->file,
                   "CSV with a code in each line; columns before the code are kept as the name")
      ->type_name("FILE");
  CLI::Option* const json =
      command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command->add_flag("--csv", arguments->csv, "print CSV, a line for each student")->excludes(json);
  command->add_option("-o,--output", arguments->output, "write to this file instead of stdout")
      ->type_name("FILE");
  add_page_arguments(*command, arguments->page);
  command->callback([arguments, &exit_code] { exit_code = grade(*arguments); });
}

}  // namespace plumbline
