// A command with its subcommands as tables of words, and the scripts that complete them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/file_format.h"

namespace plumbline {

/// What may follow a word.
struct CompletionValue {
  std::vector<std::string> words;  ///< Empty = a file, where it is no number.
  bool is_flag = false;            ///< Nothing follows.
};

/// An option by one of its names: "--backend".
struct CompletionOption {
  std::string name;
  CompletionValue value;
};

/// What may stand behind the words of `path`: "", "list", "import huggingface".
struct CompletionLevel {
  std::string path;
  std::vector<std::string> commands;
  std::vector<CompletionOption> options;
  std::vector<std::string> words;  ///< Of its first argument; empty = a file.
  bool takes_keys = false;         ///< key=value of a scenario behind a file.
};

/// A script for bash or zsh that is sourced; `keys` are what the scenarios have.
std::string bash_completion(const std::vector<CompletionLevel>& levels,
                            const std::vector<KeyPath>& keys);
std::string zsh_completion(const std::vector<CompletionLevel>& levels,
                           const std::vector<KeyPath>& keys);

}  // namespace plumbline
