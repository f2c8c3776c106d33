// The kernels format, version 1, as text.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_table_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>
#include <vector>

#include "base/exact_quantity.h"
#include "base/yaml_text.h"
#include "models/kernels/kernel_table_format.h"

namespace plumbline {
namespace {

template <std::size_t Count, class Value>
std::string name_in(const std::array<std::string_view, Count>& words, Value value) {
  return std::string(words[static_cast<std::size_t>(value)]);
}

/// The field of a column; `sizes` counts those written before.
std::string field(const KernelRow& row, RowColumn column, std::size_t& sizes) {
  const KernelGroup& group = row.key.group;
  switch (column) {
    case RowColumn::dtype:
      return std::string(name_of(group.format));
    case RowColumn::pass:
      return std::string(pass_word(group.kernels, group.pass));
    case RowColumn::size:
      return std::to_string(row.key.sizes[sizes++]);
    case RowColumn::layout:
      return row.layout.empty() ? std::string(kAnyLayout) : clipped_scalar(row.layout);
    case RowColumn::accumulate:
      return name_in(kAccumulations, group.accumulation);
    case RowColumn::query_size:
      return std::to_string(group.query_size);
    case RowColumn::value_size:
      return std::to_string(group.value_size);
    case RowColumn::causal:
      return group.is_causal ? "true" : "false";
    case RowColumn::memory_kind:
      return name_in(kMemoryKinds, group.memory);
    case RowColumn::collective_kind:
      return name_in(kCollectiveKinds, group.collective);
    case RowColumn::devices:
      return std::to_string(group.devices);
    case RowColumn::scope:
      return std::string(group.is_on_network ? kOnNetwork : kInServer);
    case RowColumn::bytes:
      return exact_text(Bytes{row.key.sizes[0]});
    case RowColumn::time:
      return exact_text(row.time);
    case RowColumn::spread:
      return fmt::format("{:.4g}", row.spread);
    case RowColumn::how:
      return clipped_scalar(row.how);
  }
  return "";
}

/// How many columns of the row say something.
std::size_t columns_of(const KernelRow& row, const RowFormat& format) {
  const bool says_how = !row.how.empty();
  std::size_t count = format.least_columns();
  for (std::size_t i = count; i < format.columns.size(); ++i) {
    const RowColumn what = format.columns[i].what;
    const bool says_dtype = what == RowColumn::dtype && row.key.group.format != NumberFormat::bf16;
    if ((what == RowColumn::spread && row.spread > 0) || (what == RowColumn::how && says_how) ||
        says_dtype)
      count = i + 1;
  }
  return count;
}

std::string row_text(const KernelRow& row) {
  const RowFormat& format = row_format(row.key.group.kernels);
  std::vector<std::string> fields;
  std::size_t sizes = 0;
  const std::size_t count = columns_of(row, format);
  for (std::size_t i = 0; i < count; ++i)
    fields.push_back(field(row, format.columns[i].what, sizes));
  return fmt::format("  - [{}]\n", fmt::join(fields, ", "));
}

void add_texts(std::string& text, std::string_view indent,
               const std::map<std::string, std::string>& texts) {
  for (const auto& [key, value] : texts)
    text += fmt::format("{}{}{}\n", indent, yaml_block_key(key), clipped_scalar(value));
}

std::string closure_text(const KernelClosure& closure) {
  FlowMap map;
  const auto add = [&](std::string_view key, const std::optional<double>& factor) {
    if (factor) map.add(key, fmt::format("{}", *factor));
  };
  add("gemm", closure.gemm);
  add("sdpa", closure.sdpa);
  add("memory", closure.memory);
  Pieces from;
  for (const std::string& text : closure.from) from.push_back(clipped_scalar(text));
  if (!from.empty()) map.add("from", flow_list(std::move(from)));
  std::string text;
  if (closure.gemm || closure.sdpa || closure.memory || !closure.from.empty())
    add_lines(text, "closure: ", std::move(map).pieces());
  return text;
}

std::string launch_text(const LaunchTimes& launch) {
  FlowMap map;
  const auto add = [&](std::string_view key, const std::optional<Duration>& time) {
    if (time) map.add(key, exact_text(*time));
  };
  add("gap", launch.gap);
  add("per_op", launch.per_op);
  add("host_per_op", launch.host_per_op);
  std::string text;
  if (launch.gap || launch.per_op || launch.host_per_op)
    add_lines(text, "launch: ", std::move(map).pieces());
  return text;
}

}  // namespace

std::string kernel_table_yaml(const KernelTable& table) {
  std::string text =
      fmt::format("version: 1\nkind: kernels\ndevice: {}\n", clipped_scalar(table.device));
  if (!table.provenance.empty() || !table.clock.empty()) {
    text += "provenance:\n";
    add_texts(text, "", table.provenance);
    if (!table.clock.empty()) text += "  clock:\n";
    add_texts(text, "  ", table.clock);
  }
  text += closure_text(table.closure);
  if (table.launch) text += launch_text(*table.launch);
  for (std::size_t i = 0; i < kKernelClasses.size(); ++i) {
    const auto kernels = static_cast<KernelClass>(i);
    bool is_first = true;
    for (const KernelRow& row : table.rows) {
      if (row.key.group.kernels != kernels) continue;
      if (is_first)
        text += fmt::format("{}:  # {}\n", name_of(kernels), row_format(kernels).column_names());
      is_first = false;
      text += row_text(row);
    }
  }
  return text;
}

}  // namespace plumbline
