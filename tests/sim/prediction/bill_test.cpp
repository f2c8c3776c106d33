// The bill of a training, against products by hand.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/bill.h"

#include <doctest/doctest.h>

#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/scenario.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

TEST_CASE("days, hours, money and energy are products of what is given") {
  CostRates rates;
  rates.per_sample = 4096;
  rates.tokens = std::int64_t{864'000} * 4096;  // a day at ten samples a second
  rates.price = Price{2.5, "USD"};
  rates.power = Power{700'000};
  rates.pue = 1.2;
  const Bill bill = bill_of(rates, 10.0, {8, 16});
  CHECK(bill.tokens_per_s == 40'960.0);
  CHECK(bill.tokens_per_device_per_s == 5120.0);  // of the 8 that hold a stage
  CHECK(bill.tokens_per_day() == 40'960.0 * 86'400);
  CHECK(bill.days == 1.0);
  CHECK(bill.gpu_hours == 24.0 * 16);  // all 16 are rented
  CHECK(bill.cost == 24.0 * 16 * 2.5);
  CHECK(bill.currency == "USD");
  CHECK(*bill.energy_kwh == doctest::Approx(24.0 * 16 * 0.7 * 1.2));
}

TEST_CASE("a figure is missing where one that it needs is") {
  CostRates rates;
  rates.price = Price{2.5, "USD"};
  CHECK(bill_of(rates, 10.0, {8, 8}) == Bill{});
  rates.per_sample = 4096;
  const Bill speed = bill_of(rates, 10.0, {8, 8});
  CHECK(speed.tokens_per_s);
  CHECK_FALSE(speed.days);
  CHECK_FALSE(speed.cost);
  CHECK(speed.currency.empty());
  rates.tokens = 1'000'000;
  CHECK_FALSE(bill_of(rates, 10.0, {8, 8}).energy_kwh);
  CHECK(bill_of(rates, 10.0, {8, 8}).cost);
  CHECK(bill_of(rates, std::nullopt, {8, 8}) == Bill{});
  CHECK(bill_of(rates, 0.0, {8, 8}) == Bill{});
}

TEST_CASE("a scenario's keys reach the bill of its prediction") {
  const auto scenario = parse_scenario(
      text_source("s.yaml",
                  "version: 1\n"
                  "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}, batch: 1}\n"
                  "cluster: {devices: 5, price: {h100-sxm: 3 EUR/h, h200-sxm: 1 EUR/h},\n"
                  "          power: 500 W, pue: 1.1, device: h200-sxm}\n"
                  "plan: {stages: 4}\n"
                  "schedule: {name: 1f1b, micro_batches: 4}\n"
                  "training: {tokens: 1.5M, sequence: 100}\n"),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto outcome = predict_resolved(*scenario);
  REQUIRE(outcome);
  const Bill bill = outcome->bill();
  // 4 micro-batches of a sample in (4 + 4 - 1) x 3 ms
  CHECK(*bill.tokens_per_s == doctest::Approx(400 / 0.021));
  CHECK(*bill.days == doctest::Approx(1.5e6 / (400 / 0.021) / 86'400));
  CHECK(*bill.cost == doctest::Approx(*bill.days * 24 * 5 * 1));
  CHECK(bill.currency == "EUR");
  CHECK(*bill.energy_kwh == doctest::Approx(*bill.days * 24 * 5 * 0.5 * 1.1));
}

}  // namespace
}  // namespace plumbline::test
