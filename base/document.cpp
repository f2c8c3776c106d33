// Printing block by block.
//
// SPDX-License-Identifier: MIT
#include "base/document.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace plumbline {

void Document::append(Document other) {
  blocks_.insert(blocks_.end(), std::make_move_iterator(other.blocks_.begin()),
                 std::make_move_iterator(other.blocks_.end()));
}

std::string Document::print(PageWidth width) const {
  std::string text;
  for (const Block& block : blocks_) text += print(block, width);
  return text;
}

std::string Document::print(const Block& block, PageWidth width) {
  if (const auto* table = std::get_if<Table>(&block)) return table->print(width);
  if (const auto* verbatim = std::get_if<Verbatim>(&block)) {
    const bool ends = verbatim->text.empty() || verbatim->text.back() == '\n';
    return ends ? verbatim->text : verbatim->text + '\n';
  }
  std::string text;
  const auto& [sentence, hang] = std::get<Sentence>(block);
  std::string_view rest = sentence;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    text += (hang ? wrapped(line, width, *hang) : wrapped(line, width)) + '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

}  // namespace plumbline
