// What the cuda backend refuses, and the devices behind it. SPDX-License-Identifier: MIT
#include "calibrate/cuda/backend.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "calibrate/cuda/device_products.h"
#include "calibrate/cuda/devices.h"
#include "calibrate/cuda/layer.h"
#include "calibrate/cuda/left_behind.h"
#include "calibrate/cuda/run.h"
#include "models/bug.h"
#include "sim/predict.h"

namespace plumbline {
namespace {

/// Pointers of one kernel's arguments.
constexpr std::uint32_t kMostMembers = 32;

CudaTraining training_of(const Scenario& scenario, const CudaOptions& options) {
  CudaTraining training;
  training.network = scenario.network.get();
  training.batch = scenario.micro_batch_size;
  training.optimizer = optimizer_for(scenario.optimizer_state);
  training.learning_rate = options.learning_rate;
  training.seed = options.seed;
  training.recompute = scenario.schedule.recompute;
  training.updates = scenario.schedule.updates;
  return training;
}

class CudaBackendOnNetwork : public CudaBackend {
 public:
  CudaBackendOnNetwork(std::unique_ptr<CudaDriver> driver, std::unique_ptr<CudaDevices> devices,
                       const Scenario& scenario, const CudaOptions& options)
      : driver_(std::move(driver)),
        devices_(std::move(devices)),
        scenario_(scenario),
        options_(options),
        products_(std::make_unique<DeviceProducts>(*devices_, options.own_products)) {}

  std::string_view name() const override { return "cuda"; }
  std::string device_text() const override {
    const auto& all = devices_->all();
    const std::string products = products_->name();
    if (devices_->split()) {
      return fmt::format("{} SMs each of one {}, products by {}", all.front().sms, devices_->name(),
                         products);
    }
    return fmt::format("{} each, products by {}", devices_->name(), products);
  }
  bool has_own_overheads() const override { return true; }
  std::vector<std::string> remarks() const override { return remarks_; }

  RunResult run(const RunPlan& plan, const DeviceOrders& orders,
                const RunOptions& options) override {
    CudaRun run =
        run_on_cuda(*devices_, *products_, training_of(scenario_, options_), plan, orders, options);
    results_ = std::move(run.learnt);
    remarks_ = std::move(run.remarks);
    if (!products_->missing().empty()) {
      remarks_.push_back(fmt::format(
          "matrix products are those of a plain kernel, far from the device's speed: {}",
          products_->missing()));
    }
    if (!results_.losses.empty()) {
      remarks_.push_back(fmt::format("loss {:.4g} in the first iteration, {:.4g} after {}",
                                     results_.losses.front(), results_.losses.back(),
                                     results_.losses.size()));
    }
    if (run.abandoned) {
      auto left = std::make_unique<Left>();
      left->driver = std::move(driver_);
      left->devices = std::move(devices_);
      left->products = std::move(products_);
      leave_behind(std::move(left));
    }
    return std::move(run.result);
  }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan&) override { return {}; }
  CudaResults results() const override { return results_; }

 private:
  struct Left {
    std::unique_ptr<CudaDriver> driver;
    std::unique_ptr<CudaDevices> devices;
    std::unique_ptr<DeviceProducts> products;
  };

  std::unique_ptr<CudaDriver> driver_;  // before all that calls it
  std::unique_ptr<CudaDevices> devices_;
  Scenario scenario_;
  CudaOptions options_;
  std::unique_ptr<DeviceProducts> products_;
  CudaResults results_;
  std::vector<std::string> remarks_;
};

/// Links whose latency or bandwidth is set cannot be had: a copy takes what it takes.
std::optional<Diagnostic> refuse_links(const Scenario& scenario) {
  for (const Level& level : scenario.cluster.levels) {
    const bool is_crossed =
        level.size > 1 && (level.link.bandwidth || level.link.latency.count() > 0);
    if (!is_crossed) continue;
    return input_error(scenario.cluster_mark,
                       "the cluster's links set a bandwidth or a latency, and the cuda backend "
                       "sends tensors at the speed of the devices' own copies",
                       "leave latency and bandwidth out of the links to run on cuda, or take "
                       "--backend cpu, which keeps them");
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<CudaBackend>> cuda_backend(const CudaDriver& driver,
                                                  const Scenario& scenario,
                                                  const CudaOptions& options) {
  if (!scenario.network) {
    return input_error(
        scenario.model_mark,
        "the cuda backend executes networks, and the model is known by its times alone",
        "model: {network: FILE, profile: FILE}; --backend synthetic runs any model");
  }
  if (auto refused = refuse_for_cuda(*scenario.network, scenario.model_mark)) return *refused;
  if (auto refused = refuse_links(scenario)) return *refused;
  const auto pipeline = plan_pipeline(scenario, /*for_run=*/true);
  if (!pipeline) return pipeline.problems();
  for (const std::uint32_t replicas : pipeline->replicas) {
    const std::uint32_t members = replicas * pipeline->copies;
    if (members <= kMostMembers) continue;
    return input_error(scenario.plan_mark,
                       fmt::format("{} devices share the gradients of one stage, and the cuda "
                                   "backend adds those of {} at most",
                                   members, kMostMembers));
  }
  auto own_driver = std::make_unique<CudaDriver>(driver);
  const auto count = static_cast<std::uint32_t>(pipeline->devices.size()) * pipeline->copies;
  try {
    auto devices = open_cuda_devices(*own_driver, count, options.one_gpu);
    if (!devices) return devices.problems();
    return std::unique_ptr<CudaBackend>(std::make_unique<CudaBackendOnNetwork>(
        std::move(own_driver), *std::move(devices), scenario, options));
  } catch (const std::runtime_error& error) {  // of the driver, of a library
    Diagnostic lost = input_error({}, error.what());
    lost.fault = Fault::no_device;
    return lost;
  }
}

Result<std::unique_ptr<CudaBackend>> cuda_backend(const Scenario& scenario,
                                                  const CudaOptions& options) {
  const auto driver = load_cuda_driver();
  if (!driver) return driver.problems();
  return cuda_backend(*driver, scenario, options);
}

}  // namespace plumbline
