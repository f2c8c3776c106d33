// Unrolls a layout and cuts it at its bars.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/layout_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::string_view kLayoutLetters = "EtmL";
constexpr std::size_t kMaxUnrolled = 2 * static_cast<std::size_t>(kMaxLayers);

constexpr std::size_t kDeepest = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads from left to right and stops at the first fault.
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  std::optional<std::string> unroll() {
    std::string all = sequence();
    if (fault_.empty() && at_ < text_.size()) fail("a ) without a (");
    if (!fault_.empty()) return std::nullopt;
    return all;
  }

  const std::string& fault() const { return fault_; }

 private:
  void fail(std::string_view what) {
    if (fault_.empty()) fault_ = fmt::format("{} at character {}", what, at_ + 1);
    at_ = text_.size();
  }

  /// Reads up to the end of the text or to a parenthesis that was not opened here.
  std::string sequence() {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      if (text_[at_] == ',' || text_[at_] == ' ') {
        ++at_;
        continue;
      }
      const std::string one = item();
      const std::size_t times = repetitions();
      if (one.empty()) continue;
      if (all.size() + one.size() * times > kMaxUnrolled) {
        fail("too many layers");
        break;
      }
      for (std::size_t i = 0; i < times; ++i) all += one;
    }
    return all;
  }

  std::string item() {
    const char c = text_[at_];
    if (c == '|' || kLayoutLetters.find(c) != std::string_view::npos) {
      ++at_;
      return {c};
    }
    if (c != '(') {
      fail(c == '*' ? "a * with nothing before it" : fmt::format("'{}'", c));
      return {};
    }
    if (depth_ == kDeepest) {
      fail("parentheses more than 100 deep");
      return {};
    }
    const std::size_t opened = at_++;
    ++depth_;
    std::string inner = sequence();
    --depth_;
    if (!fault_.empty()) return {};
    if (at_ == text_.size()) {
      at_ = opened;
      fail("a ( without a )");
      return {};
    }
    ++at_;
    return inner;
  }

  std::size_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    if (at_ == text_.size() || !is_digit(text_[at_])) {
      fail("no number behind the *");
      return 0;
    }
    std::size_t times = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      times = std::min(10 * times + static_cast<std::size_t>(text_[at_] - '0'), kMaxUnrolled + 1);
    return times;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;  // of parentheses
  std::string fault_;
};

}  // namespace

bool is_layout_string(std::string_view text) {
  if (text.empty()) return false;
  if (text.find_first_of("|*()") != std::string_view::npos) return true;
  return text.find_first_not_of("EtmL, ") == std::string_view::npos;
}

Result<LayoutString> parse_layout_string(const std::string& text, const Mark& mark) {
  const std::string help =
      "E is the embedding, t a block, m a module for a further token, L the head; | ends a stage, "
      "x*n and (...)*n repeat, as in \"Et*3|(tt|)*29,m|L\"";
  const auto wrong = [&](std::string_view what) {
    return input_error(
        mark, fmt::format("plan.partition is '{}', which is no layout: {}", clipped(text), what),
        help);
  };
  LayoutReader reader(text);
  const auto all = reader.unroll();
  if (!all) return wrong(reader.fault());
  LayoutString layout{text, {""}};
  for (const char c : *all) {
    if (c == '|')
      layout.stages.emplace_back();
    else
      layout.stages.back() += c;
  }
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    if (layout.stages[s].empty())
      return wrong(fmt::format("stage {} of {} is empty, and here a stage holds at least one layer",
                               s, layout.stages.size()));
  }
  return layout;
}

}  // namespace plumbline
