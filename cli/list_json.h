// What `plumbline list` says, as JSON.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "cli/real.h"

namespace plumbline {

/// Whether this build has the backend.
bool is_available(const BackendName& backend);

/// All schedules, backends or presets, in the order in which they are listed.
std::string schedules_json();
std::string backends_json();
std::string presets_json();

}  // namespace plumbline
