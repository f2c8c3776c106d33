// The goodput in closed form, against every interval, against an hour-by-hour model, and against
// sampled trainings.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/goodput.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/scenario.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// Jobs of all kinds: a failure every 3 to 3,000 iterations.
FailingJob random_job(std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  FailingJob job;
  job.iteration_s = uniform(0.5, 60);
  job.failures_per_s = 1 / (job.iteration_s * std::exp(uniform(1, 8)));
  job.pause_s = job.iteration_s * uniform(0, 5);
  job.write_s = uniform(0, 1) < 0.5 ? 0 : job.iteration_s * uniform(0, 20);
  job.restart_s = job.iteration_s * uniform(0, 30);
  return job;
}

/// An independent model: it goes from event to event, an iteration, a pause, a write or a restart
/// at a time.
SampledTraining slow_training(const TickingJob& job, std::int64_t iterations, std::int64_t work,
                              const std::function<std::int64_t()>& next_gap) {
  SampledTraining training;
  std::int64_t fails_at = next_gap();
  std::int64_t now = 0, done = 0, saved = 0;
  std::int64_t since_saved = 0;  // when the work began that the last written checkpoint lacks
  struct Write {
    std::int64_t at, holds;
  };
  std::vector<Write> writes;
  const auto written_by = [&](std::int64_t at) {
    for (const Write& write : writes) {
      if (write.at <= at) saved = write.holds, since_saved = write.at - job.write;
    }
    std::erase_if(writes, [&](const Write& write) { return write.at <= at; });
  };
  while (true) {
    const bool pauses =
        done > saved && done % iterations == 0 && (writes.empty() || writes.back().holds != done);
    const std::int64_t ends = now + (pauses ? job.pause : job.iteration);
    if (fails_at < ends) {
      now = fails_at;
      written_by(now);
      training.lost += now - since_saved;
      std::int64_t ready = now;
      do {
        ++training.failures;
        ready = fails_at + job.restart;
        fails_at += next_gap();
      } while (fails_at < ready);
      training.restarts += ready - now;
      now = since_saved = ready;
      done = saved;
      writes.clear();
      continue;
    }
    now = ends;
    if (pauses) {
      writes.push_back({now + job.write, done});
      if (job.write == 0) written_by(now);
    } else if (++done == work) {
      training.time = now;
      return training;
    }
    written_by(now);
  }
}

TEST_CASE("a training is what a model finds that goes from event to event, to the tick") {
  std::mt19937_64 random(7);
  std::int64_t failures = 0;
  for (int i = 0; i < 1000; ++i) {
    const FailingJob job = random_job(random);
    const TickingJob ticking = TickingJob::of(job);
    const std::int64_t iterations =
        least_iterations(job) + std::uniform_int_distribution<std::int64_t>(0, 30)(random);
    const auto work = std::uniform_int_distribution<std::int64_t>(1, 400)(random);
    // Failures no rarer than a hundredth of the training's way, so that it ends.
    const double mean =
        std::max(1 / job.failures_per_s, 3 * (static_cast<double>(iterations) * job.iteration_s +
                                              job.pause_s + job.write_s + job.restart_s)) *
        1e9;
    const std::uint64_t seed = random();
    const auto gaps = [&] {
      return [source = std::mt19937_64(seed), mean]() mutable {
        return std::llround(std::exponential_distribution<double>(1 / mean)(source));
      };
    };
    CAPTURE(i);
    const SampledTraining training = run_training(ticking, iterations, work, gaps());
    CHECK(training == slow_training(ticking, iterations, work, gaps()));
    failures += training.failures;
  }
  CHECK(failures > 2000);
}

TEST_CASE("by hand: what is written is kept, what is not is done again") {
  const TickingJob job{10, 3, 5, 7};  // two iterations and a pause: 23, written at 28
  const auto once = [](std::int64_t at) {
    return [at, first = true]() mutable { return std::exchange(first, false) ? at : 1'000'000; };
  };
  // Six iterations and two pauses. None is saved behind the last iteration.
  CHECK(run_training(job, 2, 6, once(66)) == SampledTraining{66, 0, 0, 0});
  CHECK(run_training(job, 2, 6, once(65)) == SampledTraining{65 + 7 + 20, 1, 65 - 46, 7});
  // The first checkpoint is written at 28.
  CHECK(run_training(job, 2, 6, once(28)) == SampledTraining{28 + 7 + 43, 1, 5, 7});
  CHECK(run_training(job, 2, 6, once(27)) == SampledTraining{27 + 7 + 66, 1, 27, 7});
}

TEST_CASE("a failure in a restart begins it anew") {
  const TickingJob job{10, 0, 0, 7};
  const auto gaps = [](std::vector<std::int64_t> all) {
    return [all = std::move(all), next = std::size_t{0}]() mutable { return all[next++]; };
  };
  CHECK(run_training(job, 1, 2, gaps({15, 6, 7, 1000})) ==
        SampledTraining{15 + 6 + 7 + 7 + 10, 3, 5, 20});
}

TEST_CASE("the formula is Daly's expected time, and the shares are all of the time") {
  // Equation 13 of Daly 2006: M e^(R / M) (e^((t + d) / M) - 1) T / t.
  const FailingJob job{10, 1.0 / 3600, 30, 0, 600};
  const double t = 420, d = 30, r = 600, mean = 3600;
  CHECK(goodput_fraction(job, 42) ==
        doctest::Approx(t / (mean * std::exp(r / mean) * std::expm1((t + d) / mean))));
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const FailingJob any = random_job(random);
    const Goodput goodput = goodput_of(any, least_iterations(any) + i);
    CHECK(goodput.fraction + goodput.checkpoint_fraction + goodput.lost_fraction +
              goodput.restart_fraction ==
          doctest::Approx(1));
    CHECK(goodput.lost_fraction >= 0);
  }
}

TEST_CASE("the best interval is the best of all, and near those of Young and Daly") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    const FailingJob job = random_job(random);
    const auto best_from = [&](std::int64_t least) {
      std::int64_t best = least;
      for (std::int64_t k = best; k < best + 5000; ++k) {
        if (goodput_fraction(job, k) > goodput_fraction(job, best)) best = k;
      }
      return goodput_fraction(job, best);
    };
    CAPTURE(i);
    CHECK(goodput_fraction(job, best_iterations(job)) ==
          doctest::Approx(best_from(1)).epsilon(1e-12));
    const Goodput allowed = goodput_of(job, std::nullopt);
    CHECK(allowed.fraction == doctest::Approx(best_from(least_iterations(job))).epsilon(1e-12));
    CHECK(allowed.is_best);
    CHECK(allowed.waits_for_write == (best_iterations(job) < least_iterations(job)));
  }
  const FailingJob rare{1, 1.0 / 86'400, 20, 0, 300};
  const double interval = goodput_of(rare, std::nullopt).interval_s();
  CHECK(interval == doctest::Approx(daly_interval_s(rare)).epsilon(0.001));
  CHECK(young_interval_s(rare) == doctest::Approx(std::sqrt(2.0 * 20 * 86'400)));
  CHECK(interval == doctest::Approx(young_interval_s(rare)).epsilon(0.01));
}

TEST_CASE("a checkpoint is written before the next begins") {
  const FailingJob job{10, 1.0 / 3600, 5, 65, 60};
  CHECK(least_iterations(job) == 7);
  const Goodput wanted = goodput_of(job, 3);
  CHECK(wanted.iterations == 7);
  CHECK(wanted.waits_for_write);
  CHECK_FALSE(goodput_of(job, 7).waits_for_write);
  // Without a pause the best is to save whenever the last one is written.
  CHECK(goodput_of({10, 1.0 / 3600, 0, 65, 60}, std::nullopt).iterations == 7);
  CHECK(goodput_of({10, 1.0 / 3600, 0, 0, 60}, std::nullopt).iterations == 1);
}

TEST_CASE("sampled trainings take the expected time, and the least of it at the best interval") {
  for (const FailingJob job :
       {FailingJob{10, 1.0 / 7200, 30, 0, 600}, FailingJob{10, 1.0 / 7200, 30, 400, 600},
        FailingJob{30, 1.0 / 1800, 20, 0, 300}}) {
    const auto days = [&](std::int64_t iterations) {
      const auto sampled = sample_goodput(goodput_of(job, iterations), 200'000, 60, 5);
      REQUIRE(sampled);
      return std::accumulate(sampled->days.begin(), sampled->days.end(), 0.0) /
             static_cast<double>(sampled->days.size());
    };
    const std::int64_t best = best_iterations(job);
    const double expected = 200'000 * job.iteration_s / goodput_fraction(job, best) / kSecondsOfDay;
    // Sixty trainings with hundreds of failures each: the error of their mean is below 0.3 %.
    CHECK(days(best) == doctest::Approx(expected).epsilon(0.005));
    CHECK(days(best) < days(std::max(least_iterations(job), best / 3)));
    CHECK(days(best) < days(3 * best));
  }
}

TEST_CASE("trainings without an end are not sampled, and as many as can be") {
  const FailingJob job{10, 1.0 / 3600, 30, 0, 60};
  const auto sampled = [](const FailingJob& one, std::int64_t work, std::uint32_t samples) {
    return sample_goodput(goodput_of(one, std::nullopt), work, samples, 1);
  };
  CHECK_FALSE(sampled(job, 1'000'000'000'000, 10));        // longer than a century
  CHECK_FALSE(sampled({10, 10, 30, 0, 60}, 1000, 10));     // it never ends
  CHECK_FALSE(sampled({10, 1e-9, 30, 0, 1e9}, 1000, 10));  // a restart of decades
  CHECK_FALSE(sampled(job, 1000, 0));
  CHECK(sampled(job, 1000, 10)->days.size() == 10);
  CHECK(sampled({1, 1.0 / 100, 1, 0, 1}, 20'000'000, 1000)->days.size() < 1000);
  // The longest quantities: nothing overflows.
  const auto rare = sampled({1e6, 1e-15, 2e6, 1e6, 1e6}, 100, 2);
  REQUIRE(rare);
  CHECK(rare->at(1) == doctest::Approx(100 * 1e6 / kSecondsOfDay));
  // A year between failures, four without one for each checkpoint: some of 200 trainings of some
  // 70 years on average take more than 250.
  const FailingJob lasting{21, 1.0 / (365 * 86'400), 20, 180, 600};
  CHECK_FALSE(sample_goodput(goodput_of(lasting, 6'930'000), 6'930'000, 200, 2));
}

TEST_CASE("a training is not longer than its only interval") {
  const FailingJob job{10, 1.0 / 3600, 30, 0, 60};
  const Goodput goodput = goodput_of(job, 1000, 5);
  CHECK(goodput.iterations == 5);
  CHECK(goodput.fraction == goodput_fraction(job, 5));
  CHECK(goodput_of(job, std::nullopt, 1'000'000).iterations == best_iterations(job));
  const auto sampled = sample_goodput(goodput, 5, 1000, 1);
  REQUIRE(sampled);
  const double mean = std::accumulate(sampled->days.begin(), sampled->days.end(), 0.0) / 1000;
  // The formula has a pause behind it, which such a training has not.
  CHECK(mean == doctest::Approx((50 / goodput.fraction - 30) / kSecondsOfDay).epsilon(0.03));
}

Outcome predicted(const std::string& goodput, const std::string& training = "",
                  const std::string& model = "parameters: 1 GiB") {
  const auto scenario =
      parse_scenario(text_source("s.yaml",
                                 "version: 1\n"
                                 "model: {uniform: {layers: 4, forward: 1 s, backward: 2 s, " +
                                     model +
                                     "}, batch: 1}\n"
                                     "cluster: {devices: 8, price: 2 EUR/h}\n"
                                     "plan: {stages: 4, data_parallel: 2}\n"
                                     "schedule: {name: 1f1b, micro_batches: 4}\n"
                                     "training: {optimizer_state: 2, sequence: 100" +
                                     training + "}\ngoodput: {" + goodput + "}\n"),
                     {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict_resolved(*scenario);
  REQUIRE(outcome);
  return *std::move(outcome);
}

TEST_CASE("a scenario's keys reach the goodput, and it reaches days and cost") {
  // Iterations of (4 + 4 - 1) x 3 s.
  const Outcome outcome = predicted(
      "device_mtbf: 80 h, restart: 10 min, checkpoint: {pause: 1 GiB/s, write: 0.5 GiB/s}",
      ", tokens: 80M");
  const auto goodput = outcome.goodput();
  REQUIRE(goodput);
  CHECK(goodput->job.iteration_s == doctest::Approx(21));
  CHECK(goodput->job.failures_per_s == doctest::Approx(1.0 / 36'000));  // of eight devices
  CHECK(goodput->job.pause_s == doctest::Approx(3));  // weights, and twice as much state
  CHECK(goodput->job.write_s == doctest::Approx(6));
  CHECK(goodput->job.restart_s == doctest::Approx(600));
  CHECK(goodput->is_best);
  const Bill bill = outcome.bill();
  CHECK(*bill.goodput == goodput->fraction);
  CHECK(*bill.days == doctest::Approx(80e6 / (800 / 21.0) / 86'400 / goodput->fraction));
  CHECK(*bill.cost == doctest::Approx(*bill.days * 24 * 8 * 2));
  const auto sampled = outcome.sampled_goodput();
  REQUIRE(sampled);
  CHECK(sampled->work == 100'000);
  CHECK(sampled->at(0.5) == doctest::Approx(*bill.days).epsilon(0.005));
  CHECK(sampled->days.size() == 1000);
}

TEST_CASE("each device saves its share of what copies share, and no room for what is gathered") {
  const auto bytes = [](const std::string& training) {
    return predicted("job_mtbf: 2 d, restart: 0 s, checkpoint: {pause: 1 GB/s}", training)
        .checkpoint_bytes();
  };
  const std::int64_t gib = std::int64_t{1} << 30;
  CHECK(bytes("").count == 3 * gib);                       // 1 of weights, 2 of state
  CHECK(bytes(", zero_stage: 1").count == 2 * gib);        // of two copies, half of the state
  CHECK(bytes(", zero_stage: 3").count == gib / 2 + gib);  // and half of the weights
}

TEST_CASE("a bandwidth without bytes is told, and a training without an end has no days") {
  const Outcome outcome = predicted("job_mtbf: 1 s, restart: 1 s, checkpoint: {pause: 1 GB/s}",
                                    ", tokens: 1M", "parameters: 0 B");
  const auto& notes = outcome.setup.notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("checkpoints take no time");
  }));
  CHECK(*outcome.bill().goodput < kLeastGoodput);
  CHECK_FALSE(outcome.bill().days);
  CHECK_FALSE(outcome.sampled_goodput());
}

TEST_CASE("an interval is whole iterations; a job's own failures do not grow with its devices") {
  const auto goodput = [](const std::string& every) {
    return *predicted("job_mtbf: 2 d, restart: 0 s, checkpoint: {pause: 5 s" + every + "}")
                .goodput();
  };
  CHECK(goodput("").job.failures_per_s == doctest::Approx(1.0 / 172'800));
  CHECK(goodput(", interval: 30 s").iterations == 1);
  CHECK(goodput(", interval: 1 s").iterations == 1);
  CHECK(goodput(", interval: 35 min").iterations == 100);
  CHECK(goodput(", iterations: 17").iterations == 17);
  CHECK_FALSE(goodput(", iterations: 17").is_best);
  CHECK(goodput(", interval: best").is_best);
  // A training of ten iterations is not longer than its interval.
  const auto brief = predicted(
      "job_mtbf: 2 d, restart: 0 s, checkpoint: {pause: 5 s, iterations: 1000}", ", tokens: 8k");
  CHECK(brief.iterations_in_all() == 10);
  CHECK(brief.goodput()->iterations == 10);
  CHECK_FALSE(predicted("job_mtbf: 2 d, restart: 0 s, checkpoint: {pause: 5 s}")
                  .sampled_goodput());  // no tokens
}

}  // namespace
}  // namespace plumbline::test
