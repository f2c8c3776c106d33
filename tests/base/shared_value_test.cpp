// Copies that share until one is changed.
//
// SPDX-License-Identifier: MIT
#include "base/shared_value.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumbline::test {
namespace {

TEST_CASE("a copy of a shared value costs nothing until one of the two is changed") {
  SharedValue<std::vector<int>> a(std::vector<int>{1, 2});
  const SharedValue<std::vector<int>> b = a;
  CHECK(&*a == &*b);
  a.edit().push_back(3);
  CHECK(a->size() == 3);
  CHECK(b->size() == 2);
}

TEST_CASE("a value that nobody shares is changed in place") {
  SharedValue<std::vector<int>> a(std::vector<int>{1, 2});
  const std::vector<int>* before = &*a;
  a.edit().front() = 7;
  CHECK(&*a == before);
  CHECK(a->front() == 7);
}

TEST_CASE("a new shared value has a value of its own") {
  SharedValue<std::vector<int>> a;
  const SharedValue<std::vector<int>> b;
  CHECK(a->empty());
  CHECK(&*a != &*b);
}

}  // namespace
}  // namespace plumbline::test
