// The layouts that a search finds for a config.json alone.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/search_report.h"
#include "sim/search/run_search.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

TEST_CASE("a layout of a config.json alone is the same run when it is typed") {
  const TemporaryFolder folder;
  const std::string path =
      folder.file("config.json",
                  R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
          "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
          "vocab_size": 32000, "max_position_embeddings": 2048})");
  const std::vector<std::vector<std::string>> given = {
      {"schedule.name=1f1b", "model.context_parallel=1"},
      {"schedule.micro_batches=8", "schedule.name=1f1b", "schedule.recompute=none"},
      {"plan.data_parallel=2", "schedule.name=1f1b", "model.context_parallel=1"}};
  for (std::vector<std::string> arguments : given) {
    arguments.insert(arguments.begin(), {"cluster.gpus=8", "cluster.device=h100-sxm"});
    CAPTURE(arguments.back());
    const auto search = Search::open(path, arguments);
    REQUIRE_MESSAGE(search, (search ? "" : to_text(search.problems())));
    const auto run = run_search(*search);
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    SearchSelection selection;
    selection.rows.top = 3;
    const SearchReport told = report(run->part, selection);
    REQUIRE(told.rows.size() == 3);
    for (const SearchRow& row : told.rows) {
      // The arguments are among the layout's overrides.
      const auto scenario = read_scenario(path, row.layout.overrides);
      REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
      const auto resolved = resolve_plan(*scenario);
      REQUIRE_MESSAGE(resolved, (resolved ? "" : to_text(resolved.problems())));
      const auto outcome = predict(*resolved, Evaluation::fastest);
      REQUIRE(outcome);
      CHECK(outcome->iteration_time_s == row.row.numbers->iteration_time_s);
    }
  }
}

}  // namespace
}  // namespace plumbline::test
