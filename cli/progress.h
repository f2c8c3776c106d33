// Progress of long work, on stderr.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace plumbline {

/// A progress line on stderr, if that is a terminal. The destructor clears the line.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void tell(const std::string& text);

 private:
  bool shown_;
  bool any_ = false;
};

/// "sweep: 12 of 400 points, some 3 s left", at most ten times a second.
class CountedProgress {
 public:
  CountedProgress(std::string command, std::string things)
      : command_(std::move(command)), things_(std::move(things)) {}

  void tell(std::uint64_t done, std::uint64_t count);

 private:
  std::string command_;
  std::string things_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point traced_ = begin_;
  ProgressLine line_;
};

}  // namespace plumbline
