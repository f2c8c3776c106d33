// A line that is overwritten again and again.
//
// SPDX-License-Identifier: MIT
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace plumbline {

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (any_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::tell(const std::string& text) {
  if (!shown_) return;
  any_ = true;
  std::fputs(("\r\033[K" + text).c_str(), stderr);
  std::fflush(stderr);
}

void CountedProgress::tell(std::uint64_t done, std::uint64_t count) {
  const auto now = std::chrono::steady_clock::now();
  if (now - traced_ < std::chrono::milliseconds(100) || done == 0) return;
  traced_ = now;
  const double spent_s = std::chrono::duration<double>(now - begin_).count();
  const double left_s = spent_s / static_cast<double>(done) * static_cast<double>(count - done);
  line_.tell(fmt::format(
      "{}: {} of {} {}, some {} left", command_, done, count, things_,
      left_s < 120 ? fmt::format("{:.0f} s", left_s) : fmt::format("{:.0f} min", left_s / 60)));
}

}  // namespace plumbline
