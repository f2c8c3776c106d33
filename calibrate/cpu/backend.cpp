// The CPU backend: a core for each device of a run, and a check of the scenarios that it can run.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/bug.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/run_store.h"
#include "calibrate/cpu/stage_on_device.h"
#include "calibrate/runtime/machine.h"
#include "calibrate/runtime/refused_training.h"
#include "calibrate/runtime/thread_core.h"

namespace plumbline {
namespace {

class CpuWorker : public Worker {
 public:
  CpuWorker(std::shared_ptr<RunStore> store, std::uint32_t slot)
      : store_(std::move(store)), slot_(slot) {}

  void prepare() override {
    use_one_thread();
    pin_to_core(slot_, store_->plan().graph.slots());
    const OpGraph& graph = store_->plan().graph;
    stages_.resize(graph.stage_slots.size());
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      const auto& slots = graph.stage_slots[s];
      if (std::find(slots.begin(), slots.end(), slot_) != slots.end())
        stages_[s] = std::make_unique<StageOnDevice>(*store_, s, slot_);
    }
  }

  Work run(const Task& task, const std::atomic<bool>&) override {
    const Activity& activity = store_->plan().graph.activities[task.node];
    const RealTime cpu_before = thread_cpu_time();
    stages_[activity.stage.value]->run(task, activity.kind, activity.micro_batch.value);
    const RealTime cpu = thread_cpu_time() - cpu_before;
    const RealTime end = now();
    return {end, end - task.begin - cpu};
  }

 private:
  std::shared_ptr<RunStore> store_;
  std::uint32_t slot_;
  std::vector<std::unique_ptr<StageOnDevice>> stages_;  ///< By stage; null if not on this device.
};

class CpuBackendOnNetwork : public CpuBackend {
 public:
  explicit CpuBackendOnNetwork(const CpuOptions& options) : options_(options) {}

  std::string_view name() const override { return "cpu"; }
  std::string device_text() const override {
    return "a core each, fp32 kernels by " + cpu_library();
  }
  bool has_own_overheads() const override { return true; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    store_ = std::make_shared<RunStore>(plan, options_);
    devices_ = plan.graph.slots();
    std::vector<std::unique_ptr<Worker>> workers;
    workers.reserve(plan.graph.slots());
    for (std::uint32_t slot = 0; slot < plan.graph.slots(); ++slot)
      workers.push_back(std::make_unique<CpuWorker>(store_, slot));
    return workers;
  }
  std::map<std::string, std::string> provenance() const override {
    return cpu_provenance(devices_);
  }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> remarks;
    const std::vector<double> losses = results().losses;
    if (!losses.empty()) {
      remarks.push_back(fmt::format("loss {:.4g} in the first iteration, {:.4g} after {}",
                                    losses.front(), losses.back(), losses.size()));
    }
    if (devices_ > usable_cores()) {
      remarks.push_back(
          fmt::format("{} devices took turns on {} core{}: the times are not those of {} cores",
                      devices_, usable_cores(), usable_cores() == 1 ? "" : "s", devices_));
    }
    return remarks;
  }
  CpuResults results() const override {
    PLUMBLINE_CHECK(store_ != nullptr, name());
    return store_->results();
  }

 private:
  CpuOptions options_;
  std::shared_ptr<RunStore> store_;
  std::uint32_t devices_ = 0;
};

}  // namespace

std::map<std::string, std::string> cpu_provenance(std::uint32_t busy) {
  return {{"backend", "cpu"},
          {"device", printable(processor_name())},
          {"library", cpu_library()},
          {"cores", std::to_string(usable_cores())},
          {"busy_cores", std::to_string(busy)}};
}

std::optional<Diagnostic> check_for_cpu(const Network& network, const Mark& mark) {
  if (cpu_library().empty()) {
    Diagnostic missing =
        input_error({}, "this build has no cpu backend: it was made without oneDNN",
                    "install libdnnl-dev and build again");
    missing.fault = Fault::no_device;
    return missing;
  }
  if (network.element != ElementType::fp32) {
    return input_error(mark,
                       fmt::format("the network '{}' is {}, and the cpu backend computes in fp32",
                                   clipped(network.name), name(network.element)));
  }
  if (!std::holds_alternative<Head>(network.layers.back().settings)) {
    return input_error(mark,
                       fmt::format("the network '{}' does not end in a head, so it has no loss",
                                   clipped(network.name)),
                       "put {kind: head, classes: N} at its end");
  }
  return std::nullopt;
}

Result<std::unique_ptr<CpuBackend>> cpu_backend(const Scenario& scenario,
                                                const CpuOptions& options) {
  if (!scenario.network) {
    return input_error(
        scenario.model_mark,
        "the cpu backend executes networks, and the model is known by its times alone",
        "model: {network: FILE, profile: FILE}; --backend synthetic runs any model");
  }
  if (auto refused = check_for_cpu(*scenario.network, scenario.model_mark)) return *refused;
  if (auto refused = check_training(scenario)) return *refused;
  return std::unique_ptr<CpuBackend>(std::make_unique<CpuBackendOnNetwork>(options));
}

}  // namespace plumbline
