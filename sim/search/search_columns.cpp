// Titles, keys and texts of layouts.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace plumbline {
namespace {

template <class Member>
LayoutColumn plain(const char* title, const char* key, const char* path, Member member,
                   std::string usual = "") {
  return {title, key, path,
          [member](const Layout& layout) { return fmt::format("{}", layout.*member); },
          std::move(usual)};
}

/// The titles of earlier versions, which are taken, too, and today's.
constexpr std::pair<std::string_view, std::string_view> kEarlier[] = {
    {"tensor", "TP"}, {"context", "CP"},      {"expert", "EP"},           {"pipeline", "PP"},
    {"copies", "DP"}, {"micro-batch", "MBS"}, {"made again", "recompute"}};

}  // namespace

const std::vector<LayoutColumn>& layout_columns() {
  static const std::vector<LayoutColumn> columns = {
      plain("TP", "tensor_parallel", "model.tensor_parallel", &Layout::tensor, "1"),
      plain("CP", "context_parallel", "model.context_parallel", &Layout::context, "1"),
      plain("EP", "expert_parallel", "model.expert_parallel", &Layout::expert, "1"),
      {"PP", "pipeline_parallel", "",
       [](const Layout& layout) { return std::to_string(layout.stages / layout.chunks); }, ""},
      plain("VPP", "chunks", "schedule.chunks", &Layout::chunks, "1"),
      plain("DP", "data_parallel", "plan.data_parallel", &Layout::copies),
      plain("schedule", "schedule", "schedule.name", &Layout::schedule),
      {"MBS", "micro_batch_size", "training.micro_batch_size",
       [](const Layout& layout) {
         return layout.batches > 1 ? fmt::format("{} x {}", layout.batches,
                                                 layout.micro_batch_size / layout.batches)
                                   : std::to_string(layout.micro_batch_size);
       },
       ""},
      plain("micro-batches", "micro_batches", "schedule.micro_batches", &Layout::micro_batches),
      plain("recompute", "made_again", "schedule.recompute", &Layout::recomputation, "none")};
  return columns;
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const LayoutColumn& column : layout_columns()) names.emplace_back(column.title);
  for (const auto& [earlier, today] : kEarlier) names.emplace_back(earlier);
  return names;
}

const LayoutColumn* find_column(std::string_view written) {
  const auto* const renamed = std::find_if(std::begin(kEarlier), std::end(kEarlier),
                                           [&](const auto& one) { return one.first == written; });
  const std::string_view name = renamed == std::end(kEarlier) ? written : renamed->second;
  static const std::vector<LayoutColumn> data = {
      plain("stages", "stages", "plan.stages", &Layout::stages),
      plain("MBS", "micro_batch_size", "training.micro_batch_size", &Layout::micro_batch_size),
      {"recompute", "made_again", "schedule.recompute",
       [](const Layout& layout) {
         return layout.recomputation.substr(0, layout.recomputation.find(' '));
       },
       ""}};
  for (const auto* columns : {&data, &layout_columns()}) {
    for (const LayoutColumn& column : *columns) {
      if (name == column.title || name == column.key || name == column.path) return &column;
    }
  }
  return nullptr;
}

std::string value_of(const Layout& layout, const std::string& key) {
  for (const std::string& text : layout.overrides) {
    if (text.starts_with(key + '=')) return text.substr(key.size() + 1);
  }
  return "-";
}

std::string identity(const Layout& layout) {
  std::string text = std::to_string(layout.combination);
  for (const LayoutColumn& column : layout_columns()) text += '\n' + column.text(layout);
  return text;
}

std::int64_t mini_batch_of(const Layout& layout) {
  return layout.copies * layout.micro_batches * layout.micro_batch_size;
}

std::string sizes(const Layout& layout) {
  return fmt::format("{} {} {} {}", layout.tensor, layout.context, layout.expert,
                     layout.stages / layout.chunks);
}

std::string in_words(const Layout& layout) {
  std::vector<std::string> words;
  for (const LayoutColumn& column : layout_columns()) {
    const std::string text = column.text(layout);
    if (text == column.usual) continue;
    words.push_back(column.key == std::string_view("schedule")
                        ? text
                        : fmt::format("{} {}", column.title, text));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace plumbline
