// Two provenances, side by side.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/provenance_check.h"

#include <fmt/format.h>

#include "base/diagnostic.h"

namespace plumbline {

std::optional<std::string> measured_elsewhere(const Profile& profile,
                                              const std::map<std::string, std::string>& here) {
  const auto& there = profile.provenance;
  const auto source = there.find("source");
  if (source == there.end() || source->second != "measured") return std::nullopt;
  std::string differences;
  const auto compare = [&](const std::string& name, const std::string& own) {
    const auto found = there.find(name);
    if (found == there.end() || found->second == own) return true;
    differences += fmt::format("{}{} {}, here {}", differences.empty() ? "" : "; ", name,
                               clipped(found->second), own);
    return false;
  };
  const auto backend = here.find("backend");
  if (backend == here.end() || compare("backend", backend->second)) {
    for (const auto& [name, own] : here) compare(name, own);
  }
  if (differences.empty()) return std::nullopt;
  return "the profile was measured elsewhere: " + differences;
}

}  // namespace plumbline
