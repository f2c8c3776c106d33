// The words of a shell script or of one command line.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// A word, unquoted, with its variables put in.
struct ShellWord {
  std::string text;
  Mark mark;
  bool ends_line = false;  ///< The command, or the line of a file of arguments, ends behind it.
};

/// The words of a script, and what was met on the way.
struct ShellWords {
  std::vector<ShellWord> words;
  bool has_branches = false;  ///< There is an `if` or a `case`: words of all branches are here.
  std::vector<std::string> unknown;  ///< Variables that are never set: they read as empty.
};

/// Splits a text as a shell does: quotes, escapes, comments, lines that go on. Variables that the
/// text sets before are put in, so are ${NAME:-default} and whole-number arithmetic $((A*B)). It
/// runs nothing: a word with a command in it, and a reference to an array, read as empty. A quoted
/// word that begins with -- and holds blanks is several words.
ShellWords shell_words(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
