// Searches of layouts: what is open, what is passed over, and that the first is the best of all.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/search_report.h"
#include "tests/support/close_to.h"
#include "tests/support/json_schema.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// A model small enough that some layouts fit and some do not.
const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 4,
        "vocab_size": 32000})";

std::string scenario_text(const TemporaryFolder& folder, const std::string& more = "") {
  return fmt::format(
      "version: 1\nname: small\nmodel: {{huggingface: {}, sequence: 2048}}\n"
      "cluster: {{gpus: 8, gpus_per_server: 4, device: {{preset: h100-sxm, network: 25 GB/s, "
      "efficiency: 0.5, "
      "memory: 2 GiB}}}}\n"
      "training: {{mini_batch_size: 16, gradients: 2, optimizer_state: 6, zero_stage: 1}}\n{}",
      folder.file("llama.json", kLlama), more);
}

Search search_of(const std::string& text, const std::vector<std::string>& arguments = {},
                 bool free = false) {
  auto search = Search::parse(text_source("s.yaml", text), arguments, free);
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  return *std::move(search);
}

std::string refusal(const std::string& text, const std::vector<std::string>& arguments = {}) {
  const auto search = Search::parse(text_source("s.yaml", text), arguments);
  REQUIRE_FALSE(search);
  return search.problems().front().message;
}

SearchReport report_of(const Search& search, SearchSelection selection = {}) {
  SearchTally tally(search.facts());
  // In the other order: what is told does not depend on it.
  for (auto family = search.families().rbegin(); family != search.families().rend(); ++family)
    tally.add(search.evaluate(*family));
  return std::move(tally).report(std::move(selection));
}

SearchSelection best(std::size_t count) {
  SearchSelection selection;
  selection.rows.top = count;
  return selection;
}

/// The outcome of these overrides. Nothing if they cannot run or do not fit.
std::optional<Outcome> outcome_of(const std::string& text,
                                  const std::vector<std::string>& overrides) {
  auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
  if (!scenario) return std::nullopt;
  const auto settled = resolve_plan(*std::move(scenario));
  if (!settled) return std::nullopt;
  auto outcome = predict(*settled);
  if (!outcome || outcome->fits() == false) return std::nullopt;
  return *std::move(outcome);
}

std::optional<double> alone(const std::string& text, const std::vector<std::string>& overrides) {
  const auto outcome = outcome_of(text, overrides);
  return outcome ? outcome->throughput_samples_per_s : std::nullopt;
}

TEST_CASE("the first of a search is the best of all that may be written, tried one by one") {
  if (kSanitized) return;  // a minute there, of predictions that other cases make, too
  const TemporaryFolder folder;
  const std::string text = scenario_text(folder);
  const std::vector<std::string> given = {"model.context_parallel=1"};
  const SearchReport report = report_of(search_of(text, given));
  REQUIRE_FALSE(report.rows.empty());

  std::map<std::string, double> feasible;  // with the most of each that is told alike
  const auto try_out = [&](int tensor, int stages, const std::string& schedule, int size,
                           const std::string& again) {
    const std::string plan =
        stages == 0
            ? "null"
            : fmt::format("{{stages: {}, data_parallel: fill, partition: balanced}}", stages);
    const auto outcome = outcome_of(
        text, {"model.context_parallel=1", fmt::format("model.tensor_parallel={}", tensor),
               "model.sequence_parallel=true", "plan=" + plan,
               fmt::format("training.micro_batch_size={}", size),
               fmt::format("schedule={}, recompute: {}}}", schedule, again)});
    if (!outcome) return;
    const auto& layers = outcome->setup.recomputed;
    const std::uint32_t sum = std::accumulate(layers.begin(), layers.end(), 0U);
    double& max = feasible[fmt::format("{} {} {} {} {}", tensor, stages, schedule, size,
                                       sum == 0 ? "none" : fmt::format("{} {}", again, sum))];
    max = std::max(max, *outcome->throughput_samples_per_s);
  };
  for (const int tensor : {1, 2, 4, 8}) {
    for (const int size : {1, 2, 4, 8, 16}) {
      for (const char* again :
           {"none", "selective, recompute_layers: fit", "layers, recompute_layers: fit"}) {
        try_out(tensor, 0, "{name: data-parallel", size, again);
        for (int stages = 1; stages <= 16; ++stages) {
          try_out(tensor, stages, "{name: 1f1b", size, again);
          for (const int chunks : {2, 3, 4, 8}) {
            if (stages == chunks) continue;  // one device has no turns to take
            try_out(tensor, stages, fmt::format("{{name: interleaved-1f1b, chunks: {}", chunks),
                    size, again);
          }
        }
      }
    }
  }
  std::vector<double> wanted;
  wanted.reserve(feasible.size());
  for (const auto& [layout, throughput] : feasible) wanted.push_back(throughput);
  std::sort(wanted.begin(), wanted.end(), std::greater<>());
  REQUIRE(report.rows.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(*report.rows[i].row.numbers->throughput_samples_per_s == close_to(wanted[i]));
  CHECK(report.feasible == feasible.size());
  CHECK(report.done == report.layouts);
  CHECK(report.feasible + report.misfits + report.cannot_run == report.layouts);
  CHECK(report.misfits > 0);
}

TEST_CASE("where nothing has to be made again, stages are cut as if nothing were") {
  // All layers take 6 ms; with their forwards again the first two take much more than the others.
  std::string layers;
  for (int i = 0; i < 8; ++i)
    layers += fmt::format("{}{{name: l{}, forward: {} us, backward: {} us, activation: 1 MiB}}",
                          i == 0 ? "" : ", ", i, i < 2 ? 4000 : 500, i < 2 ? 2000 : 5500);
  const std::string text = fmt::format(
      "version: 1\nmodel: {{layers: [{}], batch: 1}}\ncluster: {{devices: 2, memory: 1 GiB}}\n"
      "plan: {{stages: 2}}\nschedule: {{name: 1f1b}}\ntraining: {{mini_batch_size: 16}}\n",
      layers);
  const SearchReport report = report_of(search_of(text, {"training.micro_batch_size=1"}));
  REQUIRE(report.rows.size() == 1);
  CHECK(report.rows.front().layout.recomputation == "none");
  CHECK(
      report.rows.front().row.numbers->iteration_time_s ==
      outcome_of(text, {"training.micro_batch_size=1", "plan.partition=[4, 4]"})->iteration_time_s);
}

TEST_CASE("what a row says is what simulate says of its overrides") {
  const TemporaryFolder folder;
  const std::string text = scenario_text(folder);
  const SearchReport report = report_of(search_of(text), best(kSanitized ? 4 : 40));
  for (const SearchRow& row : report.rows) {
    const auto throughput = alone(text, row.layout.overrides);
    REQUIRE(throughput);
    CHECK(*throughput == *row.row.numbers->throughput_samples_per_s);
  }
}

TEST_CASE("micro-batches larger than one that does not fit do not fit either") {
  const TemporaryFolder folder;
  const std::string text = scenario_text(folder);
  const Search search = search_of(text);
  std::uint64_t passed_over = 0;
  for (const LayoutFamily& family : search.families()) {
    const FamilyResult result = search.evaluate(family);
    passed_over += result.passed_over;
    if (result.passed_over == 0 || kSanitized) continue;
    for (std::size_t i = result.rows.size(); i < family.layouts(); ++i) {
      std::vector<std::string> overrides = family.overrides;
      overrides.push_back(fmt::format("training.micro_batch_size={}", family.micro_batch_sizes[i]));
      CAPTURE(overrides);
      CHECK_FALSE(alone(text, overrides));
    }
  }
  CHECK(passed_over > 0);
}

TEST_CASE("what the scenario or the arguments give is kept") {
  const TemporaryFolder folder;
  const std::string text =
      scenario_text(folder, "plan: {stages: 2}\nschedule: {name: gpipe, recompute: full}\n");
  const Search search = search_of(text, {"model.tensor_parallel=1,2", "model.context_parallel=1"});
  CHECK(search.facts().open_keys == std::vector<std::string>{"training.micro_batch_size"});
  std::set<std::int64_t> tensors;
  const SearchReport all = report_of(search);
  REQUIRE_FALSE(all.rows.empty());
  for (const SearchRow& row : all.rows) {
    tensors.insert(row.layout.tensor);
    CHECK(row.layout.stages == 2);
    CHECK(row.layout.schedule == "gpipe");
    CHECK(row.layout.recomputation == "full");
    CHECK(row.layout.copies == 4 / row.layout.tensor);
  }
  CHECK(tensors == std::set<std::int64_t>{1, 2});

  // Chunks of a schedule that has as many as it has.
  const Search fixed = search_of(scenario_text(folder), {"schedule.name=dualpipev"});
  for (const SearchRow& row : report_of(fixed).rows) {
    CHECK(row.layout.chunks == 2);
    CHECK(row.layout.stages * row.layout.copies * row.layout.tensor * row.layout.context == 16);
  }
}

TEST_CASE("a model that is known by its costs is searched over stages, copies and the rest") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MiB, "
      "activation: 40 MiB, parameters: 4 MiB}, batch: 1}\n"
      "cluster: {devices: 8, memory: 400 MiB, link: {bandwidth: 10 GB/s}}\n"
      "training: {mini_batch_size: 32}\n";
  const Search search = search_of(text);
  CHECK(search.facts().open_keys ==
        std::vector<std::string>{"schedule.name", "plan.stages", "schedule.recompute",
                                 "training.micro_batch_size", "schedule.chunks"});
  const SearchReport report = report_of(search);
  REQUIRE(report.rows.size() > 10);
  for (const SearchRow& row : report.rows) {
    CHECK(row.layout.recomputation.find("selective") == std::string::npos);
    CHECK(row.layout.sequence == 0);
    CHECK(row.layout.copies * row.layout.micro_batches * row.layout.micro_batch_size == 32);
  }
  CHECK(report.mini_batch == 32);
  CHECK(to_table(report).print().find("tokens/s") == std::string::npos);
}

TEST_CASE("--free takes the layout out, keeps the mini-batch and compares") {
  const TemporaryFolder folder;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048, tensor_parallel: 4}}\n"
      "cluster: {{gpus: 8, device: {{preset: h100-sxm, efficiency: 0.5}}}}\nplan: {{stages: 2}}\n"
      "schedule: {{name: interleaved-1f1b, chunks: 2, micro_batches: 8}}\n"
      "training: {{micro_batch_size: 2, optimizer_state: 6}}\n",
      folder.file("llama.json", kLlama));
  const Search kept = search_of(
      text, {"plan.stages=4", "training.mini_batch_size=16", "schedule.micro_batches=null"});
  CHECK(std::find(kept.facts().open_keys.begin(), kept.facts().open_keys.end(), "schedule.name") ==
        kept.facts().open_keys.end());
  const Search free = search_of(text, {}, true);
  const SearchReport report = report_of(free);
  REQUIRE(report.facts.as_it_stands);
  REQUIRE(report.facts.as_it_stands->numbers);
  REQUIRE_FALSE(report.rows.empty());
  CHECK(report.mini_batch == 16);
  CHECK(*report.rows.front().row.numbers->throughput_samples_per_s >=
        *report.facts.as_it_stands->numbers->throughput_samples_per_s);
  CHECK(to_table(report).print().find("the scenario as it stands: ") != std::string::npos);
  for (const SearchRow& row : report.rows) {
    if (row.layout.schedule != "1f1b") continue;
    CHECK(alone(text, row.layout.overrides) == row.row.numbers->throughput_samples_per_s);
  }
}

/// A llama whose layout on eight devices is open.
std::string llama_on_eight(const TemporaryFolder& folder, const std::string& device) {
  return fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048}}\n"
      "cluster: {{gpus: 8, device: {}}}\nplan: {{data_parallel: fill}}\n"
      "training: {{mini_batch_size: 32}}\n",
      folder.file("llama.json", kLlama), device);
}

TEST_CASE("a search by kernels says who is too close to the first, and who is first elsewhere") {
  const TemporaryFolder folder;
  const Search search = search_of(llama_on_eight(folder, "h100-sxm"));
  SearchReport report = report_of(search, best(5));
  CHECK_FALSE(report.too_close);
  try_other_devices(search, report);
  REQUIRE(report.too_close);
  const auto speed = [&](std::size_t i) {
    return *report.best[i].row.numbers->throughput_samples_per_s;
  };
  for (std::size_t i = 1; i < report.best.size(); ++i)
    CHECK((speed(i) * (1 + kTooClose) >= speed(0)) == (i <= *report.too_close));
  REQUIRE(report.others.size() == 2);
  CHECK(report.others[0].part == "products");
  CHECK(report.others[1].part == "links");
  const std::string table = to_table(report).print();
  CHECK(table.find("within 3 % of number 1") != std::string::npos);
  CHECK(table.find("if products ran at 80 % of their speed, number") != std::string::npos);
  CHECK(table.find("if links ran at 80 % of their speed, number") != std::string::npos);
  CHECK(table.find("how sure the iteration time is: ") != std::string::npos);
  const Json json = Json::parse(to_json(report, "1.2.3"));
  CHECK(json.at("too_close_to_first") == *report.too_close);
  CHECK(json.at("other_speeds").size() == 2);
  CHECK(json.at("other_speeds").at(0).at("speed") == 0.8);
  CHECK(json.at("other_efficiencies").empty());
}

TEST_CASE("a device of numbers alone keeps its products: its peak decides its other traits") {
  const TemporaryFolder folder;
  const Search search = search_of(llama_on_eight(
      folder, "{peak: 600 TFLOP/s, memory_bandwidth: 2 TB/s, link: 300 GB/s, memory: 80 GB}"));
  SearchReport report = report_of(search, best(5));
  try_other_devices(search, report);
  CHECK(report.too_close);
  REQUIRE(report.others.size() == 1);
  CHECK(report.others.front().part == "links");
}

TEST_CASE("reports are whole: columns that differ, data for programs, other efficiencies") {
  const TemporaryFolder folder;
  const Search search = search_of(scenario_text(folder));
  SearchReport report = report_of(search, best(5));
  report.command = "plumbline simulate s.yaml";
  try_other_devices(search, report);
  CHECK(report.rows.size() == 5);
  CHECK(report.best.size() == 10);
  CHECK(report.efficiency == 0.5);
  REQUIRE(report.others.size() == 2);
  for (const OtherDevice& other : report.others) {
    CHECK(other.first < report.best.size());
    CHECK(other.gain >= 0);
    CHECK((other.first > 0 || other.gain == 0));
  }
  const std::string table = to_table(report).print();
  CHECK(table.find("tokens/s/GPU") != std::string::npos);
  CHECK(table.find("EP") == std::string::npos);  // is 1 in all rows
  CHECK(table.find("the first:\n  plumbline simulate s.yaml\n") != std::string::npos);
  const Json json = Json::parse(to_json(report, "1.2.3"));
  CHECK(json.at("layouts") == report.layouts);
  CHECK(json.at("rows").size() == 5);
  const Json& first = json.at("rows").at(0);
  CHECK(first.at("tensor_parallel") == report.rows.front().layout.tensor);
  CHECK(first.at("iteration_time_s") == report.rows.front().row.numbers->iteration_time_s);
  CHECK(first.at("overrides").size() == report.rows.front().layout.overrides.size());
  const std::string csv = to_csv(report);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
  CHECK(csv.starts_with("tensor_parallel,context_parallel,"));

  // Nothing fits: the nearest is told.
  const Search tight = search_of(scenario_text(folder), {"cluster.memory=100 MiB"});
  const SearchReport none = report_of(tight);
  CHECK(none.feasible == 0);
  REQUIRE(none.nearest);
  CHECK(to_table(none).print().find("; the nearest (") != std::string::npos);
}

TEST_CASE("a search tells what it lacks") {
  const TemporaryFolder folder;
  const std::string text = scenario_text(folder);
  CHECK(refusal(text, {"training.mini_batch_size=null"}) ==
        "a search compares layouts of one mini-batch, and training.mini_batch_size is not given");
  CHECK(refusal(text, {"cluster.gpus=null", "cluster.gpus_per_server=null"}) ==
        "a search needs to know how many devices there are");
  CHECK(refusal(text, {"cluster=null"}) == "a search needs to know how many devices there are");
  CHECK(refusal(text, {"schedule.file=a.csv"}) ==
        "a search chooses what the files of schedule.file and plan.file fix");
  CHECK(refusal(text, {"model=null"}) == "model is missing");
  CHECK(refusal(text, {"model.tensor_parallel=1", "model.context_parallel=1", "plan.stages=1",
                       "schedule={name: 1f1b, recompute: none}", "training.micro_batch_size=1"}) ==
        "the scenario leaves nothing open that a search could choose");
  CHECK(refusal(text, {"model.tensor_parallel=3"}) == "there is no layout that the numbers divide");
  // An error for every layout is reported with its place, and nothing is tried.
  CHECK(refusal(text, {"training.global_batch_size=512"}) ==
        "unknown key 'training.global_batch_size'");
  CHECK(refusal(text, {"schedule.name=1F1X"}) == "schedule.name is '1F1X', which is no schedule");
  CHECK(refusal(text, {"cluster.gpus=6", "model.tensor_parallel=1"}) ==
        "cluster.gpus is 6, which servers of 4 do not divide");
}

TEST_CASE("costs that know no batch are tried with one sample, those of a group with its own") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 4}\ntraining: {mini_batch_size: 64}\n";
  const Search unknown = search_of(text);
  CHECK(std::find(unknown.facts().open_keys.begin(), unknown.facts().open_keys.end(),
                  "training.micro_batch_size") == unknown.facts().open_keys.end());
  for (const SearchRow& row : report_of(unknown).rows) CHECK(row.layout.micro_batch_size == 1);
  for (const SearchRow& row :
       report_of(search_of(text, {"model.batch=8", "model.group={devices: 4}"})).rows)
    CHECK(row.layout.micro_batch_size % 8 == 0);

  const TemporaryFolder folder;
  const std::string mixtral =
      folder.file("mixtral.json",
                  R"({"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2048,
          "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8,
          "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})");
  const Search groups = search_of(
      fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 512, expert_parallel: 4}}\n"
                  "cluster: {{devices: 2, device: h100-sxm}}\ntraining: {{mini_batch_size: 32}}\n",
                  mixtral));
  const SearchReport report = report_of(groups);
  REQUIRE_FALSE(report.rows.empty());
  for (const SearchRow& row : report.rows) {
    CHECK(row.layout.batches == 4);
    CHECK(row.layout.micro_batch_size % 4 == 0);
  }
  CHECK(to_table(report).print().find(" 4 x 1 ") != std::string::npos);
  // Conditions are on the number, not on how a table tells it.
  auto four = select_layouts({}, {"micro_batch_size == 4"}, {});
  REQUIRE(four);
  const SearchReport picked = report_of(groups, *std::move(four));
  REQUIRE_FALSE(picked.rows.empty());
  for (const SearchRow& row : picked.rows) CHECK(row.layout.micro_batch_size == 4);
}

TEST_CASE("experts that the scenario divides are shared by as many times more GPUs") {
  const TemporaryFolder folder;
  const std::string mixtral =
      folder.file("mixtral.json",
                  R"({"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2048,
          "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8,
          "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})");
  const Search search = search_of(fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 512, expert_tensor_parallel: 2}}\n"
      "cluster: {{gpus: 8, device: h100-sxm}}\ntraining: {{mini_batch_size: 32}}\n"
      "schedule: {{name: 1f1b}}\n",
      mixtral));
  std::set<std::int64_t> shared;
  const SearchReport report = report_of(search);
  for (const SearchRow& row : report.rows) {
    const Layout& layout = row.layout;
    shared.insert(layout.expert);
    CHECK(layout.batches == 2 * layout.expert / (layout.tensor * layout.context));
  }
  CHECK(shared == std::set<std::int64_t>{2, 4});
}

TEST_CASE("keys beside the layout that are varied are columns, data and conditions") {
  const TemporaryFolder folder;
  const Search search =
      search_of(scenario_text(folder),
                {"cluster.gpus=4,8", "model.context_parallel=1", "schedule.name=1f1b"});
  CHECK(search.facts().varied_keys == std::vector<std::string>{"cluster.gpus"});
  auto selection = select_layouts({}, {"cluster.gpus == 4"}, search.facts().varied_keys);
  REQUIRE(selection);
  const SearchReport report = report_of(search, *std::move(selection));
  REQUIRE_FALSE(report.rows.empty());
  for (const SearchRow& row : report.rows) CHECK(row.row.numbers->devices == 4);
  CHECK(to_table(report).print().find("cluster.gpus") != std::string::npos);
  CHECK(Json::parse(to_json(report, "1")).at("rows").at(0).at("cluster.gpus") == "4");
  const std::string csv = to_csv(report);
  CHECK(csv.substr(0, csv.find('\n')).find(",cluster.gpus,") != std::string::npos);
}

TEST_CASE("rows may be asked for by what the layouts are") {
  const TemporaryFolder folder;
  const Search search = search_of(scenario_text(folder));
  const auto picked = [&](const std::vector<std::string>& where) {
    auto selection = select_layouts({}, where, search.facts().varied_keys);
    REQUIRE_MESSAGE(selection, (selection ? "" : to_text(selection.problems())));
    return report_of(search, *std::move(selection));
  };
  const SearchReport all = picked({});
  const SearchReport some = picked({"pipeline <= 2", "schedule.name == 1f1b", "tensor > 1",
                                    "peak_memory_bytes < 1 GiB", "plan.stages != 1"});
  std::size_t count = 0;
  for (const SearchRow& row : all.rows) {
    count += row.layout.stages == 2 && row.layout.schedule == "1f1b" && row.layout.tensor > 1 &&
                     row.row.numbers->peak_memory_bytes < std::int64_t{1} << 30
                 ? 1
                 : 0;
  }
  CHECK(count > 0);
  CHECK(some.rows.size() == count);
  CHECK(some.feasible == all.feasible);
  const auto refused = [](const std::string& where) {
    const auto selection = select_layouts({}, {where}, {"cluster.gpus"});
    REQUIRE_FALSE(selection);
    return selection.problems().front();
  };
  CHECK(refused("pipelines == 2").help == "did you mean 'pipeline'?");
  CHECK(refused("pipeline").message == "'pipeline' compares nothing");
  CHECK(refused("pipeline < abc").message ==
        "pipeline is compared with 'abc', which is no number, size, time or rate");
  CHECK(refused("schedule == 1f1bb").message ==
        "schedule is compared with '1f1bb', which is no schedule");
  const SearchReport again = picked({"schedule.recompute != none"});
  CHECK_FALSE(again.rows.empty());
  for (const SearchRow& row : again.rows) CHECK(row.layout.recomputation != "none");
}

TEST_CASE("a search of plans that are not copied, or fixed, offers none that cannot be") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms, output: 1 MiB, "
      "parameters: 1 MiB}, batch: 1}\ncluster: {devices: 8}\ntraining: {mini_batch_size: 16}\n";
  for (const std::vector<std::string>& given :
       std::vector<std::vector<std::string>>{{"schedule.name=pipedream"},
                                             {"schedule.name=pipedream", "plan.replicas=[2, 2]"},
                                             {"plan.stages=4", "schedule.name=1f1b"},
                                             {"plan.stages=8", "schedule.name=looped-bfs"},
                                             {"plan.data_parallel=2", "schedule.name=gpipe"},
                                             {"plan.partition=[4, 4]", "schedule.name=1f1b"},
                                             {"schedule.name=1f1b", "plan.partition=pipedream"}}) {
    CAPTURE(fmt::format("{}", fmt::join(given, " ")));
    const SearchReport report = report_of(search_of(text, given));
    CHECK_FALSE(report.rows.empty());
    CAPTURE(report.why_not);
    CHECK(report.cannot_run == 0);
  }
}

}  // namespace
}  // namespace plumbline::test
