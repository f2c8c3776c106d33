// The file in which a sweep keeps the rows that it has, until all are there.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "models/diagnostic.h"
#include "sim/sweep.h"

namespace plumbline {

/// Rows appended one by one, each whole in the file before the next is begun. The file is this
/// process's alone while it is open. What is not removed stays, for another run to go on with.
class PartialFile {
 public:
  /// Opens `path` for the sweep that `header` describes. Rows that are there are read where
  /// `resume` says so, and an error where not. Errors: those of parse_partial; a file that cannot
  /// be written; one that another sweep is writing.
  static Result<PartialFile> open(const std::string& path, const SweepResult& header, bool resume);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  /// The rows of the run before; leaves none.
  std::vector<SweepRow> take_rows() { return std::move(rows_); }

  /// Whether the line, without its newline, could be written; where not, errno says why.
  bool append(const std::string& line);

  void remove();
  const std::string& path() const { return path_; }

 private:
  PartialFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  std::vector<SweepRow> rows_;
};

}  // namespace plumbline
