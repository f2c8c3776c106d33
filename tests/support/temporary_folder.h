// A temporary folder for one test.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace plumbline::test {

/// A new folder, deleted at the end with all its files. Tests run at the same time: a file name
/// that two of them share is a race.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "plumbline_test_XXXXXX").string();
    root_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return root_.string(); }
  /// The path of an entry of the folder, which need not exist.
  std::string operator[](std::string_view name) const { return (root_ / name).string(); }
  /// Writes a file, with the folders above it, and returns its path.
  std::string file(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
    return (*this)[name];
  }

 private:
  std::filesystem::path root_;
};

}  // namespace plumbline::test
