// zlib's reader behind a stream buffer.
//
// SPDX-License-Identifier: MIT
#include "base/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/read_observer.h"

namespace plumbline {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10U;

std::string cannot_be_read(int error) {
  return fmt::format("cannot be read: {}", std::strerror(error != 0 ? error : EIO));
}

}  // namespace

GzipFile::GzipFile(const std::string& path) : chunk_(kChunk) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    problem_ = "is a directory, not a file";
    return;
  }
  errno = 0;
  file_ = gzopen(path.c_str(), "rb");  // also reads plain files, unchanged
  if (!file_) {
    problem_ = cannot_be_read(errno);
  } else if (ReadObserver* const observer = read_observer()) {
    observer->opened(path);
  }
}

GzipFile::~GzipFile() {
  if (file_) gzclose_r(file_);
}

GzipFile::int_type GzipFile::underflow() {
  if (!file_ || !problem_.empty()) return traits_type::eof();
  errno = 0;
  const int read = gzread(file_, chunk_.data(), static_cast<unsigned>(chunk_.size()));
  if (read <= 0) {
    note_problem(read);
    return traits_type::eof();
  }
  setg(chunk_.data(), chunk_.data(), chunk_.data() + read);
  return traits_type::to_int_type(chunk_.front());
}

/// Notes an error. zlib reports a file that is cut off only after it has returned all the data.
void GzipFile::note_problem(int read) {
  int error = Z_OK;
  const std::string text = gzerror(file_, &error);
  if (error == Z_BUF_ERROR) {
    problem_ = "is cut off: its compressed data ends early";
  } else if (error == Z_ERRNO) {
    problem_ = cannot_be_read(errno);
  } else if (read < 0 || (error != Z_OK && error != Z_STREAM_END)) {
    problem_ = fmt::format("cannot be decompressed: {}", text);
  }
}

}  // namespace plumbline
