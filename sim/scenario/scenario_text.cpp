// Copies a small tree instead of parsing a text.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/scenario_text.h"

#include <algorithm>

#include "base/section_reader.h"
#include "sim/scenario/model_section.h"
#include "sim/scenario/overrides.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

bool touches_model(const YamlOverride* change) { return change->path.front().text == "model"; }

}  // namespace

ScenarioText::ScenarioText(OpenedScenario opened)
    : root_(std::move(opened.root)), assumed_(std::move(opened.assumed)) {
  if (!assumed_.empty()) return;  // a note tells what is left of the model's keys
  YamlNode::Entry* model = entry_of(root_, "model");
  if (!model || model->value.kind != YamlNode::Kind::map) return;
  Diagnostics problems;
  SectionReader section(model->value, "model", model_section_format(), problems);
  ModelSection read = read_model_section(section, problems);
  if (!problems.empty()) return;
  model_ = std::make_shared<const ModelSection>(std::move(read));
  without_model_ = root_;
  entry_of(without_model_, "model")->value.entries.clear();
  std::erase_if(without_model_.entries,
                [](const YamlNode::Entry& entry) { return entry.key == "sweep"; });
}

Result<ScenarioText> ScenarioText::open(const std::string& path) {
  auto opened = open_scenario(path, BareLayout::one_stage);
  if (!opened) return opened.problems();
  return ScenarioText(*std::move(opened));
}

Result<ScenarioText> ScenarioText::parse(const std::shared_ptr<const Source>& source) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return ScenarioText(opened_scenario(*std::move(root), BareLayout::one_stage));
}

Result<Scenario> ScenarioText::read(const std::vector<const YamlOverride*>& changes) const {
  const bool model_is_known = model_ && std::none_of(changes.begin(), changes.end(), touches_model);
  YamlNode root = model_is_known ? without_model_ : root_;
  Diagnostics problems;
  OverrideLog log;
  for (const YamlOverride* change : changes) {
    if (auto wrong = override_scenario(root, *change, log)) problems.push_back(*std::move(wrong));
  }
  if (!problems.empty()) return problems;
  if (auto missing = fit_assumptions(assumed_, root)) return Diagnostics{*missing};
  auto scenario = read_scenario_tree(root, model_is_known ? model_.get() : nullptr);
  if (!scenario) return scenario;
  if (auto note = assumption_note(assumed_, root)) log.notes.insert(log.notes.begin(), *note);
  put_notes_first(log.notes, *scenario);
  return scenario;
}

}  // namespace plumbline
