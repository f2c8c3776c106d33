// Titles, keys and texts of layouts.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumbline {
namespace {

template <class Member>
LayoutColumn plain(const char* title, const char* key, const char* path, Member member,
                   std::string usual = "") {
  return {title, key, path,
          [member](const Layout& layout) { return fmt::format("{}", layout.*member); },
          std::move(usual)};
}

}  // namespace

const std::vector<LayoutColumn>& layout_columns() {
  static const std::vector<LayoutColumn> columns = {
      plain("tensor", "tensor_parallel", "model.tensor_parallel", &Layout::tensor, "1"),
      plain("context", "context_parallel", "model.context_parallel", &Layout::context, "1"),
      plain("expert", "expert_parallel", "model.expert_parallel", &Layout::expert, "1"),
      {"pipeline", "pipeline_parallel", "",
       [](const Layout& layout) { return std::to_string(layout.stages / layout.chunks); }, ""},
      plain("chunks", "chunks", "schedule.chunks", &Layout::chunks, "1"),
      plain("copies", "data_parallel", "plan.data_parallel", &Layout::copies),
      plain("schedule", "schedule", "schedule.name", &Layout::schedule),
      {"micro-batch", "micro_batch_size", "training.micro_batch_size",
       [](const Layout& layout) {
         return layout.batches > 1 ? fmt::format("{} x {}", layout.batches,
                                                 layout.micro_batch_size / layout.batches)
                                   : std::to_string(layout.micro_batch_size);
       },
       ""},
      plain("micro-batches", "micro_batches", "schedule.micro_batches", &Layout::micro_batches),
      plain("made again", "made_again", "schedule.recompute", &Layout::recomputation, "none")};
  return columns;
}

const LayoutColumn* find_column(std::string_view name) {
  static const std::vector<LayoutColumn> data = {
      plain("stages", "stages", "plan.stages", &Layout::stages),
      plain("micro-batch", "micro_batch_size", "training.micro_batch_size",
            &Layout::micro_batch_size),
      {"made again", "made_again", "schedule.recompute",
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
