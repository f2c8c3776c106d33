// The questions: their keys, wrong answers, and the formulas beside them.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/quiz.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "sim/quiz/answer_text.h"
#include "sim/quiz/quiz_json.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using Values = std::map<std::string, std::string>;

Values values_of(const Question& question) {
  return {question.values.begin(), question.values.end()};
}
std::int64_t whole(const Values& values, const char* name) { return std::stoll(values.at(name)); }

Question course(const std::string& id) {
  auto question = question_for("", id);
  REQUIRE(question);
  return *std::move(question);
}

CheckedAnswer checked(const Question& question, const std::string& answer) {
  const auto result = check_answer(question, answer);
  REQUIRE_MESSAGE(result, question.id << ": " << answer);
  return *result;
}

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

/// The answer by a formula, or "" where there is none. `values` are those of the question.
std::string by_formula(const std::string& id, const Values& values) {
  const auto p = [&] { return whole(values, "p"); };
  const auto m = [&] { return whole(values, "m"); };
  if (id == "naive-share")
    return fmt::format("{:.1f}", 100.0 * static_cast<double>(p() - 1) / static_cast<double>(p()));
  if (id == "naive-devices")
    return values.at("fraction").substr(values.at("fraction").find('/') + 1);
  if (id == "fill-least") {  // (p-1)/(m+p-1) < x/100
    const std::int64_t limit = whole(values, "limit");
    return std::to_string((p() - 1) * (100 - limit) / limit + 1);
  }
  if (id == "fill-share")
    return percent(static_cast<double>(p() - 1) / static_cast<double>(m() + p() - 1));
  if (id == "one-bubble") return "same";
  if (id == "in-flight") return std::to_string(std::min(m(), p() - whole(values, "gpu")));
  if (id == "loop-index") return "B0";
  if (id == "loop-order") {
    std::string loop;
    for (std::int64_t i = 0; i < m(); ++i)
      loop += i == 0 ? "F0 " : fmt::format("F{} B{} ", i, i - 1);
    return loop + fmt::format("B{}", m() - 1);
  }
  if (id == "fixed-cost") return fmt::format("{}", std::stod(values.at("work")) / 16);
  if (id == "ranks")
    return fmt::format("{} {}", whole(values, "rank"),
                       whole(values, "rank") + whole(values, "copies"));
  if (id == "steps") return std::to_string(2 * m());
  if (id == "versions") return std::to_string(p() - whole(values, "gpu"));
  if (id == "two-versions") return "2";
  if (id == "twice-weights") return "dualpipe";
  if (id == "zero-bubble") return std::to_string(2 * (p() - 1));
  return "";
}

/// An answer that is wrong, other than the right one in one respect.
std::string wrong_answer(const Question& question, const std::string& key) {
  if (question.kind == QuestionKind::choice) {
    for (const QuizChoice& one : question.choices) {
      if (one.id != key) return one.id;
    }
  }
  if (question.kind == QuestionKind::number)
    return fmt::format("{}", std::stod(key) * (question.id == "fixed-cost" ? 1.03 : 1) +
                                 (question.id == "fixed-cost" ? 0 : 1));
  if (question.kind == QuestionKind::order) {  // one micro-batch after the other
    std::string line;
    for (std::int64_t i = 0; i < whole(values_of(question), "m"); ++i)
      line += fmt::format("F{0} B{0} ", i);
    return line + ";" + line;
  }
  if (question.id == "ranks") return key.substr(2) + " " + key.substr(0, 1);
  if (question.id == "balance") {
    const std::int64_t layers = whole(values_of(question), "layers");
    return fmt::format("{} 1 1", layers - 2);
  }
  return key + " B9";
}

/// The times of the slowest stage in ms, forward only: the least of all cuts, and with all layers
/// but two in the first stage.
struct Balance {
  std::int64_t least = 0;
  std::int64_t front_heavy = 0;
};
Balance balance_of(const Question& question) {
  const Values values = values_of(question);
  const auto times =
      *numbers_in_answer(values.at("times"), static_cast<std::size_t>(whole(values, "layers")));
  const auto sum = [&](std::size_t from, std::size_t to) {
    return std::accumulate(times.begin() + static_cast<std::ptrdiff_t>(from),
                           times.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{0});
  };
  Balance balance{sum(0, times.size()), 0};
  for (std::size_t a = 1; a + 1 < times.size(); ++a) {
    for (std::size_t b = a + 1; b < times.size(); ++b) {
      balance.front_heavy = std::max({sum(0, a), sum(a, b), sum(b, times.size())});
      balance.least = std::min(balance.least, balance.front_heavy);
    }
  }
  return balance;  // the last cut is the front-heavy one
}

TEST_CASE("every student's keys are right, and other answers are wrong" *
          doctest::test_suite("slow")) {
  std::map<std::string, std::set<std::string>> texts;
  for (std::uint64_t student = 0; student <= trials(200); ++student) {
    const auto questions = questions_for(student == 0 ? "" : std::to_string(4'700'000 + student));
    REQUIRE(questions);
    for (const Question& question : *questions) {
      CAPTURE(student);
      CAPTURE(question.text);
      texts[question.id].insert(question.text);
      const QuizKey key = answer_of(question);
      CAPTURE(key.answer);
      const CheckedAnswer right = checked(question, key.answer);
      CHECK(right.right);
      CHECK(right.said == key.said);
      const std::string formula = by_formula(question.id, values_of(question));
      if (!formula.empty()) CHECK(checked(question, formula).right);
      const std::string other = wrong_answer(question, key.answer);
      CAPTURE(other);
      const CheckedAnswer wrong = checked(question, other);
      if (question.id == "balance") {
        const Balance balance = balance_of(question);
        CHECK(key.said.find(fmt::format("takes {} ms", 3 * balance.least)) != key.said.npos);
        CHECK(wrong.right == (balance.front_heavy == balance.least));
      } else {
        CHECK(!wrong.right);
      }
      CHECK(!wrong.said.empty());
      for (const auto& run : {right.shown, wrong.shown, question.run}) {
        if (run) CHECK(try_quiz_run(*run));
      }
    }
  }
  for (const auto& one : texts) {
    CAPTURE(one.first);
    CHECK(one.second.size() >= 3);
  }
}

TEST_CASE("the course's own figures have the course's answers") {
  const std::map<std::string, std::string> known = {{"naive-share", "75.0"},
                                                    {"naive-devices", "5"},
                                                    {"fill-least", "58"},
                                                    {"fill-share", "15.79"},
                                                    {"one-bubble", "same"},
                                                    {"in-flight", "2"},
                                                    {"loop-order", "F0 F1 B0 F2 B1 F3 B2 B3"},
                                                    {"loop-index", "B0"},
                                                    {"fixed-cost", "1.500"},
                                                    {"ranks", "1 3"},
                                                    {"steps", "8"},
                                                    {"versions", "4"},
                                                    {"two-versions", "2"},
                                                    {"latency-choice", "gpipe"},
                                                    {"zero-bubble", "6"},
                                                    {"twice-weights", "dualpipe"}};
  for (const auto& [id, answer] : known) CHECK(answer_of(course(id)).answer == answer);
  CHECK(course("order-time").text.find("at most 15 ms") != std::string::npos);
}

TEST_CASE("a student number is the same in either case, and others are refused") {
  const auto one = questions_for(" Ab-1_2.x ");
  const auto two = questions_for("aB-1_2.X");
  REQUIRE(one);
  REQUIRE(two);
  for (std::size_t i = 0; i < one->size(); ++i) CHECK((*one)[i].text == (*two)[i].text);
  for (const char* student : {"a b", "ä", "a/b", "123456789012345678901234567890123"}) {
    CAPTURE(student);
    CHECK(!questions_for(student));
  }
}

TEST_CASE("figures are these on every machine") {
  CHECK(question_for("1234567", "fill-least")->values ==
        std::vector<std::pair<std::string, std::string>>{{"p", "7"}, {"limit", "12"}});
}

TEST_CASE("a wrong answer is told what the engine got for it") {
  const CheckedAnswer few = checked(course("fill-least"), "40");
  CHECK(!few.right);
  CHECK(few.said == "With 40 micro-batches the bubble is 6.98 %, which is not below 5 %.");
  REQUIRE(few.shown);
  CHECK(few.shown->settings == std::vector<std::string>{"schedule.micro_batches=40"});
  CHECK(checked(course("fill-least"), "59").said ==
        "With 59 micro-batches the bubble is 4.84 %, which is below 5 %. With 58 micro-batches the "
        "bubble is 4.92 %, which is below 5 %.");
  CHECK(checked(course("fill-least"), "57").said ==
        "With 57 micro-batches the bubble is 5.00 %, which is not below 5 %.");
  CHECK(
      checked(course("fill-share"), "18.75").said ==
      "The GPUs are idle for 15.79 % of their time. 18.75 % is the idle time per busy time (bubble "
      "overhead), the answer to another question.");
}

TEST_CASE("orders that hang, or miss an op, or have one twice are wrong, and the engine says why") {
  const Question question = course("order-time");
  const auto said = [&](const std::string& order) {
    const CheckedAnswer answer = checked(question, order);
    CHECK(!answer.right);
    REQUIRE(answer.shown);
    CHECK(answer.shown->files.size() == 1);
    return answer.said;
  };
  CHECK(checked(question, "F0 F1 B0 F2 B1 F3 B2 B3 | F0 B0 F1 B1 F2 B2 F3 B3").right);
  CHECK(
      checked(question, "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3; 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3").right);
  CHECK(said("F0 B0 F1 B1 F2 B2 F3 B3; F0 B0 F1 B1 F2 B2 F3 B3") ==
        "This order takes 24 ms, which is more than 15 ms.");
  CHECK(said("F0 B0 F1 B1 F2 B2 F3 B3; F1 B1 F0 B0 F2 B2 F3 B3") ==
        "This order does not run: the schedule deadlocks: device 0, position 1: 0B0 waits for 1B0, "
        "which never runs.");
  CHECK(said("F0 F1 F2 B0 B1 B2; F0 F1 F2 B0 B1 B2") ==
        "This order does not run: schedule.micro_batches is 4, but schedule.file has 3.");
  CHECK(said("F0 F1 F2 F3 B0 B1 B2; F0 F1 F2 F3 B0 B1 B2 B3") ==
        "This order does not run: device 0, position 7: 0B3 is missing.");
  // Stage 0 on both GPUs would be two copies of a shorter pipeline.
  CHECK(!checked(question, "0F0 0F1 0B0 0B1 ; 0F2 0F3 0B2 0B3").right);
  CHECK(said("F0 F0 F1 F2 F3 B0 B1 B2 B3; F0 F1 F2 F3 B0 B1 B2 B3") ==
        "This order does not run: device 0, position 1: 0F0 stands here a second time.");
}

TEST_CASE("an answer that cannot be read is an error, not a wrong answer") {
  struct Unreadable {
    const char* id;
    const char* answer;
  };
  for (const auto& one : {Unreadable{"naive-share", "abc"}, Unreadable{"fill-share", ""},
                          Unreadable{"naive-devices", "4.5"}, Unreadable{"one-bubble", "perhaps"},
                          Unreadable{"order-time", "F0 B0"}, Unreadable{"loop-order", "F0 X"},
                          Unreadable{"balance", "1 2"}, Unreadable{"fill-least", "0"},
                          Unreadable{"loop-order", "0F0 0F1"}, Unreadable{"loop-index", "0B0"}}) {
    CAPTURE(one.id);
    CHECK(!check_answer(course(one.id), one.answer));
  }
  CHECK(check_answer(course("naive-share"), "0.75").problems().front().help ==
        "write it in percent");
  CHECK(check_answer(course("balance"), "2 2 3").problems().front().message ==
        "the three numbers add up to 7, but there are 6 layers");
}

TEST_CASE("an answer that is checked has room in a code") {
  const std::string longest = "75." + std::string(kLongestAnswer - 3, '0');
  CHECK(checked(course("naive-share"), longest).right);
  CHECK(code_of({"", {{"naive-share", {longest, 1}}}}));
  CHECK(!check_answer(course("naive-share"), longest + "0"));
  CHECK(!code_of({"", {{"naive-share", {longest + "0", 1}}}}));
}

TEST_CASE("an unknown question is an error with the known ones") {
  CHECK(question_for("", "fill-lest").problems().front().help == "did you mean 'fill-least'?");
}

TEST_CASE("questions and answers are JSON, even where an answer is no UTF-8") {
  const Question question = course("one-bubble");
  CHECK(question_json(question).starts_with(
      R"({"id":"one-bubble","page":3,"kind":"choice","unit":"","text":")"));
  CHECK(checked_json({false, "\xff", std::nullopt}) ==
        "{\"right\":false,\"said\":\"\xEF\xBF\xBD\",\"shown\":null}");
}

}  // namespace
}  // namespace plumbline::test
