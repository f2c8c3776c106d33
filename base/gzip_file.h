// A file as a stream of its text, decompressed where it is gzip.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <streambuf>
#include <string>
#include <vector>

struct gzFile_s;

namespace plumbline {

/// Reads a file in chunks, so that its size costs no memory. The first bytes of the file, not its
/// name, decide whether it is gzip. After the last character, problem() says whether the file
/// really ended there.
class GzipFile : public std::streambuf {
 public:
  /// Errors, reported by problem(): missing, a directory, unreadable.
  explicit GzipFile(const std::string& path);
  ~GzipFile() override;
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// The error so far, as the end of a sentence about the file; "" = none.
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
