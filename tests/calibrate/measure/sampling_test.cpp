// Samples whose truth is known: what is said of them, and when measuring them ends.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/sampling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "base/random.h"
#include "base/statistics.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A sample by its number.
using Source = std::function<double(std::uint64_t place)>;

Source normal(std::uint64_t seed, double mean, double deviation) {
  return [=](std::uint64_t place) { return mean + deviation * random_normal(seed, place); };
}

Source log_normal(std::uint64_t seed, double median, double sigma) {
  return [=](std::uint64_t place) { return median * std::exp(sigma * random_normal(seed, place)); };
}

std::vector<double> draw(const Source& source, std::size_t count) {
  std::vector<double> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i] = source(i);
  return samples;
}

double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

/// The mean of a log-normal variable of median 1 without its lowest and highest tenth.
double trimmed_log_normal(double sigma) {
  constexpr double tenth = 1.2815515655446004;
  return std::exp(sigma * sigma / 2) *
         (normal_below(tenth - sigma) - normal_below(-tenth - sigma)) / 0.8;
}

/// The share of 1,000 sets whose interval holds the truth.
double coverage(std::size_t samples, double truth,
                const std::function<Source(std::uint64_t seed)>& source) {
  constexpr int sets = 1000;
  int held = 0;
  for (int set = 0; set < sets; ++set) {
    const std::vector<double> drawn = draw(source(static_cast<std::uint64_t>(set)), samples);
    const double mean = statistics_of(drawn).mean;
    if (std::abs(mean - truth) <= *relative_half_width(drawn) * mean) ++held;
  }
  return static_cast<double>(held) / sets;
}

TEST_CASE("Student's t is that of the tables") {
  // Abramowitz and Stegun 1964, table 26.10.
  const std::vector<std::pair<std::size_t, double>> table = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},  {6, 2.447},
      {8, 2.306},  {10, 2.228}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  for (const auto& row : table) {
    CAPTURE(row.first);
    CHECK(std::abs(student_t(row.first) - row.second) < 0.0006);
  }
  CHECK(student_t(100'000'000) == doctest::Approx(1.959964));
}

TEST_CASE("the interval of a few numbers is what the formula gives by hand") {
  // Ten samples, one cut off on each side: winsorised 2 2 3 4 5 6 7 8 9 9, of mean 5.5 and squared
  // deviations 66.5; 8 are kept, of mean 5.5, and t(7) = 2.3646.
  const std::vector<double> samples = {100, 2, 3, 4, 5, 6, 7, 8, 9, -50};
  CHECK(*relative_half_width(samples) ==
        doctest::Approx(2.3646 * std::sqrt(66.5 / 56) / 5.5).epsilon(0.0001));
  // Nothing is cut off two: t(1) x |a - b| / 2.
  CHECK(*relative_half_width({9, 11}) == doctest::Approx(12.7062 / 10));
  CHECK(*relative_half_width({7, 7, 7}) == 0);
  CHECK_FALSE(relative_half_width({7}));
  CHECK_FALSE(relative_half_width({}));
  CHECK_FALSE(relative_half_width({0, 0, 0}));
}

TEST_CASE("95 of 100 intervals hold the truth") {
  for (const std::size_t samples : {10, 30, 100, 300}) {
    CAPTURE(samples);
    const double share =
        coverage(samples, 100, [](std::uint64_t seed) { return normal(seed, 100, 5); });
    CHECK(share >= 0.93);
    CHECK(share <= 0.97);
  }
  // The truth of skewed samples is their own trimmed mean, below their mean.
  for (const double sigma : {0.1, 0.5}) {
    CAPTURE(sigma);
    const double truth = trimmed_log_normal(sigma);
    CHECK(truth < std::exp(sigma * sigma / 2));
    const double share =
        coverage(60, truth, [&](std::uint64_t seed) { return log_normal(seed, 1, sigma); });
    CHECK(share >= 0.93);
    CHECK(share <= 0.97);
  }
  // One in 20 takes three times as long and is cut off, with that much less of the rest above: of
  // the normal samples 2/19 below and 1/19 above.
  const double truth = 100 + 0.088747;
  const double share = coverage(200, truth, [](std::uint64_t seed) -> Source {
    return [=](std::uint64_t place) {
      const double sample = 100 + random_normal(seed, place);
      return random_uniform(seed + 1'000'000, place) < 0.05 ? 3 * sample : sample;
    };
  });
  CHECK(share >= 0.93);
  CHECK(share <= 0.97);
}

struct Stop {
  StopReason reason{};
  std::size_t samples = 0;
};

/// Samples one after another, each as long as it says, until the rule stops it.
Stop run(StopRule& rule, const Source& source) {
  double elapsed = 0;
  for (std::uint64_t place = 0; !rule.stopped(); ++place) {
    const double sample = source(place);
    elapsed += sample;
    rule.add(sample, Duration{std::llround(elapsed)});
  }
  return {*rule.stopped(), rule.samples()};
}

StopLimits limits_of(std::size_t samples, Duration time) {
  StopLimits limits;
  limits.max_samples = samples;
  limits.max_time = time;
  return limits;
}

TEST_CASE("quiet samples stop after the fewest, and constant ones too") {
  StopLimits limits = limits_of(10'000, milliseconds(10'000));
  limits.every = 1;
  StopRule constant(limits);
  const Stop stop = run(constant, [](std::uint64_t) { return 1e6; });
  CHECK(stop.reason == StopReason::precise);
  CHECK(stop.samples == 30);
  CHECK(constant.half_width() == 0);

  StopRule quiet(limits);
  CHECK(run(quiet, normal(1, 1e6, 3e3)).samples == 30);
  CHECK(quiet.stopped() == StopReason::precise);

  limits.every = 16;  // 30 samples are there, but nobody looks before the 32nd
  StopRule seldom(limits);
  CHECK(run(seldom, normal(1, 1e6, 3e3)).samples == 32);
  limits.min_time = milliseconds(300);
  StopRule longer(limits);
  CHECK(run(longer, normal(1, 1e6, 3e3)).samples == 304);
}

TEST_CASE("a deviation of 2 % is precise after some 260 samples, if noise may not stop it") {
  // 1.96 x 2 % / sqrt(n) = 0.25 % at n = 246; the trimmed mean of normal samples wants 6 % more.
  StopLimits limits = limits_of(100'000, milliseconds(1'000'000));
  limits.noise_deviation = 0;
  double samples = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    StopRule rule(limits);
    const Stop stop = run(rule, normal(seed, 1e6, 2e4));
    CHECK(stop.reason == StopReason::precise);
    CHECK(*rule.half_width() < 0.0025);
    samples += static_cast<double>(stop.samples) / 20;
  }
  CHECK(samples > 200);
  CHECK(samples < 290);
}

TEST_CASE("noise that stays as it is stops samples that will not become precise") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    StopRule wide(limits_of(100'000, milliseconds(10'000'000)));
    const Stop stop = run(wide, normal(seed, 1e6, 1e5));
    CHECK(stop.reason == StopReason::stable_noise);
    CHECK(stop.samples > 64);
    CHECK(stop.samples < 1500);
    CHECK(*wide.half_width() > 0.0025);
    CHECK(*wide.half_width() < 0.03);
    StopRule skewed(limits_of(100'000, milliseconds(10'000'000)));
    CHECK(run(skewed, log_normal(seed, 1e6, 0.3)).reason == StopReason::stable_noise);
    StopRule bimodal(limits_of(100'000, milliseconds(10'000'000)));
    const Source two_modes = [=](std::uint64_t place) {
      return random_uniform(seed, place) < 0.5 ? 1e6 : 2e6;
    };
    CHECK(run(bimodal, two_modes).reason == StopReason::stable_noise);
  }
}

TEST_CASE("noise is called stable on no fewer than 65 estimates") {
  StopLimits limits = limits_of(10'000, milliseconds(10'000'000));
  limits.every = 1;
  limits.noise_deviation = 0.5;
  StopRule rule(limits);
  const Stop stop = run(rule, normal(2, 1e6, 1e5));
  CHECK(stop.reason == StopReason::stable_noise);
  CHECK(stop.samples == 66);  // one sample has no deviation
}

TEST_CASE("noise that grows is not stable, and the caps end it") {
  // Each sample deviates more than the one before; and rare outliers that grow each time.
  const Source growing = [](std::uint64_t place) {
    return 1e6 * (1 + 0.001 * static_cast<double>(place) * random_uniform(3, place));
  };
  StopRule by_samples(limits_of(500, milliseconds(1'000'000)));
  const Stop stop = run(by_samples, growing);
  CHECK(stop.reason == StopReason::samples);
  CHECK(stop.samples == 500);
  StopRule by_time(limits_of(100'000, milliseconds(100)));
  CHECK(run(by_time, growing).reason == StopReason::time);
  CHECK(by_time.samples() < 100);
  CHECK(by_time.half_width());
}

TEST_CASE("a cap of a few samples counts even before the fewest, and first where both are met") {
  StopRule rule(limits_of(1, milliseconds(1)));
  CHECK(run(rule, [](std::uint64_t) { return 1e9; }).reason == StopReason::samples);
  CHECK_FALSE(rule.half_width());
  StopRule precise_at_cap(limits_of(30, milliseconds(1'000)));
  CHECK(run(precise_at_cap, [](std::uint64_t) { return 1e6; }).reason == StopReason::precise);
  StopRule none(limits_of(0, milliseconds(1'000)));
  none.drop({});
  CHECK(none.stopped() == StopReason::samples);
}

TEST_CASE("dropped samples count towards the caps, and towards nothing else") {
  StopRule rule(limits_of(100, milliseconds(1'000)));
  for (int i = 0; i < 99; ++i) rule.drop(milliseconds(i));
  CHECK_FALSE(rule.stopped());
  rule.drop(milliseconds(99));
  CHECK(rule.stopped() == StopReason::samples);
  CHECK(rule.samples() == 0);
  CHECK(rule.dropped() == 100);
  StopRule slow(limits_of(100, milliseconds(1'000)));
  slow.drop(milliseconds(1'000));
  CHECK(slow.stopped() == StopReason::time);
  CHECK(name(*slow.stopped()) == "most time");
  CHECK(name(StopReason::stable_noise) == "stable noise");
}

TEST_CASE("the first reason stays, and samples after it change nothing that was said") {
  StopRule rule(limits_of(1000, milliseconds(1'000)));
  run(rule, [](std::uint64_t) { return 1e6; });
  for (int i = 0; i < 100; ++i) rule.add(5e6 * i, milliseconds(2'000));
  CHECK(rule.stopped() == StopReason::precise);
  CHECK(rule.half_width() == 0);
}

TEST_CASE("looking seldom gives the same interval as all samples at once") {
  for (const std::size_t every : {1, 7, 16, 100}) {
    CAPTURE(every);
    StopLimits limits = limits_of(400, milliseconds(1'000'000));
    limits.every = every;
    limits.half_width = 0;
    limits.noise_deviation = 0;
    StopRule rule(limits);
    const Source source = log_normal(9, 1e6, 0.4);
    CHECK(run(rule, source).samples == 400);
    CHECK(*rule.half_width() == doctest::Approx(*relative_half_width(draw(source, 400))));
  }
}

TEST_CASE("a slow drift is not seen by the stop rule, but between two sets") {
  const Source drifting = [](std::uint64_t place) {
    return 1e6 + 100 * static_cast<double>(place) + 1e4 * random_normal(4, place);
  };
  StopRule rule(limits_of(10'000, milliseconds(100'000)));
  CHECK(run(rule, drifting).reason != StopReason::samples);
  const std::vector<double> all = draw(drifting, 1000);
  const std::vector<double> earlier(all.begin(), all.begin() + 500);
  const std::vector<double> later(all.begin() + 500, all.end());
  CHECK(*drift(earlier, later) == doctest::Approx(0.05 / 1.025).epsilon(0.05));
  CHECK(*drift(later, earlier) < 0);
  CHECK(*drift(earlier, earlier) == 0);
  CHECK(*drift({100, 100, 100}, {112, 112, 112}) == doctest::Approx(0.12));
  CHECK_FALSE(drift({}, {1}));
  CHECK_FALSE(drift({1}, {}));
  CHECK_FALSE(drift({0, 0}, {1}));
}

TEST_CASE("a sample is contaminated that lost more than 1 % and more than 20 us of its core") {
  const auto lost = [](Duration wall, Duration away) {
    return is_contaminated({wall, wall - away});
  };
  CHECK_FALSE(lost(microseconds(100), microseconds(20)));  // 20 %, but no more than 20 us
  CHECK(lost(microseconds(100), Duration{20'001}));
  CHECK_FALSE(lost(milliseconds(10), microseconds(100)));  // 1 %
  CHECK(lost(milliseconds(10), Duration{100'001}));
  CHECK_FALSE(lost(milliseconds(2), microseconds(20)));
  CHECK_FALSE(lost(milliseconds(1), -microseconds(5)));  // the clocks differ a little
  CHECK_FALSE(lost({}, {}));

  const CleanSamples cleaned = clean({{milliseconds(1), milliseconds(1)},
                                      {milliseconds(9), milliseconds(1)},
                                      {milliseconds(2), milliseconds(2)},
                                      {milliseconds(3), Duration{2'980'000}}});
  CHECK(cleaned.walls == std::vector<double>{1e6, 2e6, 3e6});
  CHECK(cleaned.dropped == 1);
  CHECK(cleaned.dropped_share() == 0.25);
  CHECK(clean({}).dropped_share() == 0);
  CHECK(clean({{milliseconds(9), milliseconds(1)}}).dropped_share() == 1);
}

TEST_CASE("a measured time holds the mean without the extremes, and the quartiles") {
  const MeasuredTime time = measured_time({1e9, 2, 3, 4, 5, 6, 7, 8, 9.4, 0});
  CHECK(time.mean == Duration{6});  // (2 + ... + 9.4) / 8 = 5.55
  CHECK(time.median == Duration{6});
  CHECK(time.q1 == Duration{3});
  CHECK(time.q3 == Duration{8});
  CHECK(time.samples == 10);
  const MeasuredTime one = measured_time({41.6});
  CHECK(one.mean == Duration{42});
  CHECK(one.median == Duration{42});
  CHECK(one.q1 == Duration{42});
  CHECK(one.q3 == Duration{42});
  CHECK(one.samples == 1);

  // Outliers: a few slow ones move the mean of all, and hardly this one.
  std::vector<double> samples = draw(normal(5, 1e6, 1e4), 400);
  for (std::size_t i = 0; i < samples.size(); i += 40) samples[i] *= 10;
  CHECK(seconds(measured_time(samples).mean) == doctest::Approx(1e-3).epsilon(0.005));
  // Two modes: the mean lies where their shares say, the median does not.
  const MeasuredTime bimodal = measured_time(
      draw([](std::uint64_t place) { return random_uniform(6, place) < 0.3 ? 2e6 : 1e6; }, 20'000));
  CHECK(seconds(bimodal.mean) == doctest::Approx(1e-3 * (1 + 0.2 / 0.8)).epsilon(0.01));
  CHECK(bimodal.median == milliseconds(1));
}

/// Sizes from 256 B to 256 MiB.
TransferTable transfers(double latency_ns, double bytes_per_ns,
                        const std::function<double(std::uint64_t)>& factor) {
  TransferTable table;
  std::uint64_t place = 0;
  for (std::int64_t size = 256; size <= 256LL << 20U; size *= 2) {
    const double time = latency_ns + static_cast<double>(size) / bytes_per_ns;
    table.emplace_back(Bytes{size}, Duration{std::llround(time * factor(place++))});
  }
  return table;
}

double exactly(std::uint64_t) { return 1; }

TEST_CASE("a link's latency and bandwidth come out of exact transfers to the nanosecond") {
  const auto fit = fit_link(transfers(4000, 8, exactly));  // 8 GB/s: all times are whole
  REQUIRE(fit);
  CHECK(fit->latency == microseconds(4));
  CHECK(fit->bandwidth == BytesPerSecond{8'000'000'000});
  CHECK(fit->largest_residual == 0);
  CHECK(fit->nanoseconds({800}) == 4100);
  for (const double latency : {0.0, 100.0, 1e6}) {
    for (const double rate : {0.125, 3.7, 450.0}) {
      CAPTURE(latency);
      CAPTURE(rate);
      const TransferTable table = transfers(latency + 5, rate, exactly);
      const auto rounded = fit_link(table);
      REQUIRE(rounded);
      CHECK(std::abs(static_cast<double>(rounded->latency.count()) - latency - 5) <= 2);
      CHECK(static_cast<double>(rounded->bandwidth->count) ==
            doctest::Approx(rate * 1e9).epsilon(0.002));
    }
  }
}

TEST_CASE("noise of 2 % moves latency and bandwidth by no more than 3 %") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto fit = fit_link(transfers(
        4000, 11, [&](std::uint64_t place) { return 1 + 0.02 * random_normal(seed, place); }));
    REQUIRE(fit);
    CHECK(seconds(fit->latency) == doctest::Approx(4e-6).epsilon(0.03));
    CHECK(static_cast<double>(fit->bandwidth->count) == doctest::Approx(11e9).epsilon(0.03));
    CHECK(fit->largest_residual > 0.005);
    CHECK(fit->largest_residual < 0.1);
  }
}

TEST_CASE("the fit is the best one: no neighbour of it has smaller relative residuals") {
  const auto squares = [](const TransferTable& table, double latency, double rate) {
    double sum = 0;
    for (const auto& [size, time] : table) {
      const auto t = static_cast<double>(time.count());
      sum += std::pow((latency + static_cast<double>(size.count) * 1e9 / rate) / t - 1, 2);
    }
    return sum;
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    // Up to a half off each: a latency of 0 is often the best.
    const TransferTable table = transfers(seed % 2 == 0 ? 1e6 : 10, 5, [&](std::uint64_t place) {
      return 1 + (random_uniform(seed, place) - 0.5);
    });
    const auto fit = fit_link(table);
    REQUIRE(fit);
    REQUIRE(fit->bandwidth);
    CHECK(fit->latency >= Duration::zero());
    const auto latency = static_cast<double>(fit->latency.count());
    const auto rate = static_cast<double>(fit->bandwidth->count);
    const double best = squares(table, latency, rate);
    const double near = std::max(0.02 * latency, 2.0);  // more than was rounded off
    for (const double sign : {-1.0, 1.0}) {
      CHECK(squares(table, latency, rate * (1 + 0.02 * sign)) >= best);
      CHECK(squares(table, std::max(latency + sign * near, 0.0), rate) >= best);
    }
  }
}

TEST_CASE("a latency is never below 0, and transfers that do not take longer have no bandwidth") {
  // A line through these would start at -1 us.
  const TransferTable steep = {{{1000}, Duration{1000}}, {{2000}, Duration{3000}}};
  const auto fit = fit_link(steep);
  REQUIRE(fit);
  CHECK(fit->latency == Duration::zero());
  // The slope that is best alone: (1 + 2/3) / (1 + 4/9) = 15/13 ns for each byte.
  CHECK(fit->bandwidth->count == 866'666'667);
  CHECK(fit->largest_residual == doctest::Approx(1 - 2.0 / 3 * 15 / 13));

  const auto flat =
      fit_link({{{1000}, Duration{500}}, {{2000}, Duration{500}}, {{9000}, Duration{500}}});
  REQUIRE(flat);
  CHECK(flat->latency == Duration{500});
  CHECK_FALSE(flat->bandwidth);
  CHECK(flat->largest_residual == 0);
  const auto falling = fit_link({{{1000}, Duration{200}}, {{2000}, Duration{100}}});
  REQUIRE(falling);
  CHECK(falling->latency == Duration{120});  // (1/200 + 1/100) / (1/200^2 + 1/100^2)
  CHECK_FALSE(falling->bandwidth);
}

TEST_CASE("two sizes give the line through both, and one size gives none") {
  const auto two = fit_link({{{1000}, Duration{600}}, {{11'000}, Duration{1600}}});
  REQUIRE(two);
  CHECK(two->latency == Duration{500});
  CHECK(two->bandwidth == BytesPerSecond{10'000'000'000});
  CHECK(two->largest_residual == 0);
  CHECK_FALSE(fit_link({}));
  CHECK_FALSE(fit_link({{{1000}, Duration{600}}}));
  CHECK_FALSE(fit_link({{{1000}, Duration{600}}, {{1000}, Duration{700}}}));
  // The same sizes several times: the line goes between them.
  const auto twice = fit_link({{{0}, Duration{100}},
                               {{0}, Duration{100}},
                               {{1000}, Duration{200}},
                               {{1000}, Duration{200}}});
  REQUIRE(twice);
  CHECK(twice->latency == Duration{100});
  CHECK(twice->bandwidth == BytesPerSecond{10'000'000'000});
}

TEST_CASE("a measured link holds its fit and its table by size") {
  const auto link = measured_link("copy", {{{11'000}, Duration{1600}}, {{1000}, Duration{600}}});
  REQUIRE(link);
  CHECK(link->kind == "copy");
  CHECK(link->latency == Duration{500});
  CHECK(link->bandwidth == BytesPerSecond{10'000'000'000});
  CHECK(link->table.front().first == Bytes{1000});
  CHECK_FALSE(measured_link("copy", {{{1000}, Duration{600}}}));
}

TEST_CASE("layers give back what it cost to time them, each the same, or get it") {
  using Times = std::vector<double>;
  const auto closed = [](const Times& layers, double piece) {
    Times made = closing_factors(layers, piece);
    for (std::size_t i = 0; i < layers.size(); ++i) made[i] *= layers[i];
    return made;
  };
  const auto check = [](const Times& found, const Times& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  };
  check(closed({10, 20, 30}, 60), {10, 20, 30});
  check(closed({10, 20, 30}, 54), {8, 18, 28});
  check(closed({10, 20, 30}, 66), {12, 22, 32});
  check(closed({10, 0, 30}, 36), {8, 0, 28});  // what takes no time has nothing to give
  // The first would give more than it has: it keeps a tenth, and all are made to fit.
  const Times narrow = closed({1, 20, 30}, 45);
  CHECK(narrow[0] + narrow[1] + narrow[2] == doctest::Approx(45));
  CHECK(narrow[0] > 0);
  CHECK(narrow[0] < 0.11);
  check(closing_factors({5, 5}, 0), {1, 1});
  check(closing_factors({0, 0}, 7), {1, 1});
  CHECK(closing_factors({}, 7).empty());
}

TEST_CASE("a block closes with its layers, or tells by how much it does not") {
  CHECK(*closure(milliseconds(105), {milliseconds(40), milliseconds(60)}) == doctest::Approx(0.05));
  CHECK(*closure(milliseconds(90), {milliseconds(100)}) == doctest::Approx(-0.1));
  CHECK(*closure(Duration{7}, {Duration{3}, Duration{4}}) == 0);
  CHECK_FALSE(closure(milliseconds(1), {}));
  Measurement measurement;
  measurement.layers.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    measurement.layers[i].forward.mean = milliseconds(10 * (static_cast<int>(i) + 1));
    measurement.layers[i].backward.mean = milliseconds(50);
  }
  const BlockClosure both =
      closure(Block{{{0}, {2}}, milliseconds(44), milliseconds(95)}, measurement);
  CHECK(*both.forward == doctest::Approx(0.1));
  CHECK(*both.backward == doctest::Approx(-0.05));
}

}  // namespace
}  // namespace plumbline
