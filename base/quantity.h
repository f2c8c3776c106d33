// Quantities as people write them: "1.25 ms", "16 GiB", "10 Gbit/s"; reading and printing.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// A parsed quantity, or the error in the text.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string problem;  ///< "" where there is a value.
};

/// "1.25 ms": a decimal number and a unit (ns, us, ms, s, min, h). Exact to the nanosecond; finer
/// values are rounded to the nearest nanosecond. Errors: no unit, an unknown unit, a negative
/// number, more than kLargestQuantity.
Parsed<Duration> parse_duration(std::string_view text);

/// "16 GiB": B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024).
Parsed<Bytes> parse_bytes(std::string_view text);

/// "450 GB/s" or "10 Gbit/s". Errors: as above, and less than one byte per second.
Parsed<BytesPerSecond> parse_bandwidth(std::string_view text);

/// "1.2 TFLOP": FLOP, kFLOP, MFLOP, GFLOP, TFLOP, PFLOP, EFLOP (powers of 1000). Errors: no unit,
/// an unknown unit, a negative number, more than kMaxFlops.
Parsed<Flops> parse_flops(std::string_view text);

/// "989 TFLOP/s". Errors: as above, and less than one FLOP per second.
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);

/// The most tokens of a training: 10^18.
inline constexpr std::int64_t kMaxTrainingTokens = 1'000'000'000'000'000'000;

/// A rate of energy, in whole milliwatts.
struct Power {
  std::int64_t milliwatts = 0;

  friend constexpr auto operator<=>(Power, Power) = default;
};

/// A time of days or years, in whole milliseconds.
struct LongTime {
  std::int64_t milliseconds = 0;

  double seconds() const { return static_cast<double>(milliseconds) / 1e3; }
  friend constexpr auto operator<=>(LongTime, LongTime) = default;
};

/// "50000 h": s, min, h, d. Errors: as of other quantities, and none at all.
Parsed<LongTime> parse_long_time(std::string_view text);

/// "15T": a decimal number, then k, M, B (10^9), T (10^12) or nothing. Errors: another suffix, a
/// negative number, none at all, more than kMaxTrainingTokens.
Parsed<std::int64_t> parse_tokens(std::string_view text);

/// "700 W": W, kW, MW. Errors: as of other quantities, and none at all.
Parsed<Power> parse_power(std::string_view text);

/// What an hour of something costs. The currency is a word that is only carried.
struct Price {
  double per_hour = 0;
  std::string currency;

  friend bool operator==(const Price&, const Price&) = default;
};

/// "2.5 USD/h": a number, a currency of 1 to 8 letters, `/h`. Errors: another form, more than 10^9.
Parsed<Price> parse_price(std::string_view text);

/// The units of a quantity, in the order of their size, and an example.
struct QuantityUnits {
  std::vector<std::string_view> units;
  std::string_view example;
};
QuantityUnits duration_units();
QuantityUnits bytes_units();
QuantityUnits bandwidth_units();
QuantityUnits flops_units();
QuantityUnits flops_per_second_units();
QuantityUnits power_units();
QuantityUnits long_time_units();

/// A whole number in decimal digits. Errors: a sign, a point, leading zeros (YAML 1.1 reads 010 as
/// 8), more than kLargestQuantity.
Parsed<std::int64_t> parse_count(std::string_view text);

/// A finite decimal number >= 0, with an optional exponent.
Parsed<double> parse_real(std::string_view text);

/// For people, four significant digits: "33 ms", "1.25 us", "0 s".
std::string to_text(Duration d);
/// The same for a time in seconds, to the nanosecond.
std::string time_text(double seconds);

/// The same for a time that may be long: "33 ms", "90 s", "13.2 min", "3 h", "27.5 days".
std::string long_time_text(double seconds);

/// For people, in powers of 1024: "1.5 GiB", "0 B".
std::string to_text(Bytes b);

/// For people: "1.25 GB/s".
std::string to_text(BytesPerSecond rate);

/// For people, in powers of 1000: "14.97 TFLOP", "0 FLOP".
std::string to_text(Flops work);

/// For people: "989.4 TFLOP/s".
std::string to_text(FlopsPerSecond rate);
/// The same for a computed rate; whole FLOPs, at most 10^18.
std::string flop_rate_text(double flops_per_s);

/// For people: "700 W", "1.2 kW".
std::string to_text(Power power);

/// For people, four significant digits: "15T", "403.2B".
std::string tokens_text(double tokens);

}  // namespace plumbline
