// The text of a report, as blocks that fit pages of any width.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/table.h"
#include "base/wrap.h"

namespace plumbline {

/// Sentences, tables and drawings in a row.
class Document {
 public:
  /// Adds a line that may be broken at its spaces, or several that end in newlines.
  void sentence(std::string text) { blocks_.emplace_back(Sentence{std::move(text), std::nullopt}); }
  /// The same. What is broken off is indented by `hang`, not by two more than its line.
  void sentence(std::string text, std::size_t hang) {
    blocks_.emplace_back(Sentence{std::move(text), hang});
  }
  /// Adds lines that stay as they are: a drawing, or a command to copy. A newline is added where
  /// the last line has none.
  void verbatim(std::string text) { blocks_.emplace_back(Verbatim{std::move(text)}); }
  void table(Table table) { blocks_.emplace_back(std::move(table)); }
  void blank_line() { verbatim("\n"); }
  void append(Document other);

  bool empty() const { return blocks_.empty(); }

  /// All blocks as text. It ends in a newline, or is empty.
  std::string print(PageWidth width = std::nullopt) const;

 private:
  struct Sentence {
    std::string text;
    std::optional<std::size_t> hang;
  };
  struct Verbatim {
    std::string text;
  };
  using Block = std::variant<Sentence, Verbatim, Table>;

  static std::string print(const Block& block, PageWidth width);

  std::vector<Block> blocks_;
};

}  // namespace plumbline
