// The interval of an iteration time: where it is told, and how wide it is.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/planning/predict.h"
#include "sim/report/compare_report.h"
#include "sim/report/report.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

using Json = nlohmann::json;

/// A llama on two devices as `device` says, under overrides.
Outcome predicted(const std::string& device, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  const auto scenario = parse_scenario(
      text_source("s.yaml", fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 128}}\n"
                                        "cluster: {{devices: 2, device: {}}}\n"
                                        "schedule: {{name: 1f1b, micro_batches: 4}}\n",
                                        folder.file("llama.json", kLlama), device)),
      overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

TEST_CASE("a time from kernels has an interval around it") {
  const Outcome outcome = predicted("h100-sxm");
  const auto likely = outcome.likely_iteration_time();
  REQUIRE(likely);
  CHECK(likely->low_s < outcome.iteration_time_s);
  CHECK(likely->high_s > outcome.iteration_time_s);
  const std::string table = to_table(outcome, std::nullopt).print();
  CHECK(table.find("likely range") != std::string::npos);
  CHECK(table.find(range_text(*likely)) != std::string::npos);
  const Json json = Json::parse(to_json(outcome, "1.2.3"));
  const Json& interval = json.at("iteration_time_interval_s");
  CHECK(interval.at("low") == likely->low_s);
  CHECK(interval.at("high") == likely->high_s);
  CHECK(interval.at("coverage") == 0.9);
  CHECK(interval.at("kind") == "dense");
  CHECK(interval.at("from") == to_text(*outcome.setup.errors));
  CHECK(json.at("estimated").dump().find("how sure the iteration time is: ") != std::string::npos);
}

TEST_CASE("compared runs keep their intervals, and the order is said to be surer") {
  const auto outcome = std::make_shared<const Outcome>(predicted("h100-sxm"));
  const auto read = read_result(text_source("it.json", to_json(*outcome, "1.2.3")), "read");
  REQUIRE(read);
  REQUIRE(read->likely_time);
  CHECK(read->likely_time->low_s == outcome->likely_iteration_time()->low_s);
  const std::vector<ComparedRun> runs = {compared(outcome, "own"), *read};
  const std::string table = to_table(runs, {}).print();
  CHECK(table.find("likely range") != std::string::npos);
  CHECK(table.find(order_sentence()) != std::string::npos);
  const Json json = Json::parse(to_json(runs, "1.2.3", {}));
  for (const Json& run : json.at("runs"))
    CHECK(run.at("iteration_time_interval_s").at("high") ==
          outcome->likely_iteration_time()->high_s);
}

TEST_CASE("the order is said to be surer for runs of one model alone") {
  ComparedRun one = compared(std::make_shared<const Outcome>(predicted("h100-sxm")), "one");
  ComparedRun two = one;
  two.title = "two";
  const auto tells = [&] {
    return to_table({one, two}, {}).print().find(order_sentence()) != std::string::npos;
  };
  CHECK(one.model == "llama");
  CHECK(tells());
  *two.layers += 1;  // a larger one of the same family
  CHECK_FALSE(tells());
  two.layers = one.layers;
  *two.parameters_bytes += 1;
  CHECK_FALSE(tells());
  two.parameters_bytes = std::nullopt;  // shared by a group
  CHECK(tells());
  two.model = "another";
  CHECK_FALSE(tells());
  one.model = two.model = "";  // unknown
  CHECK_FALSE(tells());
}

TEST_CASE("the order is said to be surer for runs on one device with one stack alone") {
  const auto run_on = [](const std::string& device, const std::vector<std::string>& overrides) {
    return compared(std::make_shared<const Outcome>(predicted(device, overrides)), "run");
  };
  const ComparedRun one = run_on("h100-sxm", {});
  const auto tells = [&](const ComparedRun& other) {
    return to_table({one, other}, {}).print().find(order_sentence()) != std::string::npos;
  };
  CHECK(one.setting == "h100-sxm with megatron-core");
  CHECK(tells(run_on("{preset: h100-sxm}", {"schedule.name=gpipe"})));
  CHECK(tells(run_on("h100-sxm", {"model.dtype=fp16"})));
  CHECK_FALSE(tells(run_on("h100-sxm", {"model.dtype=fp32"})));  // has no interval
  CHECK_FALSE(tells(run_on("a100-sxm-80gb", {})));
  CHECK_FALSE(tells(run_on("{preset: h100-sxm, stack: eager-2023}", {})));
  const ComparedRun other_rates =
      run_on("{preset: h100-sxm, link: 300 GB/s, network: 25 GB/s, link_overlap: 0.5}", {});
  CHECK(other_rates.setting ==
        "h100-sxm, link 300 GB/s, network 25 GB/s, link_overlap 0.5 with megatron-core");
  CHECK_FALSE(tells(other_rates));
  const ComparedRun of_numbers = run_on("{peak: 600 TFLOP/s, memory_bandwidth: 2 TB/s}", {});
  CHECK(of_numbers.setting ==
        "the given device, peak 600 TFLOP/s, memory_bandwidth 2000 GB/s with megatron-core");
}

TEST_CASE("a result without a setting, or with an interval that ends before it begins") {
  const Outcome outcome = predicted("h100-sxm");
  const std::string text = to_json(outcome, "1.2.3");
  const auto changed = [&](const auto& change) {
    Json json = Json::parse(text);
    change(json["iteration_time_interval_s"]);
    return read_result(text_source("it.json", json.dump()), "read");
  };
  const auto older = changed([](Json& interval) { interval.erase("setting"); });
  REQUIRE(older);
  CHECK(older->likely_time);
  CHECK(older->setting.empty());
  CHECK(to_table({*older, *older}, {}).print().find(order_sentence()) == std::string::npos);
  const auto turned = changed([](Json& interval) { interval["low"] = 1e9; });
  REQUIRE_FALSE(turned);
  CHECK(to_text(turned.problems()).find("'low' of its iteration_time_interval_s is larger") !=
        std::string::npos);
  CHECK_FALSE(changed([](Json& interval) { interval["setting"] = 5; }));
}

TEST_CASE("an interval is wider where the rates of a device are not its preset's") {
  const auto basis = [](const std::string& more) {
    const Outcome outcome = predicted(fmt::format("{{preset: h100-sxm{}}}", more));
    REQUIRE(outcome.setup.errors);
    return outcome.setup.errors->basis;
  };
  CHECK(basis("") == ErrorBasis::same);
  CHECK(basis(", network: 25 GB/s") == ErrorBasis::same);  // those of published runs differ
  CHECK(basis(", link: 450 GB/s") == ErrorBasis::same);
  CHECK(basis(", link: 300 GB/s") == ErrorBasis::left_out);
  CHECK(basis(", peak: 800 TFLOP/s") == ErrorBasis::left_out);
  CHECK(basis(", memory_bandwidth: 2.4 TB/s") == ErrorBasis::left_out);
  CHECK(basis(", fp8_peak: 1 PFLOP/s") == ErrorBasis::same);  // nothing is in fp8
  CHECK(basis(", link_overlap: 0.5") == ErrorBasis::left_out);
  CHECK(basis(", network_overlap: 0") == ErrorBasis::left_out);
}

TEST_CASE("no published run says how sure times in fp32, of slices or of asynchronous runs are") {
  CHECK(predicted("h100-sxm", {"model.dtype=fp16"}).likely_iteration_time());
  CHECK_FALSE(predicted("h100-sxm", {"model.dtype=fp32"}).likely_iteration_time());
  CHECK_FALSE(predicted("h100-sxm", {"schedule.slices=2"}).likely_iteration_time());
  CHECK_FALSE(predicted("h100-sxm", {"schedule.name=pipedream"}).likely_iteration_time());
  CHECK(predicted("h100-sxm", {"training.flush=none"}).likely_iteration_time());
}

TEST_CASE("a time from a roofline, or of a real run, has none") {
  const Outcome by_roofline = predicted("{preset: h100-sxm, efficiency: 0.5}");
  CHECK_FALSE(by_roofline.likely_iteration_time());
  CHECK(to_table(by_roofline, std::nullopt).print().find("likely range") == std::string::npos);
  CHECK_FALSE(Json::parse(to_json(by_roofline, "1.2.3")).contains("iteration_time_interval_s"));
  Outcome measured = predicted("h100-sxm");
  const std::size_t estimates = measured.setup.estimated.size();
  measured.setup.forget_errors();
  CHECK(measured.setup.estimated.size() == estimates - 1);
  CHECK_FALSE(measured.likely_iteration_time());
}

TEST_CASE("a range of times has three digits") {
  CHECK(range_text(TimeRange{1.8643, 2.4049}) == "1.86 s to 2.4 s");
  CHECK(range_text(TimeRange{0.098765, 0.1234567}) == "98.8 ms to 123.5 ms");
  CHECK(range_text(TimeRange{123.456, 150.04}) == "123 s to 150 s");
}

}  // namespace
}  // namespace plumbline::test
