// Tables of kernels in scenarios: what they change, and what a report says of them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/kernel_table_writer.h"
#include "models/profile/estimate.h"
#include "models/tables/kernel_list.h"
#include "sim/planning/predict.h"
#include "sim/report/report.h"
#include "sim/report/search_report.h"
#include "sim/search/missing_kernels.h"
#include "sim/search/run_search.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

/// A small model on an H100, and tables of its kernels.
class Trial {
 public:
  Trial() { folder_.file("config.json", kLlama); }

  std::string scenario_text(const std::string& device) const {
    return fmt::format(
        "version: 1\nname: small\nmodel: {{huggingface: config.json, sequence: 128}}\n"
        "cluster: {{devices: 2, device: {}}}\nplan: {{stages: 2}}\n"
        "schedule: {{name: 1f1b}}\ntraining: {{mini_batch_size: 8, micro_batch_size: 1}}\n",
        device);
  }
  std::shared_ptr<const Source> source(const std::string& text) const {
    auto source = std::make_shared<Source>();
    source->name = folder_["scenario.yaml"];
    source->directory = folder_.path();
    source->text = text;
    return source;
  }
  Scenario read(const std::string& device) const {
    auto scenario = parse_scenario(source(scenario_text(device)), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    return *std::move(scenario);
  }
  Outcome predicted(const std::string& device) const {
    auto outcome = predict(read(device));
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return *std::move(outcome);
  }

  /// A table with all kernels of the model but the last `left_out`, which take `factor` times
  /// their modelled times.
  KernelTable table(double factor, std::size_t left_out = 0) const {
    const Scenario scenario = read("h100-sxm");
    REQUIRE(scenario.kernels);
    KernelList list;
    list.add(*scenario.model, *scenario.kernels);
    KernelTable table;
    table.device = "NVIDIA H100 80GB HBM3";
    std::vector<ListedKernel> kernels = list.kernels();
    kernels.resize(kernels.size() - left_out);
    for (const ListedKernel& kernel : kernels) {
      KernelRow row;
      row.key = kernel.key;
      row.time = Duration{std::llround(1e9 * factor * kernel.modelled_seconds)};
      table.rows.push_back(row);
    }
    return table;
  }
  std::string with(const KernelTable& table, const std::string& preset = "h100-sxm") const {
    folder_.file("table.yaml", kernel_table_yaml(table));
    return fmt::format("{{preset: {}, kernels: table.yaml}}", preset);
  }

  TemporaryFolder folder_;
};

bool has(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST_CASE("measured kernels take the place of modelled ones, and the report says so") {
  const Trial trial;
  const Outcome modelled = trial.predicted("h100-sxm");
  const Outcome twice = trial.predicted(trial.with(trial.table(2)));
  CHECK(twice.iteration_time_s > 1.5 * modelled.iteration_time_s);
  CHECK(has(twice.setup.estimated,
            "layer times: 100 % by measured kernels of table.yaml (NVIDIA H100 80GB HBM3), closure "
            "1.1 of "
            "products, for "
            "h100-sxm in bf16 with megatron-core"));
  const auto json = nlohmann::json::parse(to_json(twice, "1"));
  CHECK(json["kernel_times"]["measured_fraction"] == doctest::Approx(1));
  CHECK(json["kernel_times"]["device"] == "NVIDIA H100 80GB HBM3");
  CHECK_FALSE(nlohmann::json::parse(to_json(modelled, "1")).contains("kernel_times"));
}

TEST_CASE("what the table lacks is modelled, and the closure is told") {
  const Trial trial;
  KernelTable table = trial.table(1, 5);
  table.closure.gemm = 1.07;
  const Outcome outcome = trial.predicted(trial.with(table));
  REQUIRE(outcome.setup.kernel_shares());
  const KernelShares& shares = *outcome.setup.kernel_shares();
  CHECK(shares.measured > .5);
  CHECK(shares.measured < 1);
  CHECK(shares.measured + shares.interpolated + shares.modelled == doctest::Approx(1));
  CHECK(has(outcome.setup.estimated, "closure 1.07 of products"));
}

TEST_CASE("a table that has nearly nothing changes neither words nor how sure a time is") {
  const Trial trial;
  const std::size_t all = trial.table(1).rows.size();
  KernelTable table = trial.table(1, all - 1);
  table.rows.front().key.sizes.front() += 1'000'000;  // far from every kernel of the model
  const Outcome outcome = trial.predicted(trial.with(table));
  CHECK(has(outcome.setup.estimated,
            "layer times: kernel by kernel, none of them in table.yaml (NVIDIA H100 80GB HBM3), "
            "for h100-sxm in bf16 with megatron-core"));
  CHECK(outcome.likely_iteration_time());
  const Outcome measured = trial.predicted(trial.with(trial.table(1, all / 2)));
  CHECK(measured.setup.kernel_shares()->modelled < kMostlyModelled);
  CHECK_FALSE(measured.likely_iteration_time());
}

TEST_CASE("a table's times of launches are told, and leave no interval") {
  const Trial trial;
  KernelTable table = trial.table(1, trial.table(1).rows.size() - 1);
  table.rows.front().key.sizes.front() += 1'000'000;  // far from every kernel of the model
  table.launch = LaunchTimes{.gap = Duration{5'000'000}, .per_op = {}, .host_per_op = {}};
  const Outcome outcome = trial.predicted(trial.with(table));
  CHECK(outcome.iteration_time_s > 2 * trial.predicted("h100-sxm").iteration_time_s);
  CHECK(has(outcome.setup.estimated,
            "none of them in table.yaml (NVIDIA H100 80GB HBM3), launches as the table says, for "
            "h100-sxm"));
  CHECK_FALSE(outcome.likely_iteration_time());
  KernelTable all = trial.table(1);
  all.launch = table.launch;
  CHECK(has(trial.predicted(trial.with(all)).setup.estimated,
            "closure 1.1 of products, launches as the table says, for h100-sxm"));
}

TEST_CASE("of several batches the first decides the shares of kernels") {
  const Trial trial;
  const Scenario scenario = trial.read("h100-sxm");
  Model model = profile_of(kLlama, tokens(128)).model;
  const Model twice = profile_of(kLlama, tokens(128, 2)).model;
  model.profile.measurements.push_back(twice.profile.measurements.front());
  const KernelModel kernels(scenario.kernels->device(), scenario.kernels->stack(),
                            std::make_shared<const MeasuredKernels>(trial.table(1)));
  const Estimate estimate{.device = *scenario.estimated_for,
                          .kernels = KernelSetting{kernels, "table.yaml", {}, {}, 1},
                          .optimizer = usual_adam(NumberFormat::bf16)};
  REQUIRE_FALSE(estimate_times(model, estimate, {}));
  REQUIRE(model.profile.kernel_shares);
  CHECK(model.profile.kernel_shares->measured == doctest::Approx(1));
}

TEST_CASE("a search by measured kernels tries no other rates, and calls nothing too close") {
  const Trial trial;
  const auto told_with = [&](const std::string& device,
                             const std::vector<std::string>& arguments = {}) {
    const std::string text = fmt::format(
        "version: 1\nname: small\nmodel: {{huggingface: config.json, sequence: 128}}\n"
        "cluster: {{gpus: 2, device: {}}}\ntraining: {{mini_batch_size: 4}}\n",
        device);
    const auto search = Search::parse(trial.source(text), arguments);
    REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
    auto run = run_search(*search);
    REQUIRE(run);
    SearchReport told = report(std::move(run->part), {});
    try_other_devices(*search, told);
    return told;
  };
  const SearchReport modelled = told_with("h100-sxm");
  CHECK(modelled.too_close);
  CHECK(modelled.others.size() == 2);
  const SearchReport measured = told_with(trial.with(trial.table(1)));
  CHECK(measured.best.size() > 1);
  CHECK_FALSE(measured.too_close);
  CHECK(doubts(measured).empty());
  KernelTable unused = trial.table(1, trial.table(1).rows.size() - 1);
  unused.rows.front().key.sizes.front() += 1'000'000;
  const SearchReport with_unused = told_with(trial.with(unused));
  CHECK(with_unused.too_close == modelled.too_close);
  CHECK(with_unused.others.size() == 2);
  for (const std::string unpublished :
       {"model.dtype=fp32", "model.dtype=bf16,fp32", "schedule.slices=2"}) {
    CAPTURE(unpublished);
    const SearchReport told = told_with("h100-sxm", {unpublished});
    CHECK_FALSE(told.too_close);
    CHECK(told.others.size() == 2);
    CHECK(to_table(told).print().find(order_sentence()) == std::string::npos);
    const auto json = nlohmann::json::parse(to_json(told, "1"));
    CHECK_FALSE(json.contains("too_close_to_first"));
    CHECK(json.at("other_speeds").size() == 2);
    CHECK(json.at("other_efficiencies").empty());
  }
}

TEST_CASE("a table of another device is noted, and one that changes nothing, too") {
  const Trial trial;
  KernelTable table = trial.table(1);
  CHECK_FALSE(has(trial.read(trial.with(table)).notes, "cluster.device.kernels"));
  CHECK(has(trial.read(trial.with(table, "a100-sxm-80gb")).notes,
            "cluster.device.kernels holds times of 'NVIDIA H100 80GB HBM3', and cluster.device is "
            "'a100-sxm-80gb'"));
  trial.with(table);
  CHECK(has(trial.read("{preset: h100-sxm, efficiency: 0.5, kernels: table.yaml}").notes,
            "cluster.device.kernels changes nothing: with an efficiency"));
}

TEST_CASE("a table that is wrong is refused with its own place") {
  const Trial trial;
  trial.folder_.file("table.yaml", "version: 1\nkind: kernels\ndevice: x\ngemm: [[bf16]]\n");
  const auto wrong = parse_scenario(
      trial.source(trial.scenario_text("{preset: h100-sxm, kernels: table.yaml}")), {});
  REQUIRE_FALSE(wrong);
  CHECK(to_text(wrong.problems()).find("table.yaml:4:8: error: gemm[0] has 1 field") !=
        std::string::npos);
  const auto missing = parse_scenario(
      trial.source(trial.scenario_text("{preset: h100-sxm, kernels: none.yaml}")), {});
  REQUIRE_FALSE(missing);
  CHECK(to_text(missing.problems()).find("cluster.device.kernels is '") != std::string::npos);
}

TEST_CASE("a search tells which kernels its layouts would need measured") {
  const Trial trial;
  const std::string text = fmt::format(
      "version: 1\nname: small\nmodel: {{huggingface: config.json, sequence: 128}}\n"
      "cluster: {{gpus: 2, device: {}}}\ntraining: {{mini_batch_size: 4}}\n",
      trial.with(trial.table(1)));
  const auto search = Search::parse(trial.source(text), {});
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  const auto run = run_search(*search);
  REQUIRE(run);
  const auto missing = missing_kernels(*search, run->part);
  REQUIRE(missing);
  REQUIRE_FALSE(missing->empty());
  const auto table = trial.table(1);
  for (const ListedKernel& kernel : *missing) {
    CHECK(std::none_of(table.rows.begin(), table.rows.end(),
                       [&](const KernelRow& row) { return row.key == kernel.key; }));
  }
  CHECK(std::is_sorted(
      missing->begin(), missing->end(),
      [](const ListedKernel& a, const ListedKernel& b) { return a.weight > b.weight; }));

  const std::string rooflines = fmt::format(
      "version: 1\nname: small\nmodel: {{huggingface: config.json, sequence: 128}}\n"
      "cluster: {{gpus: 2, device: {{preset: h100-sxm, efficiency: 0.5}}}}\n"
      "training: {{mini_batch_size: 4}}\n");
  const auto other = Search::parse(trial.source(rooflines), {});
  REQUIRE(other);
  CHECK_FALSE(missing_kernels(*other, run_search(*other)->part));
}

}  // namespace
}  // namespace plumbline::test
