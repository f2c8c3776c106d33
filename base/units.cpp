// Rounding of transfer times, the one place where real durations become ticks.
//
// SPDX-License-Identifier: MIT
#include "base/units.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bug.h"

namespace plumbline {

Duration transfer_time(Bytes bytes, BytesPerSecond rate) {
  PLUMBLINE_CHECK(bytes.count >= 0 && rate.count > 0, bytes.count, rate.count);
  __extension__ using Product = __int128;  // 10^15 B x 10^9 does not fit into 64 bits
  const Product scaled = static_cast<Product>(bytes.count) * 1'000'000'000;
  const Product whole = (scaled + rate.count - 1) / rate.count;
  constexpr Product max = std::numeric_limits<std::int64_t>::max() / 4;
  return Duration(static_cast<std::int64_t>(std::min(whole, max)));
}

Duration round_up(double nanoseconds) {
  // Doubles have about 16 digits. A value computed in a few steps is wrong by a few parts in 10^15.
  const double hair = 1e-12 * std::max(1.0, nanoseconds);
  return Duration(static_cast<std::int64_t>(std::ceil(nanoseconds - hair)));
}

}  // namespace plumbline
