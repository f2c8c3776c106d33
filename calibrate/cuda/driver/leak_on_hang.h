// Objects of a hanging device, which are never freed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace plumbline {

/// Keeps the object until the process ends, which should be soon. Freeing it would wait for the
/// hanging device.
template <class T>
void leave_behind(std::unique_ptr<T> left) {
  static auto* const all = new std::vector<std::shared_ptr<T>>;  // never destroyed
  all->push_back(std::move(left));
}

}  // namespace plumbline
