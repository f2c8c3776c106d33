// The file in which a sweep or a search keeps the rows that it has, until all are there.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/diagnostic.h"

namespace plumbline {

/// Rows appended one by one, each whole in the file before the next is begun. The file is this
/// process's alone while it is open. What is not removed stays, for another run to go on with.
class PartialFile {
 public:
  /// Reads what is there, and gives how many of its bytes are whole.
  using Reader = std::function<Result<std::size_t>(const std::shared_ptr<const Source>&)>;

  /// Opens `path`, of which `header` is the first line, for the work that `noun` names ("sweep").
  /// What is there is given to `read` where `resume` says so, and an error where not. Errors: those
  /// of `read`; a file that cannot be written; one that another process is writing.
  static Result<PartialFile> open(const std::string& path, const std::string& noun,
                                  const std::string& header, bool resume, const Reader& read);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  /// Whether the line, without its newline, could be written; where not, errno says why.
  bool append(const std::string& line);

  void remove();
  const std::string& path() const { return path_; }

 private:
  PartialFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace plumbline
