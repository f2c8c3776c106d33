// Parts of searches: put together they are the whole, and an interrupted one goes on.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/search_report.h"
#include "sim/search/search.h"
#include "sim/search/search_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

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

SearchSelection best(std::size_t count) {
  SearchSelection selection;
  selection.rows.top = count;
  return selection;
}

/// A scenario that gives a layout of its own.
std::string laid_out(const TemporaryFolder& folder) {
  return scenario_text(folder,
                       "plan: {stages: 2, data_parallel: fill, partition: balanced}\n"
                       "schedule: {name: 1f1b, micro_batches: 2, recompute: none}\n");
}

/// All families of a search, or those of a shard, in no order.
SearchPart part_of(const Search& search, std::optional<Shard> shard = std::nullopt) {
  SearchPart part{nullptr, search.facts(), shard, {}};
  for (auto family = search.families().rbegin(); family != search.families().rend(); ++family) {
    if (shard.value_or(Shard{}).holds(family->number))
      part.families.push_back(search.evaluate(*family));
  }
  return part;
}

std::vector<std::string> told_of(const SearchPart& part) {
  SearchTally tally(part.facts);
  for (const FamilyResult& result : part.families) tally.add(result);
  SearchSelection selection = best(7);
  selection.distinct = true;
  const SearchReport report = std::move(tally).report(std::move(selection));
  return {to_table(report).print(), to_csv(report), to_markdown(report), to_json(report, "1"),
          html_report(report, "", "1")};
}

SearchPart written(const std::string& name, const SearchPart& part) {
  const auto source = text_source(name, to_json(part, "1"));
  CHECK(is_search_part(*source));
  auto read = parse_search_part(source, "1");
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  return *std::move(read);
}

TEST_CASE("parts of a search put together are the whole, byte for byte in every format") {
  const TemporaryFolder folder;
  const Search search =
      search_of(laid_out(folder),
                {"cluster.gpus=4,8", "model.context_parallel=1", "schedule.name=1f1b"}, true);
  const std::vector<std::string> whole = told_of(part_of(search));
  for (const std::uint64_t count : {1U, 2U, 5U}) {
    std::vector<SearchPart> parts;
    for (std::uint64_t i = count; i >= 1; --i)
      parts.push_back(written(fmt::format("{}.json", i), part_of(search, Shard{i, count})));
    const auto merged = merge(parts);
    REQUIRE(merged);
    CHECK(merged->facts == search.facts());
    CHECK(told_of(*merged) == whole);
    if (count == 1) continue;
    std::vector<SearchPart> twice = parts;
    twice.push_back(parts.front());
    auto refused = merge(twice);
    REQUIRE_FALSE(refused);
    CHECK(refused.problems().front().message ==
          fmt::format("is shard {0} of {0}, as {0}.json is", count));
    parts.pop_back();
    refused = merge(parts);
    REQUIRE_FALSE(refused);
    CHECK(refused.problems().front().message == fmt::format("of {} shards 1 is missing", count));
  }
}

TEST_CASE("parts of different searches, and damaged ones, are refused") {
  const TemporaryFolder folder;
  const std::string text = laid_out(folder);
  const std::vector<std::string> fixed = {"model.context_parallel=1", "schedule.name=1f1b"};
  const auto first = [&](std::vector<std::string> arguments, bool free) {
    arguments.insert(arguments.end(), fixed.begin(), fixed.end());
    return part_of(search_of(text, arguments, free), Shard{1, 2});
  };
  const SearchPart own = written("a.json", first({}, true));
  for (const SearchPart& other : {first({"cluster.gpus=4"}, true),
                                  first({"training.optimizer_state=4"}, true), first({}, false)}) {
    const auto merged = merge({own, written("b.json", other)});
    REQUIRE_FALSE(merged);
    CHECK(merged.problems().front().message == "is of another search than a.json");
  }
  SearchPart lacks = own;
  lacks.families.pop_back();
  const SearchPart rest = written("b.json", part_of(search_of(text, fixed, true), Shard{2, 2}));
  const auto merged = merge({lacks, rest});
  REQUIRE_FALSE(merged);
  CHECK(merged.problems().front().message == "lacks 1 of its families of layouts");
  const std::string json = to_json(own, "1");
  const auto problem = [&](const std::string& damaged) {
    const auto part = parse_search_part(text_source("f.json", damaged), "1");
    REQUIRE_FALSE(part);
    return part.problems().front().message;
  };
  CHECK(problem(json.substr(0, json.size() / 2)) == "not valid JSON from here on");
  CHECK(problem("{\"kind\": \"sweep\", \"tool\": {}}") == "is no part of a search");
  std::string damaged = json;
  damaged.replace(damaged.find("\"chunks\":"), 9, "\"chunk\":");
  CHECK(problem(damaged).starts_with("is a damaged part of a search"));
  damaged = json;
  damaged.replace(damaged.find("\"family\":"), 9, "\"family\":9");
  CHECK(problem(damaged).starts_with("is a damaged part of a search"));
  CHECK(parse_search_part(text_source("f.json", json), "2").problems().front().message ==
        "was written by plumbline 1, and this is plumbline 2");
}

TEST_CASE("an interrupted search goes on from whatever was written of its families" *
          doctest::test_suite("slow")) {
  const TemporaryFolder folder;
  const Search search =
      search_of(laid_out(folder), {"model.context_parallel=1", "schedule.name=1f1b"}, true);
  const SearchPart whole = part_of(search);
  REQUIRE(whole.families.size() >= 4);
  std::string text = partial_header(search.facts(), std::nullopt, "1");
  for (std::size_t i = 0; i < 3; ++i) text += family_json(whole.families[i]) + '\n';
  for (std::size_t length = 0; length <= text.size(); length += length % 7 + 1) {
    const auto partial =
        parse_partial(text_source("p", text.substr(0, length)), search.facts(), std::nullopt, "1");
    REQUIRE_MESSAGE(partial, (partial ? "" : to_text(partial.problems())));
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n');
    CHECK(partial->families.size() ==
          static_cast<std::size_t>(std::max<std::ptrdiff_t>(lines - 1, 0)));
    for (std::size_t i = 0; i < partial->families.size(); ++i)
      CHECK(family_json(partial->families[i]) == family_json(whole.families[i]));
  }
  const auto problem = [&](const std::string& kept, std::optional<Shard> shard) {
    const auto partial = parse_partial(text_source("p", kept), search.facts(), shard, "1");
    REQUIRE_FALSE(partial);
    return partial.problems().front().message;
  };
  CHECK(problem(text, Shard{1, 2}) == "holds rows of another shard of this search");
  CHECK(problem(text + family_json(whole.families[0]) + '\n', std::nullopt) ==
        fmt::format("the family {} of layouts stands twice", whole.families[0].family));
  const Search other = search_of(laid_out(folder), {"schedule.name=1f1b"}, true);
  CHECK(problem(partial_header(other.facts(), std::nullopt, "1"), std::nullopt)
            .starts_with("holds rows of another search: "));
}

}  // namespace
}  // namespace plumbline::test
