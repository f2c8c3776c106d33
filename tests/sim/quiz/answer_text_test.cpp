// Answers as people type them.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/answer_text.h"

#include <doctest/doctest.h>

namespace plumbline::test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("numbers are read with a point or a comma, with or without their unit") {
  for (const char* text : {"18.75", "18,75", " 18.75 % ", "18,75%", "18.750"}) {
    CAPTURE(text);
    const auto number = number_in_answer(text, "%");
    REQUIRE(number);
    CHECK(*number == 18.75);
  }
  for (const char* text : {"1.5", "1,5 ms", "1500 us", "0.0015 s", "1.5ms"}) {
    CAPTURE(text);
    const auto number = number_in_answer(text, "ms");
    REQUIRE(number);
    CHECK(*number == doctest::Approx(1.5));
  }
  CHECK(*whole_in_answer("58 micro-batches", "micro-batches", 1, 100) == 58);
  CHECK(*whole_in_answer("5 gpus", "GPUs", 1, 100) == 5);
  CHECK(*whole_in_answer("1 GPU", "GPUs", 1, 100) == 1);
  CHECK(*whole_in_answer("1 micro-batch", "micro-batches", 1, 100) == 1);
  CHECK(*number_in_answer("75\u00a0%", "%") == 75);
  CHECK(*number_in_answer("75 percent", "%") == 75);
  for (const char* text : {"abc", "%", "1 GB", "-3", "1.2,3", "nan", "inf"}) {
    CAPTURE(text);
    CHECK(!number_in_answer(text, "%"));
  }
  CHECK(number_in_answer("abc", "%").problems().front().message == "'abc' is no number");
  CHECK(number_in_answer("1e309", "%").problems().front().message != "'1e309' is no number");
  CHECK(!whole_in_answer("3.5", "GPUs", 1, 100));
  CHECK(!whole_in_answer("0", "GPUs", 1, 100));
  CHECK(!whole_in_answer("101", "GPUs", 1, 100));
}

TEST_CASE("lists of numbers are read in any punctuation") {
  for (const char* text : {"2 3 1", "2,3,1", "[2, 3, 1]", "(2; 3; 1)\n", "2, 3 and 1 layers"}) {
    CAPTURE(text);
    const auto numbers = numbers_in_answer(text, 3);
    REQUIRE(numbers);
    CHECK(*numbers == std::vector<std::int64_t>{2, 3, 1});
  }
  for (const char* text : {"2 3", "2 3 1 1", "", "two 3 1", "2 3 1.5"}) {
    CAPTURE(text);
    CHECK(!numbers_in_answer(text, 3));
  }
}

TEST_CASE("ops are read with blanks, commas or brackets, in either case") {
  for (const char* text : {"F0 F1 B0", "F0,F1,B0", "f0, f1, b0", "F 0 F 1 B 0", "F(0) F(1) B(0)",
                           "['F0', 'F1', 'B0']"}) {
    CAPTURE(text);
    const auto ops = ops_in_answer(text);
    REQUIRE(ops);
    CHECK(*ops == Words{"F0", "F1", "B0"});
  }
  CHECK(*ops_in_answer("0F0 1B12") == Words{"0F0", "1B12"});
  for (const char* text : {"", "F", "F0 X1", "G0", "12", "F1234567"}) {
    CAPTURE(text);
    CHECK(!ops_in_answer(text));
  }
  CHECK(ops_in_answer("F0 X1").problems().front().message == "'X1' is no op");
}

TEST_CASE("an order has a line for each GPU") {
  for (const char* text : {"F0 B0\nF0 B0\n", "F0 B0; F0 B0", "F0 B0 | F0 B0",
                           "GPU 0: F0 B0\r\n\nGPU 1: F0 B0", "F00 B0; F0 B00"}) {
    CAPTURE(text);
    const auto order = order_in_answer(text, 2);
    REQUIRE(order);
    CHECK(*order == std::vector<Words>{{"F0", "B0"}, {"F0", "B0"}});
  }
  CHECK(*order_in_answer("GPU 1: F1 B1\nrank 0: F0 B0", 2) ==
        std::vector<Words>{{"F0", "B0"}, {"F1", "B1"}});
  for (const char* text : {"GPU 7: F0 B0\nGPU 1: F0 B0", "F0: F1 B0\nF0 B0", "0: F0\n0: B0"}) {
    CAPTURE(text);
    CHECK(!order_in_answer(text, 2));
  }
  CHECK(!order_in_answer("F0 B0", 2));
  CHECK(!order_in_answer("F0\nF0\nB0", 2));
}

TEST_CASE("a choice is its id or its text") {
  const std::vector<QuizChoice> choices = {{"same", "the same"}, {"larger", "larger"}};
  CHECK(*choice_in_answer(" The Same ", choices) == "same");
  CHECK(*choice_in_answer("LARGER", choices) == "larger");
  CHECK(choice_in_answer("less", choices).problems().front().help == "one of same, larger");
}

}  // namespace
}  // namespace plumbline::test
