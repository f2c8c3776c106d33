// Comparisons of runs that are not alike, of keys and of notes.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/likeness.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "sim/report/compare_report.h"
#include "sim/report/report.h"
#include "tests/support/close_to.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

ComparedRun run(const std::string& title, const std::vector<std::string>& overrides,
                const std::string& name = "four-stages") {
  ComparedRun made =
      compared(std::make_shared<const Outcome>(predict_example(name, overrides)), title);
  YamlNode root = *read_yaml("examples/" + name + ".yaml");
  for (const std::string& one : overrides) REQUIRE_FALSE(apply_override(root, one));
  made.keys = written_keys(root);
  return made;
}

using Texts = std::vector<std::string>;

void has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("runs of the same work on the same devices are alike, whatever the schedule") {
  CHECK(unlikenesses({run("1f1b", {}), run("gpipe", {"schedule.name=gpipe"}),
                      run("zb-v", {"schedule.name=zb-v"}), run("zb-h1", {"schedule.name=zb-h1"})})
            .empty());
}

TEST_CASE("what is not alike is named with its values and the runs that have them") {
  const ComparedRun first = run("a", {});
  CHECK(unlikenesses({first, run("b", {"plan.stages=2"})}) == Texts{"devices used (4: a; 2: b)"});
  CHECK(unlikenesses({first, run("b", {"plan.stages=2"}), run("c", {})}) ==
        Texts{"devices used (4: a and c; 2: b)"});
  CHECK(unlikenesses({first, run("b", {"cluster.devices=8"})}) ==
        Texts{"devices in all (4: a; 8: b)"});
  CHECK(unlikenesses({first, run("b", {"schedule.micro_batches=16"})}) ==
        Texts{"mini-batch (256 samples: a; 512 samples: b)"});
  CHECK(
      unlikenesses({first, run("b", {"plan.stages=2", "plan.data_parallel=2"})}) ==
      Texts{"copies of the pipeline (1: a; 2: b)", "mini-batch (256 samples: a; 512 samples: b)"});
  CHECK(unlikenesses({first, run("b", {"model.uniform.layers=16"})}) ==
        Texts{"layers (8: a; 16: b)", "parameters (128 MiB: a; 256 MiB: b)"});
  CHECK(unlikenesses({first, run("b", {"model.uniform.parameters=8 MiB"})}) ==
        Texts{"parameters (128 MiB: a; 64 MiB: b)"});
  CHECK(unlikenesses({first, run("b", {"cluster.memory=200 MiB"})}) ==
        Texts{"fit into the memory (yes: a; no: b)"});
  CHECK(unlikenesses({first, run("b", {"schedule.name=pipedream"})}) ==
        Texts{"flush before each update (yes: a; no: b)"});
}

TEST_CASE("the sentence begins with what is not alike") {
  const std::string devices = verdict({run("four", {}), run("two", {"plan.stages=2"})});
  CHECK(devices.starts_with("not alike in devices used (4: four; 2: two): four is 1.64x faster"));
  const std::string fit =
      verdict({run("1f1b", {"cluster.memory=300 MiB"}),
               run("gpipe", {"cluster.memory=300 MiB", "schedule.name=gpipe"})});
  CHECK(fit.starts_with("not alike in fit into the memory (yes: 1f1b; no: gpipe): "));
  const std::string stuck =
      verdict({run("a", {}), run("b", {"schedule.name=zb-h1"})}, {{"c", "the schedule deadlocks"}});
  CHECK(stuck.starts_with("c cannot run (the schedule deadlocks): b is 1.22x faster than a"));
}

TEST_CASE("of more than two runs the sentence tells all, from the fastest to the slowest") {
  const std::vector<ComparedRun> runs = {
      run("1f1b", {}), run("interleaved-1f1b", {"schedule.name=interleaved-1f1b"}),
      run("zb-v", {"schedule.name=zb-v"}), run("zb-h1", {"schedule.name=zb-h1"})};
  const std::string text = verdict(runs);
  CHECK(text.starts_with("zb-v is 1.29x faster than 1f1b (25.5 ms instead of 33 ms an iteration)"));
  CHECK(
      text.ends_with("; from fastest to slowest: zb-v 25.5 ms, zb-h1 27 ms (+5.88 %), "
                     "interleaved-1f1b 28.5 ms (+11.76 %), 1f1b 33 ms (+29.41 %)"));
  // Twice the samples in 57 ms are worth 28.5 ms.
  has(verdict({run("8", {}), run("16", {"schedule.micro_batches=16"}),
               run("4", {"schedule.micro_batches=4"})}),
      "; from fastest to slowest, for as many samples: 16 57 ms, 8 66 ms (+15.79 %), 4 84 ms "
      "(+47.37 %)");
  // The fastest does not fit, and the next does.
  const std::vector<std::string> small = {"cluster.memory=240 MiB"};
  has(verdict({run("1f1b", small), run("zb-v", {"cluster.memory=240 MiB", "schedule.name=zb-v"}),
               run("gpipe", {"cluster.memory=240 MiB", "schedule.name=gpipe"})}),
      "; but it does not fit into the memory, of those that do 1f1b is the fastest; from fastest");
  CHECK(verdict({runs[0], runs[3]}).find("slowest") == std::string::npos);
}

TEST_CASE("notes and estimates are told once, with the runs that they hold for") {
  const std::vector<ComparedRun> runs = {
      run("1f1b", {}), run("il", {"schedule.name=interleaved-1f1b"}),
      run("zb-v", {"schedule.name=zb-v"}), run("zb-h1", {"schedule.name=zb-h1"})};
  const auto notes = shared_notes(runs);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].runs == std::vector<std::size_t>{1, 2});  // stages are raised
  CHECK(notes[1].runs == std::vector<std::size_t>{2, 3});  // backwards are halved
  REQUIRE(shared_estimates(runs).size() == 1);
  const std::string table = to_table(runs).print();
  has(table, "\nnote (il and zb-v): plan.stages is 4, one on each of 4 devices; ");
  has(table, "\nestimated (zb-v and zb-h1): I and W of 8 layers: half of the backward each");
  // One that holds for all runs names none.
  has(to_table({run("a", {"plan.stages=2"}), run("b", {"plan.stages=2", "schedule.name=gpipe"})})
          .print(),
      "\nnote: devices without a stage: 2 of 4\n");
}

TEST_CASE("the keys in which runs differ are told with each run's value") {
  const auto keys =
      differing_keys({run("a", {}), run("b", {"plan.stages=2", "cluster.link.latency=1 us"}),
                      run("c", {"plan.warm_up=[3, 2, 1, 0]"})});
  REQUIRE(keys.size() == 3);
  CHECK(keys[0].key == "plan.stages");
  CHECK(keys[0].values == Texts{"4", "2", "4"});
  CHECK(keys[1].key == "cluster.link.latency");
  CHECK(keys[1].values == Texts{"-", "1 us", "-"});
  CHECK(keys[2].key == "plan.warm_up");
  CHECK(keys[2].values == Texts{"-", "-", "[3, 2, 1, 0]"});
  CHECK(differing_keys({run("a", {}), run("b", {"name=another"})}).empty());
  // A result file has no known keys: it differs in none.
  ComparedRun result = run("r", {"plan.stages=2"});
  result.keys.clear();
  const auto known = differing_keys({run("a", {}), result, run("b", {"schedule.name=gpipe"})});
  REQUIRE(known.size() == 1);
  CHECK(known[0].values == Texts{"1f1b", "-", "gpipe"});
}

TEST_CASE("the JSON of a comparison has notes, keys and what is not alike") {
  const auto json = nlohmann::json::parse(
      to_json({run("1f1b", {}), run("zb-v", {"schedule.name=zb-v", "cluster.devices=8"})}, "0",
              {{"x", "deadlock"}}));
  CHECK(json["not_alike"] == nlohmann::json::array({"devices in all (4: 1f1b; 8: zb-v)"}));
  CHECK(json["keys_that_differ"].size() == 2);
  CHECK(json["keys_that_differ"][1]["values"] == nlohmann::json::array({"1f1b", "zb-v"}));
  CHECK(json["notes"].size() == 3);
  CHECK(json["notes"][0]["runs"] == nlohmann::json::array({"zb-v"}));
  CHECK(json["cannot_run"][0]["reason"] == "deadlock");
  CHECK(json["runs"][1]["devices_used"] == 4);
  CHECK(json["runs"][1]["devices_in_all"] == 8);
  CHECK(json["runs"][1]["mini_batch_samples"] == 256);
}

TEST_CASE("a result file knows as much of what is not alike as the run that wrote it") {
  for (const auto& overrides :
       {Texts{}, Texts{"cluster.devices=8", "schedule.micro_batches=16"},
        Texts{"schedule.name=pipedream"}, Texts{"model.uniform.layers=16"}}) {
    CAPTURE(overrides);
    const ComparedRun fresh = run("it", overrides);
    const auto read = read_result(text_source("it.json", to_json(*fresh.outcome, "0")), "it");
    REQUIRE(read);
    CHECK(unlikenesses({fresh, *read}).empty());
    CHECK(read->notes == fresh.notes);
    CHECK(unlikenesses({run("a", {}), *read}) == unlikenesses({run("a", {}), fresh}));
  }
}

}  // namespace
}  // namespace plumbline::test
