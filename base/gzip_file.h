// A file as a stream of its text, decompressed where it is gzip.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <streambuf>
#include <string>
#include <vector>

struct gzFile_s;

namespace plumbline {

/// Reads a file in chunks, so that its size costs no memory. What the file is, its first bytes
/// decide and not its name. After the last character, problem() says whether that was the end.
class GzipFile : public std::streambuf {
 public:
  /// Errors, told by problem(): missing, a directory, unreadable.
  explicit GzipFile(const std::string& path);
  ~GzipFile() override;
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// What went wrong so far, as the end of a sentence about the file; "" = nothing.
  const std::string& problem() const { return problem_; }

 protected:
  int_type underflow() override;

 private:
  void note_problem(int read);

  gzFile_s* file_ = nullptr;
  std::vector<char> chunk_;
  std::string problem_;
};

}  // namespace plumbline
