// Ops that wait.
// SPDX-License-Identifier: MIT
#include "calibrate/synthetic.h"

#include <algorithm>
#include <cmath>

#include "models/random.h"

namespace plumbline {
namespace {

Duration true_time(const SyntheticOptions& options, std::uint32_t iteration, std::uint32_t node,
                   Duration predicted) {
  const double factor = synthetic_factor(options, iteration, node);
  return Duration{std::llround(static_cast<double>(predicted.count()) * factor)};
}

class SyntheticWorker : public Worker {
 public:
  SyntheticWorker(const OpGraph& graph, const SyntheticOptions& options)
      : graph_(graph), options_(options) {}

  void prepare() override { wake_exactly(); }

  Work run(const Task& task, const std::atomic<bool>& stop) override {
    const Duration length =
        true_time(options_, task.iteration, task.node, graph_.cost(task.node).hold);
    const RealTime deadline = task.begin + length.count();
    wait_until(deadline, stop);
    const RealTime end = now();
    return {end, end - deadline};
  }

  Duration least_time(std::uint32_t iteration, std::uint32_t node,
                      Duration predicted) const override {
    return true_time(options_, iteration, node, predicted);
  }

 private:
  const OpGraph& graph_;
  SyntheticOptions options_;
};

class SyntheticBackend : public Backend {
 public:
  explicit SyntheticBackend(const SyntheticOptions& options) : options_(options) {}

  std::string_view name() const override { return "synthetic"; }
  std::string device_text() const override { return "threads that wait for the modelled time"; }
  bool has_own_overheads() const override { return false; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    std::vector<std::unique_ptr<Worker>> workers;
    workers.reserve(plan.graph.slots());
    for (std::uint32_t slot = 0; slot < plan.graph.slots(); ++slot)
      workers.push_back(std::make_unique<SyntheticWorker>(plan.graph, options_));
    return workers;
  }

 private:
  SyntheticOptions options_;
};

}  // namespace

double synthetic_factor(const SyntheticOptions& options, std::uint32_t iteration,
                        std::uint32_t node) {
  const std::uint64_t place = std::uint64_t{iteration} << 32U | node;
  double factor = 1;
  if (options.spread > 0) {
    const double variance = std::log1p(options.spread * options.spread);
    factor = std::exp(std::sqrt(variance) * random_normal(options.seed, place) - variance / 2);
  }
  if (options.straggler_probability > 0 &&
      random_uniform(options.seed + 1, place) < options.straggler_probability) {
    factor *= options.straggler_factor;
  }
  return factor;
}

std::unique_ptr<Backend> synthetic_backend(const SyntheticOptions& options) {
  return std::make_unique<SyntheticBackend>(options);
}

}  // namespace plumbline
