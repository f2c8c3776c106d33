// Records beside what is there now.
//
// SPDX-License-Identifier: MIT
#include "cli/record/record_check.h"

#include <doctest/doctest.h>

#include "cli/record/sha256.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

using Words = std::vector<std::string>;

Record told(const std::string& text) {
  Record record;
  record.version = "1.0";
  record.commit = "abc";
  record.command = {"simulate", "a.yaml"};
  record.started = "2026-11-27T13:34:35Z";
  record.machine = {"a processor", 8, "Linux", std::nullopt};
  record.inputs = {{"a.yaml", 3, sha256("abc")}};
  record.outputs = {{"out.html", 4, sha256("page")}};
  record.printed = recorded_text(text);
  record.messages = recorded_text("");
  return record;
}

RecordCheck check_of(const Record& then, const std::optional<Record>& now) {
  RecordCheck check;
  check.file = "r.json";
  check.then = then;
  check.version = then.version;
  check.commit = then.commit;
  check.machine = then.machine;
  check.inputs = {FileState::same};
  check.outputs.assign(then.outputs.size(), FileState::same);
  check.now = now;
  return check;
}

TEST_CASE("a file is the same, changed or missing") {
  const TemporaryFolder folder;
  const RecordedFile file{folder.file("f", "abc"), 3, sha256("abc")};
  CHECK(state_of(file) == FileState::same);
  folder.file("f", "abd");
  CHECK(state_of(file) == FileState::changed);
  CHECK(state_of({folder["none"], 3, sha256("abc")}) == FileState::missing);
}

TEST_CASE("the same output is the same, whatever version and machine made it") {
  RecordCheck check = check_of(told("one\n"), told("one\n"));
  check.commit = "def";
  check.machine.cores = 2;
  CHECK(check.differences().empty());
  CHECK(to_document(check).print() ==
        "r.json: plumbline simulate a.yaml, 2026-11-27T13:34:35Z\n"
        "  the same: inputs and output\n"
        "\n"
        "  version        other  was plumbline 1.0, commit abc\n"
        "  machine        other  was a processor, 8 cores, Linux\n"
        "  input a.yaml    same\n"
        "  exit code       same\n"
        "  stdout          same\n"
        "  stderr          same\n"
        "  file out.html   same\n");
}

TEST_CASE("a written file may be another one by now, and would still be written the same") {
  RecordCheck check = check_of(told("one\n"), told("one\n"));
  check.outputs = {FileState::changed};
  CHECK(to_document(check).print().find(
            "  file out.html  same  the file that is here has changed since\n") !=
        std::string::npos);
  check.outputs = {FileState::missing};
  CHECK(to_document(check).print().find("  file out.html  same  the file is not here\n") !=
        std::string::npos);
  CHECK(check.differences().empty());
}

TEST_CASE("what differs is named first, then shown") {
  Record now = told("one\n2\n3\nfour\n");
  now.exit_code = 4;
  now.messages = recorded_text("error: no\n");
  now.outputs = {{"out.html", 5, sha256("pages")}, {"more", 0, ""}};
  now.inputs.push_back({"p.yaml", 1, ""});
  RecordCheck check = check_of(told("one\ntwo\nthree\nfour\n"), now);
  check.inputs = {FileState::changed};
  CHECK(check.differences() == Words{"input a.yaml", "input p.yaml", "exit code", "stdout",
                                     "stderr", "file out.html", "file more"});
  CHECK(to_document(check).print() ==
        "r.json: plumbline simulate a.yaml, 2026-11-27T13:34:35Z\n"
        "  differs: input a.yaml, input p.yaml, exit code, stdout, stderr, file out.html, file "
        "more\n"
        "\n"
        "  version           same\n"
        "  machine           same\n"
        "  input a.yaml   changed\n"
        "  input p.yaml       new  it was not read then\n"
        "  exit code      differs  0, now 4\n"
        "  stdout         differs  19 bytes, now 13\n"
        "  stderr         differs  0 bytes, now 10\n"
        "  file out.html  differs  4 bytes, now 5\n"
        "\n"
        "stdout from line 2 on, - then, + now:\n"
        "- two\n"
        "+ 2\n"
        "- three\n"
        "+ 3\n"
        "\n"
        "stderr from line 1 on, - then, + now:\n"
        "+ error: no\n");
}

TEST_CASE("what was not run again is judged by inputs, version and machine") {
  Record then = told("");
  then.command = {"calibrate", "net.yaml"};
  CHECK(measures(then));
  CHECK_FALSE(measures(told("")));
  RecordCheck check = check_of(then, std::nullopt);
  CHECK(check.differences().empty());
  check.version = "1.1";
  check.machine.system = "Linux 7";
  CHECK(check.differences() == Words{"version", "machine"});
  CHECK(to_document(check).print().find("not run again: calibrate measures, and its figures differ "
                                        "from run to run; --rerun runs it\n") != std::string::npos);
  check.inputs = {FileState::missing};
  CHECK(check.lacks_input());
  CHECK(to_document(check).print().find("not run again: an input is missing\n") !=
        std::string::npos);
}

TEST_CASE("a folder that is not here is told") {
  RecordCheck check = check_of(told("one\n"), told("one\n"));
  check.then.directory = "/none";
  check.is_elsewhere = true;
  CHECK(to_document(check).print().find(
            "  its folder /none is not here: the current one takes its place\n") !=
        std::string::npos);
}

TEST_CASE("the time that a plan took is not compared") {
  const RecordedText one = recorded_text("{\n \"planning_time_s\": 0.1,\n \"stages\": 4\n}\n");
  CHECK(is_same_text(one, recorded_text("{\n \"planning_time_s\": 0.2,\n \"stages\": 4\n}\n")));
  CHECK_FALSE(
      is_same_text(one, recorded_text("{\n \"planning_time_s\": 0.2,\n \"stages\": 5\n}\n")));
  CHECK_FALSE(is_same_text(recorded_text("a"), recorded_text("a\n")));
}

TEST_CASE("of a long difference the first lines are shown") {
  std::string then, now;
  for (int i = 0; i < 9; ++i) {
    then += "old " + std::to_string(i) + '\n';
    now += "new " + std::to_string(i) + '\n';
  }
  const LineDifference long_one =
      first_difference(recorded_text("same\n" + then), recorded_text("same\n" + now));
  CHECK(long_one.first_line == 2);
  CHECK(long_one.lines.size() == 10);
  CHECK(long_one.lines[5] == "+ new 2");
  CHECK(long_one.more == 8);
  const LineDifference added =
      first_difference(recorded_text("a\nb\nb\n"), recorded_text("a\nb\nb\nb\n"));
  CHECK(added.first_line == 4);
  CHECK(added.lines == Words{"+ b"});
  const LineDifference two =
      first_difference(recorded_text("a\nb\nc\nd\n"), recorded_text("a\n\nc\ne\n"));
  CHECK(two.lines == Words{"- b", "+", "- d", "+ e"});
  const LineDifference cut =
      first_difference(recorded_text("a\n1\n2\n3\n"), recorded_text("a\n"), 2);
  CHECK(cut.lines == Words{"- 1", "- 2"});
  CHECK(cut.more == 1);
  const LineDifference none = first_difference(recorded_text("a"), recorded_text("a\n"));
  CHECK(none.lines.empty());
}

}  // namespace
}  // namespace plumbline::test
