// Memory for tensors of floats.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace plumbline {

/// Floats at the start of a cache line, not initialised.
class Buffer {
 public:
  explicit Buffer(std::size_t floats = 0)
      : data_(static_cast<float*>(
            ::operator new[](std::max<std::size_t>(floats, 1) * sizeof(float), kAlignment))) {}
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete[](data_, kAlignment); }

  float* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{64};

  float* data_;
};

}  // namespace plumbline
