// The strict reader and overrides.
//
// SPDX-License-Identifier: MIT
#include "base/yaml.h"

#include <doctest/doctest.h>

#include "base/section_reader.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

std::string problem_of(const std::string& text) {
  const auto parsed = parse_yaml(test::text_source("x.yaml", text));
  return parsed ? "" : to_text(parsed.problems());
}

TEST_CASE("an error names file, line and column, quotes the line and points at the value") {
  Diagnostics problems;
  const auto root = *parse_yaml(test::text_source("x.yaml", "schedule:\n  name: 1f1d\n"));
  SectionReader file(root, "", problems);
  auto section = file.section("schedule");
  section->choice_of("name", {"gpipe", "1f1b"}, "schedule", "plumbline list schedules");
  CHECK(to_text(problems) ==
        "x.yaml:2:9: error: schedule.name is '1f1d', which is no schedule\n"
        "    2 |   name: 1f1d\n"
        "      |         ^~~~\n"
        "  help: did you mean '1f1b'? (plumbline list schedules)\n");
}

TEST_CASE("bytes that the YAML library would stop at in silence are refused") {
  CHECK(problem_of(std::string("a: 1\nb: \x04 2\n", 13)) ==
        "x.yaml:2:4: error: the byte 0x04 does not belong into a text file\n    2 | b: ? 2\n      "
        "|    ^\n");
  CHECK(problem_of("a: \xFF\n").find("the byte 0xff is not UTF-8") != std::string::npos);
  CHECK(problem_of("a:\n\tb: 1\n").find("x.yaml:2:1: error: a tab stands in the indentation") == 0);
}

TEST_CASE("repeated keys, two documents, deep nesting and alias bombs are refused") {
  CHECK(problem_of("a: 1\nb: 2\na: 3\n")
            .find("x.yaml:3:1: error: the key 'a' stands here a second time") == 0);
  CHECK(problem_of("a: 1\n---\nb: 1\n").find("a second YAML document") != std::string::npos);
  CHECK(problem_of(std::string(20'000, '[')).find("nested deeper than 100 levels") !=
        std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) bomb += (j ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK(problem_of(bomb).find("aliases expand to more than 100000 values") != std::string::npos);
  CHECK(problem_of("").find("is empty") != std::string::npos);
}

TEST_CASE("an alias stands for what it names") {
  const auto root = *parse_yaml(test::text_source("x.yaml", "a: &x {b: 1}\nc: *x\n"));
  CHECK(root.entries[1].value.entries[0].key == "b");
}

TEST_CASE("overrides set, make, index and take out keys, and know their place") {
  YamlNode root = *parse_yaml(test::text_source("x.yaml", "a: {b: 1, l: [1, 2]}\n"));
  CHECK(!apply_override(root, "a.b=7"));
  CHECK(root.entries[0].value.entries[0].value.text == "7");
  CHECK(!apply_override(root, "a.l.1={c: 3}"));
  CHECK(root.entries[0].value.entries[1].value.items[1].entries[0].key == "c");
  CHECK(!apply_override(root, "new.deep=[1,2]"));
  CHECK(root.entries[1].value.entries[0].value.items.size() == 2);
  CHECK(root.entries[1].value.entries[0].value.mark.column == 10);
  CHECK(!apply_override(root, "a.b=null"));
  CHECK(root.entries[0].value.entries.size() == 1);
  CHECK(apply_override(root, "nonsense"));
  CHECK(apply_override(root, "a.l.5=1"));
  CHECK(!apply_override(root, "a.l[1].c=4"));
  CHECK(apply_override(root, "a.l[5]=1"));
  CHECK(apply_override(root, "a.b=[1"));
  CHECK(apply_override(root, "a..b=1"));
}

TEST_CASE("a word is suggested when it is near, and not when it is far") {
  CHECK(did_you_mean("micro_batchs", {"micro_batches", "mini_batches"}) ==
        "did you mean 'micro_batches'?");
  CHECK(did_you_mean("nmae", {"name"}) == "did you mean 'name'?");
  CHECK(did_you_mean("colour", {"name", "file"}) == "");
}

TEST_CASE("the beginning or a part of a name suggests all names that it may be of") {
  const std::vector<std::string> schedules = {
      "gpipe", "1f1b",  "pipedream", "interleaved-1f1b", "looped-bfs", "interleaved-zb",
      "zb-h1", "zb-h2", "zb-v",      "dualpipev",        "dualpipe"};
  const Abbreviations short_for = {
      {"zero-bubble", "zb"}, {"zerobubble", "zb"}, {"breadth-first", "bfs"}};
  const auto meant = [&](const char* word) { return did_you_mean(word, schedules, short_for); };
  CHECK(meant("interleaved") == "did you mean 'interleaved-1f1b' or 'interleaved-zb'?");
  CHECK(meant("zb") == "did you mean 'zb-h1', 'zb-h2' or 'zb-v'?");
  CHECK(meant("zero-bubble") == meant("zb"));
  CHECK(meant("ZeroBubble") == meant("zb"));
  CHECK(meant("dual-pipe") == "did you mean 'dualpipe'?");
  CHECK(meant("pipedream-2bw") == "did you mean 'pipedream'?");
  CHECK(meant("gpipe-flush") == "did you mean 'gpipe'?");
  CHECK(meant("1f1b-interleaved") == "did you mean 'interleaved-1f1b'?");
  CHECK(meant("bfs") == "did you mean 'looped-bfs'?");
  CHECK(meant("breadth-first") == "did you mean 'looped-bfs'?");
  CHECK(did_you_mean("zero-bubble", schedules) == "");
  CHECK(meant("zbh1") == "did you mean 'zb-h1'?");
  CHECK(meant("z") == "");
  CHECK(meant("-") == "");
  CHECK(meant("wavefront") == "");

  const std::vector<std::string> presets = {"a100-sxm-40gb", "a100-sxm-80gb", "h100-pcie",
                                            "h100-sxm",      "h200-sxm",      "gb200"};
  CHECK(did_you_mean("h100", presets) == "did you mean 'h100-pcie' or 'h100-sxm'?");
  CHECK(did_you_mean("H100-SXM5", presets) == "did you mean 'h100-sxm'?");
  CHECK(did_you_mean("a100", presets) == "did you mean 'a100-sxm-40gb' or 'a100-sxm-80gb'?");
  CHECK(did_you_mean("A100-80GB", presets) == "did you mean 'a100-sxm-80gb'?");
  CHECK(did_you_mean("h200", presets) == "did you mean 'h200-sxm'?");
  CHECK(did_you_mean("nvidia-h100", presets) == "did you mean 'h100-pcie' or 'h100-sxm'?");
  CHECK(did_you_mean("v100", presets) == "");
  CHECK(did_you_mean("key", {"key_a", "key_b", "key_c", "key_d", "key_e"}) ==
        "did you mean 'key_a', 'key_b', 'key_c' or 'key_d'?");
}

TEST_CASE("indices in brackets are keys of a path") {
  using Parts = std::vector<std::string>;
  CHECK(without_brackets("devices[0][12]") == Parts{"devices", "0", "12"});
  for (const char* other : {"", "[1]", "a[]", "a[x]", "a[1", "a]1[", "a[1]b", "a[1][", "a"})
    CHECK(without_brackets(other) == Parts{other});
  CHECK(dotted("cluster.levels[1].bandwidth") == "cluster.levels.1.bandwidth");
  CHECK(dotted("plan.devices[0][1]") == "plan.devices.0.1");
  CHECK(dotted("a.b") == "a.b");
  CHECK(dotted(".a.") == ".a.");
  CHECK(dotted("") == "");
  const auto change = parse_override("a.l[1][0].c=4");
  REQUIRE(change);
  REQUIRE(change->path.size() == 5);
  CHECK(change->path[2].text == "1");
  CHECK(change->path[2].mark.column == 5);
  CHECK(change->path[3].mark.column == 8);
  CHECK(change->path[4].mark.column == 11);
}

}  // namespace
}  // namespace plumbline
