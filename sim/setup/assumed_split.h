// The assumptions about backwards that were given as one time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace plumbline {

/// The assumptions about backwards that were given as one time. All 0: there are none.
struct AssumedSplit {
  std::uint32_t halved = 0;           ///< Layers whose I and W take half of the backward each.
  std::uint32_t without_weights = 0;  ///< Layers without parameters: all of the backward is I.

  /// A note for the reader of the result; "" = none.
  std::string note() const;
  /// A sentence on how missing times were derived; "" = no time was missing.
  std::string estimate() const;
};

}  // namespace plumbline
