// Exact decimal reading of quantities, and short printing.
//
// SPDX-License-Identifier: MIT
#include "base/quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/diagnostic.h"
#include "base/real_text.h"
#include "base/unit_spelling.h"

namespace plumbline {
namespace {

__extension__ using Wide = __int128;

/// One unit: its name and its ticks (ns, bytes, bytes per second), as a fraction.
struct Unit {
  std::string_view name;
  std::int64_t ticks;
  std::int64_t divisor = 1;
};

constexpr std::array kTimeUnits = {Unit{"ns", 1},
                                   Unit{"us", 1'000},
                                   Unit{"\u00b5s", 1'000},
                                   Unit{"\u03bcs", 1'000},
                                   Unit{"ms", 1'000'000},
                                   Unit{"s", 1'000'000'000},
                                   Unit{"min", 60'000'000'000},
                                   Unit{"h", 3'600'000'000'000}};
constexpr std::array kByteUnits = {Unit{"B", 1},
                                   Unit{"kB", 1'000},
                                   Unit{"MB", 1'000'000},
                                   Unit{"GB", 1'000'000'000},
                                   Unit{"TB", 1'000'000'000'000},
                                   Unit{"KiB", 1LL << 10},
                                   Unit{"MiB", 1LL << 20},
                                   Unit{"GiB", 1LL << 30},
                                   Unit{"TiB", 1LL << 40}};
constexpr std::array kBandwidthUnits = {Unit{"B/s", 1},
                                        Unit{"kB/s", 1'000},
                                        Unit{"MB/s", 1'000'000},
                                        Unit{"GB/s", 1'000'000'000},
                                        Unit{"TB/s", 1'000'000'000'000},
                                        Unit{"KiB/s", 1LL << 10},
                                        Unit{"MiB/s", 1LL << 20},
                                        Unit{"GiB/s", 1LL << 30},
                                        Unit{"TiB/s", 1LL << 40},
                                        Unit{"bit/s", 1, 8},
                                        Unit{"kbit/s", 1'000, 8},
                                        Unit{"Mbit/s", 1'000'000, 8},
                                        Unit{"Gbit/s", 1'000'000'000, 8},
                                        Unit{"Tbit/s", 1'000'000'000'000, 8}};
constexpr std::array kFlopUnits = {Unit{"FLOP", 1},
                                   Unit{"kFLOP", 1'000},
                                   Unit{"MFLOP", 1'000'000},
                                   Unit{"GFLOP", 1'000'000'000},
                                   Unit{"TFLOP", 1'000'000'000'000},
                                   Unit{"PFLOP", 1'000'000'000'000'000},
                                   Unit{"EFLOP", 1'000'000'000'000'000'000}};
constexpr std::array kFlopRateUnits = {Unit{"FLOP/s", 1},
                                       Unit{"kFLOP/s", 1'000},
                                       Unit{"MFLOP/s", 1'000'000},
                                       Unit{"GFLOP/s", 1'000'000'000},
                                       Unit{"TFLOP/s", 1'000'000'000'000},
                                       Unit{"PFLOP/s", 1'000'000'000'000'000},
                                       Unit{"EFLOP/s", 1'000'000'000'000'000'000}};

constexpr std::array kPowerUnits = {Unit{"W", 1'000}, Unit{"kW", 1'000'000},
                                    Unit{"MW", 1'000'000'000}};
constexpr std::array kLongTimeUnits = {Unit{"s", 1'000}, Unit{"min", 60'000}, Unit{"h", 3'600'000},
                                       Unit{"d", 86'400'000}};
constexpr std::array kTokenUnits = {Unit{"", 1}, Unit{"k", 1'000}, Unit{"M", 1'000'000},
                                    Unit{"B", 1'000'000'000}, Unit{"T", 1'000'000'000'000}};

/// The units of one quantity, an example, and the largest accepted value.
struct Measure {
  std::span<const Unit> units;
  std::string_view example;
  std::int64_t max = kLargestQuantity;
  std::string_view max_text = "10^15 ns or B";
};

constexpr Measure kTime{kTimeUnits, "1.25 ms"};
constexpr Measure kSize{kByteUnits, "16 GiB"};
constexpr Measure kBandwidth{kBandwidthUnits, "10 Gbit/s"};
constexpr Measure kWork{kFlopUnits, "1.2 TFLOP", kMaxFlops, "10^18 FLOP"};
constexpr Measure kPower{kPowerUnits, "700 W", kLargestQuantity, "10^12 W"};
constexpr Measure kLongTime{kLongTimeUnits, "50000 h", kLargestQuantity, "10^12 s"};
constexpr Measure kTokens{kTokenUnits, "15T", kMaxTrainingTokens, "10^18"};
constexpr Measure kWorkRate{kFlopRateUnits, "989 TFLOP/s", kMaxFlops, "10^18 FLOP/s"};

QuantityUnits units_of(const Measure& measure) {
  QuantityUnits known{{}, measure.example};
  known.units.reserve(measure.units.size());
  for (const Unit& unit : measure.units) known.units.push_back(unit.name);
  return known;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string unit_list(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) {
    if (unit.name.empty() || static_cast<unsigned char>(unit.name[0]) >= 0x80) continue;
    list += (list.empty() ? "" : ", ") + std::string(unit.name);
  }
  return list;
}

/// "did you mean GB/s? "; "" without a guess.
std::string guess(std::string_view unit, const Measure& measure) {
  const std::vector<std::string_view> meant = meant_units(unit, units_of(measure).units);
  return meant.empty() ? "" : fmt::format("did you mean {}? ", fmt::join(meant, " or "));
}

/// The number at the front of `text` as digits and a power of ten; `used` is its length.
struct Decimal {
  std::string digits;
  int exponent = 0;
  std::size_t used = 0;
};

Decimal read_decimal(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  bool any = false;
  for (; at < text.size() && is_digit(text[at]); ++at, any = true) number.digits += text[at];
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]); ++at, any = true) {
      number.digits += text[at];
      --number.exponent;
    }
  }
  if (!any) return {};
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t end = at + 1;
    if (text[end] == '+' || text[end] == '-') ++end;
    int power = 0;
    const char* first = text.data() + at + (text[at + 1] == '+' ? 2 : 1);
    const auto [stop, error] = std::from_chars(first, text.data() + text.size(), power);
    if (error == std::errc{} && end < text.size() && is_digit(text[end])) {
      number.exponent += std::clamp(power, -100000, 100000);
      at = static_cast<std::size_t>(stop - text.data());
    }
  }
  const std::size_t zeros =
      std::min(number.digits.find_first_not_of('0'), number.digits.size() - 1);
  number.digits.erase(0, zeros);
  number.used = at;
  return number;
}

/// digits x 10^exponent x ticks / divisor, rounded to the nearest whole number; nothing above
/// `max`.
std::optional<std::int64_t> scale(Decimal number, const Unit& unit, std::int64_t max) {
  while (number.digits.size() > 18 && number.exponent < 0) {  // further digits cannot matter
    number.digits.pop_back();
    ++number.exponent;
  }
  if (number.digits == "0") return 0;
  if (number.digits.size() > 18) return std::nullopt;
  Wide value = 0;
  for (const char c : number.digits) value = value * 10 + (c - '0');
  value *= unit.ticks;  // < 10^18 x 10^18: fits
  Wide divisor = unit.divisor;
  for (; number.exponent > 0; --number.exponent) {
    value *= 10;
    if (value / divisor > max) return std::nullopt;
  }
  for (; number.exponent < 0; ++number.exponent) {
    if (divisor > (Wide{1} << 110)) return 0;
    divisor *= 10;
  }
  value = (value + divisor / 2) / divisor;
  if (value > max) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Parsed<std::int64_t> parse_quantity(std::string_view text, const Measure& measure) {
  const std::span<const Unit> units = measure.units;
  const auto fail = [](std::string problem) {
    return Parsed<std::int64_t>{std::nullopt, std::move(problem)};
  };
  if (!text.empty() && text.front() == '-') return fail("is negative");
  const Decimal number = read_decimal(text);
  if (number.used == 0) return fail(fmt::format("is not a quantity such as '{}'", measure.example));
  std::string_view unit_text = text.substr(number.used);
  unit_text.remove_prefix(std::min(unit_text.find_first_not_of(' '), unit_text.size()));
  if (unit_text.empty() && !units.front().name.empty()) {
    return fail(fmt::format("has no unit (one of {})", unit_list(units)));
  }
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit_text; });
  if (unit == units.end()) {
    return fail(fmt::format("has the unknown unit '{}' ({}one of {})", clipped(unit_text),
                            guess(unit_text, measure), unit_list(units)));
  }
  const std::optional<std::int64_t> ticks = scale(number, *unit, measure.max);
  if (!ticks) {
    return fail(fmt::format("is larger than any quantity that is accepted ({})", measure.max_text));
  }
  return {ticks, ""};
}

template <class T>
Parsed<T> as(const Parsed<std::int64_t>& ticks) {
  if (!ticks.value) return {std::nullopt, ticks.problem};
  return {T{*ticks.value}, ""};
}

/// Four significant digits without trailing zeros.
std::string short_number(double value) { return fmt::format("{:.4g}", value); }

}  // namespace

Parsed<Duration> parse_duration(std::string_view text) {
  return as<Duration>(parse_quantity(text, kTime));
}

Parsed<Bytes> parse_bytes(std::string_view text) { return as<Bytes>(parse_quantity(text, kSize)); }

Parsed<BytesPerSecond> parse_bandwidth(std::string_view text) {
  auto parsed = as<BytesPerSecond>(parse_quantity(text, kBandwidth));
  if (parsed.value && parsed.value->count == 0) return {std::nullopt, "is less than 1 B/s"};
  return parsed;
}

Parsed<Flops> parse_flops(std::string_view text) { return as<Flops>(parse_quantity(text, kWork)); }

Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  auto parsed = as<FlopsPerSecond>(parse_quantity(text, kWorkRate));
  if (parsed.value && parsed.value->count == 0) return {std::nullopt, "is less than 1 FLOP/s"};
  return parsed;
}

Parsed<std::int64_t> parse_tokens(std::string_view text) {
  auto parsed = parse_quantity(text, kTokens);
  if (parsed.value && *parsed.value == 0) return {std::nullopt, "is less than one token"};
  return parsed;
}

Parsed<Power> parse_power(std::string_view text) {
  auto parsed = as<Power>(parse_quantity(text, kPower));
  if (parsed.value && parsed.value->milliwatts == 0) return {std::nullopt, "is less than 1 mW"};
  return parsed;
}

Parsed<LongTime> parse_long_time(std::string_view text) {
  auto parsed = as<LongTime>(parse_quantity(text, kLongTime));
  if (parsed.value && parsed.value->milliseconds == 0) return {std::nullopt, "is less than 1 ms"};
  return parsed;
}

Parsed<Price> parse_price(std::string_view text) {
  constexpr double max = 1e9;
  const auto fail = [](std::string problem) {
    return Parsed<Price>{std::nullopt, std::move(problem)};
  };
  if (!text.empty() && text.front() == '-') return fail("is negative");
  const std::size_t used = read_decimal(text).used;
  if (used == 0) return fail("is not a price such as '2.5 USD/h'");
  const Parsed<double> amount = parse_real(text.substr(0, used));
  if (!amount.value) return fail(amount.problem);
  if (*amount.value > max) return fail("is larger than any price that is accepted (10^9)");
  std::string_view rest = text.substr(used);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::size_t slash = rest.find('/');
  const std::string_view currency = rest.substr(0, slash);
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  const bool is_word = !currency.empty() && currency.size() <= 8 &&
                       std::all_of(currency.begin(), currency.end(), is_letter);
  if (!is_word) return fail("has no currency, such as USD in '2.5 USD/h'");
  if (slash == std::string_view::npos || rest.substr(slash) != "/h")
    return fail("is for no hour, as '2.5 USD/h' is");
  return {Price{*amount.value, std::string(currency)}, ""};
}

QuantityUnits duration_units() { return units_of(kTime); }
QuantityUnits bytes_units() { return units_of(kSize); }
QuantityUnits bandwidth_units() { return units_of(kBandwidth); }
QuantityUnits flops_units() { return units_of(kWork); }
QuantityUnits flops_per_second_units() { return units_of(kWorkRate); }
QuantityUnits power_units() { return units_of(kPower); }
QuantityUnits long_time_units() { return units_of(kLongTime); }

Parsed<std::int64_t> parse_count(std::string_view text) {
  if (!text.empty() && text.front() == '-') return {std::nullopt, "is negative"};
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
    return {std::nullopt, "is not a whole number"};
  }
  if (text.size() > 1 && text.front() == '0') return {std::nullopt, "has leading zeros"};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > kLargestQuantity) return {std::nullopt, "is too large"};
  return {value, ""};
}

Parsed<double> parse_real(std::string_view text) {
  if (!text.empty() && text.front() == '-') return {std::nullopt, "is negative"};
  const RealText read = real_at_front(text);
  if (read.out_of_range) return {std::nullopt, "is too large or too small"};
  if (read.used == 0 || read.used != text.size() || !std::isfinite(read.value) ||
      (!is_digit(text.front()) && text.front() != '.')) {
    return {std::nullopt, "is not a number"};
  }
  return {read.value, ""};
}

std::string to_text(Duration d) {
  const auto ns = static_cast<double>(d.count());
  if (d.count() == 0) return "0 s";
  if (ns < 1e3) return short_number(ns) + " ns";
  if (ns < 1e6) return short_number(ns / 1e3) + " us";
  if (ns < 1e9) return short_number(ns / 1e6) + " ms";
  if (ns < 1e13) return short_number(ns / 1e9) + " s";
  return fmt::format("{:.0f} s", ns / 1e9);
}

std::string time_text(double seconds) { return to_text(round_up(seconds * 1e9)); }

std::string long_time_text(double seconds) {
  if (seconds < 120) return time_text(seconds);
  if (seconds < 7'200) return short_number(seconds / 60) + " min";
  if (seconds < 172'800) return short_number(seconds / 3'600) + " h";
  return short_number(seconds / 86'400) + " days";
}

std::string to_text(Bytes b) {
  const auto count = static_cast<double>(b.count);
  constexpr std::array names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double shown = count;
  while (std::abs(shown) >= 1000 && unit + 1 < names.size()) {
    shown /= 1024;
    ++unit;
  }
  return short_number(shown) + " " + names[unit];
}

std::string to_text(BytesPerSecond rate) {
  const auto count = static_cast<double>(rate.count);
  if (count < 1e6) return short_number(count / 1e3) + " kB/s";
  if (count < 1e9) return short_number(count / 1e6) + " MB/s";
  return short_number(count / 1e9) + " GB/s";
}

namespace {

/// The number in the largest unit in which it is at least 1.
std::string in_flops(std::int64_t count, std::span<const Unit> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && count >= units[unit + 1].ticks) ++unit;
  return fmt::format(
      "{} {}", short_number(static_cast<double>(count) / static_cast<double>(units[unit].ticks)),
      units[unit].name);
}

}  // namespace

std::string to_text(Flops work) { return in_flops(work.count, kFlopUnits); }

std::string to_text(FlopsPerSecond rate) { return in_flops(rate.count, kFlopRateUnits); }

std::string to_text(Power power) {
  const double watts = static_cast<double>(power.milliwatts) / 1e3;
  if (watts < 1e3) return short_number(watts) + " W";
  if (watts < 1e6) return short_number(watts / 1e3) + " kW";
  return short_number(watts / 1e6) + " MW";
}

std::string tokens_text(double tokens) {
  std::size_t unit = 0;
  while (unit + 1 < kTokenUnits.size() &&
         tokens >= static_cast<double>(kTokenUnits[unit + 1].ticks))
    ++unit;
  return fmt::format("{}{}", short_number(tokens / static_cast<double>(kTokenUnits[unit].ticks)),
                     kTokenUnits[unit].name);
}

std::string flop_rate_text(double flops_per_s) {
  const double max = static_cast<double>(kMaxFlops);
  return to_text(FlopsPerSecond{std::llround(std::clamp(flops_per_s, 0.0, max))});
}

}  // namespace plumbline
