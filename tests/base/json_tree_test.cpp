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
