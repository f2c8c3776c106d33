// How many iterations a run measures, and which of them are clean.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "tests/calibrate/runtime/synthetic_runs.h"

namespace plumbline::test {
namespace {

TEST_CASE("a run measures as many iterations as it is told, after its warm-up" *
          doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 2"));
  RunOptions options;
  options.warm_up = 2;
  options.iterations = 4;
  options.clean_below = 1e9;  // every iteration counts as clean
  std::uint32_t max_suggested = 0;
  options.progress = [&](std::uint32_t done, std::uint32_t max) {
    CHECK(done >= max_suggested);
    CHECK(done <= max);
    max_suggested = done;
    CHECK(max == 2 + 8);
  };
  CHECK(record_of(subject, {}, options).iterations.size() == 4);
  options.progress = nullptr;
  options.clean_below = -1;  // none does
  const RunRecord record = record_of(subject, {}, options);
  CHECK(record.iterations.size() == 8);
  for (const MeasuredIteration& iteration : record.iterations) CHECK(!iteration.clean);
  options.max_iterations = 3;
  CHECK(record_of(subject, {}, options).iterations.size() == 3);
}

/// Loses time, says so or not.
class LosingBackend : public Backend {
 public:
  std::string_view name() const override { return "losing"; }
  std::string device_text() const override { return "threads that lose time"; }
  bool has_own_overheads() const override { return false; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    class Losing : public Worker {
     public:
      Losing(std::unique_ptr<Worker> inner, bool loses) : inner_(std::move(inner)), loses_(loses) {}
      Work run(const Task& task, const std::atomic<bool>& stop) override {
        Work work = inner_->run(task, stop);
        if (loses_ && task.iteration == 1) work.lost = 50'000'000;
        return work;
      }
      Duration min_time(std::uint32_t iteration, std::uint32_t node,
                        Duration predicted) const override {
        return inner_->min_time(iteration, node, predicted);
      }

     private:
      std::unique_ptr<Worker> inner_;
      bool loses_;
    };
    auto workers = inner_->workers(plan);
    for (std::size_t slot = 0; slot < workers.size(); ++slot)
      workers[slot] = std::make_unique<Losing>(std::move(workers[slot]), slot == 1);
    return workers;
  }

 private:
  std::unique_ptr<Backend> inner_ = synthetic_backend({});
};

TEST_CASE("an iteration in which a device loses time is not clean" *
          doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 2"));
  LosingBackend backend;
  auto result = run(subject.plan(), backend, nodes_by_slot(subject.graph), few(2));
  const auto* record = std::get_if<RunRecord>(&result);
  REQUIRE(record);
  REQUIRE(record->iterations.size() == 2);
  const MeasuredIteration& second = record->iterations[1];
  CHECK(!second.clean);
  CHECK(second.lost >= std::chrono::milliseconds(4 * 49));  // four ops and an update, each 50 ms
}

}  // namespace
}  // namespace plumbline::test
