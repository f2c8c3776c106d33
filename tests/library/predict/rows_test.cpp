// Sweeps, searches, plans and orders of the facade.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <plumbline/plumbline.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

namespace plumbline::test {
namespace {

const v1::Input kSmall = v1::Input::of_text(
    "version: 1\nname: small\n"
    "model: {uniform: {layers: 12, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 8 "
    "MiB, "
    "parameters: 16 MiB}, batch: 1}\n"
    "cluster: {devices: 4, memory: 500 MiB}\n"
    "training: {mini_batch_size: 16, optimizer_state: 2}\n",
    "small.yaml");

const v1::Column& column(const v1::Rows& rows, const std::string& name) {
  for (const v1::Column& one : rows.columns()) {
    if (one.name == name) return one;
  }
  FAIL("no column " << name);
  return rows.columns().front();
}

/// Every row that runs is what its settings predict.
void check_settings(const v1::Input& input, const v1::Rows& rows) {
  const v1::Column& times = column(rows, "iteration_time_s");
  REQUIRE(times.unit == "s");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows.reason(i).empty()) continue;
    const auto scenario = v1::load(input, rows.settings(i));
    REQUIRE_MESSAGE(scenario, (scenario ? "" : scenario.error().text));
    const auto run = v1::predict(*scenario);
    REQUIRE(run);
    CHECK(run->iteration_time_s() == times.numbers[i]);
  }
}

TEST_CASE("the rows of a sweep have columns, settings and reasons") {
  const auto rows = v1::sweep(
      "examples/four-stages.yaml",
      {"schedule.name=gpipe,1f1b", "schedule.micro_batches=4,8", "cluster.memory=300 MiB"});
  REQUIRE_MESSAGE(rows, (rows ? "" : rows.error().text));
  CHECK(rows->size() == 4);
  CHECK(rows->done() == 4);
  CHECK(rows->wanted() == 4);
  CHECK_FALSE(rows->stopped());
  check_settings("examples/four-stages.yaml", *rows);
  for (const v1::Column& one : rows->columns()) {
    CHECK(std::max(one.numbers.size(), one.texts.size()) == 4);
    CHECK((one.numbers.empty() || one.texts.empty()));
  }
  CHECK(column(*rows, "schedule.micro_batches").numbers[0] == 8);
  CHECK(column(*rows, "schedule.name").texts[0] == "1f1b");
  CHECK(column(*rows, "fits").unit == "truth");
  CHECK(rows->reason(3).find("device") != std::string::npos);  // gpipe with 8 does not fit
  CHECK(rows->csv().find("schedule.name") != std::string::npos);
  CHECK(rows->html().find("<html") != std::string::npos);
}

TEST_CASE("a sweep's selection and order") {
  v1::Selection selection;
  selection.objective = "memory";
  selection.where = {"schedule.micro_batches >= 8"};
  selection.top = 2;
  const auto rows =
      v1::sweep("examples/four-stages.yaml",
                {"schedule.name=gpipe,1f1b", "schedule.micro_batches=4,8,16"}, selection);
  REQUIRE(rows);
  REQUIRE(rows->size() == 2);
  CHECK(rows->done() == 6);
  const v1::Column& peaks = column(*rows, "peak_memory_bytes");
  CHECK(peaks.numbers[0] <= peaks.numbers[1]);
}

TEST_CASE("a sweep is the same on one thread and on two, and can be stopped") {
  v1::Work one, two;
  one.threads = 1;
  two.threads = 2;
  std::uint64_t told = 0;
  two.progress = [&](std::uint64_t done, std::uint64_t count) {
    CHECK(done <= count);
    told = done;
  };
  const v1::Settings ranged = {"schedule.name=gpipe,1f1b,zb-h1",
                               "schedule.micro_batches=range(1, 65)"};
  const auto first = v1::sweep("examples/four-stages.yaml", ranged, {}, one);
  const auto second = v1::sweep("examples/four-stages.yaml", ranged, {}, two);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->json() == second->json());
  CHECK(told == 192);
  std::atomic<bool> stop = false;
  one.stop = &stop;
  one.progress = [&](std::uint64_t done, std::uint64_t) { stop = done >= 5; };
  const auto stopped = v1::sweep("examples/four-stages.yaml", ranged, {}, one);
  REQUIRE(stopped);
  CHECK(stopped->stopped());
  CHECK(stopped->done() >= 5);
  CHECK(stopped->done() < 192);
}

TEST_CASE("the rows of a search are layouts that predict what they say") {
  v1::Selection selection;
  selection.top = 12;
  const auto rows = v1::search(kSmall, {}, selection);
  REQUIRE_MESSAGE(rows, (rows ? "" : rows.error().text));
  REQUIRE(rows->size() > 1);
  CHECK(rows->size() <= 12);
  check_settings(kSmall, *rows);
  const v1::Column& rate = column(*rows, "throughput_samples_per_s");
  for (std::size_t i = 1; i < rows->size(); ++i) CHECK(rate.numbers[i] <= rate.numbers[i - 1]);
  CHECK(rows->text(100).find("layouts") != std::string::npos);
  CHECK(rows->html().find("<html") != std::string::npos);
}

TEST_CASE("a plan can be read back") {
  const auto scenario = v1::load(
      kSmall, {"schedule.name=1f1b", "schedule.micro_batches=8", "training.mini_batch_size=8"});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : scenario.error().text));
  const auto plan = v1::plan(*scenario);
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().text));
  std::size_t layers = 0;
  for (const v1::PlanStage& stage : plan->stages) layers += stage.layers.size();
  CHECK(layers == 12);
  CHECK(plan->yaml.find("partition") != std::string::npos);
  CHECK(plan->time_per_micro_batch_s > 0);
  v1::PlanLimits limits;
  limits.straight = true;
  limits.devices_at_most = 2;
  const auto small = v1::plan(*scenario, limits);
  REQUIRE(small);
  CHECK(small->stages.size() <= 2);
}

TEST_CASE("an order has its bound, and none of the published ones is faster") {
  const auto order = v1::order("examples/four-stages.yaml");
  REQUIRE_MESSAGE(order, (order ? "" : order.error().text));
  CHECK(order->time_s >= order->bound_s);
  CHECK(order->gap == doctest::Approx(order->time_s / order->bound_s - 1));
  REQUIRE_FALSE(order->named.empty());
  for (const v1::TimedOrder& one : order->named) {
    if (one.fits) CHECK(order->time_s <= one.time_s * (1 + 1e-12));
  }
  CHECK(order->csv.find("0F0") == 0);
  CHECK(order->lowered_csv.find("SEND_F") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
