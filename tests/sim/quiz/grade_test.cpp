// Codes and files of codes, graded.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/grade.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/quiz/quiz_json.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const StudentAnswers kSome{"1234567",
                           {{"naive-share", {"80 %", 2}},
                            {"fill-least", {"40", 5}},
                            {"balance", {"many", 1}},
                            {"gone", {"1", 1}}}};

const GradedAnswer& graded(const Grade& grade, const std::string& id) {
  for (const GradedAnswer& one : grade.answers) {
    if (one.question == id) return one;
  }
  FAIL("no answer to " << id);
  return grade.answers.front();
}

TEST_CASE("answers are checked anew, and every question is in the grade") {
  const auto grade = grade_of(kSome);
  REQUIRE(grade);
  CHECK(grade->right() == 1);
  CHECK(grade->answers.size() == questions_for("")->size());
  CHECK(graded(*grade, "naive-share").state == AnswerState::right);
  CHECK(graded(*grade, "naive-share").tries == 2);
  CHECK(graded(*grade, "fill-least").state == AnswerState::wrong);
  CHECK(graded(*grade, "fill-least").said.starts_with("With 40 micro-batches the bubble is"));
  CHECK(graded(*grade, "balance").state == AnswerState::unreadable);
  CHECK(graded(*grade, "steps").state == AnswerState::missing);
  CHECK(grade->unknown == std::vector<std::string>{"gone"});
}

TEST_CASE("all keys of a student make a full grade") {
  const auto questions = questions_for("x-1");
  REQUIRE(questions);
  StudentAnswers answers{"x-1", {}};
  for (const Question& one : *questions) answers.answers[one.id] = {answer_of(one).answer, 1};
  const auto read = read_code(*code_of(answers));
  REQUIRE(read);
  CHECK(grade_of(*read)->right() == questions->size());
}

TEST_CASE("a file has a code in each line, names before it, and maybe a header") {
  const std::string code = *code_of(kSome);
  Diagnostics problems;
  std::vector<std::string> notes;
  const auto grades = grade_file(
      text_source("codes.csv", "Name,Group,Code,Note\n\"Lovelace, Ada\",2," + code + ",late\n\n" +
                                   code + "\nBoole,1," + code + "0\nCantor,1,\n"),
      problems, notes);
  REQUIRE(grades.size() == 2);
  CHECK(grades[0].name == "Lovelace, Ada, 2");
  CHECK(grades[0].right() == 1);
  CHECK(grades[1].name.empty());
  CHECK(notes == std::vector<std::string>{"line 1 has no code, and counts as a header",
                                          "line 4 is a further code of student number '1234567'"});
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].mark.line == 5);
  CHECK(problems[0].message.starts_with("the code is damaged"));
  CHECK(problems[1].mark.line == 6);
  CHECK(problems[1].message == "there is no result code here");
}

TEST_CASE("a file may have semicolons or tabs; nothing in it is dropped in silence") {
  const std::string code = *code_of(kSome);
  const auto graded = [](const std::string& text, Diagnostics& problems) {
    std::vector<std::string> notes;
    return grade_file(text_source("codes.csv", text), problems, notes);
  };
  for (const char* const separator : {";", "\t", ","}) {
    Diagnostics problems;
    const std::string row = "\"Ada\"" + std::string(separator) + "\"" + code + "\"\r\n";
    const auto grades = graded("Name" + std::string(separator) + "Code\r\n" + row, problems);
    CAPTURE(separator);
    CHECK(problems.empty());
    REQUIRE(grades.size() == 1);
    CHECK(grades[0].name == "Ada");
  }
  Diagnostics problems;
  const auto commented = graded("#7 Ada," + code + "\n", problems);
  REQUIRE(commented.size() == 1);
  CHECK(commented[0].name == "#7 Ada");
  CHECK(graded("", problems).empty());
  CHECK(graded("Name,Code\n", problems).empty());
  CHECK(graded("Ada," + code + "," + code + "\n", problems).empty());
  REQUIRE(problems.size() == 3);
  CHECK(problems[0].message == "there is no result code in this file");
  CHECK(problems[1].message == "there is no result code in this file");
  CHECK(problems[2].message == "there are two result codes in one line");
}

TEST_CASE("grades are JSON") {
  const std::string json = grades_json({*grade_of(kSome)}, "0");
  CHECK(json.find(R"("student": "1234567",)") != json.npos);
  CHECK(json.find(R"("state": "unreadable",)") != json.npos);
}

}  // namespace
}  // namespace plumbline::test
