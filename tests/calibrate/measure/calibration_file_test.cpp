// The file that a calibration keeps beside its output: written, read, refused, continued.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibration_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

const CalibrationHead kHead = {{"network", "small, 0123456789abcdef"}, {"seed", "1"}};

KeptRound round_of(std::int64_t batch, std::int64_t ns) {
  KeptRound round;
  round.batch = batch;
  round.measured = Duration{ns};
  round.passes = {{0, {Pass::forward, {100, 20, 3}}, 0},
                  {0, {Pass::update, {}}, 0},
                  {1, {Pass::backward_input, {7, 0}}, 0}};
  return round;
}

std::string file_text(const std::string& passes) { return calibration_head_text(kHead) + passes; }

Result<KeptCalibration> parse(const std::string& text) {
  return parse_calibration_file(std::make_shared<const Source>(Source{"p.partial", text, ""}));
}

/// The first diagnostic as people read it.
std::string problem(const std::string& text) {
  const auto kept = parse(text);
  return kept ? "" : to_text(kept.problems().front());
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("the text of a kept calibration is what it is documented to be") {
  CHECK(file_text(calibration_round_text(round_of(8, 2'000'000'000))) ==
        "plumbline calibration, version 1\n"
        "network: small, 0123456789abcdef\n"
        "seed: 1\n"
        "passes: batch, device, kind, ns of each layer\n"
        "8 0 F 100 20 3\n"
        "8 0 U -\n"
        "8 1 I 7 0\n"
        "round 8 2000000000\n");
}

TEST_CASE("rounds are read back as they were written") {
  const std::string text =
      file_text(calibration_round_text(round_of(2, 5)) + "resumed\n" +
                calibration_round_text(round_of(2, 7)) + calibration_round_text(round_of(8, 11)));
  const auto kept = parse(text);
  REQUIRE_MESSAGE(kept, problem(text));
  REQUIRE(kept->rounds.size() == 3);
  CHECK(kept->rounds[0].batch == 2);
  CHECK(kept->rounds[2].batch == 8);
  CHECK(kept->measured() == Duration{23});
  CHECK(kept->passes() == 9);
  CHECK(kept->resumed == 1);
  CHECK(kept->sound_bytes == text.size());
  CHECK(kept->cut_line == 0);
  CHECK_FALSE(check_other_calibration(*kept, kHead));
  std::string again = calibration_head_text(kHead);
  for (const KeptRound& round : kept->rounds) {
    again += calibration_round_text(round);
    if (&round == kept->rounds.data()) again += "resumed\n";
  }
  CHECK(again == text);
  CHECK(kept->rounds[0].passes[1].line == 6);
}

TEST_CASE("a round with fewer neighbours says how many, and the next one is of all again") {
  KeptRound alone = round_of(8, 5);
  alone.neighbours = 0;
  const std::string text =
      file_text(calibration_round_text(alone) + calibration_round_text(round_of(8, 7)));
  CHECK(text.find("\nneighbours 0\n8 0 F 100 20 3\n") != std::string::npos);
  const auto kept = parse(text);
  REQUIRE_MESSAGE(kept, problem(text));
  REQUIRE(kept->rounds.size() == 2);
  CHECK(kept->rounds[0].neighbours == 0U);
  CHECK(kept->rounds[0].passes.size() == 3);
  CHECK_FALSE(kept->rounds[1].neighbours);
  // A round that a killed process left open keeps its number.
  const auto open = parse(file_text("neighbours 3\n8 0 F 1\nresumed\n8 0 F 1\n"));
  REQUIRE(open);
  REQUIRE(open->rounds.size() == 2);
  CHECK(open->rounds[0].neighbours == 3U);
  CHECK_FALSE(open->rounds[1].neighbours);
  CHECK(problem(file_text("neighbours x\n")).find("'x' is no number of neighbours") !=
        std::string::npos);
  CHECK(problem(file_text("neighbours 1 2\n")).find("is no number of neighbours") !=
        std::string::npos);
}

TEST_CASE("a round with one micro-batch in flight is told from the others") {
  KeptRound one = round_of(8, 5);
  one.one_in_flight = true;
  one.algorithms = {{"forward", "other"}};
  const KeptRound all = round_of(8, 7);
  const std::string text = file_text(calibration_round_text(one) + calibration_round_text(all));
  CHECK(text.find("\none in flight\nalgorithm forward: other\n8 0 F") != std::string::npos);
  const auto kept = parse(text);
  REQUIRE_MESSAGE(kept, problem(text));
  REQUIRE(kept->rounds.size() == 2);
  CHECK(kept->rounds[0].one_in_flight);
  CHECK_FALSE(kept->rounds[0].is_of_all());
  CHECK(kept->rounds[0].algorithms == one.algorithms);
  CHECK_FALSE(kept->rounds[1].one_in_flight);
  CHECK(kept->rounds[1].is_of_all());
}

TEST_CASE("algorithms stand before the passes of the round that used them first") {
  KeptRound first = round_of(8, 5);
  first.neighbours = 1;
  first.algorithms = {{"fp32 2x3x4*5, of all", "0007: 1"}, {"forward", ""}};
  KeptRound second = round_of(8, 7);
  second.algorithms = {{"forward", "other"}, {"more", "x"}};
  const std::string text =
      file_text(calibration_round_text(first) + calibration_round_text(second));
  CHECK(text.find("\nneighbours 1\nalgorithm forward: \nalgorithm fp32 2x3x4*5, of all: 0007: "
                  "1\n8 0 F") != std::string::npos);
  const auto kept = parse(text);
  REQUIRE_MESSAGE(kept, problem(text));
  REQUIRE(kept->rounds.size() == 2);
  CHECK(kept->rounds[0].algorithms == first.algorithms);
  CHECK(kept->rounds[0].neighbours == 1U);
  CHECK(kept->rounds[1].algorithms == second.algorithms);
  CHECK(kept->algorithms() ==
        std::map<std::string, std::string>{
            {"fp32 2x3x4*5, of all", "0007: 1"}, {"forward", "other"}, {"more", "x"}});
  CHECK(problem(file_text("algorithm alone\n")).find("this is no 'algorithm WHAT: WHICH'") !=
        std::string::npos);
}

TEST_CASE(
    "whatever byte a kept calibration ends at, whole lines count and the cut one is dropped") {
  const std::string head = calibration_head_text(kHead);
  const std::string text = head + calibration_round_text(round_of(8, 2'000'000'000));
  for (std::size_t size = head.size(); size <= text.size(); ++size) {
    CAPTURE(size);
    const auto kept = parse(text.substr(0, size));
    REQUIRE(kept);
    const std::string lines = text.substr(0, kept->sound_bytes);
    CHECK(lines.back() == '\n');
    CHECK((kept->cut_line != 0) == (kept->sound_bytes != size));
    std::size_t passes = 0;
    for (std::size_t at = head.size(); at < lines.size(); at = lines.find('\n', at) + 1)
      passes += lines[at] == '8' ? 1 : 0;
    CHECK(kept->passes() == passes);
    CHECK(kept->measured() == Duration{size == text.size() ? 2'000'000'000 : 0});
  }
  for (std::size_t size = 0; size < head.size(); ++size) CHECK_FALSE(parse(text.substr(0, size)));
}

TEST_CASE("anything else than passes is an error at its place") {
  const std::string help = "  help: delete the file and calibrate anew\n";
  CHECK(problem("") ==
        "p.partial: error: the first line is not 'plumbline calibration, version 1'\n" + help);
  CHECK(problem("plumbline calibration, version 1\nseed: 1\n") ==
        "p.partial: error: it ends before 'passes:': nothing is kept in it\n" + help);
  CHECK(problem("plumbline calibration, version 1\nseed 1\n") ==
        "p.partial:2:1: error: this is neither 'key: value' nor 'passes:'\n"
        "    2 | seed 1\n      | ^~~~~~\n" +
            help);
  const auto at_line_5 = [&](const std::string& line, const std::string& column,
                             const std::string& message, const std::string& caret) {
    CAPTURE(line);
    CHECK(problem(file_text(line + "\n")) == "p.partial:5:" + column + ": error: " + message +
                                                 "\n    5 | " + line + "\n      | " + caret + "\n" +
                                                 help);
  };
  at_line_5("x 0 F 1", "1", "'x' is no batch size", "^");
  at_line_5("0 0 F 1", "1", "'0' is no batch size", "^");
  at_line_5("8 -1 F 1", "3", "'-1' is no device", "  ^~");
  at_line_5("8 0 G 1", "5", "'G' is no kind of pass: F, B, I, W, U, A or T", "    ^");
  at_line_5("8 0 F", "6", "the times of the pass are missing", "     ^");
  at_line_5("8 0 F 1 2x", "9", "'2x' is no time in ns", "        ^~");
  at_line_5("8 0 F 99999999999999999999", "7", "'99999999999999999999' is no time in ns",
            "      ^~~~~~~~~~~~~~~~~~~~");
  at_line_5("round 8", "8", "'' is no time in ns", "       ^");
  CHECK(problem(file_text("8 0 F 1\nround 2 5\n")) ==
        "p.partial:6:7: error: a round of batch 2 ends passes of batch 8\n"
        "    6 | round 2 5\n      |       ^\n" +
            help);
}

TEST_CASE(
    "a kept calibration with any byte changed is an error or read, and never ends the reader") {
  const std::string text = file_text(calibration_round_text(round_of(8, 2'000'000'000)));
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {' ', '\n', '-', '9', 'F', ':', '\0', '\xff'}) {
      CAPTURE(at);
      std::string changed = text;
      changed[at] = c;
      const auto kept = parse(changed);
      if (!kept) {
        CHECK_FALSE(to_text(kept.problems()).empty());
        continue;
      }
      CHECK(kept->passes() <= 4);  // a line that is broken in two may be two passes
      CHECK(kept->sound_bytes <= changed.size());
    }
  }
}

TEST_CASE("a kept calibration of something else is refused with both values") {
  const auto kept = parse(file_text(""));
  REQUIRE(kept);
  CalibrationHead other = kHead;
  other[1].second = "2";
  auto refused = check_other_calibration(*kept, other);
  REQUIRE(refused);
  CHECK(to_text(*refused) ==
        "p.partial:3:7: error: this was measured with 'seed: 1', and now it is '2'\n"
        "    3 | seed: 1\n      |       ^\n"
        "  help: go on as it began, or delete the file and calibrate anew\n");
  other = kHead;
  other.emplace_back("tool", "new");
  refused = check_other_calibration(*kept, other);
  REQUIRE(refused);
  CHECK(refused->message == "here 'tool' is missing");
  other = {kHead[0]};
  refused = check_other_calibration(*kept, other);
  REQUIRE(refused);
  CHECK(refused->message == "'seed' is no key of a calibration");
}

TEST_CASE("a file of rounds is made, refused, gone on with behind its last whole line, removed") {
  const TemporaryFolder folder;
  const std::string path = folder["out.yaml.partial"];
  const KeptRound round = round_of(8, 10);
  const std::string text = file_text(calibration_round_text(round));
  {
    CalibrationFile file(folder["out.yaml"]);
    CHECK(file.path() == path);
    CHECK_FALSE(file.check_existing());
    CHECK_FALSE(file.holds_something());
    CHECK_FALSE(file.append(kHead, round));
    CHECK(read_text(path) == text);
    CHECK(file.holds_something());
  }
  std::ofstream(path, std::ios::app) << "8 0 F 1";
  {
    CalibrationFile file(folder["out.yaml"]);
    const auto refused = file.check_existing();
    REQUIRE(refused);
    CHECK(to_text(*refused) ==
          path +
              ": error: holds what an interrupted calibration has measured\n"
              "  help: go on with it by --resume, or delete it and calibrate anew\n");
    const auto kept = file.resume();
    REQUIRE(kept);
    REQUIRE(*kept);
    CHECK((*kept)->passes() == 3);
    CHECK((*kept)->cut_line == 9);
    CHECK(read_text(path) == text + "8 0 F 1");  // not changed yet
    CalibrationFile second(folder["out.yaml"]);
    const auto taken = second.resume();
    REQUIRE_FALSE(taken);
    CHECK(taken.problems().front().message == "another calibration is writing it");
    CHECK_FALSE(file.append(kHead, round));
    CHECK_FALSE(file.append(kHead, round));
    CHECK(read_text(path) ==
          text + "resumed\n" + calibration_round_text(round) + calibration_round_text(round));
    file.remove();
    CHECK_FALSE(std::filesystem::exists(path));
  }
  CalibrationFile file(folder["out.yaml"]);
  const auto nothing = file.resume();
  REQUIRE(nothing);
  CHECK_FALSE(*nothing);
}

TEST_CASE("a round that cannot be written whole leaves the file as it was") {
  const TemporaryFolder folder;
  const KeptRound round = round_of(8, 10);
  const std::string text = file_text(calibration_round_text(round));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto limit = [&](std::size_t bytes) {
    const rlimit now{bytes, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &now) == 0);
  };
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  CalibrationFile file(folder["out.yaml"]);
  limit(text.size() - 5);
  const auto none = file.append(kHead, round);
  limit(text.size() + 5);
  const auto first = file.append(kHead, round);
  const auto second = file.append(kHead, round);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(none);
  CHECK(to_text(*none) == file.path() +
                              ": error: cannot be written: File too large\n"
                              "  help: nothing is kept\n");
  CHECK(none->fault == Fault::file);
  CHECK_FALSE(first);
  REQUIRE(second);
  CHECK(to_text(*second) ==
        file.path() +
            ": error: cannot be written: File too large\n"
            "  help: what was measured before this round is kept: --resume goes on\n");
  CHECK(read_text(file.path()) == text);
  CHECK_FALSE(file.append(kHead, round));
  CHECK(read_text(file.path()) == text + calibration_round_text(round));
  CalibrationFile nowhere(folder["no/such/out.yaml"]);
  const auto missing = nowhere.append(kHead, round);
  REQUIRE(missing);
  CHECK(missing->message == "cannot be written: No such file or directory");
}

}  // namespace
}  // namespace plumbline::test
