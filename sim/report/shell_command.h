// The command that does the same again, as a shell takes it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace plumbline {

/// `text` as one word of a shell: quoted where necessary.
std::string shell_word(const std::string& text);

/// "plumbline simulate FILE key=value ...".
std::string shell_command(const std::string& subcommand, const std::string& file,
                          const std::vector<std::string>& overrides);

}  // namespace plumbline
