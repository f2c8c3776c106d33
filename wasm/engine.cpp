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
#include "library/predict/inside.h"
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
/// take the columns apart.
Json timeline_of(const facade::Run& run) {
  const plumbline::Outcome& outcome = run.inside().with_terms();
  std::string columns;
  const auto layout =
      append_columns(outcome, plumbline::tick_for(outcome.metrics.makespan), columns);
  return {{"layout", Json::parse(layout_json(outcome, layout))},
          {"columns", plumbline::base64(columns)}};
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

/// What is asked of a run, each under its own name.
Json answer_of(const facade::Run& run, const Json& wanted) {
  Json answer = Json::object();
  for (const Json& one : wanted) {
    const auto what = one.get<std::string>();
    if (what == "json") answer[what] = run.json();
    if (what == "ops") answer[what] = ops_of(run);
    if (what == "timeline") answer[what] = timeline_of(run);
    if (what == "text") answer[what] = run.text();
    if (what == "html") answer[what] = run.html();
    if (what == "order_csv") answer[what] = run.order_csv();
    if (what == "explain") answer[what] = run.explain().json;
  }
  return answer;
}

Json simulate(const Json& question) {
  const auto scenario = facade::load(input_of(question), settings_of(question));
  if (!scenario) return told(scenario.error());
  const auto run = facade::predict(*scenario);
  if (!run) return told(run.error());
  return answer_of(*run, question.value("want", Json::array({"json"})));
}

Json sweep(const Json& question) {
  facade::Selection selection;
  selection.objective = question.value("objective", selection.objective);
  const auto rows = facade::sweep(input_of(question), settings_of(question), selection);
  if (!rows) return told(rows.error());
  return {{"json", rows->json()}};
}

Json answer(const Json& question) {
  const auto ask = question.value("ask", std::string("simulate"));
  if (ask == "simulate") return simulate(question);
  if (ask == "sweep") return sweep(question);
  if (ask == "version") return {{"version", facade::version()}};
  return {{"error", "there is no question '" + ask + "'"}, {"problems", Json::array()}};
}

char* as_c_text(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

/// Answers a question: {ask: simulate, file or text, settings, want: [json, ops, timeline, text,
/// html, order_csv, explain]}, {ask: sweep, ...}, {ask: version}; all texts are JSON. An error of
/// input is {error, problems}. The caller frees the answer.
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
