// Appending and locking.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/whatif/sweep_file.h"

namespace plumbline {
namespace {

Diagnostic file_error(const std::string& path, const std::string& message,
                      const std::string& help = "") {
  Diagnostic wrong =
      input_error({std::make_shared<const Source>(Source{path, "", ""})}, message, help);
  wrong.fault = Fault::file;
  return wrong;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<PartialFile> PartialFile::open(const std::string& path, const std::string& noun,
                                      const std::string& header, bool resume, const Reader& read) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return file_error(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  PartialFile file(path, descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return file_error(path, fmt::format("another {} is writing it", noun),
                      fmt::format("one {} for each -o FILE", noun));
  struct stat status {};
  const bool is_new = fstat(descriptor, &status) == 0 && status.st_size == 0;
  if (!is_new && !resume) {
    return input_error({std::make_shared<const Source>(Source{path, "", ""})},
                       fmt::format("holds the rows of an interrupted {}", noun),
                       "go on with --resume, or remove it to begin anew");
  }
  std::size_t kept = 0;
  if (!is_new) {
    const auto source = read_file(path, kLargestSweepFile);
    if (!source) return source.problems();
    const auto whole = read(*source);
    if (!whole) return whole.problems();
    kept = *whole;
  }
  if (ftruncate(descriptor, static_cast<off_t>(kept)) != 0 ||
      (kept == 0 && !write_all(descriptor, header)))
    return file_error(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  return file;
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool PartialFile::append(const std::string& line) { return write_all(descriptor_, line + '\n'); }

void PartialFile::remove() { unlink(path_.c_str()); }

}  // namespace plumbline
