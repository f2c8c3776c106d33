// The only file that uses the YAML library. Its events become our own tree.
//
// SPDX-License-Identifier: MIT
#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/quantity.h"

namespace plumbline {
namespace {

constexpr std::size_t kDeepest = 100;
constexpr std::size_t kMaxAliased = 100'000;

std::size_t count_nodes(const YamlNode& node) {
  std::size_t count = 1;
  for (const YamlNode& item : node.items) count += count_nodes(item);
  for (const YamlNode::Entry& entry : node.entries) count += count_nodes(entry.value);
  return count;
}

/// Builds the tree from the parser's events. Throws a Diagnostic where it refuses the document.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  explicit YamlTreeBuilder(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  YamlNode take() { return std::move(root_); }
  bool empty() const { return !done_ || root_.kind == YamlNode::Kind::null; }
  const std::optional<Diagnostic>& wrong_key() const { return wrong_key_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& at, YAML::anchor_t anchor) override {
    place(make(YamlNode::Kind::null, at, 1), anchor);
  }

  void OnAlias(const YAML::Mark& at, YAML::anchor_t anchor) override {
    const Mark mark = mark_at(at, 1);
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw input_error(mark, "an alias stands inside what it names");
    aliased_ += found->second.second;
    if (aliased_ > kMaxAliased) {
      throw input_error(mark, fmt::format("aliases expand to more than {} values", kMaxAliased));
    }
    place(YamlNode(found->second.first), 0);
  }

  void OnScalar(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    if (quoted) report_open_quote(at);
    YamlNode node =
        make(YamlNode::Kind::scalar, at,
             static_cast<int>(std::min<std::size_t>(value.size(), 200)) + (quoted ? 2 : 0));
    if (!quoted && (value == "null" || value == "~" || value.empty())) {
      node.kind = YamlNode::Kind::null;
    } else {
      node.text = value;
    }
    place(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& at, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::sequence, at, 1), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& at, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::map, at, 1), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor;
    std::optional<YamlNode::Entry> key;  ///< In a map: the key whose value comes next.
  };

  /// Reports a quote that is not closed. The library ends a quoted scalar at the end of the file,
  /// closed or not.
  void report_open_quote(const YAML::Mark& at) const {
    const std::string& text = source_->text;
    auto i = static_cast<std::size_t>(std::max(at.pos, 0));
    if (i >= text.size() || (text[i] != '"' && text[i] != '\'')) return;
    const char quote = text[i];
    for (++i; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return;
        ++i;  // '' is an escaped quote
      }
    }
    throw input_error(mark_at(at, 1), "the quote opened here is not closed");
  }

  Mark mark_at(const YAML::Mark& at, int length) const {
    return {source_, at.line + 1, at.column + 1, std::max(length, 1)};
  }
  YamlNode make(YamlNode::Kind kind, const YAML::Mark& at, int length) const {
    YamlNode node;
    node.kind = kind;
    node.mark = mark_at(at, length);
    return node;
  }

  void open(YamlNode node, YAML::anchor_t anchor) {
    if (stack_.size() >= kDeepest) {
      throw input_error(node.mark, fmt::format("nested deeper than {} levels", kDeepest));
    }
    stack_.push_back({std::move(node), anchor, std::nullopt});
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.node.kind == YamlNode::Kind::map) report_repeated(frame.node);
    place(std::move(frame.node), frame.anchor);
  }

  static void report_repeated(const YamlNode& map) {
    std::map<std::string_view, const Mark*> seen;
    for (const YamlNode::Entry& entry : map.entries) {
      if (entry.key.empty()) continue;
      const auto [first, is_new] = seen.emplace(entry.key, &entry.mark);
      if (!is_new) {
        throw input_error(entry.mark,
                          fmt::format("the key '{}' stands here a second time", clipped(entry.key)),
                          fmt::format("the first is on line {}", first->second->line));
      }
    }
  }

  void place(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      const std::size_t count = count_nodes(node);
      anchored_nodes_ += count;
      if (anchored_nodes_ > kMaxAliased) {
        throw input_error(node.mark, fmt::format("anchors name more than {} values", kMaxAliased));
      }
      anchored_[anchor] = {node, count};
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      done_ = true;
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      if (node.kind == YamlNode::Kind::null)
        node.mark = parent.key->mark;  // the library gives the next token's mark
      parent.key->value = std::move(node);
      parent.node.entries.push_back(std::move(*parent.key));
      parent.key.reset();
    } else if (node.kind == YamlNode::Kind::scalar) {
      parent.key = YamlNode::Entry{std::move(node.text), node.mark, {}};
    } else {
      // Such a key is often an unclosed bracket. The library reports that later and better.
      if (!wrong_key_)
        wrong_key_ = input_error(node.mark, "a key must be a word, not a list, a map or nothing");
      parent.key = YamlNode::Entry{"", node.mark, {}};
    }
  }

  std::shared_ptr<const Source> source_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, std::pair<YamlNode, std::size_t>> anchored_;
  std::size_t aliased_ = 0;
  std::size_t anchored_nodes_ = 0;
  std::optional<Diagnostic> wrong_key_;
  YamlNode root_;
  bool done_ = false;
};

/// The error for the first byte that our YAML may not hold. The library would stop at some of them
/// silently.
std::optional<Diagnostic> check_bytes(const std::shared_ptr<const Source>& source) {
  const std::string& text = source->text;
  int line = 1;
  std::size_t line_start = 0;
  bool indenting = true;
  std::size_t open_brackets = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const Mark mark{source, line, static_cast<int>(at - line_start) + 1, 1};
    if (c == '\n') {
      ++line;
      line_start = ++at;
      indenting = true;
      continue;
    }
    if (c == '\t' && indenting) {
      return input_error(mark, "a tab stands in the indentation", "YAML indents with spaces");
    }
    if (c != ' ') indenting = false;
    // Counted before parsing, because the library takes a run of brackets for a key.
    if (c == '[' || c == '{') ++open_brackets;
    if ((c == ']' || c == '}') && open_brackets > 0) --open_brackets;
    if (open_brackets > kDeepest) {
      return input_error(mark, fmt::format("nested deeper than {} levels", kDeepest));
    }
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7F) {
      return input_error(mark,
                         fmt::format("the byte 0x{:02x} does not belong into a text file", c));
    }
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return input_error(mark, fmt::format("the byte 0x{:02x} is not UTF-8", c));
    at += length;
  }
  return std::nullopt;
}

}  // namespace

const YamlNode* value_of(const YamlNode& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &found->value;
}

YamlNode::Entry* entry_of(YamlNode& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

Result<YamlNode> parse_yaml(const std::shared_ptr<const Source>& source) {
  if (auto refused = check_bytes(source)) return *refused;
  YamlTreeBuilder builder(source);
  try {
    std::istringstream stream(source->text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (builder.wrong_key()) return *builder.wrong_key();
    if (builder.empty()) return input_error({source}, "is empty");
    YamlNode root = builder.take();
    YamlTreeBuilder second(source);
    parser.HandleNextDocument(second);
    if (!second.empty()) {
      return input_error(second.take().mark, "a second YAML document stands here",
                         "one file holds one document");
    }
    return root;
  } catch (const Diagnostic& refused) {
    return refused;
  } catch (const YAML::ParserException& error) {
    const YAML::Mark at = error.mark;
    return input_error(
        {source, at.line + 1, at.column + 1, 1}, fmt::format("not valid YAML: {}", error.msg),
        error.msg.starts_with("end of map not found")
            ? "the keys of a map begin in one column: this line, or one above it, is "
              "indented otherwise"
            : "");
  }
}

Result<YamlNode> read_yaml(const std::string& path) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_yaml(*source);
}

std::vector<std::string> without_brackets(const std::string& key) {
  const std::size_t first = key.find('[');
  if (first == 0 || first == std::string::npos) return {key};
  std::vector<std::string> parts = {key.substr(0, first)};
  for (std::size_t at = first; at < key.size();) {
    const std::size_t end = key.find(']', at);
    const std::string index =
        key[at] == '[' && end != std::string::npos ? key.substr(at + 1, end - at - 1) : "";
    if (index.empty() || index.find_first_not_of("0123456789") != std::string::npos) return {key};
    parts.push_back(index);
    at = end + 1;
  }
  return parts;
}

std::string dotted(const std::string& path) {
  std::string text;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    for (const std::string& part : without_brackets(path.substr(at, end - at)))
      text += (text.empty() && at == 0 ? "" : ".") + part;
    at = end + 1;
  }
  return text;
}

Result<YamlOverride> parse_override(const std::string& argument) {
  auto source = std::make_shared<Source>();
  source->name = "<command line>";
  source->text = argument;
  const auto place = [&](std::size_t at, std::size_t length) {
    return Mark{source, 1, static_cast<int>(at) + 1,
                static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(length, 1), 200))};
  };
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    const bool is_file = argument.ends_with(".yaml") || argument.ends_with(".yml");
    return Diagnostics{input_error(
        place(0, argument.size()),
        is_file
            ? fmt::format("'{}' is a second file, where one scenario is read", clipped(argument))
            : fmt::format("'{}' is no override", clipped(argument)),
        is_file ? "one of them alone; plumbline compare puts several side by side"
                : "write key=value, such as schedule.micro_batches=16")};
  }
  // The value is parsed separately, and its marks are moved to its place in the argument.
  auto value_source = std::make_shared<Source>(*source);
  value_source->text = argument.substr(equals + 1);
  YamlNode value;
  if (!value_source->text.empty() && value_source->text != "null" && value_source->text != "~") {
    auto parsed = parse_yaml(value_source);
    if (!parsed) {
      Diagnostics problems = parsed.problems();
      for (Diagnostic& problem : problems) {
        problem.mark.source = source;
        problem.mark.line = std::max(problem.mark.line, 1);
        if (problem.mark.line == 1) problem.mark.column += static_cast<int>(equals) + 1;
      }
      return problems;
    }
    value = *std::move(parsed);
  }
  const auto move_mark = [&](Mark& mark) {
    mark.source = source;
    if (mark.line == 1) mark.column += static_cast<int>(equals) + 1;
  };
  const auto move_marks = [&](const auto& self, YamlNode& node) -> void {
    move_mark(node.mark);
    for (YamlNode& item : node.items) self(self, item);
    for (YamlNode::Entry& entry : node.entries) {
      move_mark(entry.mark);
      self(self, entry.value);
    }
  };
  if (value.mark.source) {
    move_marks(move_marks, value);
  } else {
    value.mark = place(equals, 1);
  }

  YamlOverride change{{}, std::move(value)};
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(argument.find('.', at), equals);
    const std::string key = argument.substr(at, end - at);
    if (key.empty() || change.path.size() >= kDeepest) {
      return Diagnostics{input_error(place(at, 1), "a key of the path is empty")};
    }
    const Mark before = place(0, at == 0 ? 1 : at - 1);
    std::size_t from = 0;
    for (const std::string& part : without_brackets(key)) {
      change.path.push_back({part, place(at + from, part.size()), before});
      from += part.size() + (from == 0 ? 1 : 2);  // behind `[`, or `][`
    }
    if (end == equals) return change;
    at = end + 1;
  }
}

std::optional<Diagnostic> apply_override(YamlNode& root, const YamlOverride& change) {
  YamlNode* node = &root;
  for (const YamlOverride::Key& key : change.path) {
    const bool is_last = &key == &change.path.back();
    if (node->kind == YamlNode::Kind::sequence) {
      const Parsed<std::int64_t> index = parse_count(key.text);
      if (!index.value || *index.value >= static_cast<std::int64_t>(node->items.size())) {
        return input_error(key.mark, fmt::format("'{}' is no element of a list of {}",
                                                 clipped(key.text), node->items.size()));
      }
      node = &node->items[static_cast<std::size_t>(*index.value)];
      continue;
    }
    if (node->kind != YamlNode::Kind::map) {  // the override replaces a plain value by a section
      *node = YamlNode{};
      node->kind = YamlNode::Kind::map;
      node->mark = key.before;
    }
    auto entry = std::find_if(node->entries.begin(), node->entries.end(),
                              [&](const YamlNode::Entry& e) { return e.key == key.text; });
    if (is_last && change.value.kind == YamlNode::Kind::null) {
      if (entry != node->entries.end()) node->entries.erase(entry);
      return std::nullopt;
    }
    if (entry == node->entries.end()) {
      node->entries.push_back({key.text, key.mark, {}});
      entry = node->entries.end() - 1;
      entry->value.mark = entry->mark;
    }
    if (is_last) entry->mark = key.mark;
    node = &entry->value;
  }
  *node = change.value;
  return std::nullopt;
}

std::optional<Diagnostics> apply_override(YamlNode& root, const std::string& argument) {
  const auto change = parse_override(argument);
  if (!change) return change.problems();
  if (auto wrong = apply_override(root, *change)) return Diagnostics{*std::move(wrong)};
  return std::nullopt;
}

}  // namespace plumbline
