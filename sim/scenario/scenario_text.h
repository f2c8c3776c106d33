// A scenario's text, parsed once, to be read many times with different overrides.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/scenario/axes.h"
#include "sim/scenario/bare_model.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// A parsed scenario. Its model section is read once, with the files that it names; only overrides
/// of the model read it again. It may be read by several threads at once.
class ScenarioText {
 public:
  /// Errors: those of read_yaml. Other errors are reported by read().
  static Result<ScenarioText> open(const std::string& path);
  static Result<ScenarioText> parse(const std::shared_ptr<const Source>& source);

  /// The same result as read_scenario with these overrides.
  Result<Scenario> read(const std::vector<const YamlOverride*>& changes) const;

  const YamlNode& root() const { return root_; }

 private:
  explicit ScenarioText(OpenedScenario opened);

  YamlNode root_;
  std::vector<std::string> assumed_;
  YamlNode without_model_;  ///< The tree without the model's keys and the sweep section.
  std::shared_ptr<const ModelSection> model_;  ///< Null if the section has errors.
};

}  // namespace plumbline
