// Ops that wait.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/synthetic.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "sim/engine/neighbours.h"

namespace plumbline {
namespace {

/// The ends of ops whose devices slow each other down.
class Crowd {
 public:
  explicit Crowd(const OpGraph& graph)
      : graph_(graph),
        ops_(ops_of_parts(graph)),
        neighbours_(graph),
        ends_(graph.slots()),
        versions_(graph.slots()) {}

  /// The op of a node: itself, or the op that it is a part of. All parts vary alike.
  std::uint32_t op_of(std::uint32_t node) const { return ops_[node]; }

  bool concerns(std::uint32_t node) const { return neighbours_.concern(node); }

  /// Executes an op that takes `work` when it is not slowed down. Returns its end, which depends on
  /// its neighbours.
  RealTime run(std::uint32_t node, Duration work, RealTime begin, const std::atomic<bool>& stop) {
    const std::uint32_t slot = graph_.nodes[node].resource;
    {
      const std::lock_guard lock(mutex_);
      tell(neighbours_.start(node, work, SimTime{Duration{begin}}));
    }
    while (!stop.load(std::memory_order_relaxed)) {
      const RealTime end = ends_[slot].load(std::memory_order_acquire);
      if (now() < end) {
        wait_until(std::min(end, now() + kLook), stop);
        continue;
      }
      const std::lock_guard lock(mutex_);
      const RealTime due = ends_[slot].load(std::memory_order_relaxed);
      if (due > now()) continue;  // a neighbour began at the last moment
      if (neighbours_.end(node, versions_[slot], SimTime{Duration{due}}))
        tell(neighbours_.changes());
      return due;
    }
    return now();
  }

 private:
  /// Ends move both ways, so nobody sleeps longer than this.
  static constexpr RealTime kLook = 200'000;

  void tell(const std::vector<Neighbours::Change>& changes) {
    for (const Neighbours::Change& change : changes) {
      const std::uint32_t slot = graph_.nodes[change.activity].resource;
      versions_[slot] = change.version;
      ends_[slot].store(change.end.time_since_epoch().count(), std::memory_order_release);
    }
  }

  const OpGraph& graph_;
  std::mutex mutex_;  ///< Guards everything but reading `ends_`.
  std::vector<std::uint32_t> ops_;
  Neighbours neighbours_;
  std::vector<std::atomic<RealTime>> ends_;  ///< The end of the op on each slot.
  std::vector<std::uint32_t> versions_;
};

class SyntheticWorker : public Worker {
 public:
  SyntheticWorker(const OpGraph& graph, const Noise& noise, std::shared_ptr<Crowd> crowd)
      : graph_(graph), noise_(noise), crowd_(std::move(crowd)) {}

  void prepare() override { wake_exactly(); }

  Work run(const Task& task, const std::atomic<bool>& stop) override {
    const Duration length = true_time(task.iteration, task.node, graph_.cost(task.node).hold);
    if (crowd_->concerns(task.node)) {
      const RealTime due = crowd_->run(task.node, length, task.begin, stop);
      const RealTime end = now();
      return {end, end - due};
    }
    const RealTime deadline = task.begin + length.count();
    wait_until(deadline, stop);
    const RealTime end = now();
    return {end, end - deadline};
  }

  Duration min_time(std::uint32_t iteration, std::uint32_t node,
                    Duration predicted) const override {
    const Duration length = true_time(iteration, node, predicted);
    return crowd_->concerns(node) ? length / 2 : length;
  }

 private:
  Duration true_time(std::uint32_t iteration, std::uint32_t node, Duration predicted) const {
    const double factor = noise_factor(noise_, iteration, crowd_->op_of(node));
    return Duration{std::llround(static_cast<double>(predicted.count()) * factor)};
  }

  const OpGraph& graph_;
  Noise noise_;
  std::shared_ptr<Crowd> crowd_;
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
    const auto crowd = std::make_shared<Crowd>(plan.graph);
    has_busy_links_ = plan.graph.beside_work.size() > 1;
    has_overlap_ = plan.graph.overlap.any();
    for (std::uint32_t slot = 0; slot < plan.graph.slots(); ++slot)
      workers.push_back(std::make_unique<SyntheticWorker>(plan.graph, noise_, crowd));
    return workers;
  }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> remarks;
    if (has_busy_links_)
      remarks.emplace_back(
          "what other devices' work adds to transfers is predicted and not waited for: they take "
          "their time at rest");
    if (has_overlap_)
      remarks.emplace_back(
          "what transfers and collectives add to ops (cluster.overlap_slowdown) is predicted and "
          "not waited for: ops take their time at rest");
    return remarks;
  }

 private:
  Noise noise_;
  bool has_busy_links_ = false;  ///< In the last plan.
  bool has_overlap_ = false;     ///< In the last plan.
};

}  // namespace

std::unique_ptr<Backend> synthetic_backend(const Noise& noise) {
  return std::make_unique<SyntheticBackend>(noise);
}

}  // namespace plumbline
