// Micro-batches in flight by order, against what is known of each schedule.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/in_flight.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tests/support/close_to.h"
#include "tests/support/stages.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;

std::vector<std::uint32_t> max(const std::string& schedule, std::uint32_t stages,
                               std::uint32_t micro_batches) {
  TestStages t = equal_stages(stages, nanoseconds(10), nanoseconds(20));
  t.schedule = schedule;
  t.micro_batches = micro_batches;
  return max_in_flight(schedule_of(t));
}

TEST_CASE("a stage has one micro-batch in flight, all, or as many as stages are left") {
  for (std::uint32_t p = 1; p <= 5; ++p) {
    for (const std::uint32_t m : {1U, 2U, 4U, 9U}) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(max("naive", p, m) == std::vector<std::uint32_t>(p, 1));
      CHECK(max("gpipe", p, m) == std::vector<std::uint32_t>(p, m));
      const auto one_f_one_b = max("1f1b", p, m);
      for (std::uint32_t s = 0; s < p; ++s) CHECK(one_f_one_b[s] == std::min(m, p - s));
    }
  }
}

TEST_CASE("where backwards are split a micro-batch is in flight until its W") {
  constexpr OpKind F = OpKind::forward;
  constexpr OpKind B = OpKind::backward;
  constexpr OpKind I = OpKind::backward_input;
  constexpr OpKind W = OpKind::backward_weight;
  Schedule schedule;
  schedule.shape.stage_slots = {{0}};
  schedule.shape.slots = 1;
  schedule.shape.micro_batches = 3;
  for (const auto& [kind, m] :
       {std::pair{F, 0U}, {F, 1U}, {I, 0U}, {I, 1U}, {F, 2U}, {W, 0U}, {I, 2U}, {W, 1U}, {W, 2U}})
    schedule.issue_order.push_back({kind, {0}, {m}});
  CHECK(max_in_flight(schedule) == std::vector<std::uint32_t>{3});
  schedule.issue_order.clear();
  for (const std::uint32_t m : {0U, 1U, 2U}) {
    for (const OpKind kind : {F, I, W}) schedule.issue_order.push_back({kind, {0}, {m}});
  }
  CHECK(max_in_flight(schedule) == std::vector<std::uint32_t>{1});
  // Some split, others not.
  schedule.issue_order.clear();
  for (const auto& [kind, m] :
       {std::pair{F, 0U}, {B, 0U}, {F, 1U}, {B, 1U}, {F, 2U}, {I, 2U}, {W, 2U}})
    schedule.issue_order.push_back({kind, {0}, {m}});
  CHECK(max_in_flight(schedule) == std::vector<std::uint32_t>{1});
}

TEST_CASE("replicas of a stage have micro-batches of their own") {
  TestStages t = equal_stages(2, nanoseconds(10), nanoseconds(20));
  t.schedule = "gpipe";
  t.replicas = {2, 1};
  t.micro_batches = 6;
  CHECK(max_in_flight(schedule_of(t)) == std::vector<std::uint32_t>{3, 6});
}

/// What a device holds at the begin of its ops: for each kind and stage, the micro-batches in
/// flight of every stage, each vector once.
using Holdings = std::map<std::pair<OpKind, std::uint32_t>, std::set<std::vector<std::uint32_t>>>;

Holdings holdings_of(const std::vector<Op>& list, std::uint32_t stages) {
  Holdings held;
  std::vector<std::uint32_t> now(stages, 0);
  for (const Op& op : list) {
    if (op.kind == OpKind::forward) ++now[op.stage.value];
    held[{op.kind, op.stage.value}].insert(now);
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) --now[op.stage.value];
  }
  return held;
}

/// Whether every vector of `some` is at most one of `all`, place by place.
bool is_within(const Holdings& some, const Holdings& all) {
  return std::all_of(some.begin(), some.end(), [&](const auto& one) {
    const auto of_all = all.find(one.first);
    return std::all_of(one.second.begin(), one.second.end(), [&](const auto& held) {
      return of_all != all.end() &&
             std::any_of(of_all->second.begin(), of_all->second.end(), [&](const auto& other) {
               return std::equal(held.begin(), held.end(), other.begin(), std::less_equal<>());
             });
    });
  });
}

TEST_CASE("with as many micro-batches as settle a device holds what it does with all of them") {
  const auto lists_of = [](const ScheduleRule& rule, std::uint32_t p, std::uint32_t v,
                           std::uint32_t m) {
    if (rule.chunks) return rule.chunks->lists({p, v, m, 0});
    TestStages t = equal_stages(p, nanoseconds(10), nanoseconds(20));
    t.schedule = rule.name;
    t.micro_batches = m;
    return schedule_of(t).lists();
  };
  std::set<std::string_view> settle;
  for (const ScheduleRule& rule : schedule_rules()) {
    CAPTURE(rule.name);
    const std::vector<std::uint32_t> chunk_counts =
        rule.chunks && rule.chunks->max_chunks > 2 ? std::vector{2U, 3U, 5U, 8U}
        : rule.chunks                              ? std::vector{rule.chunks->max_chunks}
                                                   : std::vector{1U};
    for (std::uint32_t p = 1; p <= (rule.whole_model ? 1U : 6U); ++p) {
      for (const std::uint32_t m : {3 * p, 4 * p + 1, 5 * p, 5 * p + 2, 8 * p, 11 * p}) {
        const std::uint32_t few = settled_micro_batches(rule, p, m);
        CHECK(few <= m);
        if (few == m) continue;
        settle.insert(rule.name);
        for (const std::uint32_t v : chunk_counts) {
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          const OpLists some = lists_of(rule, p, v, few);
          const OpLists all = lists_of(rule, p, v, m);
          for (std::uint32_t device = 0; device < p; ++device) {
            const Holdings by_few = holdings_of(some[device], p * v);
            const Holdings by_all = holdings_of(all[device], p * v);
            CHECK(is_within(by_few, by_all));
            CHECK(is_within(by_all, by_few));
          }
        }
      }
    }
  }
  for (const char* name : {"1f1b", "interleaved-1f1b", "naive", "data-parallel", "eager-1f1b"})
    CHECK(settle.contains(name));
  CHECK_FALSE(settle.contains("gpipe"));
  CHECK_FALSE(settle.contains("pipedream"));
}

TEST_CASE("what fewer in flight save grows with the neighbours at work") {
  const auto is = [](const std::vector<double>& factors, const std::vector<double>& wanted) {
    REQUIRE(factors.size() == wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(factors[k] == close_to(wanted[k]));
  };
  const KindFactors slowdown = {{"a", {0.5, 0.75, 1}}, {"b", {0.9, 1, 1}}};
  const KindFactors in_flight = {{"a", {0.8, 0.9, 0.95, 1}}, {"c", {0.7, 0.8, 0.9, 1}}};
  const KindFactors one = factors_in_flight(slowdown, in_flight, 1, 2);
  is(one.at("a"), {0.5, 0.75 * 0.9, 0.8});
  is(one.at("b"), {0.9, 1, 1});
  is(one.at("c"), {1, 0.85, 0.7});
  is(factors_in_flight(slowdown, in_flight, 3, 2).at("c"), {1, 0.95, 0.9});
  CHECK(factors_in_flight(slowdown, in_flight, 4, 2) == slowdown);
  CHECK(factors_in_flight(slowdown, in_flight, 9, 2) == slowdown);
  // On other numbers of devices than were measured: all that there are is all.
  const KindFactors of_one = {{"a", {0.8, 1}}};
  is(factors_in_flight({}, of_one, 1, 1).at("a"), {1, 0.8});
  is(factors_in_flight(slowdown, in_flight, 1, 1).at("a"), {0.5, 0.75 * 0.8, 0.8});
  is(factors_in_flight(slowdown, in_flight, 1, 4).at("a"), {0.5, 0.75 * 0.95, 0.9, 0.85, 0.8});
  // Who has no neighbours saves it always.
  is(factors_in_flight({}, of_one, 1, 0).at("a"), {0.8});
  is(factors_in_flight(slowdown, in_flight, 1, 0).at("a"), {0.5 * 0.8, 0.75 * 0.8, 0.8});
}

}  // namespace
}  // namespace plumbline::test
