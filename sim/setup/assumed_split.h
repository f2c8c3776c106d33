// What was assumed of backwards that were given as one time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace plumbline {

/// What was assumed of backwards that were given as one time. All 0: nothing was.
struct AssumedSplit {
  std::uint32_t halved = 0;           ///< Layers of which I and W take half each.
  std::uint32_t without_weights = 0;  ///< Layers without parameters: all of the backward is I.

  /// What a reader of the result should know; "" = nothing.
  std::string note() const;
  /// How times were derived that nobody gave; "" = none were.
  std::string estimate() const;
};

}  // namespace plumbline
