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
std::string quiz_dump(const QuizJson& json) {
  return json.dump(-1, ' ', false, QuizJson::error_handler_t::replace);
}

}  // namespace

std::string question_json(const Question& question) {
  QuizJson values = QuizJson::object();
  for (const auto& [name, text] : question.values) values[name] = text;
  QuizJson choices = QuizJson::array();
  for (const QuizChoice& one : question.choices)
    choices.push_back({{"id", one.id}, {"text", one.text}});
  return quiz_dump({{"id", question.id},
                    {"page", question.page},
                    {"kind", name(question.kind)},
                    {"unit", question.unit},
                    {"text", question.text},
                    {"values", std::move(values)},
                    {"choices", std::move(choices)},
                    {"run", json_of_run(question.run)}});
}

std::string checked_json(const CheckedAnswer& checked) {
  return quiz_dump(
      {{"right", checked.right}, {"said", checked.said}, {"shown", json_of_run(checked.shown)}});
}

}  // namespace plumbline
