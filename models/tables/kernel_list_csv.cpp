// Lists of kernels as text.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "models/tables/kernel_list.h"

namespace plumbline {
namespace {

constexpr std::array<std::string_view, 16> kColumns = {
    "kind", "dtype", "pass",   "a",   "b",    "c",          "d",         "e",
    "f",    "us",    "spread", "how", "keys", "accumulate", "per_layer", "modelled_us"};
constexpr std::size_t kFirstSize = 3;

using ListFields = std::array<std::string, kColumns.size()>;

std::string_view pass_name(const KernelGroup& group) {
  switch (group.pass) {
    case KernelPass::forward:
      return "fwd";
    case KernelPass::input:
      return is_product(group.kernels) ? "dgrad" : "bwd";
    case KernelPass::weights:
      break;
  }
  return "wgrad";
}

/// The sizes in the columns a to f, and `keys`.
void add_sizes(const KernelKey& key, ListFields& fields) {
  const auto set = [&](std::size_t column, std::int64_t size) {
    fields[kFirstSize + column] = std::to_string(size);
  };
  if (key.group.kernels != KernelClass::sdpa) {
    for (std::size_t i = 0; i < size_count(key.group.kernels); ++i) set(i, key.sizes[i]);
    return;
  }
  const auto [batch, queries, keys, heads, key_heads] = key.sizes;
  const std::array<std::int64_t, 6> sizes = {
      batch, queries, heads, key_heads, key.group.query_size, key.group.value_size};
  for (std::size_t i = 0; i < sizes.size(); ++i) set(i, sizes[i]);
  if (keys != queries) fields[12] = std::to_string(keys);
}

ListFields list_fields(const ListedKernel& kernel) {
  const KernelGroup& group = kernel.key.group;
  ListFields fields;
  fields[0] = group.kernels == KernelClass::memory
                  ? kMemoryKinds[static_cast<std::size_t>(group.memory)]
                  : name_of(group.kernels);
  fields[1] = name_of(group.format);
  fields[2] = pass_name(group);
  add_sizes(kernel.key, fields);
  if (group.accumulation != Accumulation::none)
    fields[13] = kAccumulations[static_cast<std::size_t>(group.accumulation)];
  fields[14] = std::to_string(kernel.per_layer);
  fields[15] = fmt::format("{:.3f}", 1e6 * kernel.modelled_seconds);
  return fields;
}

bool is_text(std::size_t column) { return column < kFirstSize || column == 13; }

}  // namespace

std::string kernel_list_csv(const std::vector<ListedKernel>& kernels) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const ListedKernel& kernel : kernels)
    text += fmt::format("{}\n", fmt::join(list_fields(kernel), ","));
  return text;
}

std::string kernel_list_json(const std::vector<ListedKernel>& kernels) {
  std::string text = "[";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ListFields fields = list_fields(kernels[i]);
    std::string object;
    for (std::size_t column = 0; column < fields.size(); ++column) {
      if (fields[column].empty()) continue;
      const std::string_view quote = is_text(column) ? "\"" : "";
      object += fmt::format("{}\"{}\": {}{}{}", object.empty() ? "" : ", ", kColumns[column], quote,
                            fields[column], quote);
    }
    text += fmt::format("{}\n  {{{}}}", i == 0 ? "" : ",", object);
  }
  return text + "\n]\n";
}

}  // namespace plumbline
