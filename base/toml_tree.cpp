// The one file that knows the TOML library.
//
// SPDX-License-Identifier: MIT
#include "base/toml_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace plumbline {
namespace {

constexpr int kDeepestToml = 100;

class TomlTree {
 public:
  explicit TomlTree(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  /// A place that is nested too deeply.
  const std::optional<toml::source_region>& too_deep() const { return too_deep_; }
  Mark mark(const toml::source_region& region) const {
    return {source_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column), 1};
  }

  /// What lies deeper than kDeepestToml is left out, and too_deep() tells of it.
  YamlNode node(const toml::node& from, int depth = 0) {
    YamlNode to;
    if (depth > kDeepestToml) {
      too_deep_ = from.source();
      return to;
    }
    to.mark = mark(from.source());
    if (const toml::table* table = from.as_table()) {
      to.kind = YamlNode::Kind::map;
      for (const auto& [key, value] : *table)
        to.entries.push_back({std::string(key.str()), mark(key.source()), node(value, depth + 1)});
      std::sort(to.entries.begin(), to.entries.end(), [](const auto& a, const auto& b) {
        return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
      });
    } else if (const toml::array* array = from.as_array()) {
      to.kind = YamlNode::Kind::sequence;
      for (const toml::node& item : *array) to.items.push_back(node(item, depth + 1));
    } else {
      to.kind = YamlNode::Kind::scalar;
      to.text = text(from);
    }
    return to;
  }

 private:
  static std::string text(const toml::node& from) {
    if (const auto* string = from.as_string()) return string->get();
    if (const auto* integer = from.as_integer()) return fmt::format("{}", integer->get());
    if (const auto* real = from.as_floating_point()) return fmt::format("{}", real->get());
    if (const auto* flag = from.as_boolean()) return flag->get() ? "true" : "false";
    std::ostringstream date;
    from.visit([&](const auto& value) { date << value; });
    return date.str();
  }

  std::shared_ptr<const Source> source_;
  std::optional<toml::source_region> too_deep_;
};

}  // namespace

Result<YamlNode> parse_toml(const std::shared_ptr<const Source>& source) {
  TomlTree tree(source);
  const toml::parse_result parsed = toml::parse(std::string_view(source->text));
  if (!parsed) {
    return input_error(tree.mark(parsed.error().source()),
                       fmt::format("not valid TOML: {}", printable(parsed.error().description())));
  }
  YamlNode root = tree.node(parsed.table());
  if (tree.too_deep())
    return input_error(tree.mark(*tree.too_deep()),
                       fmt::format("tables are nested more than {} deep", kDeepestToml));
  return root;
}

Result<YamlNode> read_toml(const std::string& path) {
  const auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_toml(*source);
}

}  // namespace plumbline
