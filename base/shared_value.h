// A value that copies share until one of them is changed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

namespace plumbline {

/// Behaves as a `T` of its own, but a copy costs a pointer: the copies read the same `T` until one
/// calls edit(). Different copies may be used by different threads.
template <class T>
class SharedValue {
 public:
  SharedValue() : value_(std::make_shared<T>()) {}
  SharedValue(T value) : value_(std::make_shared<T>(std::move(value))) {}  // NOLINT(*-explicit-*)

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// The value, to be changed: a copy of its own where others read it, too.
  T& edit() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace plumbline
