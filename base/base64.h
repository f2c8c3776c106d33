// Bytes as a text of 64 characters.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Three bytes are four characters, and `=` fills the last group (RFC 4648).
std::string base64(std::string_view bytes);

}  // namespace plumbline
