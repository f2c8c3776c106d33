// The inputs as they are read, the outputs as they are written.
//
// SPDX-License-Identifier: MIT
#include "cli/record/recorder.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/parallel.h"
#include "calibrate/runtime/machine.h"
#include "cli/record/commit.h"
#include "cli/record/sha256.h"

namespace plumbline {
namespace {

Recorder* recording = nullptr;

std::vector<RecordedFile> by_path(const std::map<std::string, RecordedFile>& files) {
  std::vector<RecordedFile> list;
  list.reserve(files.size());
  for (const auto& [path, file] : files) list.push_back(file);
  return list;
}

}  // namespace

Recorder::Recorder(RecordedStart start, Outputs outputs)
    : start_(std::move(start)), outputs_(outputs), before_(std::exchange(recording, this)) {
  observed_before_ = observe_reads(this);
}

Recorder::~Recorder() {
  recording = before_;
  observe_reads(observed_before_);
}

Recorder* Recorder::active() { return recording; }

void Recorder::read_whole(const std::string& path, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (inputs_.find(path) == inputs_.end())  // what is read again was there before
    inputs_.emplace(path, RecordedFile{path, bytes.size(), sha256(bytes)});
}

void Recorder::opened(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (inputs_.find(path) != inputs_.end()) return;
  const FileDigest digest = digest_of_file(path).value_or(FileDigest());
  inputs_.emplace(path, RecordedFile{path, digest.bytes, digest.sha256});
}

void Recorder::note_output(std::string_view text, const std::string& path) {
  if (path.empty()) {
    printed_ += text;
  } else {
    written_[path] = {path, text.size(), sha256(text)};
  }
}

Record Recorder::record(int exit_code) const {
  Record record;
  record.version = start_.version;
  record.commit = commit();
  record.command = start_.command;
  std::error_code unknown;
  record.directory = std::filesystem::current_path(unknown).string();
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                               fmt::gmtime(std::chrono::system_clock::to_time_t(began_)));
  record.runtime_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_began_).count();
  record.machine = this_machine();
  record.machine.gpu = gpu_;
  record.backend = start_.backend;
  record.page = start_.page;
  {
    const std::lock_guard lock(mutex_);
    record.inputs = by_path(inputs_);
  }
  record.outputs = by_path(written_);
  record.exit_code = exit_code;
  record.printed = recorded_text(printed_);
  record.messages = recorded_text(messages_);
  return record;
}

RecordedMachine this_machine() {
  return {processor_name(), available_cores(), system_name(), std::nullopt};
}

}  // namespace plumbline
