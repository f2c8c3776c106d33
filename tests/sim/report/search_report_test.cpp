// What a search tells: the scenario as it stands, what is kept, the best of each size, the formats.
//
// SPDX-License-Identifier: MIT
#include "sim/report/search_report.h"

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
#include "sim/search/search.h"
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
      "cluster: {{gpus: 8, gpus_per_server: 4, device: {{preset: h100-sxm, efficiency: 0.5, "
      "network: 25 GB/s, "
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

/// What comes of these overrides; nothing where they cannot run or do not fit.
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

/// A scenario that gives a layout of its own.
std::string laid_out(const TemporaryFolder& folder) {
  return scenario_text(folder,
                       "plan: {stages: 2, data_parallel: fill, partition: balanced}\n"
                       "schedule: {name: 1f1b, micro_batches: 2, recompute: none}\n");
}

TEST_CASE("the scenario as it stands is what simulate says of the same command line") {
  const TemporaryFolder folder;
  const std::string text = laid_out(folder);
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"training.mini_batch_size=32"},
      {"cluster.gpus=4", "training.mini_batch_size=64"},
      {"plan.stages=4"},
      {"plan={stages: 1, data_parallel: fill}", "schedule.recompute=selective"},
      {"training={mini_batch_size: 8}", "schedule.name=gpipe"},
      {"model.tensor_parallel=2", "cluster.memory=8 GiB"}};
  for (std::vector<std::string> overrides : lines) {
    overrides.emplace_back("model.context_parallel=1");  // fewer layouts
    CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
    const Search search = search_of(text, overrides, true);
    const auto& standing = search.facts().as_it_stands;
    REQUIRE(standing);
    REQUIRE(standing->numbers);
    CHECK(standing->chosen.empty());
    auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
    REQUIRE(scenario);
    const auto settled = resolve_plan(*std::move(scenario));
    REQUIRE(settled);
    const auto outcome = predict(*settled);
    REQUIRE(outcome);
    CHECK(standing->numbers->throughput_samples_per_s == outcome->throughput_samples_per_s);
    CHECK(standing->numbers->peak_memory_bytes == numbers_of(*outcome).peak_memory_bytes);
    // And so is what comes of the rows.
    const SearchReport report = report_of(search, best(3));
    for (const SearchRow& row : report.rows)
      CHECK(alone(text, row.layout.overrides) == row.row.numbers->throughput_samples_per_s);
  }
}

TEST_CASE("of a key with several values the file's stands, else the first, and is told") {
  const TemporaryFolder folder;
  const std::string text = laid_out(folder);
  const auto standing = [&](const std::vector<std::string>& arguments) {
    const Search search = search_of(text, arguments, true);
    REQUIRE(search.facts().as_it_stands->numbers);
    return *search.facts().as_it_stands;
  };
  const auto own = standing({});
  const auto gpus = standing({"cluster.gpus=4,8", "schedule.name=1f1b"});
  CHECK(gpus.numbers == own.numbers);
  CHECK(gpus.chosen == std::vector<std::string>{"cluster.gpus=8"});
  CHECK(standing({"schedule.name=gpipe,1f1b", "cluster.gpus=4"}).chosen ==
        std::vector<std::string>{"schedule.name=1f1b"});
  const auto first = standing({"schedule.bucket=1 MB,100 MB"});
  CHECK(first.chosen == std::vector<std::string>{"schedule.bucket=1 MB"});
  CHECK(first.numbers == standing({"schedule.bucket=1 MB"}).numbers);
  const std::string table =
      to_table(report_of(search_of(text, {"cluster.gpus=4,8", "schedule.name=1f1b"}, true)))
          .print();
  CAPTURE(table);
  CHECK(table.find("the scenario as it stands: ") != std::string::npos);
  CHECK(table.find(" samples/s with cluster.gpus=8") != std::string::npos);
}

TEST_CASE("a scenario that cannot run as it stands says why") {
  const TemporaryFolder folder;
  CHECK_FALSE(search_of(laid_out(folder)).facts().as_it_stands);
  const std::string text =
      scenario_text(folder, "plan: {stages: 16}\nschedule: {name: 1f1b, micro_batches: 2}\n");
  const std::string table =
      to_table(report_of(search_of(text, {"model.context_parallel=1"}, true), best(1))).print();
  CAPTURE(table);
  CHECK(
      table.find("\nthe scenario as it stands cannot run: the number of stages is 16, but that of "
                 "layers is 8\n") != std::string::npos);
}

TEST_CASE("what is kept is told, and that --free searches it") {
  const TemporaryFolder folder;
  const std::string text = laid_out(folder);
  using Keys = std::vector<std::string>;
  const Search kept = search_of(text);
  CHECK(kept.facts().kept_keys == Keys{"plan.stages", "plan.partition", "plan.data_parallel",
                                       "schedule.name", "schedule.micro_batches",
                                       "schedule.recompute"});
  CHECK(to_table(report_of(kept))
            .print()
            .find("\n  kept as given: plan.stages, plan.partition, "
                  "plan.data_parallel, schedule.name, schedule.micro_batches, "
                  "schedule.recompute; "
                  "--free searches what the scenario gives, too\n") != std::string::npos);
  CHECK(search_of(text, {"plan.stages=2"}, true).facts().kept_keys == Keys{"plan.stages"});
  CHECK(search_of(text, {}, true).facts().kept_keys.empty());
  CHECK(to_table(report_of(search_of(text, {}, true))).print().find("kept as given") ==
        std::string::npos);
  CHECK(refusal(text, {"plan.stages=2", "plan={stages: 4}"}) ==
        "'plan' replaces what 'plan.stages' sets");
}

TEST_CASE("distinct rows are the best of each tensor, context, expert and pipeline size") {
  const TemporaryFolder folder;
  const Search search = search_of(scenario_text(folder), {"model.context_parallel=1"});
  const SearchReport all = report_of(search);
  SearchSelection selection;
  selection.distinct = true;
  const SearchReport told = report_of(search, selection);
  using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  const auto sizes_of = [](const Layout& layout) {
    return Sizes{layout.tensor, layout.context, layout.expert, layout.stages / layout.chunks};
  };
  std::vector<SearchRow> first;  // rows are best first
  std::set<Sizes> seen;
  for (const SearchRow& row : all.rows) {
    if (seen.insert(sizes_of(row.layout)).second) first.push_back(row);
  }
  REQUIRE(first.size() < all.rows.size());
  REQUIRE(told.rows.size() == first.size());
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(told.rows[i].layout == first[i].layout);
  selection.rows.top = 2;
  const SearchReport two = report_of(search, selection);
  REQUIRE(two.rows.size() == 2);
  CHECK(two.rows[1].layout == first[1].layout);
  CHECK(two.best.size() == std::min<std::size_t>(first.size(), 10));
  CHECK(
      to_table(two).print().find(" that fit: the best of each tensor, context, expert and pipeline "
                                 "size\n") != std::string::npos);
}

TEST_CASE("the command of the first fits the page, and a shell takes it as one") {
  const TemporaryFolder folder;
  SearchReport report = report_of(search_of(scenario_text(folder)), best(3));
  const std::string quoted = "'plan={stages: 2, partition: balanced}'";
  report.command =
      "plumbline simulate s.yaml schedule.name=1f1b schedule.micro_batches=16 a=1234 " + quoted +
      " \"cluster.link.bandwidth=25 GB/s\" training.micro_batch_size=1";
  const std::string text = to_table(report).print(100);
  CAPTURE(text);
  CHECK(text.find("\nthe first:\n"
                  "  plumbline simulate s.yaml schedule.name=1f1b schedule.micro_batches=16 a=1234 "
                  "\\\n      " +
                  quoted +
                  " \"cluster.link.bandwidth=25 GB/s\" \\\n      "
                  "training.micro_batch_size=1\n") != std::string::npos);
}

TEST_CASE("the memory limit stands where all rows have the same") {
  const TemporaryFolder folder;
  SearchReport report = report_of(search_of(scenario_text(folder)), best(3));
  REQUIRE(report.rows.size() > 1);
  const std::string line = "memory limit: 2 GiB on each device, after cluster.reserve\n";
  CHECK(to_table(report).print().find(line) != std::string::npos);
  report.rows.back().row.numbers->memory_limit_bytes = 1;
  CHECK(to_table(report).print().find("memory limit") == std::string::npos);
}

TEST_CASE("Markdown and the page have the rows of the table") {
  const TemporaryFolder folder;
  SearchReport report = report_of(search_of(scenario_text(folder)), best(3));
  report.command = "plumbline simulate s.yaml";
  const std::string markdown = to_markdown(report);
  CAPTURE(markdown);
  CHECK(markdown.starts_with("small: "));
  CHECK(markdown.find("\n|  | TP |") != std::string::npos);
  CHECK(markdown.find("\n|---|---:|") != std::string::npos);
  for (const char* row : {"\n| 1 |", "\n| 2 |", "\n| 3 |"})
    CHECK(markdown.find(row) != std::string::npos);
  CHECK(markdown.find("\n- searched: ") != std::string::npos);
  CHECK(markdown.find("\n    plumbline simulate s.yaml\n") != std::string::npos);
  const std::string page = html_report(report, "plumbline search s.yaml", "1");
  CHECK(page.starts_with("<!"));
  CHECK(page.find("plumbline search s.yaml") != std::string::npos);
  CHECK(page.find("\"key\":\"micro-batches\"") != std::string::npos);
  CHECK(page == html_report(report, "plumbline search s.yaml", "1"));
}

}  // namespace
}  // namespace plumbline::test
