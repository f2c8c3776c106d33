// A command with its subcommands as tables of words, and the scripts that complete them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/file_format.h"

namespace plumbline {

/// The words that may follow a word.
struct CompletionValue {
  std::vector<std::string> words;  ///< Empty = a file, where it is no number.
  bool is_flag = false;            ///< Nothing follows.
};

/// An option by one of its names: "--backend".
struct CompletionOption {
  std::string name;
  CompletionValue value;
};

/// The words that may follow the command `path`: "", "list", "import huggingface".
struct CompletionLevel {
  std::string path;
  std::vector<std::string> commands;
  std::vector<CompletionOption> options;
  std::vector<std::string> words;  ///< Values of its first argument; empty = a file.
  bool takes_keys = false;         ///< Whether key=value of a scenario may follow a file.
};

/// A script for bash or zsh that is sourced; `keys` are the keys of scenarios.
std::string bash_completion(const std::vector<CompletionLevel>& levels,
                            const std::vector<KeyPath>& keys);
std::string zsh_completion(const std::vector<CompletionLevel>& levels,
                           const std::vector<KeyPath>& keys);

}  // namespace plumbline
