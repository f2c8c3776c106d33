// Comparisons: what a run is, from a prediction and from its JSON, and the sentence.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/compare.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/report/report.h"
#include "tests/support/close_to.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

std::shared_ptr<const Outcome> outcome_of(const std::string& name,
                                          const std::vector<std::string>& overrides = {}) {
  return std::make_shared<const Outcome>(predict_example(name, overrides));
}

TEST_CASE("what an iteration is for a device adds up to the iteration time") {
  for (const std::string& name : example_names()) {
    CAPTURE(name);
    const ComparedRun run = compared(outcome_of(name), name);
    double sum = run.busy_s;
    for (const double idle : run.idle_s) sum += idle;
    CHECK(sum == close_to(run.iteration_time_s));
  }
}

TEST_CASE("a run read back from its JSON is the run") {
  for (const std::string& name : example_names()) {
    CAPTURE(name);
    const auto outcome = outcome_of(name);
    const ComparedRun run = compared(outcome, "it");
    const auto source = text_source("it.json", to_json(*outcome, "0"));
    const auto read = read_result(source, "it");
    REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
    CHECK(read->schedule == run.schedule);
    CHECK(read->stages == run.stages);
    CHECK(read->iteration_time_s == run.iteration_time_s);
    CHECK(read->throughput_samples_per_s == run.throughput_samples_per_s);
    CHECK(read->model_flops_utilization == run.model_flops_utilization);
    CHECK(read->bubble_fraction == run.bubble_fraction);
    CHECK(read->busy_s == close_to(run.busy_s));
    for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause)
      CHECK(read->idle_s[cause] == close_to(run.idle_s[cause]));
    REQUIRE(read->devices.size() == run.devices.size());
    CHECK(read->peak_memory_bytes() == run.peak_memory_bytes());
    CHECK(read->devices.back().stages == run.devices.back().stages);
    CHECK(read->devices.back().peak_in_flight == run.devices.back().peak_in_flight);
    CHECK(read->fits == run.fits);
    CHECK(read->estimated == run.estimated);
  }
}

TEST_CASE("the sentence names the faster one, the reason and the memory") {
  const ComparedRun naive = compared(outcome_of("practical-b", {"schedule.name=naive"}), "naive");
  const ComparedRun gpipe = compared(outcome_of("practical-b", {"schedule.name=gpipe"}), "gpipe");
  const ComparedRun same = compared(outcome_of("practical-b", {"schedule.name=1f1b"}), "1f1b");
  const std::string faster =
      "gpipe is 1.59x faster than naive (35.5 ms instead of 56.5 ms an iteration), because on "
      "average a device waits 21 ms less for other devices' results; it needs 7.5 MiB more on "
      "device 1, where at most 4 micro-batches are in flight instead of 1";
  CHECK(verdict({naive, gpipe}) == faster);
  CHECK(verdict({gpipe, naive}) == faster);  // where the first is the fastest, the next best
  CHECK(verdict({naive, naive}) == "naive and naive are as fast as each other (56.5 ms)");
  CHECK(verdict({gpipe, same}) ==
        "gpipe and 1f1b are as fast as each other (35.5 ms), but gpipe needs 7 MiB more on device "
        "1, where at most 4 micro-batches are in flight instead of 1; of all devices the highest "
        "peak is 74 MiB instead of 68.5 MiB");
}

TEST_CASE("memory is compared device by device where these hold the same stages") {
  const auto run = [](const std::string& title, const std::vector<std::string>& overrides) {
    return compared(outcome_of("four-stages", overrides), title);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  // Device 3 differs the most, and neither peak is there.
  has(verdict({run("gpipe", {"schedule.name=gpipe"}), run("1f1b", {})}),
      "but gpipe needs 192 MiB more on device 3, where at most 8 micro-batches are in flight "
      "instead of 1; of all devices the highest peak is 356 MiB instead of 228 MiB");
  // Two copies of two stages: device 3 is another part of the network.
  has(verdict({run("one", {}), run("two", {"plan.stages=2", "plan.data_parallel=2"})}),
      " on a device at most instead of 228 MiB");
  // More in flight, and less memory all the same: that is not why.
  const std::string recomputed =
      verdict({run("1f1b", {}), run("gpipe", {"schedule.name=gpipe", "schedule.recompute=full"})});
  CAPTURE(recomputed);
  CHECK(recomputed.find("in flight") == std::string::npos);
  has(recomputed, " on device 0; of all devices the highest peak is 228 MiB instead of ");
}

TEST_CASE("runs of other sizes are compared for as many samples") {
  // Twice the samples in an iteration, at the same cost each: only fill and drain are spread out.
  const ComparedRun few = compared(outcome_of("for-real", {"schedule.micro_batches=4"}), "4");
  const ComparedRun many = compared(outcome_of("for-real", {"schedule.micro_batches=8"}), "8");
  CHECK(few.samples() == close_to(4));
  CHECK(verdict({few, many})
            .starts_with("not alike in mini-batch (4 samples: 4; 8 samples: 8): 8 is 1.27x faster "
                         "than 4 (33 ms instead of 42 ms for as many samples), because on average "
                         "a device "));
}

TEST_CASE("what is no result is refused") {
  const auto problem = [](const std::string& text) {
    const auto read = read_result(text_source("r.json", text), "r");
    REQUIRE(!read);
    return read.problems().front().message;
  };
  CHECK(problem("{\"schema_version\": 1,") == "no JSON: it breaks off or goes wrong at byte 22");
  CHECK(problem("[]") == "no result: it has no schema_version");
  CHECK(problem("{\"schema_version\": 2}") == "schema_version is 2, where 1 is known");
  CHECK(problem("{\"schema_version\": 1}") ==
        "no result: 'schedule' is missing or of another type");
  const auto json = nlohmann::ordered_json::parse(to_json(*outcome_of("worked-example"), "0"));
  for (const auto& entry : json.items()) {
    const std::string& key = entry.key();
    if (key == "tool" || key == "scenario" || key == "notes" || key == "all_reduces" ||
        key == "transfers" || key == "formula" || key == "period_s" || key == "makespan_s" ||
        key == "operations" || key == "device_count" || key == "bubble_overhead" ||
        key == "model_flops" || key == "model_flops_per_device_per_s" ||
        key == "throughput_per_device_samples_per_s")
      continue;
    CAPTURE(key);
    auto wrong = json;
    wrong[key] = nlohmann::ordered_json::object();
    if (key == "fits" || key == "estimated") continue;  // absent says as much
    CHECK(!problem(wrong.dump()).empty());
  }
}

}  // namespace
}  // namespace plumbline::test
