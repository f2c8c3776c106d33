// Counting blocks.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/block_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/table.h"
#include "schedules/stages/partition.h"

namespace plumbline {
namespace {

struct Letter {
  UnitKind kind;
  char letter;
  std::string_view noun;
};
constexpr std::array<Letter, 4> kLetters = {{{UnitKind::embedding, 'E', "embedding"},
                                             {UnitKind::block, 't', "block"},
                                             {UnitKind::prediction, 'm', "mtp module"},
                                             {UnitKind::head, 'L', "head"}}};

std::size_t units_of(const std::vector<LayerUnit>& units, UnitKind kind) {
  return static_cast<std::size_t>(std::count_if(
      units.begin(), units.end(), [&](const LayerUnit& unit) { return unit.kind == kind; }));
}

}  // namespace

Result<std::vector<std::uint32_t>> even_block_counts(const std::vector<LayerUnit>& units,
                                                     std::uint32_t stages, const Mark& mark) {
  const auto blocks = static_cast<std::uint32_t>(units_of(units, UnitKind::block));
  if (blocks == 0)
    return input_error(mark, "plan.partition is 'blocks', but no layer of the model is a block",
                       "blocks are those of model.huggingface, or an attention_block with its "
                       "mlp_block; even cuts all layers evenly");
  if (blocks < stages)
    return input_error(
        mark, fmt::format("the number of stages is {}, but that of blocks is {}", stages, blocks),
        "partition: even cuts all layers, and balanced by their times");
  const std::vector<std::uint32_t> of_stage = even_counts(blocks, stages);
  std::vector<std::uint32_t> counts(stages, 0);
  std::uint32_t stage = 0;
  std::uint32_t seen = 0;  // blocks in this stage
  for (const LayerUnit& unit : units) {
    if (unit.kind == UnitKind::block && ++seen > of_stage[stage]) {
      ++stage;
      seen = 1;
    }
    counts[stage] += unit.layers;
  }
  return counts;
}

Result<std::vector<std::uint32_t>> layout_counts(const std::vector<LayerUnit>& units,
                                                 const LayoutString& layout, const Mark& mark) {
  const auto wrong = [&](const std::string& what, const std::string& help) {
    return input_error(
        mark, fmt::format("plan.partition is '{}', but {}", clipped(layout.text), what), help);
  };
  std::string letters;
  for (const std::string& stage : layout.stages) letters += stage;
  if (units_of(units, UnitKind::other) > 0)
    return wrong("the model has layers that are neither embedding, block, mtp nor head",
                 "layouts are for models of model.huggingface and for networks of blocks");
  for (const auto& [kind, letter, noun] : kLetters) {
    const auto written =
        static_cast<std::size_t>(std::count(letters.begin(), letters.end(), letter));
    const std::size_t has = units_of(units, kind);
    if (written == has) continue;
    return wrong(
        fmt::format("the model has {} and the layout {} {}", plural(has, noun), written, letter),
        kind == UnitKind::prediction && has == 0 ? "model.mtp: true gives a model its mtp modules"
                                                 : fmt::format("write {} {} in all", has, letter));
  }
  std::vector<std::uint32_t> counts;
  counts.reserve(layout.stages.size());
  auto unit = units.begin();
  for (const std::string& stage : layout.stages) {
    std::uint32_t layers = 0;
    for (const char letter : stage) {
      const auto expected =
          std::find_if(kLetters.begin(), kLetters.end(),
                       [&](const Letter& known) { return known.kind == unit->kind; });
      if (letter != expected->letter)
        return wrong(fmt::format("{} stands where the model has its next {}, {}", letter,
                                 expected->noun, expected->letter),
                     "the order is E, t, m, L");
      layers += unit->layers;
      ++unit;
    }
    counts.push_back(layers);
  }
  return counts;
}

}  // namespace plumbline
