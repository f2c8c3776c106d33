// One override after the other.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/yaml.h"
#include "sim/scenario/bare_model.h"
#include "sim/scenario/device_section.h"
#include "sim/scenario/rival_keys.h"

namespace plumbline {
namespace {

std::string text_of(const std::vector<YamlOverride::Key>& path) {
  std::string text;
  for (const YamlOverride::Key& key : path) text += (text.empty() ? "" : ".") + key.text;
  return text;
}

/// Errors: an override that sets the same key as an earlier one, or a whole section with that key.
std::optional<Diagnostic> check_overlap(const std::vector<YamlOverride>& earlier,
                                        const YamlOverride& change) {
  for (const YamlOverride& before : earlier) {
    if (before.path.size() < change.path.size()) continue;
    if (!std::equal(change.path.begin(), change.path.end(), before.path.begin(),
                    [](const auto& a, const auto& b) { return a.text == b.text; }))
      continue;
    if (before.path.size() == change.path.size()) {
      return input_error(change.path.back().mark,
                         fmt::format("'{}' is given twice", clipped(text_of(change.path))),
                         "leave one of them out");
    }
    return input_error(change.path.back().mark,
                       fmt::format("'{}' replaces what '{}' sets", clipped(text_of(change.path)),
                                   clipped(text_of(before.path))),
                       "the whole section stands first");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> override_scenario(YamlNode& root, const YamlOverride& change,
                                            OverrideLog& log) {
  keep_preset(root, change);
  give_way(root, change);
  if (auto wrong = apply_override(root, change)) return wrong;
  if (auto note = take_out_rivals(root, change, log.set)) log.notes.push_back(*std::move(note));
  const std::string& section = change.path.front().text;
  log.set.push_back(change.path.size() == 1 ? section : section + '.' + change.path[1].text);
  return std::nullopt;
}

Diagnostics override_by_arguments(YamlNode& root, const std::vector<std::string>& arguments,
                                  OverrideLog& log) {
  Diagnostics problems;
  std::vector<YamlOverride> earlier;
  for (const std::string& argument : arguments) {
    const auto change = parse_override(argument);
    if (!change) {
      problems.insert(problems.end(), change.problems().begin(), change.problems().end());
      continue;
    }
    if (auto lost = check_overlap(earlier, *change)) problems.push_back(*std::move(lost));
    earlier.push_back(*change);
    if (auto wrong = override_scenario(root, *change, log)) problems.push_back(*std::move(wrong));
  }
  return problems;
}

}  // namespace plumbline
