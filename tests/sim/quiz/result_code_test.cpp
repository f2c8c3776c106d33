// Codes: written, read, damaged.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/result_code.h"

#include <doctest/doctest.h>

#include <string>

#include "base/base64.h"

namespace plumbline::test {
namespace {

const StudentAnswers kGiven{"1234567",
                            {{"naive-share", {"75 %", 2}},
                             {"order-time", {"F0 F1 B0\nF0 B0 – ä", 1}},
                             {"fill-least", {"58", 0}}}};

TEST_CASE("bytes are read back from base64url, and no other text is read") {
  std::string bytes;
  for (int i = 0; i < 260; ++i) {
    CHECK(from_base64_url(base64_url(bytes)) == bytes);
    bytes += static_cast<char>(i * 37);
  }
  for (const char* text : {"A", "AB=", "AAAAA", "AB", "A+==", "a b"}) {
    CAPTURE(text);
    CHECK(!from_base64_url(text));
  }
}

TEST_CASE("a code is read back, however it was wrapped") {
  const auto code = code_of(kGiven);
  REQUIRE(code);
  CHECK(code->starts_with("PL1-"));
  std::string wrapped = "  \u201c";
  for (std::size_t i = 0; i < code->size(); ++i) {
    wrapped += (*code)[i];
    if (i % 20 == 19) wrapped += "\r\n  ";
  }
  wrapped += "\u201d\n";
  for (const std::string& text : {*code, '"' + *code + '"', wrapped}) {
    const auto read = read_code(text);
    REQUIRE(read);
    CHECK(*read == kGiven);
  }
  const auto empty = read_code(*code_of({"", {}}));
  REQUIRE(empty);
  CHECK(*empty == StudentAnswers{});
  CHECK(read_code(*code_of({" ABC ", {}}))->student == "abc");
}

TEST_CASE("a code with any character changed, lost or doubled is never read as other answers") {
  const std::string code = *code_of(kGiven);
  for (std::size_t i = 0; i < code.size(); ++i) {
    for (const char other : {'A', 'a', '0', 'f', '-', '_', '~', '+'}) {
      if (code[i] == other) continue;
      std::string damaged = code;
      damaged[i] = other;
      CAPTURE(damaged);
      CHECK(!read_code(damaged));
    }
    std::string shorter = code;
    shorter.erase(i, 1);
    CHECK(!read_code(shorter));
    std::string longer = code;
    longer.insert(i, 1, code[i]);
    CHECK(!read_code(longer));
    CHECK(!read_code(code.substr(0, i)));
    if (i + 1 < code.size() && code[i] != code[i + 1]) {
      std::string swapped = code;
      std::swap(swapped[i], swapped[i + 1]);
      CHECK(!read_code(swapped));
    }
  }
  CHECK(!read_code(code + code));
  CHECK(read_code(code.substr(0, code.size() - 1) + '~').problems().front().message ==
        "the code is damaged: the checksum does not fit");
  CHECK(read_code("hello").problems().front().message == "'hello' is no result code");
}

TEST_CASE("what no code may hold is refused when it is written") {
  CHECK(!code_of({"a b", {}}));
  CHECK(!code_of({"", {{"", {"1", 1}}}}));
  CHECK(!code_of({"", {{"x", {"1", -1}}}}));
  CHECK(!code_of({"", {{"x", {std::string(2001, 'x'), 1}}}}));
  CHECK(!code_of({"", {{"x", {"\xff", 1}}}}));
}

}  // namespace
}  // namespace plumbline::test
