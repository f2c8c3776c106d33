// The traces of a run that another framework recorded, and how their ranges are called.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/recording/op_names.h"
#include "calibrate/recording/rank_recording.h"

namespace CLI {
class App;
}

namespace plumbline {

/// How traces are read and put together.
struct TraceChoice {
  std::array<std::vector<std::string>, 4> names;  ///< Templates by the number of their OpKind.
  std::vector<std::string> updates;
  AssemblyOptions assembly;
};

/// Adds --forward, --backward, --backward-input, --backward-weight, --update, --stages, --copy and
/// --skip.
void add_trace_options(CLI::App& command, TraceChoice& choice);

/// Errors: an own template that no range of any trace fits.
Diagnostics check_templates(const OpNames& names, const std::vector<RankRecording>& recordings);

/// The names of the choice. Errors: those of its templates.
Result<OpNames> names_of(const TraceChoice& choice);

}  // namespace plumbline
