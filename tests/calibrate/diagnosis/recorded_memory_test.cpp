// Memory that allocators recorded, beside the predicted one.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/recorded_memory.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

std::string memory_json(const std::string& devices) {
  return fmt::format(R"({{"version": 1, "kind": "memory", "devices": [{}]}})", devices);
}

std::string device_json(const std::string& curve) {
  return fmt::format(
      R"({{"source": "rank0.pickle", "device": 3, "least_bytes": 100, "peak_bytes": 900,
          "reserved_bytes": 1024, "curve": [{}]}})",
      curve);
}

Result<std::vector<RecordedMemory>> try_memory(const std::string& text) {
  const TemporaryFolder folder;
  return read_recorded_memory(folder.file("memory.json", text));
}

std::vector<RecordedMemory> recorded_memory_of(const std::string& text) {
  auto memory = try_memory(text);
  REQUIRE_MESSAGE(memory, (memory ? "" : to_text(memory.problems())));
  return *std::move(memory);
}

std::string memory_faults(const std::string& text) {
  const auto memory = try_memory(text);
  REQUIRE_FALSE(memory);
  return to_text(memory.problems());
}

/// Two stages that hold 100 and 300 MB of parameters, and 10 MB of each micro-batch.
Outcome memory_prediction() {
  const auto scenario = parse_scenario(
      text_source("memory.yaml",
                  "version: 1\nmodel:\n  layers:\n    - {name: a, forward: 1 ms, backward: 2 ms, "
                  "parameters: 100 MB, activation: 10 MB}\n    - {name: b, forward: 1 ms, "
                  "backward: 2 ms, parameters: 300 MB, activation: 10 MB}\ncluster: {devices: "
                  "2}\nplan: {stages: 2}\nschedule: {name: gpipe, micro_batches: 2}\n"),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE(outcome);
  return *std::move(outcome);
}

TEST_CASE("recorded memory has its source, its bytes and its curve") {
  const auto memory = recorded_memory_of(
      memory_json(device_json("[5, 100], [7, 900], [7, 100]") + "," + device_json("")));
  REQUIRE(memory.size() == 2);
  CHECK(memory[0].source == "rank0.pickle");
  CHECK(memory[0].device == 3);
  CHECK(memory[0].least.count == 100);
  CHECK(memory[0].peak.count == 900);
  CHECK(memory[0].reserved.count == 1024);
  CHECK(memory[0].curve == MemoryCurve{{5, {100}}, {7, {900}}, {7, {100}}});
  CHECK(memory[1].curve.empty());
}

TEST_CASE("what is no recorded memory is told at its place") {
  CHECK(memory_faults(R"({"version": 1, "kind": "profile", "devices": []})").find("memory") !=
        std::string::npos);
  CHECK(memory_faults(memory_json(R"({"device": 0})")).find("devices[0].peak_bytes is missing") !=
        std::string::npos);
  CHECK(memory_faults(memory_json(device_json("[1, 2, 3]")))
            .find("devices[0].curve has pairs of a time and bytes") != std::string::npos);
  CHECK(memory_faults(memory_json(device_json("[1, -2]"))).find("devices[0].curve") !=
        std::string::npos);
  CHECK(memory_faults(memory_json(device_json("[7, 2], [6, 2]")))
            .find("devices[0].curve goes back in time") != std::string::npos);
  CHECK(memory_faults("{").find("error") != std::string::npos);
}

TEST_CASE("predicted and recorded memory stand beside each other, device by device") {
  const Outcome outcome = memory_prediction();
  auto memory =
      recorded_memory_of(memory_json(device_json("[0, 100], [10, 900]") + "," + device_json("")));
  for (std::size_t slot = 0; slot < 2; ++slot) {
    memory[slot].least = outcome.memory[slot].peak.sum() - Bytes{20'000'000};
    memory[slot].peak = {outcome.memory[slot].peak.sum().count / 2};
  }
  const auto table = memory_beside(outcome, memory);
  REQUIRE_MESSAGE(table, (table ? "" : to_text(table.problems())));
  const std::string text = table->print();
  for (const char* part : {"beside what was recorded", "+100.0 %", "+0.0 %", "reserved",
                           "device 0 predicted │", "device 0 recorded  │", "device 1 predicted │"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, std::string(part), " is not in\n", text);
  CHECK(text.find("device 1 recorded") == std::string::npos);  // it has no curve
  memory.pop_back();
  const auto one = memory_beside(outcome, memory);
  REQUIRE_FALSE(one);
  CHECK(one.problems().front().message ==
        "the memory of 1 device was recorded, and the scenario has 2");
}

TEST_CASE("the CSV of memory has both curves, from the first time of each") {
  const Outcome outcome = memory_prediction();
  const auto memory = recorded_memory_of(
      memory_json(device_json("[5000000, 100], [5000250, 900]") + "," + device_json("")));
  std::istringstream lines(memory_csv(outcome, memory));
  std::vector<std::string> recorded;
  std::size_t predicted = 0;
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "device,source,time_s,bytes");
  while (std::getline(lines, line)) {
    if (line.find(",predicted,") == std::string::npos)
      recorded.push_back(line);
    else
      ++predicted;
  }
  CHECK(recorded == std::vector<std::string>{"0,recorded,0.000000,100", "0,recorded,0.000250,900"});
  CHECK(predicted > 2 * 4);  // activations come and go
}

}  // namespace
}  // namespace plumbline::test
