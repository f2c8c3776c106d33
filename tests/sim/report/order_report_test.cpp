// The report on a found order: its JSON says what its text and its CSV say.
//
// SPDX-License-Identifier: MIT
#include "sim/report/order_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/planning/found_order.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline::test {
namespace {

TEST_CASE("the JSON of an order has its times, its bound, the published ones and every op") {
  auto scenario = read_scenario("examples/best-order.yaml", {});
  REQUIRE(scenario);
  const auto answer = answer_order(*std::move(scenario));
  REQUIRE(answer);
  const auto setup = resolve_setup(answer->scenario, /*for_run=*/false);
  REQUIRE(setup);
  OrderReport report{*answer, *setup, {}, {}};
  const auto json = nlohmann::json::parse(order_json(report, "1.2.3"));
  CHECK(json["kind"] == "order");
  CHECK(json["tool"]["version"] == "1.2.3");
  CHECK(json["time_s"] == answer->time_s);
  CHECK(json["lower_bound_s"].get<double>() ==
        doctest::Approx(static_cast<double>(answer->bound.time) * 1e-9));
  CHECK(json["lower_bound_s"] <= json["time_s"]);
  CHECK(json["lower_bound_by"] == "memory");
  CHECK(json["lower_bound_device"] == 3);
  CHECK(json["peak_memory_bytes"] == answer->peak_memory.count);
  CHECK_FALSE(json.contains("compared"));
  REQUIRE(json["published"].size() == answer->named.size());
  for (std::size_t i = 0; i < answer->named.size(); ++i) {
    CHECK(json["published"][i]["name"] == answer->named[i].name);
    CHECK(json["published"][i]["time_s"] == answer->named[i].time_s);
    CHECK(json["published"][i]["fits"] == answer->named[i].fits);
  }
  std::string csv;
  for (std::size_t slot = 0; slot < json["devices"].size(); ++slot) {
    CHECK(json["devices"][slot]["device"] == slot);
    const auto& ops = json["devices"][slot]["ops"];
    for (std::size_t i = 0; i < ops.size(); ++i)
      csv += (i == 0 ? "" : ",") + ops[i].get<std::string>();
    csv += '\n';
  }
  CHECK(csv == torch_csv(setup->schedule));

  report.compared = "other.csv";
  report.compared_s = 0.5;
  const auto compared = nlohmann::json::parse(order_json(report, "1.2.3"));
  CHECK(compared["compared"]["file"] == "other.csv");
  CHECK(compared["compared"]["time_s"] == 0.5);
}

TEST_CASE("what is chosen with an order is told, in lines that fit the page") {
  auto scenario = read_scenario(
      "examples/best-order.yaml",
      {"schedule.placement=auto", "schedule.in_flight=3", "schedule.effort=0.1",
       "plan.partition=auto", "model.uniform.layers=9", "noise={spread: 0.1, samples: 50}"});
  REQUIRE(scenario);
  const auto answer = answer_order(*std::move(scenario));
  REQUIRE(answer);
  const auto setup = resolve_setup(answer->scenario, /*for_run=*/false);
  REQUIRE(setup);
  const OrderReport report{*answer, *setup, {}, {}};
  const auto json = nlohmann::json::parse(order_json(report, "1.2.3"));
  REQUIRE(json["placements"].size() == 3);
  CHECK(json["placements"][0]["name"] == answer->placements[0].name);
  CHECK(json["placements"][0]["time_s"] == *answer->placements[0].time_s);
  CHECK(json["partition"]["layers"].get<std::vector<std::int64_t>>() == answer->partition->layers);
  CHECK(json["noise"]["share"] == 0.95);
  CHECK(json["noise"]["iteration_time_s"] <= json["noise"]["without_noise_s"]);
  const std::string text = order_text(report, 60);
  for (const char* key : {"\nplacement: ", "\npartition: ", "\nnoise: "})
    CHECK(text.find(key) != std::string::npos);
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  CHECK(longest <= 60);
  CHECK(order_text(report, std::nullopt).find("too little memory for ") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
