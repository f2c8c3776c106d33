// What a hanging device still has.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace plumbline {

/// Keeps it until the process ends, which should be soon: to give it back would wait for a device
/// that hangs.
template <class T>
void leave_behind(std::unique_ptr<T> left) {
  static auto* const all = new std::vector<std::shared_ptr<T>>;  // never destroyed
  all->push_back(std::move(left));
}

}  // namespace plumbline
