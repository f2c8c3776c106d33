// A recorded run in the graph of a prediction: its own scenario fits, others are told why not.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/measured_run.h"

#include <doctest/doctest.h>

#include "calibrate/diagnosis/run_scenario.h"
#include "calibrate/runtime/validation.h"
#include "sim/setup/resolve_setup.h"
#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

TrainingSetup setup_of(const Scenario& scenario) {
  auto setup = resolve_setup(scenario);
  REQUIRE_MESSAGE(setup, (setup ? "" : to_text(setup.problems())));
  return *std::move(setup);
}

RealRun real_run_of(const Scenario& scenario, const RecordedRun& run) {
  auto real = measured_run(setup_of(scenario), run, costs_of(run));
  REQUIRE_MESSAGE(real, (real ? "" : to_text(real.problems())));
  return *std::move(real);
}

Diagnostic misfit_of(const MadeTraining& made, const RecordedRun& run) {
  const auto real = measured_run(setup_of(scenario_of_training(made)), run, costs_of(run));
  REQUIRE_FALSE(real);
  REQUIRE(real.problems().size() == 1);
  return real.problems().front();
}

std::string misfit_text(const MadeTraining& made, const RecordedRun& run) {
  return misfit_of(made, run).message;
}

Scenario own_scenario(const RecordedRun& run) {
  const auto texts = scenario_of(run, costs_of(run), {});
  REQUIRE(texts);
  auto scenario = read_back(*texts);
  REQUIRE(scenario);
  return *std::move(scenario);
}

TEST_CASE("a device does one op at a time, though its kernels overlapped") {
  auto recordings = recordings_of(MadeTraining{});
  for (RankRecording& recording : recordings) {  // every op lasts on into the ones behind it
    for (RecordedOp& op : recording.ops) op.work.end += 20 * op.work.length();
  }
  const RecordedRun run = run_of(recordings);
  const RealRun real = real_run_of(own_scenario(run), run);
  for (const DeviceMetrics& device : real.outcome.metrics.devices) {
    CHECK(device.idle >= Duration{});
    CHECK(device.idle == device.idle_by_cause.sum());
  }
}

TEST_CASE("ops, transfers and updates stand in the graph where they were recorded") {
  for (const MadeTraining& made : made_trainings()) {
    CAPTURE(made.schedule);
    const Outcome predicted = prediction_of(made);
    RecordingStyle style;
    style.pause = microseconds(9);
    const RealRun real =
        real_run_of(scenario_of_training(made), run_of(recordings_of(predicted, style)));
    const OpGraph& graph = real.outcome.graph;
    REQUIRE(graph.activities == predicted.graph.activities);
    REQUIRE(graph.flushes);
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const Activity& activity = graph.activities[node];
      CAPTURE(to_text(activity));
      if (activity.kind == ActivityKind::overhead) {
        CHECK(real.outcome.trace.spans[node].end == SimTime{made_period(predicted, style)});
        continue;
      }
      CHECK(real.outcome.trace.spans[node].begin == predicted.trace.spans[node].begin);
      CHECK(real.outcome.trace.spans[node].end == predicted.trace.spans[node].end);
    }
    CHECK(real.outcome.iteration_time_s == seconds(made_period(predicted, style)));
    CHECK(real.iterations.size() == 3);
    CHECK(real.clean == 3);
    CHECK_FALSE(real.knows_memory);
    CHECK(real.backend == "traces");
    CHECK(real.device == "kernels of GPUs");
  }
}

TEST_CASE("the iteration that is shown is the one in the middle") {
  auto recordings = recordings_of(MadeTraining{}, {.iterations = 6});
  // The iterations take longer and longer: each begins later by k x k microseconds.
  for (RankRecording& recording : recordings) {
    const auto late = [&](SimTime at) {
      std::int64_t k = -1;
      for (const RecordedStep& step : recording.steps) k += at >= step.span.begin ? 1 : 0;
      return microseconds(k * k);
    };
    const auto move = [](RecordedSpan& span, Duration by) {
      span.begin += by;
      span.end += by;
    };
    for (RecordedOp& op : recording.ops) {
      const Duration by = late(op.issued);
      move(op.work, by);
      op.issued += by;
    }
    for (RecordedTransfer& transfer : recording.transfers)
      move(transfer.span, late(transfer.span.end - microseconds(1)));
    for (RecordedUpdate& update : recording.updates) {
      const Duration by = late(update.issued);
      move(update.work, by);
      update.issued += by;
    }
    for (std::size_t k = 0; k < recording.steps.size(); ++k)
      move(recording.steps[k].span, microseconds(static_cast<std::int64_t>(k * k)));
  }
  const RecordedRun run = run_of(recordings);
  const double period_s = seconds(made_period(prediction_of({})));
  const RealRun real = real_run_of(scenario_of_training({}), run);
  REQUIRE(real.times_s.size() == 5);
  for (std::size_t k = 0; k < 5; ++k)
    CHECK(real.times_s[k] == close_to(period_s + static_cast<double>(2 * k + 1) * 1e-6));
  CHECK(real.shown == 2);
  CHECK(real.outcome.iteration_time_s == real.times_s[2]);
  CHECK(real.time_s.median == close_to(real.times_s[2]));
}

TEST_CASE("a run is the same as what its own scenario predicts") {
  for (const MadeTraining& made : made_trainings()) {
    CAPTURE(made.schedule);
    RecordingStyle style;
    style.iterations = 8;
    style.pause = microseconds(21);
    style.has_updates = false;  // in the scenario, the wait for a flush is part of them
    const RecordedRun run = run_of(made, style);
    const Scenario scenario = own_scenario(run);
    auto predicted = predict(scenario);
    REQUIRE(predicted);
    RealRun real = real_run_of(scenario, run);
    CHECK_FALSE(real.outcome.graph.flushes);
    CHECK(real.outcome.metrics.whole() == made_period(prediction_of(made), style));
    const Validation v = validate(*std::move(predicted), std::move(real), 0.05);
    CHECK(v.verdict == Verdict::same);
    CHECK(v.error == doctest::Approx(0).epsilon(1e-9));
    CHECK(v.starts.max_s == doctest::Approx(0));
    CHECK_FALSE(v.memory_verdict());
    CHECK(v.shares.compute_s == doctest::Approx(0));
    CHECK(v.shares.transfer_s == doctest::Approx(0));
    CHECK(v.shares.hand_over_s == doctest::Approx(0));
  }
}

TEST_CASE("a prediction with slower ops is off, because of them") {
  RecordingStyle style;
  style.iterations = 8;
  const RecordedRun run = run_of(MadeTraining{}, style);
  const Scenario slow =
      scenario_of_training({.forward = {130}, .backward_input = {150}, .backward_weight = {110}});
  auto predicted = predict(slow);
  REQUIRE(predicted);
  const double too_much_s = predicted->iteration_time_s - seconds(made_period(prediction_of({})));
  const Validation v = validate(*std::move(predicted), real_run_of(slow, run), 0.05);
  CHECK(v.verdict == Verdict::off);
  CHECK(v.shares.compute_s == close_to(too_much_s));
}

TEST_CASE("another number of stages, devices or micro-batches is an error") {
  const RecordedRun run = run_of(MadeTraining{});
  CHECK(misfit_text({.devices = 3}, run) == "the scenario has 3 stages, and the run had 2");
  CHECK(misfit_text({.schedule = "interleaved-1f1b", .devices = 1, .chunks = 2}, run) ==
        "the scenario has 1 device, and the run had 2");
  const Diagnostic micro_batches = misfit_of({.micro_batches = 6}, run);
  CHECK(micro_batches.message == "the scenario has 6 micro-batches, and the run had 4");
  CHECK(micro_batches.help == "schedule.micro_batches=4");
}

TEST_CASE("another order is an error that shows both") {
  const RecordedRun run = run_of(MadeTraining{});
  const Diagnostic told = misfit_of({.schedule = "gpipe"}, run);
  CHECK(
      told.message ==
      "the run had another order: op 2 of device 0 is 0F2 in the scenario and was 0B0 in the run");
  CHECK(told.help.find("writes a scenario with the run's own order") != std::string::npos);
  const std::size_t run_at = told.detail.find("in the run\n");
  REQUIRE(run_at != std::string::npos);
  CHECK(told.detail.find("in the scenario\n") == 0);
  CHECK(told.detail.find("device 0   | 0F0 0F1 0F2 0F3 0B0") < run_at);
  const std::size_t recorded = told.detail.find("device 0   | 0F0 0F1 0B0 0F2");
  CHECK_MESSAGE((recorded != std::string::npos && recorded > run_at), told.detail);
}

TEST_CASE("slices, replicas, mini-batches and runs without iterations are errors") {
  const RecordedRun run = run_of(MadeTraining{});
  CHECK(misfit_text({.schedule = "pipedream"}, run) ==
        "the run was recorded in iterations, and the schedule has none");
  const auto scenario_text = [](const char* plan, const char* schedule) {
    return fmt::format(
        "version: 1\nmodel: {{uniform: {{layers: 2, forward: 100 us, backward: 200 us}}, batch: "
        "1}}\ncluster: {{devices: 4}}\nplan: {{{}}}\nschedule: {{name: 1f1b, {}}}\n",
        plan, schedule);
  };
  const auto misfit_with = [&](const char* plan, const char* schedule) {
    const auto scenario = parse_scenario(text_source("s.yaml", scenario_text(plan, schedule)), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto real = measured_run(setup_of(*scenario), run, costs_of(run));
    REQUIRE_FALSE(real);
    return real.problems().front().message;
  };
  CHECK(misfit_with("stages: 2, replicas: [2, 2]", "micro_batches: 4") ==
        "a stage has replicas; a recorded run has whole copies");
  CHECK(misfit_with("stages: 2", "micro_batches: 4, mini_batches: 3") ==
        "schedule.mini_batches is 3; a recorded iteration is one");
  CHECK(misfit_with("stages: 2", "micro_batches: 4, slices: 2") ==
        "the schedule has slices, and the run has none");
}

TEST_CASE("what was not recorded takes no time") {
  // Two copies of the pipeline reduce their gradients in the prediction; of one that is recorded,
  // nothing tells when.
  const auto scenario = parse_scenario(
      text_source("copies.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 100 us, backward: 200 us, "
                  "parameters: 100 MB}, batch: 8}\ncluster: {devices: 4, link: {bandwidth: 10 "
                  "GB/s}}\nplan: {stages: 2, data_parallel: 2}\nschedule: {name: 1f1b, "
                  "micro_batches: 4}\n"),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  RecordingStyle style;
  style.has_updates = false;
  const RealRun real = real_run_of(*scenario, run_of(MadeTraining{}, style));
  std::size_t all_reduces = 0;
  for (std::uint32_t node = 0; node < real.outcome.graph.size(); ++node) {
    const Span& span = real.outcome.trace.spans[node];
    const ActivityKind kind = real.outcome.graph.activities[node].kind;
    if (is_collective(kind) || kind == ActivityKind::update) CHECK(span.begin == span.end);
    if (is_collective(kind)) ++all_reduces;
  }
  CHECK(all_reduces > 0);
  CHECK(real.outcome.iteration_time_s == seconds(made_period(prediction_of({}))));
}

}  // namespace
}  // namespace plumbline::test
