// A record as JSON, written and read back.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_tree.h"
#include "base/json_value.h"
#include "base/section_reader.h"
#include "cli/record/record.h"
#include "cli/record/sha256.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

Json files_json(const std::vector<RecordedFile>& files) {
  Json json = Json::array();
  for (const RecordedFile& file : files)
    json.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return json;
}

Json text_json(const RecordedText& text) {
  return {{"bytes", text.bytes},
          {"sha256", text.sha256},
          {"whole", text.is_whole},
          {"lines", text.lines}};
}

/// Reads required values one by one; what is missing or wrong becomes a problem.
class RecordReader {
 public:
  RecordReader(SectionReader& section, Diagnostics& problems)
      : section_(section), problems_(problems) {}

  std::string text(std::string_view key) {
    section_.require(key);
    const auto found = section_.text(key);
    return found ? found->value : "";
  }
  std::optional<std::string> text_or_null(std::string_view key) {
    const YamlNode* const node = section_.child(key);
    if (node == nullptr || node->kind == YamlNode::Kind::null) return std::nullopt;
    const auto found = section_.text(key);
    return found ? std::optional(found->value) : std::nullopt;
  }
  std::int64_t count(std::string_view key) {
    section_.require(key);
    const auto found = section_.count(key);
    return found ? found->value : 0;
  }
  bool boolean(std::string_view key) {
    section_.require(key);
    const auto found = section_.boolean(key);
    return found && found->value;
  }
  double real(std::string_view key) {
    section_.require(key);
    const auto found = section_.real(key);
    return found ? found->value : 0;
  }

  /// The texts of a list, however long they are.
  std::vector<std::string> texts(std::string_view key) {
    section_.require(key);
    std::vector<std::string> found;
    if (const std::vector<YamlNode>* const items = section_.list(key)) {
      for (const YamlNode& item : *items) {
        if (item.kind == YamlNode::Kind::scalar) {
          found.push_back(item.text);
        } else {
          section_.error(item.mark, fmt::format("{} has something else than texts", key));
        }
      }
    }
    return found;
  }

  /// A list of at least one text.
  std::vector<std::string> words(std::string_view key) {
    std::vector<std::string> found = texts(key);
    if (found.empty() && section_.has(key))
      section_.error(section_.mark_of(key), fmt::format("{} is empty", key));
    return found;
  }

  template <class Read>
  auto section(std::string_view key, Read&& read) {
    section_.require(key);
    decltype(read(std::declval<RecordReader&>())) found{};
    if (auto section = section_.section(key)) {
      RecordReader reader(*section, problems_);
      found = read(reader);
      section->finish();
    }
    return found;
  }

  /// The elements of a list of maps.
  template <class Read>
  auto sections(std::string_view key, const SectionFormat& format, Read&& read) {
    section_.require(key);
    std::vector<decltype(read(std::declval<RecordReader&>()))> found;
    const std::vector<YamlNode>* const items = section_.list(key);
    for (std::size_t i = 0; items && i < items->size(); ++i) {
      SectionReader section((*items)[i], fmt::format("{}[{}]", key, i), format, problems_);
      RecordReader reader(section, problems_);
      found.push_back(read(reader));
      section.finish();
    }
    return found;
  }

 private:
  SectionReader& section_;
  Diagnostics& problems_;
};

RecordedFile read_recorded_file(RecordReader& reader) {
  return {reader.text("path"), static_cast<std::uint64_t>(reader.count("bytes")),
          reader.text("sha256")};
}

RecordedText read_recorded_text(RecordReader& reader) {
  return {static_cast<std::uint64_t>(reader.count("bytes")), reader.text("sha256"),
          reader.boolean("whole"), reader.texts("lines")};
}

RecordedMachine read_machine(RecordReader& reader) {
  return {reader.text("processor"), static_cast<std::uint64_t>(reader.count("cores")),
          reader.text("system"), reader.text_or_null("gpu")};
}

RecordedPage read_page(RecordReader& reader) {
  return {static_cast<std::size_t>(reader.count("columns")), reader.boolean("unicode"),
          reader.boolean("color")};
}

/// Reads all keys but those that name the format.
Record read_keys(RecordReader& reader) {
  Record record;
  reader.section("tool", [&](RecordReader& tool) {
    tool.text("name");
    record.version = tool.text("version");
    record.commit = tool.text("commit");
    return 0;
  });
  record.command = reader.words("command");
  record.directory = reader.text("directory");
  record.started = reader.text("started");
  record.runtime_s = reader.real("runtime_s");
  record.machine = reader.section("machine", read_machine);
  record.backend = reader.text_or_null("backend");
  record.page = reader.section("page", read_page);
  record.inputs = reader.sections("inputs", recorded_file_format(), read_recorded_file);
  record.outputs = reader.sections("outputs", recorded_file_format(), read_recorded_file);
  record.exit_code = reader.count("exit_code");
  record.printed = reader.section("stdout", read_recorded_text);
  record.messages = reader.section("stderr", read_recorded_text);
  return record;
}

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

RecordedText recorded_text(std::string_view text) {
  RecordedText recorded{text.size(), sha256(text), text.size() <= kMaxRecordedText, {}};
  if (!recorded.is_whole) text = text.substr(0, text.rfind('\n', kMaxRecordedText) + 1);
  recorded.lines = lines_of(text);
  return recorded;
}

std::string to_json(const Record& record) {
  const Json json = {
      {"schema_version", 1},
      {"kind", kRecordKind},
      {"tool", {{"name", "plumbline"}, {"version", record.version}, {"commit", record.commit}}},
      {"command", record.command},
      {"directory", record.directory},
      {"started", record.started},
      {"runtime_s", record.runtime_s},
      {"machine",
       {{"processor", record.machine.processor},
        {"cores", record.machine.cores},
        {"system", record.machine.system},
        {"gpu", or_null(record.machine.gpu)}}},
      {"backend", or_null(record.backend)},
      {"page",
       {{"columns", record.page.columns},
        {"unicode", record.page.unicode},
        {"color", record.page.color}}},
      {"inputs", files_json(record.inputs)},
      {"outputs", files_json(record.outputs)},
      {"exit_code", record.exit_code},
      {"stdout", text_json(record.printed)},
      {"stderr", text_json(record.messages)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<Record> parse_record(const std::shared_ptr<const Source>& source) {
  auto root = parse_json(source);
  if (!root) return root.problems();
  Diagnostics problems;
  SectionReader section(*root, "", record_format(), problems);
  if (!section.is_map() || !section.is_word("kind", kRecordKind)) {
    return input_error(
        {source}, "is no record of a command",
        "plumbline simulate SCENARIO --record FILE writes one, as other commands do");
  }
  section.child("kind");
  RecordReader reader(section, problems);
  reader.count("schema_version");
  Record record = read_keys(reader);
  section.finish();
  if (!problems.empty()) return problems;
  return record;
}

Result<Record> read_record(const std::string& path) {
  constexpr std::size_t max_bytes = std::size_t{64} << 20U;
  const auto source = read_file(path, max_bytes);
  if (!source) return source.problems();
  return parse_record(*source);
}

}  // namespace plumbline
