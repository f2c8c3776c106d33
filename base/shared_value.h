// A value that copies share until one of them is edited.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

namespace plumbline {

/// Behaves like a separate `T`, but a copy costs only a pointer. The copies read the same `T` until
/// one calls edit(). Different threads may use different copies.
template <class T>
class SharedValue {
 public:
  SharedValue() : value_(std::make_shared<T>()) {}
  SharedValue(T value) : value_(std::make_shared<T>(std::move(value))) {}  // NOLINT(*-explicit-*)

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// The value for editing. It is copied first where others share it.
  T& edit() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace plumbline
