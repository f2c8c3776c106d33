// Traffic of devices within their groups, reported beside the time of a run without it.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 32000})";
const std::string kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2048,
        "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})";

Outcome outcome_of(const std::string& text, const std::vector<std::string>& overrides) {
  auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto settled = resolve_plan(*std::move(scenario));
  REQUIRE(settled);
  auto outcome = predict(*settled);
  REQUIRE(outcome);
  return *std::move(outcome);
}

TEST_CASE("what is sent within groups is what devices are busy less where links take no time") {
  const TemporaryFolder folder;
  const std::string llama = folder.file("llama.json", kLlama);
  const std::string mixtral = folder.file("mixtral.json", kMixtral);
  const std::string rest =
      "cluster: {gpus: 32, gpus_per_server: 8, device: {preset: h100-sxm, network: 25 GB/s, "
      "link_overlap: 0.25, network_overlap: 0.5}}\n"
      "plan: {stages: 4, partition: balanced, data_parallel: fill}\n"
      "schedule: {name: 1f1b, micro_batches: 8}\n"
      "training: {micro_batch_size: 8, optimizer_state: 6, gradients: 2}\n"
      "overhead: {per_op: 7 us}\n";
  const std::vector<std::string> models = {
      fmt::format("{{huggingface: {}, sequence: 512, tensor_parallel: 4}}", llama),
      fmt::format("{{huggingface: {}, sequence: 512, tensor_parallel: 2, sequence_parallel: true, "
                  "context_parallel: 2}}",
                  llama),
      fmt::format("{{huggingface: {}, sequence: 512, expert_parallel: 8}}", mixtral)};
  const std::vector<std::vector<std::string>> runs = {
      {},
      {"training.zero_stage=1"},
      {"schedule.mini_batches=2", "overhead.per_op=0 us"},
      {"schedule.name=zb-h1"},
      {"schedule.name=interleaved-1f1b", "plan.stages=8"},
      {"schedule.recompute=full"},
      {"schedule.recompute=selective"},
      {"schedule.recompute=layers", "schedule.recompute_layers=1"},
      {"schedule.slices=[0.8, 1.2]"},
      {"schedule.name=eager-1f1b", "schedule.pairs=overlapped"},
      {"schedule.name=dualpipe", "schedule.pairs=overlapped", "schedule.recompute=full"},
      {"schedule.name=data-parallel", "plan=null", "schedule.bucket=1 MiB"},
      {"cluster.device.efficiency=0.5"}};
  for (const std::string& model : models) {
    for (const std::vector<std::string>& run : runs) {
      CAPTURE(model);
      CAPTURE(fmt::format("{}", fmt::join(run, " ")));
      const std::string text = fmt::format("version: 1\nmodel: {}\n{}", model, rest);
      const Outcome real = outcome_of(text, run);
      std::vector<std::string> at_once = run;
      at_once.insert(at_once.end(),
                     {"cluster.device.link=900 TB/s", "cluster.device.network=900 TB/s"});
      const Outcome ideal = outcome_of(text, at_once);
      REQUIRE(real.sent_in_groups_s);
      REQUIRE(ideal.sent_in_groups_s);
      // Every time is rounded up to a nanosecond, a layer at a time.
      const double max_off_s = 1e-9 * 10 * 9 * static_cast<double>(real.graph.size());
      CHECK(std::abs(*real.sent_in_groups_s - *ideal.sent_in_groups_s -
                     (seconds(real.metrics.busy()) - seconds(ideal.metrics.busy()))) < max_off_s);
      CHECK(*real.sent_in_groups_s > 20 * max_off_s);
      const double fraction =
          *real.sent_in_groups_s / (seconds(real.metrics.makespan) * real.graph.slots());
      CHECK(*real.sent_in_groups_fraction() == close_to(fraction));
    }
  }
}

TEST_CASE("where nothing is sent within groups, nothing is told of it") {
  const TemporaryFolder folder;
  const Outcome alone =
      outcome_of(fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 512}}\n"
                             "cluster: {{gpus: 4, device: h100-sxm}}\nschedule: {{name: 1f1b, "
                             "micro_batches: 4}}\n",
                             folder.file("llama.json", kLlama)),
                 {});
  CHECK_FALSE(alone.sent_in_groups_s);
  CHECK_FALSE(alone.sent_in_groups_fraction());
}

}  // namespace
}  // namespace plumbline::test
