// The schemas say what the readers do: nothing that they refuse is accepted, and the other way
// round.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <set>

#include "base/json_schema.h"
#include "models/kernels/kernel_table_format.h"
#include "models/kernels/kernel_table_reader.h"
#include "models/network/network_format.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_format.h"
#include "models/profile/profile_reader.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_format.h"
#include "tests/support/json_schema.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

using namespace plumbline;

namespace {

/// A kind of file: its table, and what its reader finds wrong.
struct FileKind {
  SectionFormatFunction format;
  std::function<Diagnostics(const std::shared_ptr<const Source>&)> problems;
};

template <class T>
Diagnostics problems_of(const Result<T>& result) {
  return result ? Diagnostics{} : result.problems();
}

const FileKind& kind_of(const std::string& path) {
  static const FileKind scenario = {
      &scenario_format, [](const auto& source) { return problems_of(parse_scenario(source, {})); }};
  static const FileKind profile = {
      &profile_format, [](const auto& source) { return problems_of(parse_profile(source)); }};
  static const FileKind network = {
      &network_format, [](const auto& source) { return problems_of(parse_network(source)); }};
  static const FileKind kernels = {
      &kernels_format, [](const auto& source) { return problems_of(parse_kernel_table(source)); }};
  if (path.ends_with(".profile.yaml")) return profile;
  if (path.ends_with(".kernels.yaml")) return kernels;
  return path.ends_with(".network.yaml") ? network : scenario;
}

std::vector<std::string> accepted_files() {
  std::vector<std::string> files;
  for (const char* folder :
       {"examples", "examples/profiles", "examples/networks", "tests/formats"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".yaml") && !path.ends_with("/plan.yaml")) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The document in one line, all scalars in quotes, which our readers do not look at.
std::string written(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return test::Json(node.text).dump();
    case YamlNode::Kind::sequence:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + written(item);
      return '[' + text + ']';
    case YamlNode::Kind::map:
      for (const YamlNode::Entry& entry : node.entries)
        text +=
            (text.empty() ? "" : ", ") + test::Json(entry.key).dump() + ": " + written(entry.value);
      return '{' + text + '}';
  }
  return "";
}

YamlNode tree_of(const std::string& path) {
  const auto root = read_yaml(path);
  REQUIRE(root);
  return *root;
}

/// The errors of the reader of `kind` for `root`, which stands in for the file at `path`.
Diagnostics read_again(const FileKind& kind, const std::string& path, const YamlNode& root) {
  auto source = std::make_shared<Source>();
  source->name = path;
  source->directory = std::filesystem::path(path).parent_path().string();
  source->text = written(root) + '\n';
  return kind.problems(source);
}

/// Calls `visit` with every node below `node`, which it may change, and its name.
void each_node(YamlNode& node, const std::string& name,
               const std::function<void(YamlNode&, const std::string&)>& visit) {
  for (std::size_t i = 0; i < node.items.size(); ++i)
    each_node(node.items[i], fmt::format("{}[{}]", name, i), visit);
  for (std::size_t i = 0; i < node.entries.size(); ++i)
    each_node(node.entries[i].value, name + '.' + node.entries[i].key, visit);
  visit(node, name);
}

/// Whether a message is about one value alone, which a schema can tell too.
bool schema_can_tell(const std::string& message) {
  for (const char* part :
       {"unknown key", "wanted", "which is not between", "which is above", "has no unit",
        "has the unknown unit", "is not a whole number", "is not a number", "is negative",
        "is neither true nor false", "has no value", "is not a quantity", "but only 1 is read",
        "is an empty list", "is no pair", "which is no schedule", "which is no kind of"}) {
    if (message.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Adds "section.key" of every key that `node` has, and of all that there are where it is nullptr.
void add_keys(const YamlNode* node, const SectionFormat& format, std::set<std::string>& keys);

void add_keys(const YamlNode* node, const std::vector<ValueFormat>& values,
              std::set<std::string>& keys) {
  for (const ValueFormat& value : values) {
    if (value.section && (!node || node->kind == YamlNode::Kind::map)) {
      const SectionFormat& section = value.section();
      const bool suits =
          !node || std::all_of(node->entries.begin(), node->entries.end(), [&](const auto& entry) {
            return section.find(entry.key) || !section.other_keys.empty();
          });
      if (suits) return add_keys(node, section, keys), void();
    }
    if (!node) add_keys(nullptr, value.items, keys);
    if (!node || node->kind != YamlNode::Kind::sequence) continue;
    for (const YamlNode& item : node->items) add_keys(&item, value.items, keys);
  }
}

void add_keys(const YamlNode* node, const SectionFormat& format, std::set<std::string>& keys) {
  if (!node) add_keys(nullptr, format.other_keys, keys);
  for (std::size_t i = 0; node && i < node->entries.size(); ++i) {
    if (!format.find(node->entries[i].key))
      add_keys(&node->entries[i].value, format.other_keys, keys);
  }
  for (const KeyFormat& key : format.keys) {
    const YamlNode* value = nullptr;
    for (std::size_t i = 0; node && i < node->entries.size(); ++i) {
      if (node->entries[i].key == key.name) value = &node->entries[i].value;
    }
    if (node && !value) continue;
    const std::string name = fmt::format("{}.{}", format.name, key.name);
    if (!keys.insert(name).second && !node) continue;
    add_keys(value, key.values, keys);
  }
}

}  // namespace

TEST_CASE("the schemas accept every file that the readers accept") {
  for (const std::string& path : accepted_files()) {
    CAPTURE(path);
    const FileKind& kind = kind_of(path);
    const YamlNode root = tree_of(path);
    const Diagnostics problems = read_again(kind, path, root);
    CHECK_MESSAGE(problems.empty(), to_text(problems));
    CHECK(test::SchemaValidator(json_schema(kind.format())).accepts(test::to_json(root)));
  }
}

TEST_CASE("every key of the schemas stands in a file that its reader accepts") {
  std::set<std::string> all;
  for (const SectionFormatFunction format :
       {&scenario_format, &profile_format, &network_format, &kernels_format})
    add_keys(nullptr, format(), all);
  CHECK(all.size() > 100);
  std::set<std::string> used;
  for (const std::string& path : accepted_files()) {
    const YamlNode root = tree_of(path);
    add_keys(&root, kind_of(path).format(), used);
  }
  for (const std::string& key : all) CHECK_MESSAGE(used.count(key) == 1, key);
}

TEST_CASE("a value that a reader refuses the schema refuses too, and no other" *
          doctest::test_suite("slow")) {
  const std::vector<std::string> values = {
      "zzz",     "-1",        "0",         "1",    "1.5",      "2 ms",         "3 GiB",  "4 GB/s",
      "5 TFLOP", "6 TFLOP/s", "7 parsecs", "true", "measured", "999999999999", "1e3 us", ".5 s"};
  for (const std::string& path : accepted_files()) {
    if (path.find("formats") == std::string::npos) continue;  // they hold every key
    const FileKind& kind = kind_of(path);
    const test::SchemaValidator schema(json_schema(kind.format()));
    YamlNode root = tree_of(path);
    std::uint64_t tried = 0;
    const auto compare = [&](const std::string& what) {
      if (test::kSanitized && ++tried % 50 != 0) return;
      const Diagnostics problems = read_again(kind, path, root);
      const bool refused = !schema.accepts(test::to_json(root));
      const std::string place = fmt::format("{}: {}", path, what);
      CHECK_MESSAGE((!refused || !problems.empty()), place << ": only the schema refuses it");
      if (refused) return;
      for (const Diagnostic& problem : problems) {
        CHECK_MESSAGE(!schema_can_tell(problem.message),
                      place << ": only the reader refuses it: " << problem.message);
      }
    };
    each_node(root, "", [&](YamlNode& node, const std::string& name) {
      const YamlNode kept = node;
      for (const std::string& value : values) {
        node = YamlNode{YamlNode::Kind::scalar, value, kept.mark, {}, {}};
        compare(fmt::format("{} = {}", name, value));
      }
      node = YamlNode{YamlNode::Kind::null, "", kept.mark, {}, {}};
      compare(name + " = null");
      node = YamlNode{YamlNode::Kind::sequence, "", kept.mark, {}, {}};
      compare(name + " = []");
      node = YamlNode{YamlNode::Kind::map, "", kept.mark, {}, {}};
      compare(name + " = {}");
      node = kept;
      if (kept.kind != YamlNode::Kind::map) return;
      node.entries.push_back({"zzz", kept.mark, {YamlNode::Kind::scalar, "1", kept.mark, {}, {}}});
      compare(name + " with zzz");
      for (std::size_t i = 0; i < kept.entries.size(); ++i) {
        node = kept;
        node.entries.erase(node.entries.begin() + static_cast<std::ptrdiff_t>(i));
        compare(fmt::format("{} without {}", name, kept.entries[i].key));
      }
      node = kept;
    });
  }
}

TEST_CASE("a default of a schema is a value that it accepts") {
  for (const SectionFormatFunction format :
       {&scenario_format, &profile_format, &network_format, &kernels_format}) {
    test::Json schema = test::Json::parse(json_schema(format()));
    const test::Json sections = schema.value("definitions", test::Json::object());
    for (const auto& section : sections.items()) {
      CAPTURE(section.key());
      for (const auto& property : section.value()["properties"].items()) {
        CAPTURE(property.key());
        const test::Json& known = property.value();
        CHECK(known["description"].get<std::string>().size() > 10);
        if (!known.contains("default")) continue;
        test::Json alone = known;
        alone["definitions"] = sections;
        CHECK(test::SchemaValidator(alone.dump()).accepts(known["default"]));
      }
    }
  }
}

TEST_CASE("the paths of keys for completion hold words, files and what lies below sections") {
  const std::vector<KeyPath> paths = key_paths(scenario_format());
  const auto find = [&](std::string_view path) {
    const auto found = std::find_if(paths.begin(), paths.end(),
                                    [&](const KeyPath& known) { return known.path == path; });
    REQUIRE(found != paths.end());
    return *found;
  };
  CHECK(find("schedule.name").words.size() == schedule_rules().size() + 1);  // and auto
  CHECK(find("schedule.file").is_file);
  CHECK(find("cluster.link.latency").words.empty());
  CHECK(find("overhead").words == std::vector<std::string>{"measured"});
  CHECK(find("plan.activation_transfers").words == std::vector<std::string>{"true", "false"});
}
