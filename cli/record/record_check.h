// A record beside what is there now: what is the same, and what differs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "cli/record/record.h"

namespace plumbline {

/// What became of a file since the record.
enum class FileState { same, changed, missing };

/// Compares a recorded file with the one that is there now, in the current folder.
FileState state_of(const RecordedFile& file);

/// Whether the command's figures differ from run to run, because it measures.
bool measures(const Record& record);

/// A record, and what is there now.
struct RecordCheck {
  std::string file;  ///< Of the record.
  Record then;
  std::string version;  ///< Of Plumbline now.
  std::string commit;
  RecordedMachine machine;    ///< The machine now; its GPU is not asked for.
  bool is_elsewhere = false;  ///< The recorded folder is not here: the current one took its place.
  std::vector<FileState> inputs;   ///< Parallel to then.inputs.
  std::vector<FileState> outputs;  ///< The written files as they are now, parallel to then.outputs.
  std::optional<Record> now;       ///< The command run again; nothing if it was not.

  bool lacks_input() const;
  /// What differs, in words: "input net.yaml", "stdout". Empty if all that counts is the same. The
  /// version and the machine count only if the command was not run again.
  std::vector<std::string> differences() const;
};

/// Whether two texts are the same, save for what tells how long the command took.
bool is_same_text(const RecordedText& one, const RecordedText& other);

/// The first lines that differ, "- " before the recorded ones and "+ " before those now, at most
/// `max` of each; and the number of the first, counted from 1. Texts with as many lines are
/// compared line by line.
struct LineDifference {
  std::size_t first_line = 0;
  std::vector<std::string> lines;
  std::size_t more = 0;  ///< Lines that are left out.
};
LineDifference first_difference(const RecordedText& then, const RecordedText& now,
                                std::size_t max = 5);

/// The check for people: what differs first, then everything in a table, then lines that differ.
Document to_document(const RecordCheck& check);

}  // namespace plumbline
