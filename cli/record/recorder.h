// Collects what a command does while it runs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_observer.h"
#include "cli/record/record.h"

namespace plumbline {

/// What is known of a command before it starts.
struct RecordedStart {
  std::string version;
  std::vector<std::string> command;
  std::optional<std::string> backend;
  RecordedPage page;
};

/// While one exists, it is told of each file that is read, and of each output. It may hold outputs
/// back: then nothing is written or printed. Recorders may nest; the last one counts. Files may be
/// read on several threads; all else comes from one.
class Recorder : public ReadObserver {
 public:
  enum class Outputs { written, held };

  Recorder(RecordedStart start, Outputs outputs);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The recorder of the command that runs; null = none.
  static Recorder* active();

  void read_whole(const std::string& path, std::string_view bytes) override;
  void opened(const std::string& path) override;
  /// An output was written to `path`, or to stdout (""); or it is held back.
  void note_output(std::string_view text, const std::string& path);
  /// A message was printed on stderr, or it is held back.
  void note_message(std::string_view text) { messages_ += text; }
  void note_gpu(const std::string& name) { gpu_ = name; }

  bool holds_outputs() const { return outputs_ == Outputs::held; }
  const RecordedPage& page() const { return start_.page; }

  /// The record up to now.
  Record record(int exit_code) const;

 private:
  RecordedStart start_;
  Outputs outputs_;
  Recorder* before_;
  ReadObserver* observed_before_ = nullptr;
  std::chrono::system_clock::time_point began_ = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point clock_began_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  ///< Of the inputs.
  std::map<std::string, RecordedFile> inputs_;
  std::map<std::string, RecordedFile> written_;
  std::string printed_;
  std::string messages_;
  std::optional<std::string> gpu_;
};

/// This machine, without a GPU.
RecordedMachine this_machine();

}  // namespace plumbline
