// The file that keeps the rows of a sweep or a search until all are there.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/diagnostic.h"

namespace plumbline {

/// A file of rows that are appended one by one; each is completely written before the next begins.
/// Only this process writes the file while it is open. A file that is not removed stays, so that
/// another run can continue with it.
class PartialFile {
 public:
  /// Reads the content of the file, and returns the number of its bytes that are complete.
  using Reader = std::function<Result<std::size_t>(const std::shared_ptr<const Source>&)>;

  /// Opens `path` for the work that `noun` names ("sweep"). `header` is the first line of the file.
  /// If `resume` is set, existing content is given to `read`; else it is an error. Errors: those of
  /// `read`; a file that cannot be written; one that another process is writing.
  static Result<PartialFile> open(const std::string& path, const std::string& noun,
                                  const std::string& header, bool resume, const Reader& read);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  /// Appends the line, which is given without its newline. False = it could not be written; errno
  /// says why.
  bool append(const std::string& line);

  void remove();
  const std::string& path() const { return path_; }

 private:
  PartialFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace plumbline
