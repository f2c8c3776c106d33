// Quoting.
//
// SPDX-License-Identifier: MIT
#include "sim/report/shell_command.h"

#include <string_view>

namespace plumbline {

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + '\'';
}

std::string shell_command(const std::string& subcommand, const std::string& file,
                          const std::vector<std::string>& overrides) {
  std::string line = "plumbline " + subcommand + ' ' + shell_word(file);
  for (const std::string& one : overrides) line += ' ' + shell_word(one);
  return line;
}

}  // namespace plumbline
