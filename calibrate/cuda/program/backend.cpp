// The checks of the cuda backend, and the devices behind it.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "base/bug.h"
#include "calibrate/cuda/check/check.h"
#include "calibrate/cuda/driver/device_pool.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/leak_on_hang.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/cuda/libraries/cudnn.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/program/provenance.h"
#include "calibrate/cuda/program/run.h"
#include "calibrate/runtime/refused_training.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

/// The most pointers in one kernel's arguments.
constexpr std::uint32_t kMaxMembers = 32;

/// Whether copies are slowed down to the cluster's links. Not if the links are the measured ones
/// and tensors are really copied.
bool keeps_links(const TrainingSetup& setup) {
  return !setup.link_measured || setup.network == nullptr;
}

/// Whether the profile's algorithms are for these GPUs and libraries.
bool is_measured_with(const Profile& profile, const CudaDevices& devices,
                      const DeviceLibraries& libraries) {
  const auto told = [&](const std::string& name) {
    const auto found = profile.provenance.find(name);
    return found == profile.provenance.end() ? std::string_view() : found->second;
  };
  std::string library(told("library"));
  for (auto at = library.find(kAndPlainKernels); at != std::string::npos;
       at = library.find(kAndPlainKernels))
    library.erase(at, kAndPlainKernels.size());
  return told("device") == printable(devices.name()) && library == libraries.name();
}

/// The remark that the GPU's clock differs from that of the profile, which was measured on such a
/// GPU.
std::optional<std::string> clock_remark(const Profile& profile, const CudaDevices& devices,
                                        double mhz) {
  constexpr double kNoted = 0.01;
  const auto device = profile.provenance.find("device");
  const auto clock = profile.provenance.find("clock");
  if (device == profile.provenance.end() || clock == profile.provenance.end()) return std::nullopt;
  if (device->second != printable(devices.name())) return std::nullopt;
  const double there = std::strtod(clock->second.c_str(), nullptr);  // "1980 MHz"
  if (mhz <= 0 || there <= 0 || std::abs(mhz - there) <= kNoted * there) return std::nullopt;
  return fmt::format(
      "the GPU ran at {:.0f} MHz, and at {:.0f} MHz while the profile was measured: what computes "
      "may take {:.3g} times as long",
      mhz, there, there / mhz);
}

/// The most devices that share the gradients of a stage.
std::uint32_t max_members(const TrainingSetup& setup) {
  return setup.copies() * *std::max_element(setup.replicas.begin(), setup.replicas.end());
}

CudaTraining training_of(const TrainingSetup& setup, const CudaOptions& options) {
  CudaTraining training;
  training.network = setup.network.get();
  training.batch = setup.micro_batch_size;
  training.optimizer = optimizer_for(setup.optimizer_state);
  training.learning_rate = options.learning_rate;
  training.seed = options.seed;
  training.recompute = setup.rules.recompute;
  training.updates = setup.rules.updates;
  training.keeps_links = keeps_links(setup);
  return training;
}

class CudaBackendOnNetwork : public CudaBackend {
 public:
  CudaBackendOnNetwork(std::shared_ptr<OpenedCuda> opened, const TrainingSetup& setup,
                       const CudaOptions& options, const std::optional<Nccl>& nccl)
      : opened_(std::move(opened)),
        devices_(opened_->devices.get()),
        network_(setup.network),
        options_(options),
        libraries_(network_ ? std::make_unique<DeviceLibraries>(*devices_, *network_,
                                                                options.builtin_kernels, nccl)
                            : nullptr),
        launching_(options.graphs ? launching_on(*devices_) : CudaLaunching{false, "--no-graphs"}) {
    const Profile& profile = setup.model->profile;
    if (libraries_ && is_measured_with(profile, *devices_, *libraries_))
      libraries_->take(profile.algorithms);
  }

  std::string_view name() const override { return "cuda"; }
  std::string device_text() const override {
    const auto& all = devices_->all();
    const std::string by =
        libraries_ ? "with " + libraries_->name() : "kernels that spin for the modelled time";
    if (devices_->split())
      return fmt::format("{} SMs each of one {}, {}", all.front().sms, devices_->name(), by);
    const bool communicates = libraries_ && libraries_->nccl() != nullptr;
    return fmt::format("{} each, {}{}{}", devices_->name(), by, communicates ? ", " : "",
                       communicates ? name_of(*libraries_->nccl()) : "");
  }
  bool has_own_overheads() const override { return true; }
  std::map<std::string, std::string> provenance() const override {
    if (!libraries_) return {};
    return cuda_provenance(*devices_, *libraries_, launching_);
  }
  std::vector<std::string> remarks() const override { return remarks_; }

  RunResult run(const RunPlan& plan, const DeviceOrders& orders,
                const RunOptions& options) override {
    RunOptions own = options;
    own.min_warm_up = std::chrono::nanoseconds(std::llround(options_.warm_up_seconds * 1e9));
    CudaRun run = run_on_cuda(*devices_, libraries_.get(), launching_,
                              training_of(plan.setup, options_), plan, orders, own);
    results_ = std::move(run.learnt);
    remarks_ = std::move(run.remarks);
    if (libraries_) {
      const std::vector<std::string> missing = libraries_->missing();
      remarks_.insert(remarks_.end(), missing.begin(), missing.end());
    }
    if (auto other = clock_remark(plan.setup.model->profile, *devices_, run.clock_mhz))
      remarks_.push_back(*std::move(other));
    if (!libraries_ && plan.graph.rates_change()) {
      remarks_.emplace_back(
          "what neighbours and micro-batches in flight change is predicted and not spun: ops and "
          "transfers take the profile's times");
    }
    if (!launching_.replays) {
      remarks_.push_back(fmt::format(
          "kernels are launched one by one, not as a graph for each op: {}", launching_.why_not));
    }
    if (!results_.losses.empty()) {
      remarks_.push_back(fmt::format("loss {:.4g} in the first iteration, {:.4g} after {}",
                                     results_.losses.front(), results_.losses.back(),
                                     results_.losses.size()));
    }
    if (run.abandoned) {
      opened_->hangs = true;
      auto left = std::make_unique<Left>();
      left->opened = std::move(opened_);
      left->libraries = std::move(libraries_);
      leave_behind(std::move(left));
    }
    return std::move(run.result);
  }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan&) override { return {}; }
  CudaResults results() const override { return results_; }

 private:
  struct Left {
    std::shared_ptr<OpenedCuda> opened;
    std::unique_ptr<DeviceLibraries> libraries;
  };

  std::shared_ptr<OpenedCuda> opened_;  // first, as the others call it
  CudaDevices* devices_;
  std::shared_ptr<const Network> network_;  ///< Null if no network is trained.
  CudaOptions options_;
  std::unique_ptr<DeviceLibraries> libraries_;  ///< Null if no network is trained.
  CudaLaunching launching_;
  CudaResults results_;
  std::vector<std::string> remarks_;
};

/// Set links are emulated only between two devices: not for a card that several devices share, and
/// not for all-reduces in several phases.
std::optional<Diagnostic> check_cluster_links(const Scenario& scenario, const TrainingSetup& setup,
                                              bool nccl) {
  const auto is_set = [](const Level& level) {
    return level.size > 1 && (level.link.bandwidth || level.link.latency > Duration{});
  };
  const auto& levels = scenario.cluster.levels;
  if (!keeps_links(setup)) return std::nullopt;
  if (std::none_of(levels.begin(), levels.end(), is_set)) return std::nullopt;
  if (nccl) {
    return input_error(scenario.cluster_mark,
                       "the cluster's links set a bandwidth or a latency, and NCCL keeps to none",
                       "leave both out, take cluster.link: measured, or leave --nccl out");
  }
  if (levels.size() > 1 && max_members(setup) > 1) {
    return input_error(scenario.cluster_mark,
                       "the cluster's links set a bandwidth or a latency, which the cuda backend "
                       "does not keep where replicas add up their gradients over several levels",
                       "leave both out, take one level, or take --backend cpu");
  }
  if (std::any_of(levels.begin() + 1, levels.end(), is_set)) {
    return input_error(scenario.cluster_mark,
                       "the cluster's outer levels set a bandwidth or a latency, and the cuda "
                       "backend has no network cards that devices share",
                       "leave both out there, take one level, or take --backend cpu");
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<CudaBackend>> cuda_backend(const CudaDriver& driver,
                                                  const Scenario& scenario,
                                                  const CudaOptions& options, const Nccl* nccl) {
  if (scenario.network) {
    if (auto refused = check_for_cuda(*scenario.network, scenario.model_mark)) return *refused;
    if (auto refused = check_training(scenario)) return *refused;
  } else if (options.nccl) {
    return input_error(scenario.model_mark,
                       "--nccl moves tensors, and a model that is known by its times has none",
                       "leave --nccl out, or give a network (model.network)");
  }
  if (auto refused = check_for_devices(scenario)) return *refused;
  if (scenario.sharing.state != Sharded::nothing && options.nccl) {
    return input_error(scenario.model_mark,
                       "training.zero_stage is 1, and NCCL is only asked for whole all-reduces",
                       "leave --nccl out, or training.zero_stage: 0");
  }
  const auto setup = resolve_setup(scenario);
  if (!setup) return setup.problems();
  if (auto refused = check_cluster_links(scenario, *setup, options.nccl)) return *refused;
  for (const std::uint32_t replicas : setup->replicas) {
    const std::uint32_t members = replicas * setup->copies();
    if (members <= kMaxMembers || options.nccl) continue;
    return input_error(scenario.plan_mark,
                       fmt::format("{} devices share the gradients of one stage, and the cuda "
                                   "backend adds those of {} at most",
                                   members, kMaxMembers));
  }
  const auto count = static_cast<std::uint32_t>(setup->devices.size()) * setup->copies();
  try {
    auto opened = options.pool ? options.pool->open(driver, count, options.one_gpu)
                               : open_cuda(driver, count, options.one_gpu);
    if (!opened) return opened.problems();
    const auto communicating = nccl_for(*(*opened)->devices, options.nccl, nccl);
    if (!communicating) return communicating.problems();
    return std::unique_ptr<CudaBackend>(std::make_unique<CudaBackendOnNetwork>(
        *std::move(opened), *setup, options, *communicating));
  } catch (const std::runtime_error& error) {  // from the driver or a library
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
