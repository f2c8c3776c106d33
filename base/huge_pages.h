// Large arrays in huge pages.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace plumbline {

/// A block of memory for several arrays, whose content is not set. A large one is in huge pages
/// where the system has them: it then costs a page fault where it would cost hundreds.
class HugeBlock {
 public:
  HugeBlock() = default;
  /// Throws std::bad_alloc.
  explicit HugeBlock(std::size_t bytes);

  /// The next array of the block. Requires: there is room; arrays of larger alignment were taken
  /// before.
  template <class T>
  std::span<T> take(std::size_t count) {
    T* const begin = reinterpret_cast<T*>(data_.get() + used_);
    used_ += count * sizeof(T);
    return {begin, count};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  std::unique_ptr<std::byte, Free> data_;
  std::size_t used_ = 0;
};

}  // namespace plumbline
