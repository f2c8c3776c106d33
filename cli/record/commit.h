// The commit that this command was built from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace plumbline {

/// A short hash, followed by " with changes" if the working tree differed from that commit when the
/// build was configured. "unknown" if the sources came without git.
std::string_view commit();

}  // namespace plumbline
