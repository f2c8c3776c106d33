// One for each thread.
//
// SPDX-License-Identifier: MIT
#include "base/memory_files.h"

#include <utility>

namespace plumbline {
namespace {

thread_local const MemoryFiles* youngest = nullptr;

}  // namespace

MemoryFiles::MemoryFiles(FileTexts files)
    : files_(std::move(files)), before_(std::exchange(youngest, this)) {}

MemoryFiles::~MemoryFiles() { youngest = before_; }

const std::string* MemoryFiles::find(const std::string& path) {
  if (!youngest) return nullptr;
  const auto found = youngest->files_.find(path);
  return found == youngest->files_.end() ? nullptr : &found->second;
}

}  // namespace plumbline
