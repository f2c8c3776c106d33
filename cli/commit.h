// The commit that this command was built from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace plumbline {

/// A short hash, with " with changes" behind it where the working tree differed from it when it was
/// configured; "unknown" where the sources came without git.
std::string_view commit();

}  // namespace plumbline
