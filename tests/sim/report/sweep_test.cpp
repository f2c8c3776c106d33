// Sweeps: points, order, conditions, Pareto fronts, shards, files.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <stdexcept>

#include "base/parallel.h"
#include "sim/planning/predict.h"
#include "sim/report/sweep_report.h"
#include "sim/whatif/cost_figures.h"
#include "sim/whatif/sweep_file.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

const std::string kScenario =
    "version: 1\n"
    "name: a, \"b\" | c\n"
    "model: {uniform: {layers: 6, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 9 MiB,"
    " parameters: 4 MiB}, batch: 4}\n"
    "cluster: {devices: 3, memory: 200 MiB, link: {latency: 20 us}}\n"
    "schedule: {name: 1f1b, micro_batches: 4}\n";

Sweep sweep_of(const std::vector<std::string>& axes, const std::string& more = "") {
  auto sweep = Sweep::parse(text_source("s.yaml", kScenario + more), axes);
  REQUIRE_MESSAGE(sweep, (sweep ? "" : to_text(sweep.problems())));
  return *std::move(sweep);
}

/// Two schedules, counts that fit and one that does not, and one size that nothing divides.
const std::vector<std::string> kAxes = {"schedule.name=gpipe,1f1b,pipedream",
                                        "schedule.micro_batches=3,8,16",
                                        "training.mini_batch_size=null,48"};

SweepResult rows_of(const Sweep& sweep, std::optional<Shard> shard = std::nullopt) {
  SweepResult result = sweep.header();
  result.shard = shard;
  for (std::uint64_t point = 0; point < sweep.points(); ++point) {
    if (shard.value_or(Shard{}).holds(point)) result.rows.push_back(sweep.evaluate(point));
  }
  return result;
}

std::string message_of(const Result<Sweep>& sweep) {
  REQUIRE_FALSE(sweep);
  return sweep.problems().front().message;
}

SweepRow row(std::uint64_t point, double throughput, std::int64_t memory, double bubble = 0) {
  SweepRow made;
  made.point = point;
  made.numbers.emplace();
  made.numbers->throughput_samples_per_s = throughput;
  made.numbers->peak_memory_bytes = memory;
  made.numbers->bubble_fraction = bubble;
  made.numbers->devices = 4;
  return made;
}

std::vector<std::uint64_t> points_of(const std::vector<SweepRow>& rows) {
  std::vector<std::uint64_t> points;
  points.reserve(rows.size());
  for (const SweepRow& one : rows) points.push_back(one.point);
  return points;
}

TEST_CASE("the last axis varies fastest, and rows are what predict gives") {
  const Sweep sweep = sweep_of(kAxes);
  CHECK(sweep.points() == 18);
  CHECK(sweep.header().scenario == "a, \"b\" | c");
  CHECK(sweep.header().values_at(7) == std::vector<std::size_t>{1, 0, 1});
  const auto scenario =
      parse_scenario(text_source("s.yaml", kScenario), {"schedule.micro_batches=8"});
  REQUIRE(scenario);
  const auto outcome = predict(*scenario);
  REQUIRE(outcome);
  const SweepRow same = sweep.evaluate(8);  // 1f1b, 8, null
  REQUIRE(same.numbers);
  CHECK(same.numbers->iteration_time_s == outcome->iteration_time_s);
  CHECK(same.numbers->peak_memory_bytes == outcome->memory.front().peak.sum().count);
  CHECK(same.numbers->peak_memory_device == 0);
  CHECK(same.feasible());
  // A combination that cannot run, and one that does not fit.
  CHECK(sweep.evaluate(0).reason == "");
  const SweepRow large = sweep.evaluate(4);
  CHECK(large.reason == "does not fit: device 1 needs 322 MiB, 122 MiB more than its 200 MiB");
  CHECK(large.numbers->fits == false);
  const SweepRow odd =
      sweep_of({"schedule.micro_batches=5,6", "training.mini_batch_size=48"}).evaluate(0);
  CHECK(odd.reason == "training.mini_batch_size is 48, which 5 parts do not divide: 3 is left");
  CHECK_FALSE(odd.numbers);
}

TEST_CASE("axes stand in the file too, and the command line's replace them in their place") {
  const std::string section =
      "sweep:\n"
      "  schedule.micro_batches: range(4, 13, 4)\n"
      "  plan.partition: [even, [1, 2, 3], null]\n"
      "  cluster.link: [{latency: 1 us}]\n";
  const Sweep sweep = sweep_of({}, section);
  CHECK(sweep.header().axes ==
        std::vector<SweepAxis>{{"schedule.micro_batches", {"4", "8", "12"}},
                               {"plan.partition", {"even", "[1, 2, 3]", "null"}},
                               {"cluster.link", {"{latency: 1 us}"}}});
  CHECK(sweep.evaluate(1).numbers->iteration_time_s > sweep.evaluate(0).numbers->iteration_time_s);
  const Sweep replaced = sweep_of({"schedule.name=gpipe,1f1b", "plan.partition=even"}, section);
  CHECK(replaced.header().axes[1] == SweepAxis{"plan.partition", {"even"}});
  CHECK(replaced.header().axes[3] == SweepAxis{"schedule.name", {"gpipe", "1f1b"}});
  // Other readers check the section and pass it by.
  CHECK(parse_scenario(text_source("s.yaml", kScenario + section), {}));
  CHECK_FALSE(parse_scenario(text_source("s.yaml", kScenario + "sweep: {a.b: 4}\n"), {}));
}

TEST_CASE("what is wrong at every point is told once, what is wrong at some is a row") {
  const auto parse = [](const std::vector<std::string>& axes) {
    return Sweep::parse(text_source("s.yaml", kScenario), axes);
  };
  CHECK(message_of(parse({})) == "a sweep without an axis");
  CHECK(message_of(parse({"plan.stage=1,2"})) == "unknown key 'plan.stage'");
  CHECK(message_of(parse({"schedule.name=gpipe,1f1b", "schedule.colour=red"})) ==
        "unknown key 'schedule.colour'");
  CHECK(message_of(parse({"schedule.micro_batches=1,[2"})) ==
        "not valid YAML: end of sequence flow not found");
  CHECK(message_of(parse({"cluster.link.latency=1 us,2 us", "cluster.link={}"})) ==
        "'cluster.link' replaces what 'cluster.link.latency' sets");
  CHECK(message_of(parse({"a=range(0,9999)", "b=range(0,9999)"})) ==
        "the axes make 99980001 points, more than 10000000");
  const Sweep mended = sweep_of({"schedule.name=1f1d,1f1b"});
  CHECK(mended.evaluate(0).reason == "schedule.name is '1f1d', which is no schedule");
  CHECK(mended.evaluate(1).feasible());
  const std::string broken = "training: {micro_batch_size: none}\n";
  CHECK(sweep_of({"training.micro_batch_size=none,4"}, "").evaluate(1).feasible());
  CHECK(message_of(Sweep::parse(text_source("s.yaml", kScenario + broken), {"plan.stages=1,3"})) ==
        "training.micro_batch_size is 'none', which is not a whole number");
}

TEST_CASE("an axis of the model reads the model again") {
  const Sweep sweep = sweep_of({"model.uniform.forward=1 ms,3 ms", "plan.stages=3"});
  CHECK(sweep.evaluate(1).numbers->iteration_time_s ==
        close_to(sweep.evaluate(0).numbers->iteration_time_s * 5 / 3, 0.01));
}

TEST_CASE("another scenario, axis or file has another fingerprint") {
  const std::string one = sweep_of({"schedule.micro_batches=4,8"}).header().fingerprint;
  CHECK(one == sweep_of({"schedule.micro_batches=4,8"}).header().fingerprint);
  CHECK(one != sweep_of({"schedule.micro_batches=4,9"}).header().fingerprint);
  CHECK(one != sweep_of({"schedule.micro_batches=4,8"}, "# \n").header().fingerprint);
  CHECK(one != sweep_of({"schedule.mini_batches=4,8"}).header().fingerprint);
  const TemporaryFolder folder;
  for (const bool is_section : {false, true}) {
    CAPTURE(is_section);
    const auto with = [&](const std::string& order) {
      const std::string path = folder.file("order.csv", order);
      const std::vector<std::string> axes =
          is_section ? std::vector<std::string>{"schedule={file: " + path + "}"}
                     : std::vector<std::string>{
                           "schedule.name=", "schedule.micro_batches=", "schedule.file=" + path};
      return sweep_of(axes).header().fingerprint;
    };
    const std::string first = with("0F0,0B0\n1F0,1B0\n");
    CHECK(first == with("0F0,0B0\n1F0,1B0\n"));
    CHECK(first != with("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"));
  }
}

TEST_CASE("rows are ordered by the objective, infeasible ones come last") {
  SweepRow misfit = row(9, 99, 1);
  misfit.reason = "does not fit";
  SweepRow endless = row(5, 0, 50, 0.4);
  endless.numbers->throughput_samples_per_s.reset();
  const std::vector<SweepRow> rows = {
      misfit, row(3, 10, 30, 0.3), row(1, 20, 30, 0.2), row(2, 20, 20, 0.3), row(0, 10, 30, 0.3),
      endless};
  const auto by = [&](Objective objective) {
    SweepSelection selection;
    selection.objective = objective;
    return points_of(select(rows, selection));
  };
  CHECK(by(Objective::throughput) == std::vector<std::uint64_t>{5, 2, 1, 0, 3, 9});
  CHECK(by(Objective::memory) == std::vector<std::uint64_t>{2, 1, 0, 3, 5, 9});
  CHECK(by(Objective::bubble) == std::vector<std::uint64_t>{1, 2, 0, 3, 5, 9});
  SweepRow on_one = row(7, 10, 60);  // half of the most, on a quarter of the devices
  on_one.numbers->devices = 1;
  SweepSelection per_device;
  per_device.objective = Objective::per_device;
  std::vector<SweepRow> with_small = rows;
  with_small.push_back(on_one);
  CHECK(points_of(select(with_small, per_device)) ==
        std::vector<std::uint64_t>{5, 7, 2, 1, 0, 3, 9});
  SweepSelection top;
  top.top = 2;
  CHECK(points_of(select(rows, top)) == std::vector<std::uint64_t>{5, 2});
}

TEST_CASE("the bubble of an asynchronous run is the steady one") {
  SweepRow steady = row(0, 1, 1, 0.5);
  steady.numbers->steady_bubble_fraction = 0.1;
  SweepSelection selection;
  selection.objective = Objective::bubble;
  CHECK(points_of(select({row(1, 1, 1, 0.2), steady}, selection)) ==
        std::vector<std::uint64_t>{0, 1});
}

bool holds(const std::string& text, const SweepRow& of, const std::vector<SweepAxis>& axes = {}) {
  const auto condition = parse_condition(text, axes);
  REQUIRE_MESSAGE(condition, (condition ? "" : to_text(condition.problems())));
  return condition->holds(of);
}

TEST_CASE("cost, days and energy order rows, and those without a figure come last") {
  std::vector<SweepRow> rows = {row(0, 1, 1), row(1, 1, 1), row(2, 1, 1), row(3, 1, 1)};
  const auto bill = [&](std::size_t i, double days, double cost, double kwh) {
    rows[i].numbers->bill = {.days = days, .cost = cost, .currency = "USD", .energy_kwh = kwh};
  };
  bill(0, 30, 500, 7);
  bill(1, 20, 600, 9);
  bill(2, 25, 700, 8);
  const auto order = [&](Objective objective) {
    SweepSelection selection;
    selection.objective = objective;
    return points_of(select(rows, selection));
  };
  CHECK(order(Objective::cost) == std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(order(Objective::days) == std::vector<std::uint64_t>{1, 2, 0, 3});
  CHECK(order(Objective::energy) == std::vector<std::uint64_t>{0, 2, 1, 3});
  // Row 2 is slower than row 1 and dearer; row 3 has no cost.
  CHECK(points_of(pareto(rows, Front::cost)) == std::vector<std::uint64_t>{1, 0});
  CHECK(holds("days < 30", rows[1]));
  CHECK_FALSE(holds("days < 30", rows[0]));
  CHECK_FALSE(holds("days < 30", rows[3]));
}

TEST_CASE("the most goodput comes first, and rows without one come last") {
  // Row 2 is the slowest and keeps the most.
  std::vector<SweepRow> rows = {row(0, 10, 1), row(1, 9, 1), row(2, 8, 1), row(3, 20, 1)};
  const auto keep = [&](std::size_t i, double goodput) {
    Bill& bill = rows[i].numbers->bill;
    bill.goodput = goodput;
    bill.goodput_samples_per_s = goodput * *rows[i].numbers->throughput_samples_per_s;
  };
  keep(0, 0.5);
  keep(1, 0.7);
  keep(2, 0.9);
  SweepSelection selection;
  selection.objective = Objective::goodput;
  CHECK(points_of(select(rows, selection)) == std::vector<std::uint64_t>{2, 1, 0, 3});
  CHECK(holds("goodput > 0.8", rows[2]));
  CHECK_FALSE(holds("goodput > 0.8", rows[1]));
  CHECK_FALSE(holds("goodput > 0.8", rows[3]));
  CHECK(holds("goodput_samples_per_s > 6.2", rows[1]));
  CHECK_FALSE(holds("goodput_samples_per_s > 6.4", rows[1]));
}

TEST_CASE("goodput needs a section, and no tokens") {
  SweepSelection selection;
  selection.objective = Objective::goodput;
  CostRates rates;
  const auto wrong = check_figures(selection, rates);
  REQUIRE(wrong);
  CHECK(wrong->message == "--objective is 'goodput', but goodput is not given");
  CHECK(wrong->help.find("goodput.restart") != std::string::npos);
  rates.goodput = GoodputSection{};
  CHECK_FALSE(check_figures(selection, rates));
  std::vector<SweepRow> rows = {row(0, 1, 1)};
  selection.objective = Objective::throughput;
  selection.where.push_back(*parse_condition("goodput_samples_per_s > 5", {}));
  CHECK(check_figures(selection, rows));
  rows[0].numbers->bill.goodput = 0.9;
  CHECK_FALSE(check_figures(selection, rows));
}

TEST_CASE("a figure that nobody knows cannot be asked for") {
  SweepSelection selection;
  selection.objective = Objective::cost;
  CostRates rates;
  const auto message = [&](const std::optional<Diagnostic>& wrong) {
    return wrong ? wrong->message : "";
  };
  CHECK(message(check_figures(selection, rates)) ==
        "--objective is 'cost', but training.tokens and cluster.price are not given");
  rates.tokens = 1;
  CHECK(message(check_figures(selection, rates)) ==
        "--objective is 'cost', but cluster.price is not given");
  rates.price = Price{1, "USD"};
  CHECK(message(check_figures(selection, rates)).empty());
  std::vector<SweepRow> rows = {row(0, 1, 1), row(1, 1, 1)};
  CHECK(message(check_figures(selection, rows)) == "--objective is 'cost', but no row knows it");
  rows[0].numbers->bill = {.cost = 1, .currency = "USD"};
  CHECK(message(check_figures(selection, rows)).empty());
  rows[1].numbers->bill = {.cost = 1, .currency = "EUR"};
  CHECK(message(check_figures(selection, rows)) ==
        "--objective is 'cost', but the rows' costs are in USD and EUR");
  selection.objective = Objective::throughput;
  CHECK(message(check_figures(selection, rows)).empty());
  selection.where.push_back(*parse_condition("energy_kwh < 5", {}));
  CHECK(message(check_figures(selection, rows)) ==
        "--where is 'energy_kwh < 5', but no row knows it");
}

TEST_CASE("the Pareto front is that of comparing all with all") {
  for (std::uint64_t seed = 1; seed <= trials(300); ++seed) {
    Dice dice(seed);
    std::vector<SweepRow> rows;
    const std::int64_t count = dice.roll(0, 30);
    for (std::int64_t i = 0; i < count; ++i) {
      rows.push_back(row(static_cast<std::uint64_t>(i), static_cast<double>(dice.roll(1, 9)),
                         dice.roll(1, 9)));
      if (dice.roll(1, 6) == 1) rows.back().reason = "cannot";
    }
    std::vector<std::uint64_t> wanted;
    for (const SweepRow& one : rows) {
      const auto beats = [&](const SweepRow& other) {
        const double a = *other.numbers->throughput_samples_per_s;
        const double b = *one.numbers->throughput_samples_per_s;
        const std::int64_t x = other.numbers->peak_memory_bytes;
        const std::int64_t y = one.numbers->peak_memory_bytes;
        return other.feasible() && a >= b && x <= y && (a > b || x < y);
      };
      if (one.feasible() && std::none_of(rows.begin(), rows.end(), beats))
        wanted.push_back(one.point);
    }
    auto got = points_of(pareto(rows));
    std::sort(got.begin(), got.end());
    CAPTURE(seed);
    CHECK(got == wanted);
  }
}

TEST_CASE("conditions bound the values of axes, as quantities or as words") {
  const std::vector<SweepAxis> axes = {{"schedule.name", {"gpipe", "1f1b"}},
                                       {"plan.stages", {"2", "4", "08"}},
                                       {"cluster.link.bandwidth", {"10 Gbit/s", "2 GB/s"}}};
  // The last one varies fastest.
  const auto met = [&](const std::string& text) {
    std::string points;
    for (std::uint64_t point = 0; point < 12; ++point) {
      SweepRow one;
      one.point = point;
      one.reason = "cannot run";  // values it has all the same
      if (holds(text, one, axes)) points += std::to_string(point) + " ";
    }
    return points;
  };
  CHECK(met("schedule.name == gpipe") == "0 1 2 3 4 5 ");
  CHECK(met("schedule.name != gpipe") == "6 7 8 9 10 11 ");
  CHECK(met("plan.stages > 2") == "2 3 4 5 8 9 10 11 ");
  CHECK(met("plan.stages == 8") == "4 5 10 11 ");
  CHECK(met("plan.stages != 8") == "0 1 2 3 6 7 8 9 ");
  CHECK(met(" cluster.link.bandwidth<=1.25 GB/s") == "0 2 4 6 8 10 ");
  CHECK(met("cluster.link.bandwidth == 16 Gbit/s") == "1 3 5 7 9 11 ");
  CHECK(met("plan.stages >\t2") == "2 3 4 5 8 9 10 11 ");
  CHECK(met("peak_memory_bytes > 0") == "");
  const auto wrong = [&](const std::string& text) {
    const auto condition = parse_condition(text, axes);
    REQUIRE_FALSE(condition);
    return condition.problems().front().message + " / " + condition.problems().front().help;
  };
  CHECK(wrong("schedule.name == gpip") ==
        "schedule.name is compared with 'gpip', which is none of its values / one of gpipe, "
        "1f1b");
  CHECK(
      wrong("schedule.name != gpip").ends_with("which is none of its values / one of gpipe, 1f1b"));
  CHECK(wrong("cluster.link.bandwidth < 80 GB") ==  // rates are no sizes
        "cluster.link.bandwidth is compared with '80 GB', which is of another kind than its values "
        "/ one of 10 Gbit/s, 2 GB/s");
  CHECK(wrong("schedule.name < gpipe") ==
        "schedule.name is compared with 'gpipe', which is no number, size, time or rate / only == "
        "and != take words");
  CHECK(wrong("plan.stage == 2") ==
        "'plan.stage' is no number of a row, and no key that the sweep varies / did you mean "
        "'plan.stages'?");
}

TEST_CASE("conditions bound the numbers of JSON, with units or without") {
  SweepRow some = row(0, 8, 2'000'000'000, 0.25);
  some.numbers->iteration_time_s = 0.03;
  CHECK(holds("peak_memory_bytes<2.1GB", some));
  CHECK_FALSE(holds("peak_memory_bytes < 2 GB", some));
  CHECK(holds("peak_memory_bytes <= 2 GB", some));
  CHECK(holds("peak_memory_bytes == 2000000000", some));
  CHECK(holds(" iteration_time_s<=30 ms ", some));
  CHECK(holds("iteration_time_s > 0.02", some));
  CHECK(holds("bubble_fraction>=0.25", some));
  CHECK_FALSE(holds("throughput_samples_per_s > 8", some));
  CHECK_FALSE(holds("formula_bubble_fraction >= 0", some));  // there is none
  CHECK(holds("peak_memory_bytes != 2 MB", some));
  CHECK(holds("devices_without_stage == 0", some));
  CHECK(holds("devices_used == 4", some));
  CHECK(holds("throughput_per_device_samples_per_s == 2", some));
  CHECK_FALSE(holds("model_flops_utilization >= 0", some));  // there is none
  some.numbers->model_flops_utilization = 0.4;
  some.numbers->model_flops_per_device_per_s = 4e14;
  CHECK(holds("model_flops_utilization > 0.39", some));
  CHECK(holds("model_flops_per_device_per_s >= 4e14", some));
  CHECK(holds("model_flops_per_device_per_s == 400 TFLOP/s", some));
  CHECK_FALSE(holds("fits == yes", some));  // there is no memory size
  some.numbers->fits = true;
  CHECK(holds("fits == yes", some));
  CHECK(holds("fits != no", some));
  CHECK_FALSE(holds("fits == false", some));
  const auto wrong = [](const std::string& text) {
    const auto condition = parse_condition(text, {});
    REQUIRE_FALSE(condition);
    return condition.problems().front().message + " / " + condition.problems().front().help;
  };
  CHECK(wrong("fits == 1") == "fits is compared with '1', which is neither yes nor no / ");
  CHECK(wrong("peak_memory_byte < 1 GB") ==
        "'peak_memory_byte' is no number of a row, and no key that the sweep varies / did you mean "
        "'peak_memory_bytes'?");
  CHECK(wrong("bubble_fraction = 1") ==
        "'=' is no comparison / one of < <= > >= == !=, such as 'peak_memory_bytes < 80 GB'");
  CHECK(wrong("bubble_fraction") ==
        "'bubble_fraction' compares nothing / one of < <= > >= == !=, such as "
        "'peak_memory_bytes < 80 GB'");
  CHECK(wrong("bubble_fraction < 20 %") ==
        "bubble_fraction is compared with '20 %', which is not a number / ");
  CHECK(wrong("iteration_time_s <").starts_with("iteration_time_s is compared with '', which "));
}

/// Every format under some selection.
std::vector<std::string> all_texts(const SweepResult& result) {
  std::vector<std::string> texts;
  for (const bool narrow : {false, true}) {
    SweepSelection selection;
    if (narrow) {
      selection.front = Front::memory;
      selection.top = 3;
      selection.objective = Objective::memory;
      selection.where.push_back(*parse_condition("bubble_fraction < 0.9", {}));
    }
    const SweepReport told = report(result, selection);
    for (const std::string& text :
         {to_table(told).print(), to_csv(told), to_markdown(told), to_json(told, "1")})
      texts.push_back(text);
  }
  return texts;
}

SweepFile file_of(const std::string& name, const SweepResult& result) {
  auto file = parse_sweep_file(text_source(name, to_json(report(result, {}), "1")), "1");
  REQUIRE_MESSAGE(file, (file ? "" : to_text(file.problems())));
  return *std::move(file);
}

TEST_CASE("shards put together are the whole, byte for byte in every format") {
  const Sweep sweep = sweep_of(kAxes);
  const std::vector<std::string> whole = all_texts(rows_of(sweep));
  for (const std::uint64_t count : {1, 2, 3, 7, 25}) {
    std::vector<SweepFile> files;
    for (std::uint64_t i = count; i >= 1; --i)
      files.push_back(file_of(fmt::format("{}.json", i), rows_of(sweep, Shard{i, count})));
    const auto merged = merge(std::move(files));
    REQUIRE_MESSAGE(merged, (merged ? "" : to_text(merged.problems())));
    CAPTURE(count);
    CHECK(all_texts(*merged) == whole);
  }
  // A whole one is told again in another way.
  const auto again = merge({file_of("whole.json", rows_of(sweep))});
  REQUIRE(again);
  CHECK(all_texts(*again) == whole);
}

TEST_CASE("what a device gets done comes back from a file") {
  SweepResult result = sweep_of(kAxes).header();
  result.rows = {row(0, 8, 2'000'000'000, 0.25)};
  SweepNumbers& numbers = *result.rows.front().numbers;
  numbers.devices = 64;
  numbers.model_flops_per_device_per_s = 4e14;
  numbers.model_flops_utilization = 0.4;
  CHECK(file_of("f.json", result).result.rows == result.rows);
  numbers.devices = 0;
  CHECK_FALSE(parse_sweep_file(text_source("f.json", to_json(report(result, {}), "1")), "1"));
}

TEST_CASE("every point is in one shard, and no axis value has a shard of its own") {
  const std::uint64_t count = 4;  // as many as the last axis has values
  std::vector<std::vector<int>> of_value(4, std::vector<int>(4, 0));
  for (std::uint64_t point = 0; point < 64; ++point) {
    int holders = 0;
    for (std::uint64_t i = 1; i <= count; ++i) {
      if (!Shard{i, count}.holds(point)) continue;
      ++holders;
      ++of_value[point % 4][i - 1];
    }
    CHECK(holders == 1);
  }
  for (const auto& shards : of_value) CHECK(shards == std::vector<int>{4, 4, 4, 4});
}

std::string refused(std::vector<SweepFile> files) {
  const auto merged = merge(std::move(files));
  REQUIRE_FALSE(merged);
  return to_text(merged.problems());
}

TEST_CASE("what does not belong together is not merged") {
  const Sweep sweep = sweep_of(kAxes);
  const auto part = [&](std::uint64_t i, std::uint64_t n) {
    return file_of(fmt::format("{}-{}.json", i, n), rows_of(sweep, Shard{i, n}));
  };
  CHECK(refused({part(1, 3), part(3, 3)}) ==
        "error: of 3 shards 2 is missing\n  help: plumbline sweep ... --shard i/n --json -o FILE "
        "writes one\n");
  CHECK(refused({part(1, 2), part(1, 2), part(2, 2)}) ==
        "1-2.json: error: is shard 1 of 2, as 1-2.json is\n  help: give each shard once\n");
  CHECK(refused({part(1, 2), part(2, 3)}) ==
        "2-3.json: error: is of 3 shards, and 1-2.json of 2\n");
  CHECK(refused({part(1, 2), file_of("whole.json", rows_of(sweep))}) ==
        "whole.json: error: is a whole sweep, and no shard\n  help: it needs nothing beside it\n");
  const Sweep other = sweep_of({"schedule.micro_batches=4,8"});
  CHECK(
      refused({part(1, 2), file_of("other.json", rows_of(other, Shard{2, 2}))}) ==
      "other.json: error: is of another sweep than 1-2.json\n  help: the scenario, a file that it "
      "names, or an axis differs\n");
  SweepResult fewer = rows_of(sweep);
  fewer.rows.pop_back();
  CHECK(refused({file_of("fewer.json", fewer)})
            .starts_with("fewer.json: error: holds 17 of its 18 rows\n"));
  fewer.rows.push_back(fewer.rows.front());
  CHECK(refused({file_of("twice.json", fewer)}) ==
        "twice.json: error: the row of point 0 stands twice\n");
}

TEST_CASE("a file that is no whole result is refused") {
  const Sweep sweep = sweep_of(kAxes);
  const std::string text = to_json(report(rows_of(sweep), {}), "1");
  const auto problem = [](const std::string& of_text, const std::string& version) {
    const auto file = parse_sweep_file(text_source("f.json", of_text), version);
    REQUIRE_FALSE(file);
    return to_text(file.problems());
  };
  CHECK(problem(text, "2").starts_with(
      "f.json: error: was written by plumbline 1, and this is plumbline 2\n"));
  CHECK(problem("{\"schema_version\": 1}", "1")
            .starts_with("f.json: error: is no result of a sweep\n"));
  CHECK(problem("[]", "1").starts_with("f.json: error: is no result of a sweep\n"));
  for (std::size_t length = 0; length < text.size(); length += 37)
    CHECK(problem(text.substr(0, length), "1").find("not valid JSON from here on") !=
          std::string::npos);
  std::string damaged = text;
  damaged.replace(damaged.find("\"points\": 18"), 12, "\"points\": 19");
  CHECK(problem(damaged, "1").starts_with("f.json: error: is a damaged result of a sweep"));
  damaged = text;
  damaged.replace(damaged.find("bubble_overhead"), 15, "bubble_underhead");
  CHECK(problem(damaged, "1").starts_with("f.json: error: is a damaged result of a sweep"));
}

TEST_CASE("an interrupted sweep goes on from whatever was written of its rows") {
  const Sweep sweep = sweep_of(kAxes);
  const SweepResult all = rows_of(sweep);
  std::string text = partial_header(all, "1");
  for (std::size_t i = 0; i < 5; ++i) text += row_json(all, all.rows[i]) + '\n';
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto partial =
        parse_partial(text_source("p", text.substr(0, length)), sweep.header(), "1");
    REQUIRE_MESSAGE(partial, (partial ? "" : to_text(partial.problems())));
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n');
    CHECK(partial->rows.size() == static_cast<std::size_t>(std::max<std::ptrdiff_t>(lines - 1, 0)));
    CHECK(partial->kept_bytes == (lines == 0 ? 0 : text.rfind('\n', length - 1) + 1));
    CHECK(std::equal(partial->rows.begin(), partial->rows.end(), all.rows.begin()));
  }
}

TEST_CASE("rows of something else are not gone on with") {
  const Sweep sweep = sweep_of(kAxes);
  const SweepResult all = rows_of(sweep);
  const auto problem = [&](const std::string& text, const SweepResult& header,
                           const std::string& version) {
    const auto partial = parse_partial(text_source("p", text), header, version);
    REQUIRE_FALSE(partial);
    return to_text(partial.problems());
  };
  const std::string header = partial_header(all, "1");
  const std::string line = row_json(all, all.rows[0]) + '\n';
  CHECK(problem(header, all, "2")
            .starts_with("p: error: was written by plumbline 1, and this is plumbline 2\n"));
  CHECK(
      problem(header, sweep_of({"plan.stages=1,2"}).header(), "1")
          .starts_with("p: error: holds rows of another sweep: the scenario, a file that it names, "
                       "or an axis is not as it was\n"));
  SweepResult shard = all;
  shard.shard = Shard{2, 2};
  CHECK(problem(header, shard, "1")
            .starts_with("p: error: holds rows of another shard of this sweep\n"));
  CHECK(problem(partial_header(shard, "1") + line, shard, "1")
            .starts_with("p:2:1: error: the row of point 0 is not of this sweep\n"));
  CHECK(problem(header + line + line, all, "1")
            .starts_with("p:3:1: error: the row of point 0 stands twice\n"));
  CHECK(problem(header + "{\"point\": 1}\n" + line, all, "1")
            .starts_with("p:2:1: error: a damaged row of an interrupted sweep\n"));
  CHECK(problem("old\n" + line, all, "1")
            .starts_with("p: error: holds no rows of an interrupted sweep\n"));
}

TEST_CASE("work is done once each on any number of threads, until it is stopped or fails") {
  for (const unsigned jobs : {1U, 2U, 5U}) {
    std::vector<std::atomic<int>> times(1000);
    std::atomic<bool> stop{false};
    for_each_parallel(times.size(), jobs, stop, [&](std::uint64_t i) { ++times[i]; });
    CHECK(std::all_of(times.begin(), times.end(), [](const auto& count) { return count == 1; }));
    std::atomic<int> begun{0};
    for_each_parallel(1'000'000, jobs, stop, [&](std::uint64_t) { stop = ++begun >= 10; });
    CHECK(begun < 10 + static_cast<int>(jobs));
    stop = false;
    CHECK_THROWS_AS(for_each_parallel(100, jobs, stop,
                                      [](std::uint64_t i) {
                                        if (i == 7) throw std::runtime_error("seven");
                                      }),
                    std::runtime_error);
  }
}

}  // namespace
}  // namespace plumbline::test
