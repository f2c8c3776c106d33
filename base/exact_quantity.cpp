// Quantities to the last digit.
//
// SPDX-License-Identifier: MIT
#include "base/exact_quantity.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/bug.h"

namespace plumbline {
namespace {

/// `ticks` in a unit of 10^`decimals` ticks, without trailing zeros: 1234500 at 6 is 1.2345.
std::string decimal(std::int64_t ticks, int decimals) {
  std::string digits = std::to_string(ticks);
  if (decimals == 0) return digits;
  const auto places = static_cast<std::size_t>(decimals);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  digits.insert(digits.size() - places, 1, '.');
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

/// The number in the largest unit in which it is at least 1. The units are 1000 apart.
template <std::size_t N>
std::string in_decimal_units(std::int64_t ticks, const std::array<std::string_view, N>& units) {
  std::size_t unit = 0;
  for (std::int64_t one = 1000; unit + 1 < N && ticks >= one; one *= 1000) ++unit;
  return fmt::format("{} {}", decimal(ticks, static_cast<int>(3 * unit)), units[unit]);
}

}  // namespace

std::string exact_text(Duration time) {
  PLUMBLINE_CHECK(time.count() >= 0 && time.count() <= kLargestQuantity, time.count());
  if (time.count() == 0) return "0 s";
  return in_decimal_units<4>(time.count(), {"ns", "us", "ms", "s"});
}

std::string exact_text(BytesPerSecond rate) {
  PLUMBLINE_CHECK(rate.count >= 1 && rate.count <= kLargestQuantity, rate.count);
  return in_decimal_units<5>(rate.count, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"});
}

std::string exact_text(Flops work) {
  PLUMBLINE_CHECK(work.count >= 0 && work.count <= kMaxFlops, work.count);
  if (work.count == 0) return "0 FLOP";
  return in_decimal_units<7>(work.count,
                             {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}

std::string exact_text(Bytes size) {
  PLUMBLINE_CHECK(size.count >= 0 && size.count <= kLargestQuantity, size.count);
  constexpr std::array<std::array<std::string_view, 5>, 2> units = {
      {{"B", "KiB", "MiB", "GiB", "TiB"}, {"B", "kB", "MB", "GB", "TB"}}};
  const std::size_t family = size.count % 1024 == 0 ? 0 : 1;
  const std::int64_t step = family == 0 ? 1024 : 1000;
  std::int64_t count = size.count;
  std::size_t unit = 0;
  while (count != 0 && count % step == 0 && unit + 1 < units[family].size()) {
    count /= step;
    ++unit;
  }
  return fmt::format("{} {}", count, units[family][unit]);
}

}  // namespace plumbline
