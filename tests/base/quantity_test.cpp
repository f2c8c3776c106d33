// Quantities: exact reading, refusals, printing; rounding of transfers.
//
// SPDX-License-Identifier: MIT
#include "base/quantity.h"

#include <doctest/doctest.h>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

TEST_CASE("times are read exactly") {
  for (const auto& known : {std::pair{"1.25 ms", 1'250'000LL},
                            {"0 s", 0LL},
                            {"3us", 3'000LL},
                            {"3 \u00b5s", 3'000LL},
                            {"0.1 ns", 0LL},
                            {"0.5 ns", 1LL},
                            {"2 min", 120'000'000'000LL},
                            {"1e-3 s", 1'000'000LL},
                            {"18.522 ms", 18'522'000LL},
                            {".5 s", 500'000'000LL},
                            {"1e6 s", 1'000'000'000'000'000LL},
                            {"0.1234567890123456789 s", 123'456'789LL}}) {
    CAPTURE(known.first);
    const auto parsed = parse_duration(known.first);
    REQUIRE_MESSAGE(parsed.value, parsed.problem);
    CHECK(parsed.value->count() == known.second);
  }
}

TEST_CASE("bytes are powers of 1000 and of 1024, bandwidths bytes or bits") {
  CHECK(parse_bytes("16 GiB").value == Bytes{16LL << 30});
  CHECK(parse_bytes("16 GB").value == Bytes{16'000'000'000});
  CHECK(parse_bytes("1.5 KiB").value == Bytes{1536});
  CHECK(parse_bandwidth("10 Gbit/s").value == BytesPerSecond{1'250'000'000});
  CHECK(parse_bandwidth("450 GB/s").value == BytesPerSecond{450'000'000'000});
}

TEST_CASE("what is no quantity is refused with the reason") {
  CHECK(parse_duration("5").problem == "has no unit (one of ns, us, ms, s, min, h)");
  CHECK(parse_duration("5 lightyears").problem ==
        "has the unknown unit 'lightyears' (one of ns, us, ms, s, min, h)");
  CHECK(parse_duration("-1 ms").problem == "is negative");
  CHECK(parse_duration("fast").problem == "is not a quantity such as '1.25 ms'");
  CHECK(parse_duration("").problem == "is not a quantity such as '1.25 ms'");
  CHECK(parse_duration("1e400 s").problem ==
        "is larger than any quantity that is accepted (10^15 ns or B)");
  CHECK(parse_duration("99999999999999999999999 s").problem ==
        "is larger than any quantity that is accepted (10^15 ns or B)");
  CHECK(parse_bytes("1 gb").problem.substr(0, 24) == "has the unknown unit 'gb");
  CHECK(parse_bandwidth("1 bit/s").problem == "is less than 1 B/s");
}

TEST_CASE("a unit that is spelled otherwise is told in our spelling") {
  const auto guessed = [](const std::string& problem) {
    const std::string begin = "(did you mean ";
    const std::size_t at = problem.find(begin);
    if (at == std::string::npos) return std::string();
    const std::size_t from = at + begin.size();
    return problem.substr(from, problem.find('?') - from);
  };
  const auto rate = [&](const char* text) { return guessed(parse_bandwidth(text).problem); };
  const auto size = [&](const char* text) { return guessed(parse_bytes(text).problem); };
  const auto time = [&](const char* text) { return guessed(parse_duration(text).problem); };
  const auto work = [&](const char* text) { return guessed(parse_flops(text).problem); };
  const auto speed = [&](const char* text) {
    return guessed(parse_flops_per_second(text).problem);
  };
  for (const char* text :
       {"400 Gb/s", "400 Gb", "400Gbps", "400 Gbits/s", "400 Gbit/sec", "400 GBIT/S"})
    CHECK(rate(text) == "Gbit/s");
  for (const char* text : {"50 GBps", "50 GB / s", "50 GB", "50 G/s", "50 Gbytes/s", "50 GBPS"})
    CHECK(rate(text) == "GB/s");
  for (const char* text : {"50 gb/s", "50 gb", "50 gbps"}) CHECK(rate(text) == "Gbit/s or GB/s");
  CHECK(rate("50 GiBps") == "GiB/s");
  CHECK(rate("50 GHz").empty());
  for (const char* text : {"80 gb", "80 G", "80 Gb", "80 GBytes", "80 GB/s"})
    CHECK(size(text) == "GB");
  CHECK(size("80 gib") == "GiB");
  CHECK(size("80 ms").empty());
  for (const char* text : {"5 usec", "5 microseconds", "5 US"}) CHECK(time(text) == "us");
  CHECK(time("5 msecs") == "ms");
  CHECK(time("5 sec") == "s");
  CHECK(time("5 minutes") == "min");
  CHECK(time("1 hr") == "h");
  CHECK(time("5 nanoseconds") == "ns");
  CHECK(time("5 m").empty());  // minutes or milliseconds
  for (const char* text : {"989 TFLOPS", "989 Tflops", "989 TFLOPs", "989 TFLOP/sec", "989 TFLOP"})
    CHECK(speed(text) == "TFLOP/s");
  for (const char* text : {"9 GFLOPs", "9 gflop"}) CHECK(work(text) == "GFLOP");
  CHECK(work("1 TB").empty());
}

TEST_CASE("whole numbers have no sign, no point and no leading zero") {
  CHECK(parse_count("42").value == 42);
  CHECK(parse_count("010").problem == "has leading zeros");
  CHECK(parse_count("-3").problem == "is negative");
  CHECK(parse_count("1.5").problem == "is not a whole number");
  CHECK(parse_count("99999999999999999999").problem == "is too large");
  CHECK(parse_real("0.5").value == 0.5);
  for (const char* text : {"nan", "inf", "1x", "", "+1"}) CHECK(!parse_real(text).value);
}

TEST_CASE("quantities are printed with four digits") {
  CHECK(to_text(Duration{0}) == "0 s");
  CHECK(to_text(Duration{33'000'000}) == "33 ms");
  CHECK(to_text(Duration{1'234'567}) == "1.235 ms");
  CHECK(to_text(Duration{12'345'678'901'234}) == "12346 s");
  CHECK(to_text(Bytes{0}) == "0 B");
  CHECK(to_text(Bytes{1536}) == "1.5 KiB");
  CHECK(to_text(Bytes{1010}) == "0.9863 KiB");
  CHECK(to_text(BytesPerSecond{1'250'000'000}) == "1.25 GB/s");
}

TEST_CASE("a transfer never ends early and is exact where it divides") {
  CHECK(transfer_time({1000}, {1'000'000'000}) == Duration{1000});
  CHECK(transfer_time({1}, {3'000'000'000}) == Duration{1});
  CHECK(transfer_time({10}, {3'000'000'000}) == Duration{4});
  CHECK(transfer_time({0}, {1}) == Duration{0});
  CHECK(transfer_time({kLargestQuantity}, {1}) > Duration{kLargestQuantity});
  CHECK(round_up(3.0) == Duration{3});
  CHECK(round_up(3.0000000000001) == Duration{3});
  CHECK(round_up(3.001) == Duration{4});
}

TEST_CASE("FLOPs and rates of them are read and printed") {
  CHECK(parse_flops("1.5 TFLOP").value == Flops{1'500'000'000'000});
  CHECK(parse_flops("1 EFLOP").value == Flops{kMaxFlops});
  CHECK(parse_flops("1.0000001 EFLOP").problem ==
        "is larger than any quantity that is accepted (10^18 FLOP)");
  CHECK(parse_flops_per_second("989 TFLOP/s").value == FlopsPerSecond{989'000'000'000'000});
  CHECK(parse_flops_per_second("0.1 FLOP/s").problem == "is less than 1 FLOP/s");
  CHECK(parse_flops_per_second("989 TFLOP").problem.starts_with("has the unknown unit 'TFLOP'"));
  CHECK(to_text(Flops{14'970'000'000'000}) == "14.97 TFLOP");
  CHECK(to_text(Flops{0}) == "0 FLOP");
  CHECK(to_text(FlopsPerSecond{1'979'000'000'000'000}) == "1.979 PFLOP/s");
}

TEST_CASE("tokens are counted with a suffix or without") {
  CHECK(parse_tokens("15T").value == 15'000'000'000'000);
  CHECK(parse_tokens("1.5 B").value == 1'500'000'000);
  CHECK(parse_tokens("300M").value == 300'000'000);
  CHECK(parse_tokens("2k").value == 2000);
  CHECK(parse_tokens("1e12").value == 1'000'000'000'000);
  CHECK(parse_tokens("4096").value == 4096);
  CHECK(parse_tokens("0").problem == "is less than one token");
  CHECK(parse_tokens("15 trillion").problem ==
        "has the unknown unit 'trillion' (one of k, M, B, T)");
  CHECK(parse_tokens("many").problem == "is not a quantity such as '15T'");
  CHECK(tokens_text(15e12) == "15T");
  CHECK(tokens_text(403'215'000'000.0) == "403.2B");
  CHECK(tokens_text(12) == "12");
}

TEST_CASE("a price has an amount, a currency and an hour") {
  CHECK(parse_price("2.5 USD/h").value == Price{2.5, "USD"});
  CHECK(parse_price("3EUR/h").value == Price{3, "EUR"});
  CHECK(parse_price("2.5 $/h").problem == "has no currency, such as USD in '2.5 USD/h'");
  CHECK(parse_price("2.5 USD").problem == "is for no hour, as '2.5 USD/h' is");
  CHECK(parse_price("2.5 USD/day").problem == "is for no hour, as '2.5 USD/h' is");
  CHECK(parse_price("USD").problem == "is not a price such as '2.5 USD/h'");
  CHECK(parse_price("-1 USD/h").problem == "is negative");
}

TEST_CASE("a power is in watts") {
  CHECK(parse_power("700 W").value == Power{700'000});
  CHECK(parse_power("1.2 kW").value == Power{1'200'000});
  CHECK(parse_power("700").problem == "has no unit (one of W, kW, MW)");
  CHECK(parse_power("0 W").problem == "is less than 1 mW");
  CHECK(to_text(Power{1'200'000}) == "1.2 kW");
}

TEST_CASE("a long time is in seconds, minutes, hours or days") {
  CHECK(parse_long_time("50000 h").value == LongTime{180'000'000'000});
  CHECK(parse_long_time("1.5 d").value->seconds() == 129'600);
  CHECK(parse_long_time("30000 d").value);
  CHECK(parse_long_time("5 ms").problem == "has the unknown unit 'ms' (one of s, min, h, d)");
  CHECK(parse_long_time("0 h").problem == "is less than 1 ms");
  CHECK_FALSE(parse_long_time("100000000000 d").value);
  CHECK(long_time_text(0.033) == "33 ms");
  CHECK(long_time_text(119.5) == "119.5 s");
  CHECK(long_time_text(7'199) == "120 min");
  CHECK(long_time_text(7'200) == "2 h");
  CHECK(long_time_text(172'800) == "2 days");
}

}  // namespace
}  // namespace plumbline
