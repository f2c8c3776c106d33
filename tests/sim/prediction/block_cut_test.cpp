// Cuts that count blocks, and layouts of Megatron-LM.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/block_cut.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/axes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

using Stages = std::vector<std::string>;
using Counts = std::vector<std::uint32_t>;

Stages stages_of(const std::string& text) {
  const auto layout = parse_layout_string(text, {});
  REQUIRE_MESSAGE(layout, (layout ? "" : to_text(layout.problems())));
  CHECK(layout->text == text);
  return layout->stages;
}

std::string fault(const std::string& text) {
  CHECK(is_layout_string(text));
  const auto layout = parse_layout_string(text, {});
  REQUIRE_FALSE(layout);
  return layout.problems().front().message;
}

/// E, blocks of one layer each, mtp modules, L.
std::vector<LayerUnit> units(std::uint32_t blocks, std::uint32_t modules = 0) {
  std::vector<LayerUnit> all = {{UnitKind::embedding, 1}};
  for (std::uint32_t i = 0; i < blocks; ++i) all.push_back({UnitKind::block, 1});
  for (std::uint32_t i = 0; i < modules; ++i) all.push_back({UnitKind::prediction, 1});
  all.push_back({UnitKind::head, 1});
  return all;
}

TEST_CASE("a layout is unrolled as Megatron-LM does it") {
  CHECK(stages_of("Ettt|(tt|)*3,m|L") == Stages{"Ettt", "tt", "tt", "tt", "m", "L"});
  CHECK(stages_of("Et*3|tt|L") == Stages{"Ettt", "tt", "L"});
  CHECK(stages_of("E, t | t*2 | L") == Stages{"Et", "tt", "L"});
  CHECK(stages_of("E|((t*2)*2|)*2t,L") == Stages{"E", "tttt", "tttt", "tL"});
  CHECK(stages_of("EtL") == Stages{"EtL"});
  CHECK(stages_of("Et*3|(tt|)*29,m|L").size() == 32);
}

TEST_CASE("what is no layout is told with the character") {
  CHECK(fault("E(t|L").find("a ( without a ) at character 2") != std::string::npos);
  CHECK(fault("Et)|L").find("a ) without a ( at character 3") != std::string::npos);
  CHECK(fault("*3|E").find("a * with nothing before it at character 1") != std::string::npos);
  CHECK(fault("Et*|L").find("no number behind the * at character 4") != std::string::npos);
  CHECK(fault("Et|x|L").find("'x' at character 4") != std::string::npos);
  CHECK(fault("Et||L").find("stage 1 of 3 is empty") != std::string::npos);
  CHECK(fault("Et|L|").find("stage 2 of 3 is empty") != std::string::npos);
  CHECK(stages_of("Et*0|L") == Stages{"E", "L"});
  CHECK(fault("E(t*1000000)*1000000|L").find("too many layers") != std::string::npos);
  CHECK(fault(std::string(100'000, '(')).find("parentheses more than 100 deep") !=
        std::string::npos);
  std::string nothing = "EtL";
  for (int i = 0; i < 10'000; ++i) nothing += "()*9999999";
  CHECK(stages_of(nothing) == Stages{"EtL"});
  for (const char* rule : {"even", "balanced", "blocks", "pipedream", "evn", ""})
    CHECK_FALSE(is_layout_string(rule));
}

TEST_CASE("a layout counts the layers of each stage, and must hold what the model has") {
  const auto counts = [](const std::string& text, const std::vector<LayerUnit>& of) {
    return layout_counts(of, *parse_layout_string(text, {}), {});
  };
  CHECK(*counts("Ett|tt|mL", units(4, 1)) == Counts{3, 2, 2});
  CHECK(*counts("E|t*4|L", units(4)) == Counts{1, 4, 1});
  // A block may be two layers: attention, and the MLP or experts behind it.
  std::vector<LayerUnit> pairs = units(4);
  for (LayerUnit& unit : pairs) unit.layers = unit.kind == UnitKind::block ? 2 : 1;
  CHECK(*counts("Et|ttt|L", pairs) == Counts{3, 6, 1});
  const auto said = [&](const std::string& text, const std::vector<LayerUnit>& of) {
    const auto wrong = counts(text, of);
    REQUIRE_FALSE(wrong);
    return to_text(wrong.problems());
  };
  CHECK(said("Ett|tt|L", units(5)).find("the model has 5 blocks and the layout 4 t") !=
        std::string::npos);
  CHECK(said("Ett|tt|mL", units(4)).find("model.mtp: true") != std::string::npos);
  CHECK(said("Ett|tt", units(4)).find("the model has 1 head and the layout 0 L") !=
        std::string::npos);
  CHECK(said("tt|Ett|L", units(4)).find("t stands where the model has its next embedding, E") !=
        std::string::npos);
  std::vector<LayerUnit> other = units(4);
  other[2].kind = UnitKind::other;
  CHECK(said("Ett|t|L", other).find("neither embedding, block, mtp nor head") != std::string::npos);
}

TEST_CASE("blocks are cut evenly, with embedding and head on top") {
  CHECK(*even_block_counts(units(80), 8, {}) == Counts{11, 10, 10, 10, 10, 10, 10, 11});
  CHECK(*even_block_counts(units(6), 4, {}) == Counts{3, 2, 1, 2});
  CHECK(*even_block_counts(units(4, 2), 2, {}) == Counts{3, 5});
  CHECK(*even_block_counts(units(3), 1, {}) == Counts{5});
  std::vector<LayerUnit> pairs = units(4);
  for (LayerUnit& unit : pairs) unit.layers = unit.kind == UnitKind::block ? 2 : 1;
  CHECK(*even_block_counts(pairs, 4, {}) == Counts{3, 2, 2, 3});
  CHECK(to_text(even_block_counts(units(3), 4, {}).problems())
            .find("the number of stages is 4, but that of blocks is 3") != std::string::npos);
  CHECK(to_text(even_block_counts({{UnitKind::other, 1}}, 1, {}).problems())
            .find("no layer of the model is a block") != std::string::npos);
}

TEST_CASE("a scenario takes a layout for its stages, from a file and from the command line") {
  const TemporaryFolder folder;
  folder.file("m.json", R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
      "num_hidden_layers": 6, "num_attention_heads": 4, "vocab_size": 1000})");
  for (const std::string keys : {"", ", split_blocks: true"}) {
    CAPTURE(keys);
    const auto counts = [&](const std::string& partition) {
      const auto scenario = parse_scenario(
          text_source("s.yaml",
                      fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 64{}}}\n"
                                  "cluster: {{gpus: 8, device: {{preset: h100-sxm}}}}\n"
                                  "plan: {{partition: \"{}\"}}\n"
                                  "schedule: {{name: 1f1b, micro_batches: 8}}\n",
                                  folder["m.json"], keys, partition)),
          partition == "blocks" ? Stages{"plan.stages=2"} : Stages{});
      REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
      const auto outcome = predict_resolved(*scenario);
      REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
      Counts found;
      for (const Stage& stage : outcome->setup.partition.stages)
        found.push_back(static_cast<std::uint32_t>(stage.layers.size()));
      return found;
    };
    const std::uint32_t n = keys.empty() ? 1 : 2;  // layers of a block
    CHECK(counts("Et|(tt|)*2,t|L") == Counts{1 + n, 2 * n, 2 * n, n, 1});
    CHECK(counts("E|t*6,L") == Counts{1, 6 * n + 1});
    CHECK(counts("blocks") == Counts{3 * n + 1, 3 * n + 1});
  }
}

TEST_CASE("a sweep over layouts cuts its list before each embedding") {
  const auto values = [](const std::string& argument) {
    const auto axes = read_axes({argument});
    REQUIRE(axes);
    return axes->front().values;
  };
  CHECK(values("plan.partition=Et*3|(tt|)*29,m|L,E|t*61,m|L,even") ==
        Stages{"Et*3|(tt|)*29,m|L", "E|t*61,m|L", "even"});
  CHECK(values("plan.partition=even,E|t,L") == Stages{"even", "E|t,L"});
  CHECK(values("plan.partition=[1,2],[2,1]") == Stages{"[1,2]", "[2,1]"});
}

}  // namespace
}  // namespace plumbline::test
