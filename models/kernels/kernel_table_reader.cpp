// The kernels format, version 1.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_table_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "models/kernels/kernel_table_format.h"

namespace plumbline {
namespace {

/// The passes' names elsewhere.
const Abbreviations& other_passes() {
  static const Abbreviations words = {{"fwd", "forward"},          {"bwd", "backward"},
                                      {"dgrad", "input"},          {"wgrad", "weights"},
                                      {"backward_input", "input"}, {"backward_weight", "weights"}};
  return words;
}

/// Reads one row, field by field.
class RowReader {
 public:
  RowReader(const RowFormat& rows, Diagnostics& problems) : rows_(rows), problems_(problems) {}

  std::optional<KernelRow> read(const YamlNode& node, const std::string& path) {
    if (node.kind != YamlNode::Kind::sequence) {
      error(node.mark, fmt::format("{} is no list of fields", path), wanted());
      return std::nullopt;
    }
    const std::size_t fields = node.items.size();
    if (fields < rows_.least_columns() || fields > rows_.columns.size()) {
      error(node.mark,
            fmt::format("{} has {} field{}, where {} to {} are wanted", path, fields,
                        fields == 1 ? "" : "s", rows_.least_columns(), rows_.columns.size()),
            wanted());
      return std::nullopt;
    }
    const std::size_t before = problems_.size();
    row_ = {};
    row_.key.group.kernels = rows_.kernels;
    sizes_ = 0;
    for (std::size_t i = 0; i < fields; ++i)
      read_field(rows_.columns[i].what, node.items[i],
                 fmt::format("{}.{}", path, rows_.columns[i].name));
    if (problems_.size() != before) return std::nullopt;
    return row_;
  }

 private:
  void error(const Mark& mark, std::string message, std::string help) {
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  std::string wanted() const { return rows_.column_names(); }

  void read_field(RowColumn what, const YamlNode& node, const std::string& path) {
    KernelGroup& group = row_.key.group;
    switch (what) {
      case RowColumn::dtype:
        read_word(node, path, kNumberFormats, "number format", group.format);
        if (group.kernels == KernelClass::memory)
          group.format = memory_format(group.format).value_or(group.format);
        return;
      case RowColumn::pass:
        return read_pass(node, path);
      case RowColumn::accumulate:
        return read_word(node, path, kAccumulations, "sum that products are added to",
                         group.accumulation);
      case RowColumn::memory_kind:
        return read_word(node, path, kMemoryKinds, "kind of memory-bound kernel", group.memory);
      case RowColumn::collective_kind:
        return read_word(node, path, kCollectiveKinds, "collective", group.collective);
      case RowColumn::scope:
        return read_word(node, path, std::array{kInServer, kOnNetwork}, "scope",
                         group.is_on_network);
      case RowColumn::causal:
        return read_word(node, path, std::array<std::string_view, 2>{"false", "true"},
                         "answer to whether it is causal", group.is_causal);
      case RowColumn::size:
        return read_size(node, path, row_.key.sizes[sizes_++]);
      case RowColumn::query_size:
        return read_size(node, path, group.query_size);
      case RowColumn::value_size:
        return read_size(node, path, group.value_size);
      case RowColumn::devices:
        return read_size(node, path, group.devices);
      case RowColumn::bytes:
        return read_bytes_of(node, path);
      case RowColumn::time:
        return read_time(node, path);
      case RowColumn::spread:
        row_.spread = read_real(node, path, kLargestSpread, problems_).value_or(0);
        return;
      case RowColumn::layout:
        row_.layout = read_text(node, path, problems_).value_or("");
        if (row_.layout == kAnyLayout) row_.layout.clear();
        return;
      case RowColumn::how:
        row_.how = read_text(node, path, problems_).value_or("");
        return;
    }
  }

  /// Reads one of `words` as the value of an enumeration in their order.
  template <std::size_t Count, class Value>
  void read_word(const YamlNode& node, const std::string& path,
                 const std::array<std::string_view, Count>& words, std::string_view noun,
                 Value& value) {
    const auto at = read_index(node, path, {words.begin(), words.end()}, noun, {});
    if (at) value = static_cast<Value>(*at);
  }

  std::optional<std::size_t> read_index(const YamlNode& node, const std::string& path,
                                        const std::vector<std::string>& words,
                                        std::string_view noun, const Abbreviations& short_for) {
    const auto text = read_text(node, path, problems_);
    if (!text) return std::nullopt;
    const auto found = std::find(words.begin(), words.end(), *text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    std::string help = did_you_mean(*text, words, short_for);
    error(node.mark, fmt::format("{} is '{}', which is no {}", path, clipped(*text), noun),
          help.empty() ? fmt::format("one of {}", fmt::join(words, ", ")) : std::move(help));
    return std::nullopt;
  }

  void read_pass(const YamlNode& node, const std::string& path) {
    const auto at = read_index(node, path, pass_words(rows_.kernels), "pass", other_passes());
    if (at) row_.key.group.pass = static_cast<KernelPass>(*at);
  }

  void read_size(const YamlNode& node, const std::string& path, std::int64_t& size) {
    if (const auto count = read_count(node, path, 1, kLargestSize, problems_)) size = *count;
  }

  void read_bytes_of(const YamlNode& node, const std::string& path) {
    const auto bytes = read_bytes(node, path, problems_);
    if (!bytes) return;
    if (bytes->count == 0) error(node.mark, fmt::format("{} is 0 B", path), "leave the row out");
    row_.key.sizes[0] = bytes->count;
  }

  void read_time(const YamlNode& node, const std::string& path) {
    const auto time = read_duration(node, path, problems_);
    if (!time) return;
    if (time->count() == 0)
      error(node.mark, fmt::format("{} is 0: no kernel is that fast", path),
            "a time above 0; leave the row out");
    row_.time = *time;
  }

  const RowFormat& rows_;
  Diagnostics& problems_;
  KernelRow row_;
  std::size_t sizes_ = 0;
};

class KernelTableReader {
 public:
  Result<KernelTable> read(const YamlNode& root) {
    SectionReader file(root, "", kernels_format(), problems_);
    file.require("version", "this is version: 1");
    file.require("kind", "a table of kernels says kind: kernels");
    file.require("device", "such as NVIDIA H100 80GB HBM3");
    file.count("version");
    if (auto kind = file.text("kind"); kind && kind->value != "kernels")
      file.error(
          kind->mark,
          fmt::format("kind is '{}', where a table of kernels is wanted", clipped(kind->value)),
          "a table of kernels says kind: kernels");
    if (auto device = file.text("device")) table_.device = device->value;
    read_provenance(file);
    read_closure(file);
    read_launch(file);
    for (std::size_t i = 0; i < kKernelClasses.size(); ++i)
      read_rows(file, row_format(static_cast<KernelClass>(i)));
    file.finish();
    if (!problems_.empty()) return std::move(problems_);
    return std::move(table_);
  }

 private:
  static bool is_filled(const YamlNode* node) { return node && node->kind != YamlNode::Kind::null; }

  void read_texts(const YamlNode& node, const std::string& path,
                  std::map<std::string, std::string>& texts) {
    for (const YamlNode::Entry& entry : node.entries) {
      if (entry.value.kind == YamlNode::Kind::null) continue;
      if (auto text = read_text(entry.value, path + '.' + entry.key, problems_))
        texts[entry.key] = *std::move(text);
    }
  }

  void read_clock(const YamlNode& node) {
    const SectionReader checked(node, "provenance.clock", clock_format(), problems_);
    read_texts(node, "provenance.clock", table_.clock);
  }

  void read_provenance(SectionReader& file) {
    const YamlNode* node = file.child("provenance");
    if (!is_filled(node)) return;
    const SectionReader checked(*node, "provenance", kernels_provenance_format(), problems_);
    YamlNode rest = *node;
    if (const YamlNode::Entry* clock = entry_of(rest, "clock"); clock) {
      if (is_filled(&clock->value)) read_clock(clock->value);
      std::erase_if(rest.entries, [](const YamlNode::Entry& e) { return e.key == "clock"; });
    }
    read_texts(rest, "provenance", table_.provenance);
  }

  void read_factor(SectionReader& section, std::string_view key, std::optional<double>& factor) {
    const auto value = section.real(key);
    if (!value) return;
    if (value->value == 0)
      section.error(value->mark, fmt::format("{} is 0", section.path_of(key)),
                    "1 where kernels take as long in a training step as alone");
    factor = value->value;
  }

  void read_closure(SectionReader& file) {
    const YamlNode* node = file.child("closure");
    if (!is_filled(node)) return;
    SectionReader section(*node, "closure", closure_format(), problems_);
    read_factor(section, "gemm", table_.closure.gemm);
    read_factor(section, "sdpa", table_.closure.sdpa);
    read_factor(section, "memory", table_.closure.memory);
    if (const std::vector<YamlNode>* from = section.list("from")) {
      for (const YamlNode& item : *from) {
        if (auto text = read_text(item, "closure.from", problems_))
          table_.closure.from.push_back(*std::move(text));
      }
    }
    section.finish();
  }

  void read_launch(SectionReader& file) {
    const YamlNode* node = file.child("launch");
    if (!is_filled(node)) return;
    SectionReader section(*node, "launch", launch_format(), problems_);
    LaunchTimes launch;
    if (auto time = section.duration("gap")) launch.gap = time->value;
    if (auto time = section.duration("per_op")) launch.per_op = time->value;
    if (auto time = section.duration("host_per_op")) launch.host_per_op = time->value;
    section.finish();
    if (launch.gap || launch.per_op || launch.host_per_op) table_.launch = launch;
  }

  void read_rows(SectionReader& file, const RowFormat& rows) {
    const std::string name(name_of(rows.kernels));
    const YamlNode* node = file.child(name);
    if (!is_filled(node)) return;
    if (node->kind != YamlNode::Kind::sequence) {
      problems_.push_back(input_error(node->mark, fmt::format("{} is no list of rows", name),
                                      fmt::format("- [{}]", rows.column_names())));
      return;
    }
    RowReader reader(rows, problems_);
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const std::string path = fmt::format("{}[{}]", name, i);
      auto row = reader.read(node->items[i], path);
      if (!row) continue;
      const Mark& mark = node->items[i].mark;
      const auto [first, is_new] = lines_.emplace(row->key, mark.line);
      if (!is_new) {
        problems_.push_back(input_error(
            mark, fmt::format("{} has the sizes of another row, with a time of its own", path),
            fmt::format("the first is on line {}: leave one of them out", first->second)));
        continue;
      }
      table_.rows.push_back(*std::move(row));
    }
  }

  KernelTable table_;
  std::map<KernelKey, int> lines_;
  Diagnostics problems_;
};

}  // namespace

Result<KernelTable> parse_kernel_table(const std::shared_ptr<const Source>& source) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return KernelTableReader().read(*root);
}

Result<KernelTable> read_kernel_table(const std::string& path) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_kernel_table(*source);
}

}  // namespace plumbline
