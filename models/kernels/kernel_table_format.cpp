// One list of columns for each section.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_table_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace plumbline {
namespace {

using namespace format;
using Row = RowColumn;

constexpr NamedColumn kGemm[] = {{Row::dtype, "dtype"},
                                 {Row::pass, "pass"},
                                 {Row::size, "m"},
                                 {Row::size, "n"},
                                 {Row::size, "k"},
                                 {Row::layout, "layout"},
                                 {Row::accumulate, "accumulate"},
                                 {Row::time, "time"},
                                 {Row::spread, "spread"},
                                 {Row::how, "how"}};

constexpr NamedColumn kGrouped[] = {{Row::dtype, "dtype"},   {Row::pass, "pass"},
                                    {Row::size, "groups"},   {Row::size, "m"},
                                    {Row::size, "n"},        {Row::size, "k"},
                                    {Row::layout, "layout"}, {Row::accumulate, "accumulate"},
                                    {Row::time, "time"},     {Row::spread, "spread"},
                                    {Row::how, "how"}};

constexpr NamedColumn kBatched[] = {{Row::dtype, "dtype"},   {Row::pass, "pass"},
                                    {Row::size, "batch"},    {Row::size, "m"},
                                    {Row::size, "n"},        {Row::size, "k"},
                                    {Row::layout, "layout"}, {Row::accumulate, "accumulate"},
                                    {Row::time, "time"},     {Row::spread, "spread"},
                                    {Row::how, "how"}};

constexpr NamedColumn kSdpa[] = {
    {Row::dtype, "dtype"},   {Row::pass, "pass"},       {Row::size, "batch"},
    {Row::size, "queries"},  {Row::size, "keys"},       {Row::size, "heads"},
    {Row::size, "kv_heads"}, {Row::query_size, "d_qk"}, {Row::value_size, "d_v"},
    {Row::causal, "causal"}, {Row::time, "time"},       {Row::spread, "spread"},
    {Row::how, "how"}};

constexpr NamedColumn kMemory[] = {{Row::memory_kind, "kind"}, {Row::pass, "pass"},
                                   {Row::size, "rows"},        {Row::size, "columns"},
                                   {Row::time, "time"},        {Row::spread, "spread"},
                                   {Row::how, "how"},          {Row::dtype, "dtype"}};

constexpr NamedColumn kCollectives[] = {
    {Row::collective_kind, "kind"}, {Row::devices, "devices"}, {Row::scope, "scope"},
    {Row::bytes, "bytes"},          {Row::time, "time"},       {Row::how, "how"}};

constexpr RowFormat kRowFormats[] = {
    {KernelClass::gemm, kGemm},       {KernelClass::grouped, kGrouped},
    {KernelClass::batched, kBatched}, {KernelClass::sdpa, kSdpa},
    {KernelClass::memory, kMemory},   {KernelClass::collectives, kCollectives}};

template <std::size_t Count>
std::vector<std::string> texts(const std::array<std::string_view, Count>& words) {
  return {words.begin(), words.end()};
}

ValueFormat column_format(KernelClass kernels, RowColumn column) {
  switch (column) {
    case Row::dtype:
      return format::words(texts(kNumberFormats));
    case Row::pass:
      return format::words(pass_words(kernels));
    case Row::accumulate:
      return format::words(texts(kAccumulations));
    case Row::memory_kind:
      return format::words(texts(kMemoryKinds));
    case Row::collective_kind:
      return format::words(texts(kCollectiveKinds));
    case Row::scope:
      return format::words({std::string(kInServer), std::string(kOnNetwork)});
    case Row::causal:
      return boolean();
    case Row::size:
    case Row::query_size:
    case Row::value_size:
    case Row::devices:
      return count(1, kLargestSize);
    case Row::bytes:
      return format::bytes();
    case Row::time:
      return duration();
    case Row::spread:
      return real(kLargestSpread);
    case Row::layout:
    case Row::how:
      break;
  }
  return text();
}

/// A list of rows: of as many columns as there are, or without some of the last.
ValueFormat rows_format(const RowFormat& rows) {
  std::vector<ValueFormat> columns;
  std::vector<ValueFormat> lengths;
  for (const NamedColumn& column : rows.columns) {
    columns.push_back(column_format(rows.kernels, column.what));
    const auto count = static_cast<std::int64_t>(columns.size());
    if (columns.size() >= rows.least_columns()) lengths.push_back(list(columns, count, count));
  }
  return list(std::move(lengths));
}

KeyFormat rows_key(KernelClass kernels, std::string_view meaning) {
  return {name_of(kernels), {rows_format(row_format(kernels)), nothing()}, meaning};
}

KeyFormat factor_key(std::string_view name, std::string_view meaning) {
  return {name, {real(1000)}, meaning};
}

}  // namespace

std::size_t RowFormat::least_columns() const {
  const auto found = std::find_if(columns.begin(), columns.end(), [](const NamedColumn& column) {
    return column.what == RowColumn::time;
  });
  return static_cast<std::size_t>(found - columns.begin()) + 1;
}

std::string RowFormat::column_names() const {
  std::vector<std::string_view> names;
  names.reserve(columns.size());
  for (const NamedColumn& column : columns) names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const RowFormat& row_format(KernelClass kernels) {
  return kRowFormats[static_cast<std::size_t>(kernels)];
}

std::vector<std::string> pass_words(KernelClass kernels) {
  if (kernels == KernelClass::sdpa) return {"forward", "backward"};
  if (kernels == KernelClass::memory) return {"forward", "backward", "weights"};
  return texts(kKernelPasses);
}

std::string_view pass_word(KernelClass kernels, KernelPass pass) {
  const bool by_both = kernels == KernelClass::sdpa || kernels == KernelClass::memory;
  if (by_both && pass == KernelPass::input) return "backward";
  return kKernelPasses[static_cast<std::size_t>(pass)];
}

const SectionFormat& clock_format() {
  static const SectionFormat clock = {
      .name = "clock",
      .text = "The device's clocks, a text each.",
      .keys = {{"burst", {text(), nothing()}, "In short runs, in which kernels are timed."},
               {"sustained", {text(), nothing()}, "In long ones."},
               {"rated", {text(), nothing()}, "As its data sheet says."}},
      .other_keys = {text(), nothing()}};
  return clock;
}

const SectionFormat& kernels_provenance_format() {
  static const SectionFormat provenance = {
      .name = "kernels_provenance",
      .text = "Where the times come from: any keys with a text each.",
      .keys = {{"source", {text(), nothing()}, "Who measured them."},
               {"clock", {section(&clock_format), nothing()}, "The device's clocks."}},
      .other_keys = {text(), nothing()}};
  return provenance;
}

const SectionFormat& closure_format() {
  static const SectionFormat closure = {
      .name = "closure",
      .text = "How much longer kernels take in a training step than timed alone, by class.",
      .keys = {factor_key("gemm",
                          "Of products, also grouped and batched ones; absent: that of the stack."),
               factor_key("sdpa", "Of attention; absent: 1."),
               factor_key("memory", "Of memory-bound kernels; absent: 1."),
               {"from", {list({text()})}, "What the factors were derived from."}}};
  return closure;
}

const SectionFormat& launch_format() {
  static const SectionFormat launch = {
      .name = "launch",
      .text = "The times of launches; they replace the time per launch of cluster.device.stack.",
      .keys = {{"gap", {duration()}, "Of the device, between two kernels in its queue.", "0 us"},
               {"per_op", {duration()}, "Of the host, from one launch to the next.", "0 us"},
               {"host_per_op", {duration()}, "What a framework adds to that.", "0 us"}}};
  return launch;
}

const SectionFormat& kernels_format() {
  static const SectionFormat kernels = {
      .name = "kernels",
      .text = "Measured times of kernels, of one device with one software stack.",
      .keys = {
          {.name = "version",
           .values = {count(1, 1)},
           .text = "The version of the format.",
           .required = true},
          {.name = "kind",
           .values = {word("kernels")},
           .text = "That this is a table of kernels.",
           .required = true},
          {.name = "device",
           .values = {text()},
           .text = "The name of the device, as its driver has it.",
           .required = true},
          {"provenance",
           {section(&kernels_provenance_format), nothing()},
           "Where the times come from."},
          {"closure",
           {section(&closure_format), nothing()},
           "How much longer kernels take in a training step than timed alone."},
          {"launch", {section(&launch_format), nothing()}, "The times of launches."},
          rows_key(KernelClass::gemm, "Matrix products."),
          rows_key(KernelClass::grouped,
                   "Products of several experts in one kernel; m, or k in the pass for the "
                   "weights, is the rows of one expert."),
          rows_key(KernelClass::batched, "Several equal products in one kernel."),
          rows_key(KernelClass::sdpa, "Attention in one kernel."),
          rows_key(
              KernelClass::memory,
              "Kernels that move more than they compute; dtype: bf16 (2 bytes a number), or fp32."),
          rows_key(KernelClass::collectives, "What devices send each other.")}};
  return kernels;
}

}  // namespace plumbline
