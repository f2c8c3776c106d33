// The hook for those who want to know which files a program reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Is told of every input file that is read, on the thread that reads it.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;

  /// A file was read whole: these are its bytes.
  virtual void read_whole(const std::string& path, std::string_view bytes) = 0;
  /// A file is going to be read in chunks.
  virtual void opened(const std::string& path) = 0;
};

/// The observer; null = none.
ReadObserver* read_observer();

/// Sets the observer, and returns the one before. It must outlive all reading.
ReadObserver* observe_reads(ReadObserver* observer);

}  // namespace plumbline
