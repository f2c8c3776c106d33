// Questions and checked answers as JSON, for the browser and for `--json`.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/quiz/quiz.h"

namespace plumbline {

/// {id, page, kind, unit, text, values: {name: text}, choices: [{id, text}], run: {scenario,
/// settings, files} or null}.
std::string question_json(const Question& question);

/// {right, said, shown: {scenario, settings, files} or null}.
std::string checked_json(const CheckedAnswer& checked);

}  // namespace plumbline
