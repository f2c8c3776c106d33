// The record of a command, and its file.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/file_format.h"

namespace plumbline {

/// A file that a command read or wrote, as it was then.
struct RecordedFile {
  std::string path;  ///< As the command named it; relative to its folder.
  std::uint64_t bytes = 0;
  std::string sha256;  ///< 64 hexadecimal digits; "" = no regular file.

  friend bool operator==(const RecordedFile&, const RecordedFile&) = default;
};

/// What a command printed.
struct RecordedText {
  std::uint64_t bytes = 0;
  std::string sha256;              ///< Of all bytes.
  bool is_whole = true;            ///< Whether `lines` are all of it, not only the first ones.
  std::vector<std::string> lines;  ///< Without their ends.

  friend bool operator==(const RecordedText&, const RecordedText&) = default;
};

/// A long text is kept up to here.
inline constexpr std::size_t kMaxRecordedText = std::size_t{4} << 20U;

RecordedText recorded_text(std::string_view text);

/// Where a command ran.
struct RecordedMachine {
  std::string processor;
  std::uint64_t cores = 0;
  std::string system;              ///< "Linux 6.1.0 x86_64, Debian GNU/Linux 12 (bookworm)".
  std::optional<std::string> gpu;  ///< Set if it ran on one.

  friend bool operator==(const RecordedMachine&, const RecordedMachine&) = default;
};

/// What a command knows of the page on which it prints.
struct RecordedPage {
  std::size_t columns = 100;
  bool unicode = false;
  bool color = false;

  friend bool operator==(const RecordedPage&, const RecordedPage&) = default;
};

/// What a command did.
struct Record {
  std::string version;               ///< Of Plumbline.
  std::string commit;                ///< As commit() says it.
  std::vector<std::string> command;  ///< Its words, without `plumbline` and without --record FILE.
  std::string directory;             ///< The folder in which it ran.
  std::string started;               ///< "2026-11-27T13:34:35Z".
  double runtime_s = 0;
  RecordedMachine machine;
  std::optional<std::string> backend;  ///< Of --backend.
  RecordedPage page;
  std::vector<RecordedFile> inputs;   ///< By their paths.
  std::vector<RecordedFile> outputs;  ///< By their paths.
  std::int64_t exit_code = 0;
  RecordedText printed;   ///< On stdout.
  RecordedText messages;  ///< On stderr, without the progress of long work.
};

/// The kind that the file states.
inline constexpr std::string_view kRecordKind = "record";

/// The record as JSON, indented.
std::string to_json(const Record& record);

/// Errors: those of read_json; keys that are missing, unknown or wrong; another version.
Result<Record> read_record(const std::string& path);
Result<Record> parse_record(const std::shared_ptr<const Source>& source);

/// The keys of the file, and those of a file that it names.
const SectionFormat& record_format();
const SectionFormat& recorded_file_format();

}  // namespace plumbline
