// Records as JSON: written, read back, refused.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "cli/record/record.h"
#include "cli/record/sha256.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Record some_record() {
  Record record;
  record.version = "1.2.3";
  record.commit = "abc with changes";
  record.command = {"simulate", "a b.yaml", "plan.stages=2"};
  record.directory = "/work \"x\"";
  record.started = "2026-11-27T13:34:35Z";
  record.runtime_s = 0.25;
  record.machine = {"a processor", 8, "Linux 6.1", std::nullopt};
  record.backend = "cuda";
  record.page = {80, true, false};
  record.inputs = {{"a b.yaml", 3, sha256("abc")}};
  record.outputs = {{"out.html", 0, sha256("")}};
  record.exit_code = 4;
  record.printed = recorded_text("\x1b[1mone\x1b[0m\n\n░ 12\n5\n");
  record.messages = recorded_text("error: no\n");
  return record;
}

std::string refused(const std::string& json) {
  const auto record = parse_record(text_source("r.json", json));
  REQUIRE_FALSE(record);
  return to_text(record.problems());
}

/// The record's text with one piece of it replaced.
std::string with(const std::string& old_piece, const std::string& new_piece) {
  std::string json = to_json(some_record());
  const std::size_t at = json.find(old_piece);
  REQUIRE(at != std::string::npos);
  return json.replace(at, old_piece.size(), new_piece);
}

TEST_CASE("SHA-256 is that of FIPS 180-4") {
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.add(std::string(1000, 'a'));
  CHECK(pieces.hex() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  const TemporaryFolder folder;
  const auto digest = digest_of_file(folder.file("f", "abc"));
  REQUIRE(digest);
  CHECK(digest->bytes == 3);
  CHECK(digest->sha256 == sha256("abc"));
  CHECK_FALSE(digest_of_file(folder["none"]));
  CHECK_FALSE(digest_of_file(folder.path()));
}

TEST_CASE("a record comes back from its file") {
  const Record record = some_record();
  const auto again = parse_record(text_source("r.json", to_json(record)));
  REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
  CHECK(to_json(*again) == to_json(record));
  CHECK(again->version == "1.2.3");
  CHECK(again->commit == "abc with changes");
  CHECK(again->command == record.command);
  CHECK(again->directory == record.directory);
  CHECK(again->runtime_s == 0.25);
  CHECK(again->machine == record.machine);
  CHECK(again->backend == record.backend);
  CHECK(again->page == record.page);
  CHECK(again->inputs == record.inputs);
  CHECK(again->outputs == record.outputs);
  CHECK(again->exit_code == 4);
  CHECK(again->printed == record.printed);
  CHECK(again->messages == record.messages);
}

TEST_CASE("a long text keeps its first whole lines, and the digest of all") {
  const std::string line(99, 'x');
  std::string text;
  while (text.size() <= kMaxRecordedText) text += line + '\n';
  const RecordedText recorded = recorded_text(text);
  CHECK_FALSE(recorded.is_whole);
  CHECK(recorded.bytes == text.size());
  CHECK(recorded.sha256 == sha256(text));
  CHECK(recorded.lines.size() == kMaxRecordedText / 100);
  CHECK(recorded.lines.back() == line);
  CHECK(recorded_text(text.substr(0, 250)).lines ==
        std::vector<std::string>{line, line, std::string(50, 'x')});
  const RecordedText one_line = recorded_text(std::string(kMaxRecordedText + 1, 'x'));
  CHECK(one_line.lines.empty());
  CHECK_FALSE(one_line.is_whole);
}

TEST_CASE("what is no record is refused with its place") {
  CHECK(refused("{}").find("is no record of a command") != std::string::npos);
  CHECK(refused("[1]").find("is no record of a command") != std::string::npos);
  CHECK(refused("{\"kind\": \"sweep\"}").find("is no record of a command") != std::string::npos);
  CHECK(refused("{\"kind\": \"record\"").find("not valid JSON") != std::string::npos);
  CHECK(refused(with("\"schema_version\": 1", "\"schema_version\": 2")).find("r.json:2:") == 0);
  CHECK(refused(with("\"exit_code\": 4,", "")).find("exit_code") != std::string::npos);
  CHECK(refused(with("\"exit_code\": 4", "\"exit_code\": \"four\"")).find("exit_code") !=
        std::string::npos);
  CHECK(refused(with("\"backend\": \"cuda\"", "\"backened\": \"cuda\"")).find("backened") !=
        std::string::npos);
  CHECK(refused(with("\"path\": \"a b.yaml\"", "\"path\": {}")).find("inputs[0].path") !=
        std::string::npos);
  CHECK(refused(with("\"simulate\",", "[],")).find("something else than texts") !=
        std::string::npos);
}

TEST_CASE("a command without a word is no record") {
  Record record = some_record();
  record.command.clear();
  CHECK(refused(to_json(record)).find("command") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
