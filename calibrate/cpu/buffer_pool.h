// Buffers that a run takes, shares, and uses again.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "calibrate/cpu/buffer.h"

namespace plumbline {

/// Buffers of one size that are used again and again, so that a run allocates only at first.
class BufferPool {
 public:
  explicit BufferPool(std::size_t floats) : floats_(floats) {}

  Buffer take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Buffer(floats_);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give(Buffer buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::size_t floats_;
  std::mutex mutex_;
  std::vector<Buffer> free_;
};

/// A buffer that goes back to its pool when nobody holds it any more.
using SharedBuffer = std::shared_ptr<Buffer>;

inline SharedBuffer share(const std::shared_ptr<BufferPool>& pool) {
  return {new Buffer(pool->take()), [pool](Buffer* buffer) {
            pool->give(std::move(*buffer));
            delete buffer;
          }};
}

}  // namespace plumbline
