// Searches as a whole: what comes out depends on neither threads nor interruptions.
//
// SPDX-License-Identifier: MIT
#include "sim/search/run_search.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/work_options.h"

namespace plumbline::test {
namespace {

constexpr const char* kScenario =
    "version: 1\nname: small\n"
    "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 9 MiB, "
    "parameters: 4 MiB}, batch: 4}\n"
    "cluster: {devices: 4, memory: 200 MiB}\n"
    "training: {mini_batch_size: 16}\n";

Search small_search() {
  auto search = Search::parse(text_source("s.yaml", kScenario), {});
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  return *std::move(search);
}

SearchRun run_of(const Search& search, const WorkOptions& options = {}) {
  auto run = run_search(search, options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  return *std::move(run);
}

TEST_CASE("a search by one call has each layout once, on any number of threads") {
  const Search search = small_search();
  const SearchRun one = run_of(search, on_threads(1));
  REQUIRE(search.families().size() > 4);
  CHECK(one.part.families.size() == search.families().size());
  CHECK(one.done == search.layouts());
  CHECK(one.wanted == search.layouts());
  CHECK_FALSE(one.stopped);
  for (std::size_t i = 0; i < one.part.families.size(); ++i)
    CHECK(one.part.families[i].family == i);
  for (const unsigned threads : {2U, 5U}) {
    const SearchRun several = run_of(search, on_threads(threads));
    CHECK(to_json(several.part, "1") == to_json(one.part, "1"));
  }
}

TEST_CASE("parts of a search make the whole") {
  const Search search = small_search();
  std::vector<SearchPart> parts;
  std::uint64_t wanted = 0;
  for (const std::uint64_t index : {2, 1}) {
    WorkOptions options = on_threads(2);
    options.shard = Shard{index, 2};
    SearchRun run = run_of(search, options);
    CHECK(run.done == run.wanted);
    wanted += run.wanted;
    parts.push_back(std::move(run.part));
  }
  CHECK(wanted == search.layouts());
  // The second part comes first: families are put together as they stand.
  auto whole = merge(std::move(parts));
  REQUIRE_MESSAGE(whole, (whole ? "" : to_text(whole.problems())));
  CHECK(whole->families.size() == search.families().size());
}

TEST_CASE("a search that was stopped goes on from its file") {
  const Search search = small_search();
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  WorkOptions options = on_threads(1);
  options.partial_path = folder["kept"];
  options.version = "1";
  options.stop = &stop;
  std::uint64_t told = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t count) {
    CHECK(done > told);
    CHECK(count == search.layouts());
    told = done;
    stop = done > 3;
  };
  std::uint64_t kept = 0;
  {
    const SearchRun run = run_of(search, options);
    CHECK(run.stopped);
    CHECK(run.done == told);
    CHECK(run.wanted == search.layouts());
    kept = run.done;
  }
  CHECK(kept < search.layouts());
  stop = false;
  options.progress = [&](std::uint64_t, std::uint64_t count) {
    CHECK(count == search.layouts() - kept);
  };
  options.resume = true;
  SearchRun run = run_of(search, options);
  CHECK(to_json(run.part, "1") == to_json(run_of(search).part, "1"));
  REQUIRE(run.partial);
  run.partial->remove();
  CHECK_FALSE(std::filesystem::exists(options.partial_path));
}

TEST_CASE("a search is opened again from its facts, as long as its scenario is as it was") {
  const TemporaryFolder folder;
  const std::string path = folder.file("s.yaml", kScenario);
  const auto search = Search::open(path, {"plan.stages=2,4"});
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  const auto again = open_again(search->facts());
  REQUIRE(again);
  CHECK(again->facts() == search->facts());
  folder.file("s.yaml", std::string(kScenario) + "# another\n");
  CHECK_FALSE(open_again(search->facts()));
}

}  // namespace
}  // namespace plumbline::test
