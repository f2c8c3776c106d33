// The facade as one function of texts, for JavaScript, and the columns that the report's canvas
// paints.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "base/base64.h"
#include "base/diagnostic.h"
#include "base/memory_files.h"
#include "library/predict/inside.h"
#include "sim/quiz/quiz_json.h"
#include "sim/quiz/result_code.h"
#include "sim/report/report_columns.h"
#include "sim/report/report_facts.h"

namespace {

using Json = nlohmann::ordered_json;
namespace facade = plumbline::v1;

Json told(const facade::Error& error) {
  Json problems = Json::array();
  for (const facade::Problem& problem : error.problems)
    problems.push_back({{"file", problem.file},
                        {"line", problem.line},
                        {"column", problem.column},
                        {"message", problem.message},
                        {"help", problem.help}});
  return {{"error", error.text}, {"problems", std::move(problems)}};
}

/// The columns of a run's ops, as arrays.
Json ops_of(const facade::Run& run) {
  const facade::Ops& ops = run.ops();
  const auto list = [](const auto& column) {
    return Json(std::vector(column.begin(), column.end()));
  };
  std::string kinds(ops.kind.begin(), ops.kind.end());
  return {{"device", list(ops.device)},           {"stage", list(ops.stage)},
          {"micro_batch", list(ops.micro_batch)}, {"kind", std::move(kinds)},
          {"begin_ns", list(ops.begin_ns)},       {"end_ns", list(ops.end_ns)}};
}

/// What the canvas of the HTML report paints: sim/report/report_columns.h, as base64, and how to
/// take the columns apart; and the memory of the fullest device, or null.
Json timeline_of(const facade::Run& run) {
  const plumbline::Outcome& outcome = run.inside().with_terms();
  std::string columns;
  const auto layout =
      append_columns(outcome, plumbline::tick_for(outcome.metrics.makespan), columns);
  plumbline::Bytes peak{-1};
  std::size_t fullest = 0;
  for (std::size_t slot = 0; slot < outcome.memory.size(); ++slot) {
    if (outcome.memory[slot].peak.sum() <= peak) continue;
    peak = outcome.memory[slot].peak.sum();
    fullest = slot;
  }
  const auto limit = outcome.memory_limit(fullest);
  return {{"layout", Json::parse(layout_json(outcome, layout))},
          {"columns", plumbline::base64(columns)},
          {"memory_limit_bytes", limit ? Json(limit->count) : Json(nullptr)}};
}

facade::Input input_of(const Json& question) {
  if (question.contains("file")) return facade::Input(question.at("file").get<std::string>());
  return facade::Input::of_text(question.at("text").get<std::string>(),
                                question.value("name", std::string("<text>")),
                                question.value("folder", std::string()));
}

facade::Settings settings_of(const Json& question) {
  return question.value("settings", facade::Settings{});
}

/// What may be asked of a run, each under its own name.
struct Wanted {
  const char* name;
  Json (*of)(const facade::Run& run);
};
constexpr Wanted kWanted[] = {
    {"json", [](const facade::Run& run) { return Json(run.json()); }},
    {"ops", ops_of},
    {"timeline", timeline_of},
    {"text", [](const facade::Run& run) { return Json(run.text()); }},
    {"html", [](const facade::Run& run) { return Json(run.html()); }},
    {"order_csv", [](const facade::Run& run) { return Json(run.order_csv()); }},
    {"explain", [](const facade::Run& run) { return Json(run.explain().json); }}};

Json error_of(const std::string& text) { return {{"error", text}, {"problems", Json::array()}}; }

/// An error for the first name that nothing has; null = there is none.
Json check_wanted(const Json& wanted) {
  for (const Json& one : wanted) {
    const auto what = one.get<std::string>();
    std::string known;
    bool found = false;
    for (const Wanted& offered : kWanted) {
      found = found || what == offered.name;
      if (!known.empty()) known += ", ";
      known += offered.name;
    }
    if (found) continue;
    std::string wrong = "'";
    wrong.append(what).append("' in want is none of ").append(known);
    return error_of(wrong);
  }
  return nullptr;
}

Json answer_of(const facade::Run& run, const Json& wanted) {
  Json answer = Json::object();
  for (const Json& one : wanted) {
    const auto what = one.get<std::string>();
    for (const Wanted& offered : kWanted) {
      if (what == offered.name) answer[what] = offered.of(run);
    }
  }
  return answer;
}

Json simulate(const Json& question) {
  const Json wanted = question.value("want", Json::array({"json"}));
  if (Json wrong = check_wanted(wanted); !wrong.is_null()) return wrong;
  const plumbline::MemoryFiles files(question.value("files", plumbline::FileTexts{}));
  const auto scenario = facade::load(input_of(question), settings_of(question));
  if (!scenario) return told(scenario.error());
  const auto run = facade::predict(*scenario);
  if (!run) return told(run.error());
  return answer_of(*run, wanted);
}

Json sweep(const Json& question) {
  facade::Selection selection;
  selection.objective = question.value("objective", selection.objective);
  const plumbline::MemoryFiles files(question.value("files", plumbline::FileTexts{}));
  const auto rows = facade::sweep(input_of(question), settings_of(question), selection);
  if (!rows) return told(rows.error());
  return {{"json", rows->json()}};
}

Json told(const plumbline::Diagnostics& problems) {
  Json listed = Json::array();
  for (const plumbline::Diagnostic& one : problems)
    listed.push_back(
        {{"file", ""}, {"line", 0}, {"column", 0}, {"message", one.message}, {"help", one.help}});
  return {{"error", plumbline::to_text(problems)}, {"problems", std::move(listed)}};
}

std::string student_of(const Json& question) { return question.value("student", std::string()); }

Json questions(const Json& question) {
  const auto asked = plumbline::questions_for(student_of(question));
  if (!asked) return told(asked.problems());
  Json list = Json::array();
  for (const plumbline::Question& one : *asked)
    list.push_back(Json::parse(plumbline::question_json(one)));
  return {{"questions", std::move(list)}};
}

Json check(const Json& question) {
  const auto asked =
      plumbline::question_for(student_of(question), question.at("id").get<std::string>());
  if (!asked) return told(asked.problems());
  const auto checked = plumbline::check_answer(*asked, question.at("answer").get<std::string>());
  if (!checked) return told(checked.problems());
  return Json::parse(plumbline::checked_json(*checked));
}

Json code(const Json& question) {
  plumbline::StudentAnswers given{student_of(question), {}};
  for (const auto& [id, one] : question.at("answers").items()) {
    const Json tries = one.value("tries", Json(1));
    if (!tries.is_number_integer())
      return error_of("the tries of '" + id + "' are no whole number");
    given.answers[id] = {one.at("answer").get<std::string>(), tries.get<std::int64_t>()};
  }
  const auto made = plumbline::code_of(given);
  if (!made) return told(made.problems());
  return {{"code", *made}};
}

Json answer(const Json& question) {
  const auto ask = question.value("ask", std::string("simulate"));
  if (ask == "simulate") return simulate(question);
  if (ask == "sweep") return sweep(question);
  if (ask == "questions") return questions(question);
  if (ask == "check") return check(question);
  if (ask == "code") return code(question);
  if (ask == "version") return {{"version", facade::version()}};
  return error_of("'" + ask +
                  "' in ask is none of simulate, sweep, questions, check, code, version");
}

/// Null where even that memory is refused.
char* as_c_text(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

/// Answers a question: {ask: simulate, file or text, settings, files: {path: text}, want: [json,
/// ops, timeline, text, html, order_csv, explain]}, {ask: sweep, ...}, {ask: version}; of a lesson
/// {ask: questions, student}, {ask: check, student, id, answer} and {ask: code, student, answers:
/// {id: {answer, tries}}}. All texts are JSON. An error of input is {error, problems}. The caller
/// frees the answer. It is null if the module has no memory for it: no text could say so.
extern "C" char* plumbline_ask(const char* question) {
  try {
    return as_c_text(answer(Json::parse(question)).dump());
  } catch (const std::bad_alloc&) {
    return as_c_text(R"({"error": "the module has at most 2 GB of memory: make the run smaller, )"
                     R"(or use the command", "problems": []})");
  } catch (const std::exception& thrown) {
    return as_c_text(Json{{"error", thrown.what()}, {"problems", Json::array()}}.dump());
  }
}
