// The bubble of the textbook beside the simulated one.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bubble.h"

#include <doctest/doctest.h>

#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;

TEST_CASE(
    "4 stages and 16 micro-batches: 3/16 and 3/19 are the same idle time over two denominators") {
  const BubbleQuestion question{
      std::vector<Duration>(4, nanoseconds(10)), std::vector<Duration>(4, nanoseconds(20)), {}, 16};
  const auto answers = compare_bubbles(question);
  REQUIRE(answers.size() == 5);
  for (const std::size_t i : {1U, 2U, 3U}) {
    CHECK(answers[i].bubble_overhead == close_to(3.0 / 16));
    CHECK(answers[i].bubble_fraction == close_to(3.0 / 19));
    CHECK(answers[i].formula->bubble_fraction == close_to(3.0 / 19));
  }
  const std::string text = to_table(question, answers).print();
  for (const char* part : {"3/16  18.75 %", "3/19  15.79 %", "16/19  84.21 %"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("where the difference") == std::string::npos);
}

TEST_CASE(
    "the makespan is the sum of its three terms, and latency adds what the closed form says") {
  BubbleQuestion question{std::vector<Duration>(4, nanoseconds(10)),
                          std::vector<Duration>(4, nanoseconds(20)), nanoseconds(3), 8};
  for (const BubbleAnswer& a : compare_bubbles(question)) {
    CHECK(a.equal_and_free + a.by_uneven_stages + a.by_latency == a.makespan);
    CHECK(a.by_uneven_stages == Duration{});
  }
  const auto answers = compare_bubbles(question);
  CHECK(answers[1].by_latency == nanoseconds(2 * 3 * 3));            // gpipe: 2c(p-1)
  CHECK(answers[2].by_latency == nanoseconds(2 * 3 * (3 * 2 + 2)));  // 1f1b: 2c((p-1)m/p + p-2)
  question.latency = {};
  question.forward[2] = nanoseconds(30);
  for (const BubbleAnswer& a : compare_bubbles(question)) {
    CHECK(a.equal_and_free + a.by_uneven_stages == a.makespan);
    CHECK(a.by_latency == Duration{});
  }
  // 50 ns instead of the mean of 30, 30, 50 and 30.
  CHECK(to_table(question, compare_bubbles(question))
            .print()
            .ends_with("\n  stage 2 takes 42.9 % more than the mean\n"));
}

TEST_CASE("several questions are a row each: the formulas, and what is simulated") {
  std::vector<AnsweredBubble> rows;
  for (const std::uint32_t m : {4U, 8U}) {
    BubbleQuestion question;
    question.forward.assign(2, Duration{1'000'000});
    question.backward.assign(2, Duration{2'000'000});
    question.micro_batches = m;
    rows.push_back({question, compare_bubbles(question)});
  }
  const std::string text = to_table(rows).print();
  CAPTURE(text);
  // m = 4: 1/4 and 1/5 of the time; of naive half of it, of delayed-backward (m-1)(p-1)/((m-1)p+1).
  CHECK(text.find("  2                   4  25.00 %        20.00 %    80.00 %  50.00 %  20.00 %  "
                  "20.00 %     20.00 %           42.86 %\n") != std::string::npos);
  CHECK(text.find("  2                   8  12.50 %        11.11 %    88.89 %  50.00 %  11.11 %  "
                  "11.11 %     11.11 %           46.67 %\n") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
