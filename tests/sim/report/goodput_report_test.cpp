// Reports of a training that fails now and then: table, JSON, sampled trainings.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/document.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/report/report.h"
#include "sim/scenario/scenario.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// Iterations of 21 s on four devices.
Outcome outcome_of(const std::vector<std::string>& overrides) {
  const auto scenario = parse_scenario(
      text_source("s.yaml",
                  "version: 1\n"
                  "model: {uniform: {layers: 4, forward: 1 s, backward: 2 s}, batch: 1}\n"
                  "cluster: {devices: 4}\n"
                  "schedule: {name: 1f1b, micro_batches: 4}\n"
                  "training: {sequence: 100}\n"
                  "goodput: {job_mtbf: 5 h, restart: 10 min, checkpoint: {pause: 10 s}}\n"),
      overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict_resolved(*scenario);
  REQUIRE(outcome);
  return *std::move(outcome);
}

std::string table_of(const std::vector<std::string>& overrides) {
  return to_table(outcome_of(overrides), std::nullopt).print(200);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the table says where the time of weeks goes") {
  const std::string best = table_of({});
  CHECK(has(best, "the job fails every 5 h on average"));
  CHECK(has(best, "stops the training for 10 s, after 28 iterations (9.8 min), the best interval"));
  CHECK(has(best, "each takes 10 min"));
  CHECK_FALSE(has(best, "sampled"));  // no tokens
  const std::string given = table_of({"goodput.checkpoint.iterations=100"});
  CHECK(has(given, "after 100 iterations (35 min); the best interval is 28 iterations (9.8 min)"));
  const std::string write =
      table_of({"goodput.checkpoint.iterations=1", "goodput.checkpoint.write=5 min"});
  CHECK(has(write, "after 15 iterations (5.25 min), as often as writing them allows"));
  CHECK(has(table_of({"goodput.checkpoint.write=15 min"}), "as often as writing them allows"));
  const std::string sampled = table_of({"training.tokens=4M", "goodput.samples=50"});
  CHECK(has(sampled, "the median of 50 sampled trainings"));
  CHECK_FALSE(has(table_of({"training.tokens=4M", "goodput.samples=0"}), "sampled"));
  const std::string never = table_of({"training.tokens=4M", "goodput.job_mtbf=1 s"});
  CHECK(has(never, "it never ends at this rate of failures"));
  CHECK(has(table_of({"training.tokens=4T"}), "no sampled trainings: one may take centuries"));
}

TEST_CASE("the JSON has all parts, which add up") {
  const auto json =
      nlohmann::json::parse(to_json(outcome_of({"training.tokens=4M", "goodput.samples=50"}), "0"));
  const auto& parts = json["goodput_parts"];
  CHECK(json["goodput"].get<double>() + parts["checkpoint_fraction"].get<double>() +
            parts["lost_fraction"].get<double>() + parts["restart_fraction"].get<double>() ==
        doctest::Approx(1));
  CHECK(parts["failures_per_day"] == doctest::Approx(4.8));
  CHECK(parts["iterations_between_checkpoints"] == 28);
  CHECK(parts["interval_s"] == doctest::Approx(588));
  CHECK(parts["is_best_interval"] == true);
  CHECK(parts["waits_for_write"] == false);
  CHECK(json["checkpoint_interval_s"] == doctest::Approx(588));
  CHECK(json["goodput_samples_per_s"] ==
        doctest::Approx(json["throughput_samples_per_s"].get<double>() *
                        json["goodput"].get<double>()));
  CHECK(parts["young_interval_s"] == doctest::Approx(600));
  CHECK(parts["sampled"]["trainings"] == 50);
  CHECK(parts["sampled"]["iterations"] == 10'000);
  CHECK(parts["sampled"]["days_p5"] <= parts["sampled"]["days_p50"]);
  CHECK(parts["sampled"]["days_p50"] <= parts["sampled"]["days_p95"]);
  CHECK(json["tokens_per_day"] == doctest::Approx(json["tokens_per_s"].get<double>() * 86'400 *
                                                  json["goodput"].get<double>()));
  const auto plain = nlohmann::json::parse(to_json(outcome_of({"goodput=null"}), "0"));
  CHECK_FALSE(plain.contains("goodput"));
  CHECK_FALSE(plain.contains("goodput_parts"));
}

}  // namespace
}  // namespace plumbline::test
