// Ops that wait.
// SPDX-License-Identifier: MIT
#include "calibrate/synthetic.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

Duration true_time(const Noise& noise, std::uint32_t iteration, std::uint32_t node,
                   Duration predicted) {
  const double factor = noise_factor(noise, iteration, node);
  return Duration{std::llround(static_cast<double>(predicted.count()) * factor)};
}

class SyntheticWorker : public Worker {
 public:
  SyntheticWorker(const OpGraph& graph, const Noise& noise) : graph_(graph), noise_(noise) {}

  void prepare() override { wake_exactly(); }

  Work run(const Task& task, const std::atomic<bool>& stop) override {
    const Duration length =
        true_time(noise_, task.iteration, task.node, graph_.cost(task.node).hold);
    const RealTime deadline = task.begin + length.count();
    wait_until(deadline, stop);
    const RealTime end = now();
    return {end, end - deadline};
  }

  Duration least_time(std::uint32_t iteration, std::uint32_t node,
                      Duration predicted) const override {
    return true_time(noise_, iteration, node, predicted);
  }

 private:
  const OpGraph& graph_;
  Noise noise_;
};

class SyntheticBackend : public Backend {
 public:
  explicit SyntheticBackend(const Noise& noise) : noise_(noise) {}

  std::string_view name() const override { return "synthetic"; }
  std::string device_text() const override { return "threads that wait for the modelled time"; }
  bool has_own_overheads() const override { return false; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    std::vector<std::unique_ptr<Worker>> workers;
    workers.reserve(plan.graph.slots());
    for (std::uint32_t slot = 0; slot < plan.graph.slots(); ++slot)
      workers.push_back(std::make_unique<SyntheticWorker>(plan.graph, noise_));
    return workers;
  }

 private:
  Noise noise_;
};

}  // namespace

std::unique_ptr<Backend> synthetic_backend(const Noise& noise) {
  return std::make_unique<SyntheticBackend>(noise);
}

}  // namespace plumbline
