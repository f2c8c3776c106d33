// The first few of many names.
//
// SPDX-License-Identifier: MIT
#include "base/some_of.h"

#include <fmt/format.h>

#include "base/diagnostic.h"

namespace plumbline {

std::string some_of(const std::vector<std::string>& names, std::size_t max) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < max; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", clipped(names[i]));
  if (names.size() > max) text += fmt::format(" and {} more", names.size() - max);
  return text;
}

}  // namespace plumbline
