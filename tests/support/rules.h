// The schedules of the table, in two halves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "schedules/generators/generators.h"

namespace plumbline::test {

/// The rules that give each position a window.
inline std::vector<ScheduleRule> window_rules() {
  std::vector<ScheduleRule> rules;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (!rule.chunks) rules.push_back(rule);
  }
  return rules;
}

/// The rules whose devices have chunks.
inline std::vector<ScheduleRule> chunk_rules() {
  std::vector<ScheduleRule> rules;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.chunks) rules.push_back(rule);
  }
  return rules;
}

}  // namespace plumbline::test
