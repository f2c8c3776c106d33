// The best layouts by bounds, against all layouts.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_best.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"
#include "tests/support/work_options.h"

namespace plumbline::test {
namespace {

Search search_of(const std::string& text, const std::vector<std::string>& arguments = {}) {
  auto search = Search::parse(text_source("s.yaml", text), arguments);
  REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
  return *std::move(search);
}

std::vector<SearchRow> feasible_of(const SearchPart& part) {
  std::vector<SearchRow> rows;
  for (const FamilyResult& family : part.families) {
    for (const SearchRow& row : family.rows) {
      if (row.row.feasible()) rows.push_back(row);
    }
  }
  return rows;
}

std::vector<SearchRow> best_of(const SearchPart& part, const SearchSelection& selection,
                               std::size_t count) {
  const std::vector<SearchRow> rows = feasible_of(part);
  std::vector<SearchRow> best;
  for (const SearchRow* row : rank(rows, selection).best) {
    if (best.size() < count) best.push_back(*row);
  }
  return best;
}

void check_equal(const std::vector<SearchRow>& one, const std::vector<SearchRow>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].layout == other[i].layout);
    CHECK(one[i].row == other[i].row);
  }
}

struct Counts {
  std::uint64_t rows = 0, passed_over = 0, slower = 0;
};

Counts counts_of(const SearchRun& run) {
  Counts counts;
  for (const FamilyResult& family : run.part.families) {
    counts.rows += family.rows.size();
    counts.passed_over += family.passed_over;
    counts.slower += family.slower;
  }
  return counts;
}

std::string random_question(std::uint64_t seed) {
  Dice dice(seed);
  const std::int64_t layers = dice.roll(4, 12);
  const std::int64_t devices = std::int64_t{1} << dice.roll(2, 5);
  return fmt::format(
      "version: 1\n"
      "model: {{uniform: {{layers: {}, forward: {} us, backward: {} us, update: {} us, output: {} "
      "kB, activation: {} kB, parameters: {} kB}}, batch: 1}}\n"
      "cluster: {{devices: {}, memory: {} kB, link: {{latency: {} us, bandwidth: {} GB/s}}}}\n"
      "training: {{mini_batch_size: {}, optimizer_state: {}}}\n"
      "overhead: {{per_op: {} us}}\n",
      layers, dice.roll(50, 500), dice.roll(100, 900), dice.roll(0, 50), dice.roll(0, 2000),
      dice.roll(100, 5000), dice.roll(0, 5000), devices, dice.roll(5'000, 90'000), dice.roll(0, 9),
      dice.roll(1, 60), 64 * dice.roll(1, 4), dice.roll(0, 2), dice.roll(0, 5));
}

constexpr const char* kScenario =
    "version: 1\nname: small\n"
    "model: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 9 "
    "MiB, parameters: 4 MiB}, batch: 1}\n"
    "cluster: {devices: 16, memory: 200 MiB, link: {latency: 5 us, bandwidth: 20 GB/s}}\n"
    "training: {mini_batch_size: 64}\n";

}  // namespace

TEST_CASE("the best by bounds are the best of all") {
  std::uint64_t slower = 0, layouts = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const std::string text = random_question(seed);
    CAPTURE(text);
    const Search search = search_of(text);
    const auto all = run_search(search, on_threads(1));
    REQUIRE(all);
    for (const Objective objective : {Objective::throughput, Objective::per_device}) {
      SearchSelection selection;
      selection.rows.objective = objective;
      selection.rows.top = 1 + seed % 5;
      selection.distinct = seed % 3 == 0;
      REQUIRE(takes_bounds(selection));
      const SearchRun best = search_best(search, selection, 3, on_threads(1));
      const std::size_t count = std::max<std::size_t>(3, selection.rows.top);
      check_equal(best_of(best.part, selection, count), best_of(all->part, selection, count));
      CHECK(best.done == search.layouts());
      const Counts counts = counts_of(best);
      CHECK(counts.rows + counts.passed_over + counts.slower == search.layouts());
      slower += counts.slower;
      layouts += search.layouts();
    }
  }
  CHECK(slower > layouts / 20);
}

/// Layers that hold less for each sample in larger micro-batches, so that these may fit where
/// smaller ones do not.
std::string affine_profile(Dice& dice) {
  std::string text = "version: 1\nkind: profile\nmodel: affine\nmeasurements:\n";
  std::vector<std::int64_t> once, each;
  constexpr int layers = 6;
  for (int i = 0; i < layers; ++i) {
    once.push_back(dice.roll(100, 4000));
    each.push_back(dice.roll(10, 200));
  }
  for (const std::int64_t batch : {1, 16}) {
    text += fmt::format("  - batch: {}\n    layers:\n", batch);
    for (std::size_t i = 0; i < layers; ++i) {
      text += fmt::format(
          "      - {{name: l{}, forward: {} us, backward: {} us, output: 100 kB, activation: {} "
          "kB, "
          "parameters: 100 kB}}\n",
          i, 50 + 20 * batch, 90 + 45 * batch, once[i] + batch * each[i]);
    }
  }
  return text;
}

TEST_CASE("larger micro-batches than one that does not fit are passed over as in all layouts") {
  std::uint64_t passed_over = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const TemporaryFolder folder;
    folder.file("p.yaml", affine_profile(dice));
    const std::string path = folder.file(
        "s.yaml", fmt::format("version: 1\nmodel: {{profile: p.yaml}}\n"
                              "cluster: {{devices: 8, memory: {} kB, link: {{latency: 9 us, "
                              "bandwidth: 10 GB/s}}}}\ntraining: {{mini_batch_size: 64}}\n",
                              dice.roll(5'000, 60'000)));
    const auto search = Search::open(path, {"schedule.name=gpipe,1f1b,interleaved-zb"});
    REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
    SearchSelection selection;
    selection.rows.top = static_cast<std::size_t>(dice.roll(1, 30));
    const auto all = run_search(*search, on_threads(1));
    REQUIRE(all);
    const SearchRun best = search_best(*search, selection, 0, on_threads(1));
    check_equal(best_of(best.part, selection, selection.rows.top),
                best_of(all->part, selection, selection.rows.top));
    passed_over += counts_of(best).passed_over;
  }
  CHECK(passed_over > 100);
}

TEST_CASE("a bound that is the time itself loses no equal rows to rounding") {
  const Search search = search_of(
      "version: 1\n"
      "model: {uniform: {layers: 1, forward: 1004 ns, backward: 2008 ns, activation: 2 MB, "
      "parameters: 1 MB}, batch: 1}\n"
      "cluster: {devices: 1}\ntraining: {mini_batch_size: 8, micro_batch_size: 1}\n"
      "schedule: {name: 1f1b, mini_batches: 3}\n",
      {"training.optimizer_state=40,39,38,37,36,35,34,33,32,31,30,29,28,27,26,25,24,23,22,21,20,19,"
       "18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1"});
  SearchSelection selection;
  selection.rows.top = 1;
  const auto all = run_search(search, on_threads(1));
  REQUIRE(all);
  check_equal(best_of(search_best(search, selection, 0, on_threads(1)).part, selection, 1),
              best_of(all->part, selection, 1));
}

TEST_CASE("conditions hold, and threads change nothing") {
  const Search search = search_of(kScenario);
  auto selection = select_layouts({}, {"schedule == 1f1b", "peak_memory_bytes < 190 MiB"}, {});
  REQUIRE(selection);
  selection->rows.top = 2;
  const auto all = run_search(search, on_threads(2));
  REQUIRE(all);
  const SearchRun one = search_best(search, *selection, 0, on_threads(1));
  const SearchRun five = search_best(search, *selection, 0, on_threads(5));
  CHECK(to_json(one.part, "1") == to_json(five.part, "1"));
  CHECK(counts_of(one).slower == counts_of(five).slower);
  CHECK(counts_of(one).slower > 0);
  const std::vector<SearchRow> best = best_of(one.part, *selection, 2);
  REQUIRE(best.size() == 2);
  check_equal(best, best_of(all->part, *selection, 2));
}

TEST_CASE("conditions on what bounds do not know leave no row out") {
  const auto check = [](const Search& search, const std::string& where) {
    CAPTURE(where);
    auto selection = select_layouts({}, {where}, {});
    REQUIRE(selection);
    selection->rows.top = 5;
    const auto all = run_search(search, on_threads(1));
    REQUIRE(all);
    const std::vector<SearchRow> best =
        best_of(search_best(search, *selection, 0, on_threads(1)).part, *selection, 5);
    CHECK(best.size() > 0);
    check_equal(best, best_of(all->part, *selection, 5));
  };
  // How many layers are recomputed is known after the fit.
  const Search fitted = search_of(kScenario);
  check(fitted, "recompute == layers");
  check(fitted, "recompute == none");
  // A planned partition has its stages when it is planned.
  const Search planned = search_of(
      "version: 1\n"
      "model: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 9 "
      "MiB, parameters: 4 MiB}, batch: 1}\n"
      "cluster: {devices: 4, memory: 900 MiB, link: {latency: 5 us, bandwidth: 20 GB/s}}\n"
      "plan: {partition: pipedream}\nschedule: {name: 1f1b}\ntraining: {mini_batch_size: 64}\n");
  check(planned, "pipeline > 1");
  check(planned, "pipeline == 1");
}

TEST_CASE("layouts that cannot run have their reasons") {
  const Search search = search_of(kScenario, {"schedule.name=1f1b,chimera"});
  const auto all = run_search(search, on_threads(1));
  REQUIRE(all);
  SearchSelection selection;
  selection.rows.top = 1;
  const SearchRun best = search_best(search, selection, 0, on_threads(1));
  const auto refused = [](const SearchPart& part) {
    std::vector<SearchRow> rows;
    for (const FamilyResult& family : part.families) {
      for (const SearchRow& row : family.rows) {
        if (!row.row.numbers) rows.push_back(row);
      }
    }
    return rows;
  };
  const std::vector<SearchRow> known = refused(best.part);
  CHECK(refused(all->part).size() > 0);
  for (const SearchRow& row : refused(all->part)) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const SearchRow& other) {
      return other.row == row.row && other.layout == row.layout;
    });
    CHECK(is_known);
  }
}

TEST_CASE("a search by bounds tells how far it is, and stops") {
  const Search search = search_of(kScenario);
  SearchSelection selection;
  selection.rows.top = 60;
  std::atomic<bool> stop{false};
  WorkOptions options = on_threads(1);
  options.stop = &stop;
  std::uint64_t told = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t count) {
    CHECK(done > told);
    CHECK(done <= count);
    CHECK(count <= search.layouts());
    told = done;
    stop = true;
  };
  const SearchRun some = search_best(search, selection, 0, options);
  CHECK(told > 0);
  CHECK(some.stopped);
  CHECK(some.done < some.wanted);
  CHECK(counts_of(some).slower == 0);
  CHECK(feasible_of(some.part).size() > 0);
  // Stopped in the midst of the last layouts that are predicted.
  const Search few = search_of(kScenario, {"schedule.name=1f1b", "plan.stages=4"});
  std::uint64_t last = 0;
  std::uint64_t of = 1;
  stop = false;
  options.progress = [&](std::uint64_t done, std::uint64_t count) {
    last = done;
    of = count;
  };
  CHECK_FALSE(search_best(few, selection, 0, options).stopped);
  CHECK(last == of);
  const auto later = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop = true;
  });
  const SearchRun part = search_best(few, selection, 0, options);
  CHECK(part.stopped == (part.done < part.wanted));
  later.wait();
  stop = true;
  // Stopped before anything is known.
  const SearchRun none = search_best(search, selection, 0, options);
  CHECK(none.stopped);
  CHECK(none.done == 0);
  CHECK(none.part.families.size() == search.families().size());
}

TEST_CASE("only throughput has bounds") {
  SearchSelection selection;
  CHECK_FALSE(takes_bounds(selection));  // all rows
  selection.rows.top = 3;
  CHECK(takes_bounds(selection));
  selection.rows.front = Front::memory;
  CHECK_FALSE(takes_bounds(selection));
  selection.rows.front = Front::none;
  for (const Objective objective : {Objective::memory, Objective::bubble, Objective::cost,
                                    Objective::days, Objective::energy, Objective::goodput}) {
    selection.rows.objective = objective;
    CHECK_FALSE(takes_bounds(selection));
  }
}

}  // namespace plumbline::test
