// Other schedules for the same stages: the results are those of the scenario with their name.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/other_orders.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

struct Asked {
  Outcome outcome;
  std::vector<OtherOrder> orders;

  const OtherOrder& of(const std::string& schedule) const {
    const auto found = std::find_if(orders.begin(), orders.end(), [&](const OtherOrder& order) {
      return order.schedule == schedule;
    });
    REQUIRE(found != orders.end());
    return *found;
  }
  std::string text() const { return other_orders_text(outcome, orders); }
};

Asked asked(const std::string& example, const std::vector<std::string>& overrides = {}) {
  const auto scenario = read_scenario("examples/" + example + ".yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto settled = resolve_plan(*scenario);
  REQUIRE(settled);
  auto outcome = predict(*settled);
  REQUIRE(outcome);
  std::vector<OtherOrder> orders = other_orders(*settled, overrides, *outcome);
  return {*std::move(outcome), std::move(orders)};
}

const std::vector<std::string> kSplit = {
    "model={layers: [{name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: "
    "1 MiB}, {name: b, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MiB}, "
    "{name: c, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MiB}, {name: "
    "d, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MiB}]}"};

TEST_CASE("each takes what a run of the scenario with its name takes, best first") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"four-stages", {}},
      {"four-stages", {"schedule.name=gpipe", "cluster.link={latency: 200 us}"}},
      {"four-stages", kSplit},
      {"slow-link", {}},
      {"sharded-optimizer", {}},
      {"uneven-stages", {}},
      {"pipedream-async", {}},
      {"four-stages",
       {"schedule.name=zb-v", "plan.stages=8",
        "model.uniform={layers: 8, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}"}},
  };
  for (const auto& [its_example, overrides] : cases) {
    const auto& example = its_example;
    CAPTURE(example);
    const Asked all = asked(example, overrides);
    double before = 0;
    std::size_t ran = 0;
    for (const OtherOrder& order : all.orders) {
      CAPTURE(order.schedule);
      CHECK(order.iteration_time_s.has_value() == order.why_not.empty());
      if (!order.iteration_time_s) continue;
      CHECK(ran++ == static_cast<std::size_t>(&order - all.orders.data()));
      CHECK(*order.iteration_time_s >= before);
      before = *order.iteration_time_s;
      std::vector<std::string> named = overrides;
      std::erase_if(named,
                    [](const std::string& one) { return one.starts_with("schedule.name="); });
      named.push_back("schedule.name=" + order.schedule);
      const Outcome other = predict_example(example, named);
      CHECK(other.iteration_time_s == *order.iteration_time_s);
      CHECK(other.setup.partition.stages.size() == order.stages);
      CHECK((other.setup.split.halved > 0) == order.assumes_split);
      CHECK(other.fits() == order.fits);
    }
    CHECK(ran > 0);
  }
}

TEST_CASE("where the order is what costs, those that are faster are named, with what they need") {
  const Asked all = asked("four-stages", kSplit);
  // 8 x 3 + 3 x 3 ms; (p-1)(f+i-w) instead of the last; (p-1)f.
  CHECK(all.outcome.iteration_time_s == doctest::Approx(0.033).epsilon(1e-12));
  CHECK(*all.of("zb-h1").iteration_time_s == doctest::Approx(0.027).epsilon(1e-12));
  CHECK(*all.of("zb-h2").iteration_time_s == doctest::Approx(0.027).epsilon(1e-12));
  CHECK(all.text().find("  under zb-h1 the same costs take 27 ms (18.2 % less)") !=
        std::string::npos);
  const Asked late = asked("slow-link");
  CHECK(late.text().find("  under eager-1f1b the same costs take ") != std::string::npos);
  const Asked naive = asked("four-stages", {"schedule.name=naive"});
  CHECK(*naive.of("1f1b").iteration_time_s == doctest::Approx(0.033).epsilon(1e-12));
  CHECK(naive.of("1f1b").peak_memory == Bytes{228 << 20});
}

TEST_CASE("that none of those which fit is faster is said, and which do not fit") {
  // 8 x 3 ms and (p/2-1)(f+b+b-3w): nothing named is faster, where each device has one stage.
  CHECK(asked("four-stages", {"schedule.name=dualpipe"})
            .text()
            .starts_with("\nother schedules on the same devices\n"
                         "  none of those that can be tried here is faster; the nearest:\n"
                         "  under zb-v the same costs take 25.5 ms (2.0 % more), with 8 stages "
                         "instead of 4, and a peak memory of 268 MiB instead of 408 MiB; its "
                         "backwards are halved, which is assumed\n"));
  const std::string four = asked("four-stages").text();
  CHECK(four.find("  under interleaved-zb the same costs take 25.5 ms (22.7 % less), with 8 stages "
                  "instead of 4") != std::string::npos);
  CHECK(four.find("  and 7 more that are faster\n") != std::string::npos);
  CHECK(asked("four-stages", {"model.uniform.forward=0 ms", "model.uniform.backward=0 ms"})
            .text()
            .empty());
  const std::string tight = asked("four-stages", {"cluster.memory=310 MiB"}).text();
  CHECK(tight.find("under gpipe") == std::string::npos);
  CHECK(tight.find("  too little memory for dualpipe, zb-h2, looped-bfs, chimera, gpipe\n") !=
        std::string::npos);
  const Asked naive = asked("four-stages", {"schedule.name=naive", "cluster.memory=240 MiB"});
  CHECK(naive.of("gpipe").is_too_large());
  CHECK(naive.text().find("under gpipe") == std::string::npos);
  CHECK(naive.text().find("under 1f1b") != std::string::npos);
}

TEST_CASE(
    "schedules that place stages otherwise, or update otherwise, are left out with the reason") {
  const Asked straight = asked("four-stages");
  CHECK(straight.of("data-parallel").why_not == "it places stages otherwise");
  CHECK(straight.of("interleaved-1f1b").stages == 8);
  CHECK(straight.of("chimera").stages == 4);
  CHECK(straight.of("pipedream").why_not == "it updates after every backward");
  CHECK(asked("pipedream-async").of("gpipe").why_not.empty());
  const Asked looped = asked("interleaved");  // an order from a file
  CHECK(looped.of("interleaved-1f1b").iteration_time_s == looped.outcome.iteration_time_s);
  CHECK(looped.of("looped-bfs").iteration_time_s.has_value());
  CHECK(looped.of("1f1b").stages == 4);
  CHECK(asked("planned").of("interleaved-1f1b").why_not ==
        "a planned partition does not go with the schedule 'interleaved-1f1b'");
  CHECK(asked("data-parallel").orders.empty());
  CHECK(asked("data-parallel").text().empty());
}

TEST_CASE("keys that were written for the order that is replaced give way") {
  const std::vector<std::string> times = {"model.uniform.layers=16"};
  const auto with = [&](std::vector<std::string> keys) {
    keys.insert(keys.end(), times.begin(), times.end());
    return asked("four-stages", keys);
  };
  const double zb = *with({}).of("zb-h1").iteration_time_s;
  CHECK(*with({"plan.warm_up=[4, 3, 2, 1]"}).of("zb-h1").iteration_time_s == zb);
  const Asked looped = with({"schedule.name=interleaved-1f1b", "schedule.chunks=4",
                             "schedule.group=8", "schedule.micro_batches=8"});
  CHECK(*looped.of("zb-h1").iteration_time_s == zb);
  CHECK(looped.of("zb-v").stages == 8);
  CHECK(looped.of("looped-bfs").stages == 16);
}

TEST_CASE("as many layers are recomputed under each schedule, and a plan is kept") {
  const Asked fitted = asked("fewest-recomputed");
  const std::vector<std::string> fixed = {
      "schedule.recompute_layers=[" +
          fmt::format("{}", fmt::join(fitted.outcome.setup.recomputed, ", ")) + "]",
      "schedule.name=eager-1f1b"};
  CHECK(*fitted.of("eager-1f1b").iteration_time_s ==
        predict_example("fewest-recomputed", fixed).iteration_time_s);
  const Asked planned = asked("planned");
  for (const OtherOrder& order : planned.orders) {
    if (order.iteration_time_s) CHECK(*order.iteration_time_s > 0);
  }
}

}  // namespace
}  // namespace plumbline::test
