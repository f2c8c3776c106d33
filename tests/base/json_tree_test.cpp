// JSON becomes the tree that YAML becomes, with the place of each piece.
//
// SPDX-License-Identifier: MIT
#include "base/json_tree.h"

#include <doctest/doctest.h>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

TEST_CASE("every value of JSON keeps its text and its place") {
  const auto root = parse_json(test::text_source(
      "a.json",
      "{\"a\": 12,\n  \"b\" : [true, null, 1.5e3],\n\t\"c\":{\"d\\u0041\":\"x\\ny\"}}\n"));
  REQUIRE(root);
  REQUIRE(root->entries.size() == 3);
  CHECK(root->entries[0].value.text == "12");
  CHECK(root->entries[0].value.mark.column == 7);
  CHECK(root->entries[0].value.mark.length == 2);
  const YamlNode& list = root->entries[1].value;
  CHECK(root->entries[1].mark.line == 2);
  CHECK(root->entries[1].mark.column == 3);
  REQUIRE(list.items.size() == 3);
  CHECK(list.items[0].text == "true");
  CHECK(list.items[1].kind == YamlNode::Kind::null);
  CHECK(list.items[2].text == "1.5e3");
  CHECK(list.items[2].mark.line == 2);
  CHECK(list.items[2].mark.column == 22);
  const YamlNode& inner = root->entries[2].value;
  CHECK(inner.mark.line == 3);
  CHECK(inner.mark.column == 6);
  CHECK(inner.entries[0].key == "dA");
  CHECK(inner.entries[0].value.text == "x\ny");
}

TEST_CASE("a key that stands twice in one map is refused at its place, in another map it is not") {
  const auto said = [](const std::string& text) {
    const auto root = parse_json(test::text_source("a.json", text));
    return root ? "" : to_text(root.problems());
  };
  CHECK(said("{\"a\": {\"a\": 1, \"b\": [{\"a\": 2}, {\"a\": 3}]},\n \"b\": {\"a\": 4}}").empty());
  CHECK(said("{\"a\": 1,\n \"b\": {\"a\": 1},\n  \"a\": 2}") ==
        "a.json:3:3: error: the key 'a' stands here a second time\n"
        "    3 |   \"a\": 2}\n"
        "      |   ^~~\n"
        "  help: the first is on line 1\n");
}

TEST_CASE("a list and a map of a hundred thousand entries keep the place of each") {
  constexpr int count = 100'000;
  std::string list = "[", map = "{";
  for (int i = 0; i < count; ++i) {
    const std::string end = i + 1 < count ? ",\n " : "";
    list += "\"x" + std::to_string(i) + '"' + end;
    map += "\"k" + std::to_string(i) + "\": 1" + end;
  }
  const auto items = parse_json(test::text_source("list.json", list + ']'));
  REQUIRE(items);
  REQUIRE(items->items.size() == count);
  const auto entries = parse_json(test::text_source("map.json", map + '}'));
  REQUIRE(entries);
  REQUIRE(entries->entries.size() == count);
  for (const int i : {0, 1, 54'321, count - 1}) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(items->items[at].text == "x" + std::to_string(i));
    CHECK(items->items[at].mark.line == i + 1);
    CHECK(items->items[at].mark.column == 2);
    CHECK(entries->entries[at].key == "k" + std::to_string(i));
    CHECK(entries->entries[at].mark.line == i + 1);
  }
  const auto cut = parse_json(test::text_source("map.json", map + ",\n \"k54321\": 2}"));
  REQUIRE_FALSE(cut);
  CHECK(cut.problems().front().mark.line == count + 1);
  CHECK(cut.problems().front().help == "the first is on line 54322");
}

TEST_CASE("Infinity and NaN are numbers where a value stands, and letters within strings") {
  const auto root = parse_json(test::text_source(
      "a.json",
      "{\"Infinity\": [Infinity, -Infinity,NaN],\n \"b\": \"NaN \\\" Infinity\", \"c\": NaN}"));
  REQUIRE(root);
  CHECK(root->entries[0].key == "Infinity");
  const YamlNode& list = root->entries[0].value;
  REQUIRE(list.items.size() == 3);
  CHECK(list.items[0].text == "Infinity");
  CHECK(list.items[1].text == "-Infinity");
  CHECK(list.items[1].mark.column == 25);
  CHECK(list.items[2].text == "NaN");
  CHECK(root->entries[1].value.text == "NaN \" Infinity");
  CHECK(root->entries[2].value.text == "NaN");
  for (const char* text : {"[Infinit]", "[nan]", "[Infinity1]", "[xNaN]", "[+Infinity]", "[inf]"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_json(test::text_source("a.json", text)));
  }
}

TEST_CASE("text that is cut anywhere is told with a place inside it") {
  const std::string whole = "{\"a\": [1, {\"b\": \"c\"}, false], \"d\": null}";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const auto root = parse_json(test::text_source("a.json", whole.substr(0, length)));
    REQUIRE(!root);
    CHECK(root.problems().front().mark.column <= static_cast<int>(length) + 1);
  }
  CHECK(parse_json(test::text_source("a.json", whole)));
}

}  // namespace
}  // namespace plumbline
