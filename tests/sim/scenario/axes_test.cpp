// Overrides with several values each.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/axes.h"

#include <doctest/doctest.h>

namespace plumbline::test {
namespace {

using Combinations = std::vector<std::vector<std::string>>;

Combinations of(const std::vector<std::string>& arguments) {
  auto result = combinations(arguments);
  REQUIRE(result);
  return *result;
}

std::string message_of(const std::vector<std::string>& arguments) {
  const auto result = combinations(arguments);
  REQUIRE_FALSE(result);
  return result.problems().front().message;
}

TEST_CASE("no arguments are one combination without overrides") {
  CHECK(of({}) == Combinations{{}});
}

TEST_CASE("all combinations, the last argument varying fastest") {
  CHECK(of({"a=1,2", "b=x,y"}) ==
        Combinations{{"a=1", "b=x"}, {"a=1", "b=y"}, {"a=2", "b=x"}, {"a=2", "b=y"}});
  CHECK(of({"a=1, 2 ,3"}) == Combinations{{"a=1"}, {"a=2"}, {"a=3"}});
}

TEST_CASE("commas in brackets, braces and quotes part no values") {
  CHECK(of({"plan.partition=[1,3],[2,2]"}) ==
        Combinations{{"plan.partition=[1,3]"}, {"plan.partition=[2,2]"}});
  CHECK(of({"cluster.link={latency: 1 us, bandwidth: 1 GB/s},{latency: 2 us}"}).size() == 2);
  CHECK(of({"name=\"a,b\",'c,d'"}).size() == 2);
}

TEST_CASE("a range holds the numbers up to its end, and stands beside others") {
  CHECK(of({"m=range(4,13,4)"}) == Combinations{{"m=4"}, {"m=8"}, {"m=12"}});
  CHECK(of({"m=range(4,12,4)"}) == Combinations{{"m=4"}, {"m=8"}});
  CHECK(of({"m=1,range(2,4),8"}) == Combinations{{"m=1"}, {"m=2"}, {"m=3"}, {"m=8"}});
}

TEST_CASE("what is no axis is left to its reader") {
  CHECK(of({"nonsense"}) == Combinations{{"nonsense"}});
  CHECK(of({"key="}) == Combinations{{"key="}});
}

TEST_CASE("wrong axes are told") {
  CHECK(message_of({"m=1,,2"}) == "'m=1,,2' has an empty value between its commas");
  CHECK(message_of({"m=1", "m=2"}) == "'m' stands twice");
  CHECK(message_of({"m=range(4,4)"}) == "range(4,4) holds nothing");
  CHECK(message_of({"m=range(1,9,0)"}) == "range(1,9,0) holds nothing");
  CHECK(message_of({"m=range(1)"}) == "a range of 1 numbers");
  CHECK(message_of({"m=range(a,4)"}) == "'a' in a range is no whole number");
  CHECK(message_of({"a=range(0,9999)", "b=range(0,9999)"}) ==
        "the values make 99980001 combinations, more than 10000000");
}

}  // namespace
}  // namespace plumbline::test
