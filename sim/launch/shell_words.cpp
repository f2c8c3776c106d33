// One walk over the text.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/shell_words.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "base/quantity.h"

namespace plumbline {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The value of products, quotients, sums and differences of whole numbers, from left to right
/// within a precedence; nothing for any other text.
class Arithmetic {
 public:
  explicit Arithmetic(std::string text) : text_(std::move(text)) {
    std::erase_if(text_, [](char c) { return c == ' ' || c == '\t'; });
  }

  std::optional<std::int64_t> value() {
    const std::int64_t sum = this->sum();
    return is_wrong_ || at_ < text_.size() ? std::nullopt : std::optional(sum);
  }

 private:
  std::int64_t sum() {
    std::int64_t total = product();
    while (!is_wrong_ && at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      const bool adds = text_[at_++] == '+';
      const std::int64_t next = product();
      total = adds ? total + next : total - next;
    }
    return total;
  }

  std::int64_t product() {
    constexpr std::int64_t max = 1'000'000'000;  // products of two stay within 64 bits
    std::int64_t total = number();
    while (!is_wrong_ && at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/')) {
      const bool multiplies = text_[at_++] == '*';
      const std::int64_t next = number();
      is_wrong_ = is_wrong_ || total > max || next > max || (!multiplies && next == 0);
      if (!is_wrong_) total = multiplies ? total * next : total / next;
    }
    return total;
  }

  std::int64_t number() {
    if (at_ < text_.size() && text_[at_] == '(') {
      if (++depth_ > 20) is_wrong_ = true;
      ++at_;
      const std::int64_t inner = is_wrong_ ? 0 : sum();
      if (at_ >= text_.size() || text_[at_] != ')') is_wrong_ = true;
      ++at_;
      --depth_;
      return inner;
    }
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto parsed = parse_count(std::string_view(text_).substr(at_, end - at_));
    at_ = end;
    if (!parsed.value) is_wrong_ = true;
    return parsed.value.value_or(0);
  }

  std::string text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool is_wrong_ = false;
};

class ShellReader {
 public:
  explicit ShellReader(std::shared_ptr<const Source> source)
      : source_(std::move(source)), text_(source_->text) {}

  ShellWords read() && {
    while (at_ < text_.size()) step();
    end_word();
    end_line();
    return std::move(read_);
  }

 private:
  char next(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = next();
    if (c == '\\') return escape();
    if (c == '\n') {
      end_word();
      if (depth_ == 0) end_line();
      return advance();
    }
    if (c == '#' && !in_word_) {
      while (at_ < text_.size() && next() != '\n') advance();
      return;
    }
    if (c == '\'' || c == '"') return quoted(c);
    if (c == '$') return variable();
    if (c == '`') return skip_command('`');
    if (std::string_view(" \t\r;|&").find(c) != std::string_view::npos) {
      end_word();
      if (c != ' ' && c != '\t' && c != '\r' && depth_ == 0) end_line();
      return advance();
    }
    if ((c == '(' || c == ')') && !is_in_brackets()) {
      // NAME=( and NAME+=( begin an array, whose words are read where they stand.
      if (c == '(' && word_.ends_with('=')) drop_word();
      end_word();
      depth_ = std::max(0, depth_ + (c == '(' ? 1 : -1));
      return advance();
    }
    add(c);
    advance();
  }

  /// Whether a word such as ([0]*3+[1]*58) has begun, which people write without quotes.
  bool is_in_brackets() const {
    const bool begins = next() == '(' && next(1) == '[';
    return begins || (in_word_ && word_.starts_with("(["));
  }

  void escape() {
    advance();
    if (next() == '\r') advance();
    if (next() != '\n' && at_ < text_.size()) add(next());
    if (at_ < text_.size()) advance();
  }

  void quoted(char quote) {
    begin_word();
    was_quoted_ = true;
    advance();
    while (at_ < text_.size() && next() != quote) {
      if (quote == '"' && next() == '$') {
        variable();
        continue;
      }
      if (quote == '"' && next() == '\\' && at_ + 1 < text_.size()) {
        advance();
        if (next() != '\n') add(next());
        advance();
        continue;
      }
      add(next());
      advance();
    }
    advance();
  }

  /// Passes over a command in backquotes.
  void skip_command(char end) {
    begin_word();
    advance();
    while (at_ < text_.size() && next() != end) advance();
    advance();
  }

  void variable() {
    begin_word();
    if (next(1) == '(') return next(2) == '(' ? arithmetic() : command();
    if (next(1) == '{') return braces();
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_name_character(text_[end])) ++end;
    if (end == at_ + 1) end = std::min(at_ + 2, text_.size());  // $1, $@, $?
    const std::string name = text_.substr(at_ + 1, end - at_ - 1);
    advance_to(end);
    put(name, std::nullopt);
  }

  void braces() {
    const std::size_t end = closing(at_ + 1, '{', '}');
    const std::string inner = text_.substr(at_ + 2, end - at_ - 2);
    advance_to(end + 1);
    if (inner.find('[') != std::string::npos) return;  // an array, read where it was written
    std::size_t length = 0;
    while (length < inner.size() && is_name_character(inner[length])) ++length;
    const std::string name = inner.substr(0, length);
    std::string rest = inner.substr(length);
    if (rest.starts_with(':')) rest.erase(0, 1);
    if (!rest.starts_with('-') && !rest.starts_with('=')) return put(name, std::nullopt);
    put(name, expanded(rest.substr(1)));
  }

  void arithmetic() {
    const std::size_t end = closing(at_ + 1, '(', ')');
    std::string inner = expanded(text_.substr(at_ + 3, end > at_ + 4 ? end - at_ - 4 : 0));
    advance_to(end + 1);
    // In arithmetic, a name alone is a variable.
    std::string plain;
    for (std::size_t i = 0; i < inner.size();) {
      std::size_t length = 0;
      while (i + length < inner.size() && is_name_character(inner[i + length])) ++length;
      const std::string name = inner.substr(i, length);
      const auto known = variables_.find(name);
      if (length == 0) {
        plain += inner[i++];
        continue;
      }
      plain += known != variables_.end() ? known->second : name;
      i += length;
    }
    if (const auto value = Arithmetic(plain).value()) {
      for (const char c : std::to_string(*value)) add(c);
    } else {
      note_unknown("$((" + inner + "))");
    }
  }

  void command() { advance_to(closing(at_ + 1, '(', ')') + 1); }

  /// The place of the parenthesis that closes the one at `from`; the end of the text without one.
  std::size_t closing(std::size_t from, char open, char close) const {
    int depth = 0;
    for (std::size_t i = from; i < text_.size(); ++i) {
      if (text_[i] == open) ++depth;
      if (text_[i] == close && --depth == 0) return i;
    }
    return text_.size();
  }

  /// A default value with its own variables put in.
  std::string expanded(std::string text) const {
    if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front())
      text = text.substr(1, text.size() - 2);
    std::string all;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != '$') {
        all += text[i++];
        continue;
      }
      std::size_t begin = i + 1;
      const bool braced = begin < text.size() && text[begin] == '{';
      if (braced) ++begin;
      std::size_t end = begin;
      while (end < text.size() && is_name_character(text[end])) ++end;
      const auto known = variables_.find(text.substr(begin, end - begin));
      if (known != variables_.end()) all += known->second;
      i = braced ? std::min(text.find('}', end), text.size() - 1) + 1 : std::max(end, i + 1);
    }
    return all;
  }

  void put(const std::string& name, const std::optional<std::string>& otherwise) {
    const auto known = variables_.find(name);
    const bool is_set = known != variables_.end() && (!known->second.empty() || !otherwise);
    if (!is_set && !otherwise) note_unknown("$" + name);
    const std::string value = is_set ? known->second : otherwise.value_or("");
    for (const char c : value) add(c);
  }

  void note_unknown(const std::string& name) {
    auto& all = read_.unknown;
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }

  void begin_word() {
    if (in_word_) return;
    in_word_ = true;
    mark_ = {source_, line_, static_cast<int>(at_ - line_begin_) + 1, 1};
  }
  void add(char c) {
    begin_word();
    word_ += c;
  }
  void drop_word() {
    in_word_ = false;
    word_.clear();
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    std::string word = std::move(word_);
    word_.clear();
    const bool quoted = std::exchange(was_quoted_, false);
    if (word == "if" || word == "case") read_.has_branches = true;
    std::size_t name = 0;
    while (name < word.size() && is_name_character(word[name])) ++name;
    if (name > 0 && name < word.size() && word[name] == '=' && !std::isdigit(word[0])) {
      variables_[word.substr(0, name)] = word.substr(name + 1);
      return;
    }
    const bool is_several = quoted && word.starts_with("--") && word.find(' ') != word.npos;
    mark_.length = static_cast<int>(std::clamp<std::size_t>(word.size(), 1, 200));
    if (!is_several) return push(std::move(word));
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = std::min(word.find(' ', at), word.size());
      std::string part = word.substr(at, end - at);
      std::erase_if(part, [](char c) { return c == '\'' || c == '"'; });
      if (!part.empty()) push(std::move(part));
      at = end + 1;
    }
  }

  void push(std::string word) { read_.words.push_back({std::move(word), mark_, false}); }
  void end_line() {
    if (!read_.words.empty()) read_.words.back().ends_line = true;
  }

  void advance() {
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
    ++at_;
  }
  void advance_to(std::size_t end) {
    while (at_ < end && at_ < text_.size()) advance();
  }

  std::shared_ptr<const Source> source_;
  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t line_begin_ = 0;
  int depth_ = 0;
  bool in_word_ = false;
  bool was_quoted_ = false;
  std::string word_;
  Mark mark_;
  std::map<std::string, std::string, std::less<>> variables_;
  ShellWords read_;
};

}  // namespace

ShellWords shell_words(const std::shared_ptr<const Source>& source) {
  return ShellReader(source).read();
}

}  // namespace plumbline
