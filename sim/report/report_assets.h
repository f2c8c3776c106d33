// The files of the report's page, as the build put them into the program.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace plumbline {

/// A file of sim/report/page/ with this name. Requires: CMakeLists.txt lists it.
std::string_view report_asset(std::string_view name);

}  // namespace plumbline
