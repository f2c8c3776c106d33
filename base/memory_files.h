// Files that are not on the disk: texts under the paths by which an input names them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

namespace plumbline {

/// The texts of files, by their paths.
using FileTexts = std::map<std::string, std::string>;

/// As long as it lives, read_file() on this thread takes these texts in place of files with the
/// same paths, and tells no ReadObserver of them. Of several, the youngest is asked alone. They end
/// in the opposite order of their beginning.
class MemoryFiles {
 public:
  explicit MemoryFiles(FileTexts files);
  ~MemoryFiles();
  MemoryFiles(const MemoryFiles&) = delete;
  MemoryFiles& operator=(const MemoryFiles&) = delete;

  /// The text of this path on this thread; null = there is none.
  static const std::string* find(const std::string& path);

 private:
  FileTexts files_;
  const MemoryFiles* before_;
};

}  // namespace plumbline
