// Where the time of devices went: it adds up exactly, and the engine says the same of each cause.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/idle_time.h"

#include <doctest/doctest.h>

#include "calibrate/diagnosis/critical_ops.h"
#include "calibrate/diagnosis/measured_run.h"
#include "calibrate/diagnosis/run_scenario.h"
#include "sim/engine/idle.h"
#include "sim/setup/resolve_setup.h"
#include "tests/calibrate/diagnosis/made_recordings.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using Transfers = RecordingStyle::Transfers;
constexpr Transfers kAllTransfers[] = {Transfers::none, Transfers::named, Transfers::by_peer,
                                       Transfers::received};

/// A time that is the same for each op of each iteration, below `most`.
Duration scattered(std::int64_t iteration, const Op& op, Duration most) {
  Dice dice(static_cast<std::uint64_t>(iteration * 7919 + op.stage.value * 613 +
                                       op.micro_batch.value * 31) +
            static_cast<std::uint64_t>(op.kind) * 3);
  for (int i = 0; i < 3; ++i) static_cast<void>(dice.roll(0, 9));
  return Duration{dice.roll(0, most.count())};
}

/// Ops that end earlier than predicted, each by another time: then there are stragglers, and times
/// in which all was there.
RecordingStyle scattered_style(Transfers transfers) {
  RecordingStyle style;
  style.iterations = 5;
  style.transfers = transfers;
  if (transfers == Transfers::received) style.clock = OpClock::work;
  style.pause = microseconds(13);
  style.earlier = [](std::int64_t iteration, const Op& op) {
    return scattered(iteration, op, microseconds(40));
  };
  return style;
}

RealRun measured_of(const RecordedRun& run, const RunCosts& costs) {
  const auto texts = scenario_of(run, costs, {});
  REQUIRE_MESSAGE(texts, (texts ? "" : to_text(texts.problems())));
  const auto scenario = read_back(*texts);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto setup = resolve_setup(*scenario);
  REQUIRE(setup);
  auto measured = measured_run(*std::move(setup), run, costs);
  REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
  return *std::move(measured);
}

/// The idle time of one device before its first op and between its ops, as the engine sees it. What
/// is before an op that needs nothing of another device is a dependency there; here it is not.
struct EngineIdle {
  Duration fill{}, dependency{}, transfer{}, between_ops{};
};

EngineIdle engine_idle(const OpGraph& graph, const Trace& trace, std::uint32_t slot) {
  const std::vector<std::uint32_t> nodes = nodes_by_slot(graph)[slot];
  SimTime last;  // the begin of the last op
  std::map<SimTime, std::uint32_t> begins;
  for (const std::uint32_t node : nodes) {
    if (!is_op(graph.activities[node].kind)) continue;
    last = trace.spans[node].begin;
    begins[last] = node;
  }
  const auto needs_nothing = [&](SimTime begin) {
    const auto node = begins.find(begin);
    return node != begins.end() && graph.nodes[node->second].input == graph.size();
  };
  SimTime end;
  for (const Span& span : trace.spans) end = std::max(end, span.end);
  EngineIdle idle;
  for (const IdleGap& gap : idle_gaps(graph, trace, nodes, end)) {
    if (gap.begin >= last) break;
    const Duration time = gap.end - gap.begin;
    if (gap.cause == IdleCause::fill) {
      idle.fill += time;
    } else if (gap.cause == IdleCause::transfer) {
      idle.transfer += time;
    } else if (gap.cause == IdleCause::overhead || needs_nothing(gap.end)) {
      idle.between_ops += time;
    } else {
      REQUIRE(gap.cause == IdleCause::dependency);
      idle.dependency += time;
    }
  }
  return idle;
}

void check_sums(const RecordedRun& run, const RunCosts& costs) {
  for (const RunIteration& iteration : run.iterations) {
    CAPTURE(iteration.number);
    const auto times = device_times(run, iteration, costs);
    REQUIRE(times.size() == run.devices.size());
    for (std::size_t d = 0; d < times.size(); ++d) {
      CAPTURE(d);
      CHECK(times[d].busy() + times[d].all_idle() == iteration.time());
      Duration ops{};
      for (const RunOp& op : iteration.ops[d]) ops += op.work.length();
      CHECK(times[d].ops == ops);
      for (std::size_t i = 0; i < kRunIdles; ++i) CHECK(times[d].idle[i] >= Duration{});
    }
    Duration chain{};
    for (const CriticalShare& share : critical_shares(run, iteration, costs)) {
      CHECK(share.time > Duration{});
      chain += share.time;
    }
    CHECK(chain == iteration.time());
  }
}

TEST_CASE("busy and idle time of each device, and the critical chain, are the iteration's time") {
  for (const Transfers transfers : kAllTransfers) {
    for (const MadeTraining& made : made_trainings()) {
      CAPTURE(made.schedule);
      CAPTURE(static_cast<int>(transfers));
      for (const bool is_scattered : {false, true}) {
        RecordingStyle style = scattered_style(transfers);
        if (!is_scattered) style.earlier = nullptr;
        const RecordedRun run = run_of(made, style);
        check_sums(run, costs_of(run));
      }
    }
  }
}

TEST_CASE("an iteration that begins before the last one ended on all devices adds up, too") {
  // Device 1 updates for as long as device 0 takes for its next forwards.
  MadeTraining made{.update = {10, 400}, .more = "training: {flush: none}\n"};
  const Outcome predicted = prediction_of(made);
  RecordingStyle style;
  style.transfers = Transfers::named;
  const RecordedRun run = run_of(recordings_of(predicted, style));
  REQUIRE(run.iterations.size() == 4);
  const RunIteration& one = run.iterations[1];
  REQUIRE(one.end > one.begin + one.time());
  check_sums(run, costs_of(run));
}

TEST_CASE("the engine's idle gaps in the measured run are the same, cause by cause") {
  for (const Transfers transfers : kAllTransfers) {
    for (const MadeTraining& made : made_trainings()) {
      CAPTURE(made.schedule);
      CAPTURE(static_cast<int>(transfers));
      const RecordedRun run = run_of(made, scattered_style(transfers));
      const RunCosts costs = costs_of(run);
      const RealRun measured = measured_of(run, costs);
      const auto timed = run.timed();
      REQUIRE(measured.iterations.size() == timed.size());
      CHECK(measured.outcome.trace == measured.iterations[measured.shown].trace);
      for (std::size_t k = 0; k < timed.size(); ++k) {
        const RunIteration& iteration = run.iterations[timed[k]];
        const auto times = device_times(run, iteration, costs);
        for (std::uint32_t d = 0; d < times.size(); ++d) {
          CAPTURE(d);
          const EngineIdle other =
              engine_idle(measured.outcome.graph, measured.iterations[k].trace, d);
          const DeviceTime& time = times[d];
          CHECK(time.of(RunIdle::fill) == other.fill);
          CHECK(time.of(RunIdle::dependency) + time.of(RunIdle::straggler) == other.dependency);
          CHECK(time.of(RunIdle::transfer) == other.transfer);
          const auto before_update = iteration.updates[d]->begin - iteration.ops[d].back().work.end;
          CHECK(time.of(RunIdle::host) == other.between_ops + before_update);
        }
      }
    }
  }
}

TEST_CASE("causes are told apart by hand") {
  // Two devices, one micro-batch: 0F0 0..100, 1F0 110..200, 1B0 205..300, 0B0 320..400.
  RecordedRun run;
  run.stages = 2;
  run.micro_batches = 1;
  run.clock = OpClock::kernels;
  run.devices.resize(2);
  run.devices[0].stages = {0};
  run.devices[1].stages = {1};
  run.devices_of_stages = {0, 1};
  run.collectives.resize(2);
  run.sends.resize(2);
  const auto at = [](std::int64_t us) { return SimTime{microseconds(us)}; };
  const auto op = [&](OpKind kind, std::uint32_t stage, std::int64_t begin, std::int64_t end) {
    return RunOp{{kind, {stage}, {0}}, {at(begin), at(end)}, microseconds(end - begin), false};
  };
  RunIteration iteration;
  iteration.ops = {{op(OpKind::forward, 0, 0, 100), op(OpKind::backward, 0, 320, 400)},
                   {op(OpKind::forward, 1, 110, 200), op(OpKind::backward, 1, 205, 300)}};
  iteration.updates = {RecordedSpan{at(410), at(430)}, RecordedSpan{at(300), at(310)}};
  iteration.begin = at(0);
  iteration.end = at(430);
  iteration.period = microseconds(450);
  const Op last{OpKind::backward, {0}, {0}};
  iteration.transfers[last] = {RecordedSpan{at(300), at(312)}, RecordedSpan{at(101), at(312)}, {}};
  iteration.transfers[{OpKind::forward, {1}, {0}}] = {
      RecordedSpan{at(100), at(104)}, RecordedSpan{at(0), at(104)}, {}};
  run.iterations = {iteration};
  run.lists = {{iteration.ops[0][0].op, last}, {iteration.ops[1][0].op, iteration.ops[1][1].op}};
  RunCosts costs = costs_of(run);
  costs.ops.at({1, OpKind::backward}).time =
      microseconds(80);  // so it took 15 us longer than usual
  const auto times = device_times(run, iteration, costs);
  const auto us = [](Duration time) { return time.count() / 1000; };
  const DeviceTime& first = times[0];
  CHECK(us(first.ops) == 180);
  CHECK(us(first.update) == 20);
  CHECK(us(first.of(RunIdle::fill)) == 0);
  CHECK(us(first.of(RunIdle::dependency)) == 185);
  CHECK(us(first.of(RunIdle::straggler)) == 15);
  CHECK(us(first.of(RunIdle::transfer)) == 12);
  CHECK(us(first.of(RunIdle::host)) == 8 + 10);  // before the op, and before the update
  CHECK(us(first.of(RunIdle::drain)) == 0);
  CHECK(us(first.of(RunIdle::between)) == 20);
  const DeviceTime& second = times[1];
  CHECK(us(second.ops) == 185);
  CHECK(us(second.update) == 10);
  CHECK(us(second.of(RunIdle::fill)) == 110);
  CHECK(us(second.of(RunIdle::host)) == 5);  // from its forward to its backward
  CHECK(us(second.of(RunIdle::drain)) == 120);
  CHECK(us(second.of(RunIdle::between)) == 20);

  std::map<std::string, std::int64_t> shares;
  for (const CriticalShare& share : critical_shares(run, iteration, costs))
    shares[share.what] = us(share.time);
  CHECK(shares == std::map<std::string, std::int64_t>{{"ops of device 0", 180},
                                                      {"ops of device 1", 185},
                                                      {"transfers", 4 + 12},
                                                      {"between ops", 6 + 5 + 8},
                                                      {"from the last op to the update", 10},
                                                      {"updates", 20},
                                                      {"between iterations", 20}});

  // All-reduces of gradients while the devices wait for their updates.
  run.collectives = {{{at(396), at(407)}}, {{at(302), at(500)}}};
  const auto reduced = device_times(run, iteration, costs);
  CHECK(us(reduced[0].of(RunIdle::collective)) == 7);
  CHECK(us(reduced[0].of(RunIdle::host)) == 8 + 3);
  CHECK(us(reduced[1].of(RunIdle::collective)) == 120);
  CHECK(us(reduced[1].of(RunIdle::drain)) == 0);
  for (const DeviceTime& time : reduced) CHECK(time.busy() + time.all_idle() == *iteration.period);

  // A send that ended while device 0 waited to update: the CPU had waited for it. Others, which
  // ended within ops or later, tell nothing.
  run.collectives = {{}, {}};
  run.sends = {{{at(110), at(390)}, {at(395), at(405)}, {at(400), at(900)}}, {}};
  const auto sent = device_times(run, iteration, costs);
  CHECK(us(sent[0].of(RunIdle::send)) == 5);
  CHECK(sent[0].of(RunIdle::send) + sent[0].of(RunIdle::host) ==
        reduced[0].of(RunIdle::collective) + reduced[0].of(RunIdle::host));
  for (const DeviceTime& time : sent) CHECK(time.busy() + time.all_idle() == *iteration.period);
}

TEST_CASE("what the mean says of a run is the mean over its timed iterations") {
  const RecordedRun run = run_of(MadeTraining{.devices = 3}, scattered_style(Transfers::by_peer));
  const RunCosts costs = costs_of(run);
  const auto means = mean_device_times(run, costs);
  REQUIRE(run.timed().size() == 4);
  for (std::size_t d = 0; d < means.size(); ++d) {
    DeviceTime sum;
    for (const std::size_t k : run.timed()) {
      const DeviceTime one = device_times(run, run.iterations[k], costs)[d];
      sum.ops += one.ops;
      sum.update += one.update;
      for (std::size_t i = 0; i < kRunIdles; ++i) sum.idle[i] += one.idle[i];
    }
    CHECK(means[d].ops == sum.ops / 4);
    CHECK(means[d].update == sum.update / 4);
    for (std::size_t i = 0; i < kRunIdles; ++i) CHECK(means[d].idle[i] == sum.idle[i] / 4);
    CHECK(means[d].of(RunIdle::straggler) > Duration{});
  }
}

TEST_CASE("the chain behind the last device is the longest one first") {
  const RecordedRun run = run_of(MadeTraining{.devices = 3}, scattered_style(Transfers::by_peer));
  const auto shares = critical_shares(run, run.iterations[0], costs_of(run));
  REQUIRE(shares.size() > 4);
  for (std::size_t i = 1; i < shares.size(); ++i) CHECK(shares[i].time <= shares[i - 1].time);
}

TEST_CASE("each cause has a name and a meaning of its own") {
  std::map<std::string_view, std::string_view> all;
  for (std::size_t i = 0; i < kRunIdles; ++i)
    all[name(static_cast<RunIdle>(i))] = meaning(static_cast<RunIdle>(i));
  CHECK(all.size() == kRunIdles);
  CHECK(all.at("straggler") == "the same, as its op took longer than usual");
  CHECK(all.at("between") == "until the next iteration begins");
}

}  // namespace
}  // namespace plumbline::test
