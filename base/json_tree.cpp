// The one file that knows the JSON library as a reader: its events become our own tree.
//
// SPDX-License-Identifier: MIT
#include "base/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace plumbline {
namespace {

constexpr std::size_t kDeepestJson = 100;

/// The text, byte by byte. All copies share the parser's position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char* begin, std::size_t* read)
      : at_(at), begin_(begin), read_(read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    *read_ = static_cast<std::size_t>(at_ - begin_);
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  const char* begin_;
  std::size_t* read_;
};

/// The text with numbers of equal length in place of Infinity and NaN, which Python's json writes
/// though JSON has no such numbers.
std::string with_numbers(std::string text) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string) continue;
    const auto is_one_of = [&](std::size_t at, std::string_view characters) {
      return at >= text.size() || characters.find(text[at]) != std::string_view::npos;
    };
    if (i > 0 && !is_one_of(i - 1, " \t\r\n:,[")) continue;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!std::string_view(text).substr(i).starts_with(word) ||
          !is_one_of(i + word.size(), " \t\r\n,]}"))
        continue;
      text.replace(i, word.size(),
                   word.front() == '-' ? "-11111111" : std::string(word.size(), '1'));
    }
  }
  return text;
}

/// Builds the tree. Each handler returns whether parsing goes on.
class JsonTreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonTreeBuilder(std::shared_ptr<const Source> source, const std::size_t& read)
      : source_(std::move(source)), read_(read) {}

  YamlNode take() { return std::move(root_); }
  const std::optional<Diagnostic>& problem() const { return problem_; }

  bool null() override { return place(make(YamlNode::Kind::null)); }
  bool boolean(bool) override { return literal(); }
  bool number_integer(number_integer_t) override { return literal(); }
  bool number_unsigned(number_unsigned_t) override { return literal(); }
  bool number_float(number_float_t, const string_t&) override { return literal(); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool string(string_t& value) override {
    YamlNode node = make(YamlNode::Kind::scalar);
    node.text = value;
    return place(std::move(node));
  }
  bool key(string_t& value) override {
    const Mark mark = make(YamlNode::Kind::null).mark;
    const auto [first, is_new] = stack_.back().line_of_key.try_emplace(value, mark.line);
    if (!is_new)
      return stop(input_error(mark,
                              fmt::format("the key '{}' stands here a second time", clipped(value)),
                              fmt::format("the first is on line {}", first->second)));
    stack_.back().node.entries.push_back({value, mark, {}});
    return true;
  }
  bool start_object(std::size_t) override { return open(YamlNode::Kind::map); }
  bool start_array(std::size_t) override { return open(YamlNode::Kind::sequence); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    std::string what = error.what();
    // "[json.exception...] parse error at line 1, column 2: syntax error while parsing ...": the
    // mark has the place already.
    if (const std::size_t at = what.find(": "); at != std::string::npos) what.erase(0, at + 2);
    const std::size_t end = std::min(read_, source_->text.size());
    return stop(input_error(mark_at(end == 0 ? 0 : end - 1, 1),
                            fmt::format("not valid JSON: {}", printable(what))));
  }

 private:
  bool stop(Diagnostic problem) {
    problem_ = std::move(problem);
    return false;
  }

  /// Counts lines on from the place of the mark before, so that all marks together take one walk
  /// over the text. Only that of a parse error may lie before another.
  Mark mark_at(std::size_t at, std::size_t length) {
    if (at < place_.at) place_ = {};
    for (; place_.at < at; ++place_.at) {
      if (source_->text[place_.at] != '\n') continue;
      ++place_.line;
      place_.line_begin = place_.at + 1;
    }
    return {source_, place_.line, static_cast<int>(at - place_.line_begin) + 1,
            static_cast<int>(std::clamp<std::size_t>(length, 1, 200))};
  }

  /// The begin of the piece that was just read, after the separators before it.
  std::size_t begin_of_piece() const {
    return std::min(source_->text.find_first_not_of(" \t\r\n:,", last_), source_->text.size());
  }

  YamlNode make(YamlNode::Kind kind) {
    const std::size_t begin = begin_of_piece();
    const std::size_t end = std::max(begin + 1, std::min(read_, source_->text.size()));
    YamlNode node;
    node.kind = kind;
    node.mark = mark_at(begin, end - begin);
    last_ = end;
    return node;
  }

  /// A number, true or false, as written.
  bool literal() {
    const std::size_t begin = begin_of_piece();
    const std::string& text = source_->text;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n,]}", begin), text.size());
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = text.substr(begin, end - begin);
    node.mark = mark_at(begin, end - begin);
    last_ = end;
    return place(std::move(node));
  }

  bool open(YamlNode::Kind kind) {
    YamlNode node = make(kind);
    node.mark.length = 1;
    if (stack_.size() == kDeepestJson)
      return stop(
          input_error(node.mark, fmt::format("nested deeper than {} levels", kDeepestJson)));
    stack_.push_back({std::move(node), {}});
    return true;
  }

  bool close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    last_ = read_;
    return place(std::move(node));
  }

  bool place(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return true;
    }
    YamlNode& parent = stack_.back().node;
    if (parent.kind == YamlNode::Kind::map) {
      parent.entries.back().value = std::move(node);
    } else {
      parent.items.push_back(std::move(node));
    }
    return true;
  }

  /// A place in the text.
  struct Place {
    std::size_t at = 0;
    std::size_t line_begin = 0;
    int line = 1;
  };

  /// A list or a map that is not closed yet.
  struct Open {
    YamlNode node;
    std::unordered_map<std::string, int> line_of_key;
  };

  std::shared_ptr<const Source> source_;
  const std::size_t& read_;  ///< The number of bytes that the parser has taken.
  std::size_t last_ = 0;     ///< The end of the previous piece.
  Place place_;              ///< That of the last mark.
  std::vector<Open> stack_;
  YamlNode root_;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<YamlNode> parse_json(const std::shared_ptr<const Source>& source) {
  const std::string& text = source->text;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return input_error({source}, "is empty");
  std::size_t read = 0;
  JsonTreeBuilder builder(source, read);
  const std::string numbers = with_numbers(text);
  const char* begin = numbers.data();
  const bool done =
      nlohmann::json::sax_parse(CountingIterator(begin, begin, &read),
                                CountingIterator(begin + numbers.size(), begin, &read), &builder);
  if (builder.problem()) return *builder.problem();
  PLUMBLINE_CHECK(done, "the JSON parser stopped without a word", read);
  return builder.take();
}

Result<YamlNode> read_json(const std::string& path) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_json(*source);
}

}  // namespace plumbline
