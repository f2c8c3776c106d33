// Scenarios, and errors as values.
//
// SPDX-License-Identifier: MIT
#include <map>
#include <memory>
#include <utility>

#include "library/predict/inside.h"
#include "sim/planning/planning.h"

namespace plumbline {
namespace {

v1::Fault fault_of(Fault fault) {
  switch (fault) {
    case Fault::file:
      return v1::Fault::file;
    case Fault::infeasible:
      return v1::Fault::infeasible;
    case Fault::no_device:
      return v1::Fault::no_device;
    case Fault::input:
      break;
  }
  return v1::Fault::input;
}

/// A program has no command line: its settings and conditions have names of their own.
Diagnostics without_command_line(Diagnostics problems) {
  std::map<const Source*, std::shared_ptr<const Source>> renamed;
  for (Diagnostic& one : problems) {
    const std::shared_ptr<const Source>& source = one.mark.source;
    if (!source || (source->name != "<command line>" && source->name != "--where")) continue;
    auto& its_own = renamed[source.get()];
    if (!its_own) {
      Source copy = *source;
      copy.name = source->name == "--where" ? "<condition>" : "<setting>";
      its_own = std::make_shared<const Source>(std::move(copy));
    }
    one.mark.source = its_own;
  }
  return problems;
}

}  // namespace

v1::Error error_of(const Diagnostics& found) {
  const Diagnostics problems = without_command_line(found);
  v1::Error error;
  error.problems.reserve(problems.size());
  for (const Diagnostic& one : problems) {
    v1::Problem problem;
    problem.fault = fault_of(one.fault);
    if (one.mark.source) problem.file = one.mark.source->name;
    problem.line = one.mark.line;
    problem.column = one.mark.column;
    problem.message = one.message;
    problem.help = one.help;
    error.problems.push_back(std::move(problem));
  }
  error.text = to_text(problems);
  return error;
}

v1::Error stopped_error(const std::string& message) {
  v1::Error error = error_of({input_error({}, message)});
  error.problems.front().fault = v1::Fault::stopped;
  return error;
}

Result<Scenario> scenario_of(const v1::Input& input, const v1::Settings& settings) {
  return input.text ? parse_scenario(source_of(input), settings)
                    : read_scenario(input.path, settings);
}

std::shared_ptr<const Source> source_of(const v1::Input& input) {
  return std::make_shared<const Source>(
      Source{input.path, input.text.value_or(std::string()), input.folder});
}

}  // namespace plumbline

namespace plumbline::v1 {

std::string version() { return kLibraryVersion; }

Input Input::of_text(std::string text, std::string name, std::string folder) {
  Input input(std::move(name));
  input.text = std::move(text);
  input.folder = std::move(folder);
  return input;
}

const std::string& Scenario::name() const { return inside_->scenario.name; }
const std::vector<std::string>& Scenario::notes() const { return inside_->scenario.notes; }

Result<Scenario> load(const Input& input, const Settings& settings) {
  auto scenario = scenario_of(input, settings);
  if (!scenario) return error_of(scenario.problems());
  return Scenario(
      std::make_shared<const Scenario::Inside>(Scenario::Inside{settings, *std::move(scenario)}));
}

Result<Scenario> resolve(const Scenario& scenario) {
  auto resolved = resolve_plan(scenario.inside().scenario);
  if (!resolved) return error_of(resolved.problems());
  return Scenario(std::make_shared<const Scenario::Inside>(
      Scenario::Inside{scenario.inside().settings, *std::move(resolved)}));
}

}  // namespace plumbline::v1
