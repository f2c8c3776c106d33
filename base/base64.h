// Bytes as a text of 64 characters.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

/// Three bytes are four characters, and `=` fills the last group (RFC 4648).
std::string base64(std::string_view bytes);

/// The same with `-` and `_` in place of `+` and `/`, and without `=` (RFC 4648, section 5).
std::string base64_url(std::string_view bytes);

/// The bytes of such a text; nothing where base64_url() writes no such text.
std::optional<std::string> from_base64_url(std::string_view text);

}  // namespace plumbline
