// The same names as in JavaScript.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/quiz_json.h"

#include <nlohmann/json.hpp>

namespace plumbline {
namespace {

using QuizJson = nlohmann::ordered_json;

QuizJson json_of_run(const std::optional<QuizRun>& run) {
  if (!run) return nullptr;
  return {{"scenario", run->scenario}, {"settings", run->settings}, {"files", run->files}};
}

/// A said text may quote an answer that is no UTF-8.
std::string quiz_dump(const QuizJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, QuizJson::error_handler_t::replace);
}

QuizJson json_of_question(const Question& question) {
  QuizJson values = QuizJson::object();
  for (const auto& [key, text] : question.values) values[key] = text;
  QuizJson choices = QuizJson::array();
  for (const QuizChoice& one : question.choices)
    choices.push_back({{"id", one.id}, {"text", one.text}});
  return {{"id", question.id},
          {"page", question.page},
          {"kind", name(question.kind)},
          {"unit", question.unit},
          {"text", question.text},
          {"values", std::move(values)},
          {"choices", std::move(choices)},
          {"run", json_of_run(question.run)}};
}

std::string students_json(QuizJson students, const std::string& version) {
  return quiz_dump({{"schema_version", 1},
                    {"tool", {{"name", "plumbline"}, {"version", version}}},
                    {"students", std::move(students)}},
                   1) +
         '\n';
}

}  // namespace

std::string question_json(const Question& question) {
  return quiz_dump(json_of_question(question));
}

std::string checked_json(const CheckedAnswer& checked) {
  return quiz_dump(
      {{"right", checked.right}, {"said", checked.said}, {"shown", json_of_run(checked.shown)}});
}

std::string sheets_json(const std::vector<QuizSheet>& sheets, const std::string& version) {
  QuizJson students = QuizJson::array();
  for (const QuizSheet& sheet : sheets) {
    QuizJson questions = QuizJson::array();
    for (std::size_t i = 0; i < sheet.questions.size(); ++i) {
      QuizJson question = json_of_question(sheet.questions[i]);
      if (i < sheet.keys.size())
        question["key"] = {{"answer", sheet.keys[i].answer}, {"said", sheet.keys[i].said}};
      questions.push_back(std::move(question));
    }
    students.push_back({{"student", sheet.student}, {"questions", std::move(questions)}});
  }
  return students_json(std::move(students), version);
}

std::string grades_json(const std::vector<Grade>& grades, const std::string& version) {
  QuizJson students = QuizJson::array();
  for (const Grade& grade : grades) {
    QuizJson answers = QuizJson::array();
    for (const GradedAnswer& one : grade.answers)
      answers.push_back({{"question", one.question},
                         {"page", one.page},
                         {"state", name(one.state)},
                         {"answer", one.answer},
                         {"tries", one.tries},
                         {"said", one.said}});
    students.push_back({{"name", grade.name},
                        {"student", grade.student},
                        {"right", grade.right()},
                        {"questions", grade.answers.size()},
                        {"answers", std::move(answers)},
                        {"unknown", grade.unknown}});
  }
  return students_json(std::move(students), version);
}

}  // namespace plumbline
