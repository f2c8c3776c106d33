// Reports on pages of any width.
//
// SPDX-License-Identifier: MIT
#include "base/document.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace plumbline {
namespace {

std::size_t widest(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, characters(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

TEST_CASE("lines break at spaces, and what follows is indented by two more") {
  CHECK(wrapped("  one two three four", 11) == "  one two\n    three\n    four");
  CHECK(wrapped("  one two three four", std::nullopt) == "  one two three four");
  CHECK(wrapped("one", 2) == "one");  // a word is never broken
  CHECK(wrapped("a longestword b", 6) == "a\n  longestword\n  b");
  CHECK(wrapped("a  b   c", 8) == "a  b   c");
  CHECK(wrapped("a  b   c", 7) == "a  b\n  c");
  CHECK(wrapped("", 5).empty());
  CHECK(wrapped("     ", 3) == "     ");
  CHECK(characters("│█░·") == 4);
  CHECK(wrapped("│█ ░·", 5) == "│█ ░·");
}

TEST_CASE("wrapped text has all words, in lines that fit") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::string line(random_bits(seed, 0) % 6, ' ');
    std::string words;
    for (std::uint64_t i = 1; i < 40; ++i) {
      const std::string word(1 + random_bits(seed, i) % 9, 'x');
      line += word + ' ';
      words += word;
    }
    line.pop_back();
    const std::size_t width = 16 + random_bits(seed, 99) % 60;
    const std::string text = wrapped(line, width);
    CHECK(widest(text) <= width);
    std::string left;
    for (const char c : text) {
      if (c == 'x') left += c;
    }
    CHECK(left == words);
  }
}

Table example() {
  Table table;
  table.row({"device", "iteration time", "bubble", "peak memory"});
  table.row({"0", "18 ms", "2.08 %", "74 MiB"});
  table.row({"10", "19.25 ms", "2.08 %", "206 MiB"}, "more than the others have");
  table.may_lack({"no such column", "bubble", "peak memory"});
  return table;
}

TEST_CASE("a table takes the room that it has") {
  CHECK(example().print() ==
        "  device  iteration time  bubble  peak memory\n"
        "  0                18 ms  2.08 %       74 MiB\n"
        "  10            19.25 ms  2.08 %      206 MiB  more than the others have\n");
  CHECK(example().print(62) ==
        "  device  iteration time  bubble  peak memory\n"
        "  0                18 ms  2.08 %       74 MiB\n"
        "  10            19.25 ms  2.08 %      206 MiB\n"
        "      more than the others have\n");
}

TEST_CASE("a narrow page breaks titles, then lacks columns, and says so") {
  CHECK(example().print(39) ==
        "          iteration             peak\n"
        "  device       time  bubble   memory\n"
        "  0           18 ms  2.08 %   74 MiB\n"
        "  10       19.25 ms  2.08 %  206 MiB\n"
        "      more than the others have\n");
  CHECK(example().print(30) ==
        "          iteration     peak\n"
        "  device       time   memory\n"
        "  0           18 ms   74 MiB\n"
        "  10       19.25 ms  206 MiB\n"
        "      more than the others\n"
        "      have\n"
        "  no room for bubble (--wide)\n");
}

TEST_CASE("columns that nothing may leave out go on in a block below") {
  Table table;
  table.row({"", "one", "", "two", ""});
  table.row({"time", "10 ms", "same", "12 ms", "+20 %"});
  table.row({"bubble", "1 %", "same", "2 %", "+1 %"}, "remark");
  CHECK(table.print(24) ==
        "            one\n"
        "  time    10 ms  same\n"
        "  bubble    1 %  same\n"
        "\n"
        "            two\n"
        "  time    12 ms  +20 %\n"
        "  bubble    2 %   +1 %\n"
        "      remark\n");
}

TEST_CASE("titles break at dots and underscores, too") {
  Table table;
  table.row({"point", "schedule.micro_batches", "tokens/s/GPU"});
  table.row({"0", "16", "1234.5"});
  CHECK(table.print(27) ==
        "         schedule.\n"
        "            micro_  tokens/\n"
        "  point    batches    s/GPU\n"
        "  0             16   1234.5\n");
}

TEST_CASE("titles that are numbers or formulas stay whole") {
  Table table;
  table.row({"", "0.125", "1.25 GB/s", "(p-1)/(m+p-1)", "practical-a", "eager-1f1b"});
  table.row({"a", "1", "2", "3", "4", "5"});
  const std::string text = table.print(40);
  CAPTURE(text);
  for (const char* whole : {"0.125", "GB/s", "(p-1)/(m+p-1)", "practical-a", "eager-1f1b"})
    CHECK(text.find(whole) != std::string::npos);
}

TEST_CASE("each block repeats the columns that tell rows apart") {
  Table table;
  table.row({"p", "m", "first", "second"});
  table.row({"2", "4", "1234567890", "1234567890"});
  table.row({"2", "8", "1234567891", "1234567891"});
  table.repeat(2);
  CHECK(table.print(20) ==
        "  p  m       first\n"
        "  2  4  1234567890\n"
        "  2  8  1234567891\n"
        "\n"
        "  p  m      second\n"
        "  2  4  1234567890\n"
        "  2  8  1234567891\n");
}

TEST_CASE("where leaving out does not suffice nothing is left out") {
  const std::string text = example().print(12);
  CAPTURE(text);
  CHECK(text.find("no room") == std::string::npos);
  for (const char* value : {"18 ms", "2.08 %", "206 MiB"})
    CHECK(text.find(value) != std::string::npos);
}

TEST_CASE("without a header no row is broken") {
  Table table;
  table.row({"iteration time", "31.61 s", "28.8 s to 36.7 s"});
  table.row({"bubble", "5 %", "6 %"});
  table.has_no_header();
  const std::string text = table.print(24);
  CAPTURE(text);
  CHECK(text.find("28.8 s to 36.7 s") != std::string::npos);
}

TEST_CASE("an address of the web is broken behind a slash, a path is not") {
  CHECK(wrapped("see https://a.org/page/part now", 18) == "see https://a.org/\n  page/part now");
  CHECK(wrapped("a/long/path/to/a/file.yaml:1:2 is wrong", 18) ==
        "a/long/path/to/a/file.yaml:1:2\n  is wrong");
}

TEST_CASE("a document prints its blocks in a row, drawings as they are") {
  Document document;
  CHECK(document.empty());
  CHECK(document.print().empty());
  document.sentence("one two three");
  document.blank_line();
  document.verbatim("a drawing of some width");
  document.table(example());
  Document other;
  other.sentence("note: a\nnote: b and c");
  document.append(std::move(other));
  CHECK(document.print() == "one two three\n\na drawing of some width\n" + example().print() +
                                "note: a\nnote: b and c\n");
  const std::string narrow = document.print(10);
  CHECK(narrow.starts_with("one two\n  three\n\na drawing of some width\n"));
  CHECK(narrow.ends_with("note: a\nnote: b\n  and c\n"));
}

}  // namespace
}  // namespace plumbline
