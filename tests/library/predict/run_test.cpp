// A run of the facade against the rooms behind it, and its columns against its numbers.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <plumbline/plumbline.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace plumbline::test {
namespace {

v1::Run run_of(const std::string& path, const v1::Settings& settings = {}) {
  const auto scenario = v1::load(path, settings);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : scenario.error().text));
  auto run = v1::predict(*scenario);
  REQUIRE_MESSAGE(run, (run ? "" : run.error().text));
  return *std::move(run);
}

/// The runs that the properties below are checked on.
std::vector<v1::Run> runs() {
  std::vector<v1::Run> all;
  const std::string base = "examples/four-stages.yaml";
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "naive"})
    all.push_back(run_of(base, {std::string("schedule.name=") + schedule}));
  all.push_back(
      run_of(base, {"plan.data_parallel=2", "cluster.devices=8",
                    "cluster.link={bandwidth: 12 GB/s, latency: 5 us}", "schedule.bucket=4 MiB"}));
  all.push_back(run_of(
      base, {"schedule.transfers=blocking", "cluster.link={bandwidth: 12 GB/s, latency: 5 us}"}));
  all.push_back(run_of(base, {"schedule.recompute=full", "schedule.mini_batches=3"}));
  all.push_back(run_of("examples/out-of-memory.yaml"));
  return all;
}

TEST_CASE("its numbers are those of its JSON") {
  for (const v1::Run& run : runs()) {
    CAPTURE(run.schedule());
    const auto json = nlohmann::json::parse(run.json());
    CHECK(json["iteration_time_s"] == run.iteration_time_s());
    CHECK(json["bubble_fraction"] == run.bubble_fraction());
    CHECK(json["schedule"] == run.schedule());
    CHECK(json["stages"] == run.stages());
    REQUIRE(json["devices"].size() == run.devices().size());
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < run.devices().size(); ++i) {
      const v1::Device& device = run.devices()[i];
      CHECK(json["devices"][i]["peak_memory_bytes"] == device.peak_memory_bytes);
      CHECK(json["devices"][i]["busy_s"] == device.busy_s);
      CHECK(json["devices"][i]["idle_by_cause_s"]["dependency"] ==
            device.idle_by_cause_s.dependency);
      CHECK(json["devices"][i]["memory"]["activations_bytes"] == device.memory.activations);
      peak = std::max(peak, device.peak_memory_bytes);
    }
    CHECK(run.peak_memory_bytes() == peak);
  }
}

TEST_CASE("the ops of a device follow each other and make its busy time") {
  for (const v1::Run& run : runs()) {
    CAPTURE(run.schedule());
    const v1::Ops& ops = run.ops();
    REQUIRE(ops.size() > 0);
    CHECK(ops.device.size() == ops.size());
    CHECK(ops.end_ns.size() == ops.size());
    std::map<std::uint32_t, std::int64_t> busy, last;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      CHECK(ops.begin_ns[i] >= last[ops.device[i]]);
      CHECK(ops.end_ns[i] >= ops.begin_ns[i]);
      last[ops.device[i]] = ops.end_ns[i];
      busy[ops.device[i]] += ops.end_ns[i] - ops.begin_ns[i];
    }
    const auto json = nlohmann::json::parse(run.json());
    const auto updates = std::count(ops.kind.begin(), ops.kind.end(), 'U');
    CHECK(json["operations"] == static_cast<std::int64_t>(ops.size()) - updates);
    CHECK(json["transfers"]["count"] == run.transfers().size());
    const bool blocks = json["transfers"]["exposed_s"] > 0 && !run.transfers().from.empty();
    for (const v1::Device& device : run.devices()) {
      const double sum_s = static_cast<double>(busy[device.device]) * 1e-9;
      if (blocks) {
        CHECK(sum_s <= device.busy_s + 1e-12);
      } else {
        CHECK(sum_s == doctest::Approx(device.busy_s).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("a backward that is cut into buckets is one op") {
  const v1::Run run =
      run_of("examples/four-stages.yaml",
             {"plan.data_parallel=2", "cluster.devices=8", "schedule.bucket=4 MiB"});
  const v1::Ops& ops = run.ops();
  CHECK(std::count(ops.kind.begin(), ops.kind.end(), 'B') == 4 * 8 * 2);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] == 'B') CHECK(ops.end_ns[i] - ops.begin_ns[i] == 2'000'000);
  }
}

TEST_CASE("the largest entry of a memory curve is the peak") {
  for (const v1::Run& run : runs()) {
    CAPTURE(run.schedule());
    for (const v1::Device& device : run.devices()) {
      const auto curve = run.memory(device.device);
      REQUIRE(curve);
      CHECK(std::is_sorted(curve->time_ns.begin(), curve->time_ns.end()));
      CHECK(*std::max_element(curve->bytes.begin(), curve->bytes.end()) ==
            device.peak_memory_bytes);
    }
  }
}

TEST_CASE("transfers bring what ops wait for") {
  const v1::Run run =
      run_of("examples/four-stages.yaml", {"cluster.link={bandwidth: 12 GB/s, latency: 5 us}"});
  const v1::Ops& ops = run.ops();
  std::map<std::tuple<std::uint32_t, char, std::uint32_t>, std::int64_t> begins;
  for (std::size_t i = 0; i < ops.size(); ++i)
    begins[{ops.stage[i], ops.kind[i], ops.micro_batch[i]}] = ops.begin_ns[i];
  const v1::Transfers& transfers = run.transfers();
  REQUIRE(transfers.size() == 48);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const auto op = begins.find({transfers.stage[i], transfers.kind[i], transfers.micro_batch[i]});
    REQUIRE(op != begins.end());
    CHECK(transfers.end_ns[i] <= op->second);
    CHECK(transfers.bytes[i] == 4 << 20);
    CHECK(transfers.to[i] == transfers.stage[i]);
    CHECK(transfers.from[i] + (transfers.kind[i] == 'F' ? 1 : 0) ==
          transfers.to[i] + (transfers.kind[i] == 'F' ? 0 : 1));
  }
}

TEST_CASE("the critical path covers the run, and the first lever is worth the most") {
  const v1::Run run = run_of("examples/noisy.yaml");
  const v1::Explanation why = run.explain();
  REQUIRE_FALSE(why.critical_path.empty());
  CHECK(why.critical_path.front().begin_ns == 0);
  for (std::size_t i = 1; i < why.critical_path.size(); ++i)
    CHECK(why.critical_path[i].begin_ns == why.critical_path[i - 1].end_ns);
  CHECK(static_cast<double>(why.critical_path.back().end_ns) * 1e-9 ==
        doctest::Approx(run.makespan_s()).epsilon(1e-12));
  REQUIRE(why.levers.size() > 1);
  CHECK(why.levers[0].gain_s >= why.levers[1].gain_s);
  CHECK_FALSE(why.schedules.empty());
  CHECK(why.text(100).find("is worth the most") != std::string::npos);
  CHECK(nlohmann::json::parse(why.json)["critical_path"]["segments"].size() ==
        why.critical_path.size());
}

TEST_CASE("a text in memory is the same as its file") {
  const std::string text =
      "version: 1\nname: one\n"
      "model: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 4}\nschedule: {name: gpipe, micro_batches: 4}\n";
  const auto scenario = v1::load(v1::Input::of_text(text));
  REQUIRE(scenario);
  CHECK(scenario->name() == "one");
  const auto run = v1::predict(*scenario);
  REQUIRE(run);
  CHECK(run->iteration_time_s() == doctest::Approx(0.042));
  CHECK(run->html().find("<html") != std::string::npos);
  CHECK(run->order_csv().find("0F0,0F1,0F2,0F3,0B0") == 0);
  CHECK(run->text(80).find("21 ms") == std::string::npos);
  CHECK(nlohmann::json::parse(run->chrome_trace()).size() > 0);
}

TEST_CASE("several threads may ask one run at once") {
  const v1::Run run = run_of("examples/four-stages.yaml");
  std::vector<std::string> answers(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < answers.size(); ++i)
    threads.emplace_back([&, i] {
      answers[i] = run.json() + run.explain().json + std::to_string(run.ops().size()) +
                   std::to_string(run.memory(3)->bytes.size()) + run.html();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) CHECK(answer == answers.front());
}

TEST_CASE("conditions on a run, and its numbers by name") {
  const v1::Run run = run_of("examples/four-stages.yaml");
  CHECK(*run.meets("iteration_time_s < 34 ms"));
  CHECK_FALSE(*run.meets("iteration_time_s < 32 ms"));
  CHECK(*run.meets("peak_memory_bytes <= 228 MiB"));
  CHECK_FALSE(*run.meets("cost < 100"));  // it has none
  CHECK_FALSE(run.meets("iteration_time_s < 3 parsecs"));
  CHECK_FALSE(run.meets("speed > 3"));
  CHECK(**run.number("iteration_time_s") == run.iteration_time_s());
  CHECK_FALSE(*run.number("cost"));
  CHECK_FALSE(run.number("bubble_fractio"));
}

TEST_CASE("resolve makes the choices that predict makes") {
  const auto scenario =
      v1::load("examples/four-stages.yaml", {"schedule.name=auto", "schedule.placement=straight"});
  REQUIRE(scenario);
  const auto resolved = v1::resolve(*scenario);
  REQUIRE(resolved);
  const auto once = v1::predict(*scenario);
  const auto twice = v1::predict(*resolved);
  REQUIRE(once);
  REQUIRE(twice);
  CHECK(once->json() == twice->json());
}

}  // namespace
}  // namespace plumbline::test
