// Opens GPUs, or splits one.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "calibrate/cuda/driver/split.h"
#include "calibrate/cuda/kernels/kernel_image.h"

namespace plumbline {
namespace {

Diagnostic no_device(std::string message, std::string help = "") {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  diagnostic.fault = Fault::no_device;
  return diagnostic;
}

/// The priority of an urgent stream; the driver takes the nearest one that exists.
constexpr int kMaxUrgent = -1000;

/// Makes a context current while this lives. Then the previous one is current again.
class ContextScope {
 public:
  ContextScope(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    PLUMBLINE_CUDA(driver_, cuCtxPushCurrent, context);
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const CudaDriver& driver_;
};

/// Opens devices step by step. Closes in the opposite order, from the last step that was done.
class OpenDevices final : public CudaDevices {
 public:
  explicit OpenDevices(const CudaDriver& driver) : driver_(driver) {}
  ~OpenDevices() override { close(); }

  const CudaDriver& driver() const override { return driver_; }
  std::vector<CudaDevice>& all() override { return devices_; }
  std::string name() const override { return name_; }
  bool split() const override { return !greens_.empty(); }
  CUstream take_urgent_stream(std::size_t device) override {
    urgent_.resize(devices_.size());
    for (Urgent& one : urgent_[device]) {  // the first streams share no queue
      if (!one.is_taken) {
        one.is_taken = true;
        return one.stream;
      }
    }
    urgent_[device].reserve(urgent_[device].size() + 1);
    const ContextScope scope(driver_, mover(device).context);
    const std::vector<CUgreenCtx>& greens = movers_.empty() ? greens_ : moving_greens_;
    urgent_[device].push_back({new_stream(split() ? greens[device] : nullptr, kMaxUrgent), true});
    return urgent_[device].back().stream;
  }
  const CudaDevice& mover(std::size_t device) const override {
    return movers_.empty() ? devices_[device] : movers_[device];
  }
  void give_back(std::size_t device, CUstream stream) noexcept override {
    for (Urgent& one : urgent_[device])
      if (one.stream == stream) one.is_taken = false;
  }

  /// Opens GPUs 0 to count - 1. Errors: CudaError.
  void open_whole(std::uint32_t count);
  /// Splits GPU 0 into `count` groups. Errors: no device; CudaError.
  Result<SmSplit> open_split(std::uint32_t count);

 private:
  struct Urgent {
    CUstream stream = nullptr;
    bool is_taken = false;
  };

  CUdevice gpu(int ordinal) const;
  /// The GPU's primary context, which close() releases.
  CUcontext retain(CUdevice gpu);
  /// A stream of the current context, or of the green one.
  CUstream new_stream(CUgreenCtx green, int priority) const;
  /// Requires: the device is in devices_ with its context.
  void open_work(CudaDevice& device, CUgreenCtx green) const;
  /// Opens a green context of these SMs for `device`. Errors: CudaError, as the next.
  CUgreenCtx open_green(CUdevResource& sms, CUdevice gpu, CudaDevice& device) const;
  /// Opens contexts on the SMs that the split leaves over, to move tensors, if the driver allows
  /// it. Each device gets its own, as streams of one context would wait for each other.
  void open_movers(CUdevResource& sms, CUdevice gpu, CUcontext primary);
  void reach_each_other() const;
  void close_movers() noexcept;
  void close() noexcept;

  const CudaDriver& driver_;
  std::vector<CUdevice> retained_;
  std::vector<CUgreenCtx> greens_;         ///< Parallel to devices_, or empty.
  std::vector<CUgreenCtx> moving_greens_;  ///< Likewise; all on the same SMs.
  std::vector<CudaDevice> movers_;         ///< Likewise.
  std::vector<CudaDevice> devices_;
  std::vector<std::vector<Urgent>> urgent_;  ///< By device, as they were opened.
  std::string name_;
};

CUdevice OpenDevices::gpu(int ordinal) const {
  CUdevice gpu = 0;
  PLUMBLINE_CUDA(driver_, cuDeviceGet, &gpu, ordinal);
  return gpu;
}

CUcontext OpenDevices::retain(CUdevice gpu) {
  CUcontext context = nullptr;
  retained_.reserve(retained_.size() + 1);  // nothing can fail between the two
  PLUMBLINE_CUDA(driver_, cuDevicePrimaryCtxRetain, &context, gpu);
  retained_.push_back(gpu);
  if (driver_.keeps_contexts) {
    static std::set<CUdevice> kept;
    CUcontext same = nullptr;
    if (kept.insert(gpu).second) PLUMBLINE_CUDA(driver_, cuDevicePrimaryCtxRetain, &same, gpu);
  }
  return context;
}

CUstream OpenDevices::new_stream(CUgreenCtx green, int priority) const {
  CUstream stream = nullptr;
  if (green != nullptr) {
    PLUMBLINE_CUDA(driver_, cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING,
                   priority);
  } else {
    PLUMBLINE_CUDA(driver_, cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
  }
  return stream;
}

void OpenDevices::open_work(CudaDevice& device, CUgreenCtx green) const {
  const ContextScope scope(driver_, device.context);
  device.compute = new_stream(green, 0);
  device.kernels = std::make_unique<CudaKernels>(driver_, cuda_kernel_image());
}

CUgreenCtx OpenDevices::open_green(CUdevResource& sms, CUdevice gpu, CudaDevice& device) const {
  CUdevResourceDesc description = nullptr;
  PLUMBLINE_CUDA(driver_, cuDevResourceGenerateDesc, &description, &sms, 1);
  CUgreenCtx green = nullptr;
  PLUMBLINE_CUDA(driver_, cuGreenCtxCreate, &green, description, gpu, CU_GREEN_CTX_DEFAULT_STREAM);
  try {
    CUdevResource mine{};
    PLUMBLINE_CUDA(driver_, cuGreenCtxGetDevResource, green, &mine, CU_DEV_RESOURCE_TYPE_SM);
    device.sms = mine.sm.smCount;
    PLUMBLINE_CUDA(driver_, cuCtxFromGreenCtx, &device.context, green);
  } catch (...) {
    driver_.cuGreenCtxDestroy(green);
    throw;
  }
  return green;
}

void OpenDevices::open_movers(CUdevResource& sms, CUdevice gpu, CUcontext primary) {
  if (sms.type != CU_DEV_RESOURCE_TYPE_SM || sms.sm.smCount == 0) return;
  movers_.reserve(devices_.size());
  moving_greens_.reserve(devices_.size());
  try {
    while (movers_.size() < devices_.size()) {
      CudaDevice one;
      moving_greens_.push_back(open_green(sms, gpu, one));
      one.primary = primary;
      movers_.push_back(std::move(one));
      const ContextScope scope(driver_, movers_.back().context);
      movers_.back().kernels = std::make_unique<CudaKernels>(driver_, cuda_kernel_image());
    }
  } catch (const CudaError& error) {  // too few SMs for this driver: each device copies by itself
    if (error.result() != CUDA_ERROR_INVALID_RESOURCE_TYPE &&
        error.result() != CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION &&
        error.result() != CUDA_ERROR_INVALID_VALUE && error.result() != CUDA_ERROR_NOT_SUPPORTED)
      throw;
    close_movers();
  }
}

void OpenDevices::close_movers() noexcept {
  for (std::size_t i = movers_.size(); i-- > 0;) {
    driver_.cuCtxPushCurrent(movers_[i].context);
    movers_[i].kernels.reset();
    if (i < urgent_.size()) {
      for (const Urgent& one : urgent_[i]) driver_.cuStreamDestroy(one.stream);
      urgent_[i].clear();
    }
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent(&popped);
    driver_.cuGreenCtxDestroy(moving_greens_[i]);
  }
  movers_.clear();
  moving_greens_.clear();
}

void OpenDevices::reach_each_other() const {
  for (const CudaDevice& from : devices_) {
    const ContextScope scope(driver_, from.context);
    for (const CudaDevice& to : devices_) {
      int can = 0;
      if (from.ordinal == to.ordinal) continue;
      PLUMBLINE_CUDA(driver_, cuDeviceCanAccessPeer, &can, gpu(from.ordinal), gpu(to.ordinal));
      if (can == 0) continue;  // the driver then copies through the host
      const CUresult result = driver_.cuCtxEnablePeerAccess(to.context, 0);
      if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        check_cuda(driver_, "cuCtxEnablePeerAccess", result);
    }
  }
}

void OpenDevices::open_whole(std::uint32_t count) {
  devices_.reserve(count);
  std::set<std::string> names;
  for (int ordinal = 0; ordinal < static_cast<int>(count); ++ordinal) {
    const CUdevice device = gpu(ordinal);
    int sms = 0;
    PLUMBLINE_CUDA(driver_, cuDeviceGetAttribute, &sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                   device);
    char name[256] = "";
    PLUMBLINE_CUDA(driver_, cuDeviceGetName, name, static_cast<int>(sizeof name), device);
    if (names.insert(name).second) name_ += (name_.empty() ? "" : ", ") + std::string(name);
    devices_.emplace_back();
    devices_.back().ordinal = ordinal;
    devices_.back().sms = static_cast<std::uint32_t>(sms);
    devices_.back().context = devices_.back().primary = retain(device);
    open_work(devices_.back(), nullptr);
  }
  reach_each_other();
}

Result<SmSplit> OpenDevices::open_split(std::uint32_t count) {
  if (const std::string missing = missing_for_split(driver_); !missing.empty()) {
    return no_device(fmt::format("the CUDA driver does not split a GPU: it lacks {}", missing),
                     "take one GPU for each device, or a newer driver");
  }
  const CUdevice device = gpu(0);
  char name[256] = "";
  PLUMBLINE_CUDA(driver_, cuDeviceGetName, name, static_cast<int>(sizeof name), device);
  name_ = name;
  CUdevResource whole{};
  PLUMBLINE_CUDA(driver_, cuDeviceGetDevResource, device, &whole, CU_DEV_RESOURCE_TYPE_SM);
  const auto room = [&](std::uint32_t sms) {
    unsigned groups = 0;
    const CUresult result =
        driver_.cuDevSmResourceSplitByCount(nullptr, &groups, &whole, nullptr, 0, sms);
    if (result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION) return 0U;
    check_cuda(driver_, "cuDevSmResourceSplitByCount", result);
    return groups;
  };
  auto split =
      split_sms({whole.sm.smCount, whole.sm.minSmPartitionSize, whole.sm.smCoscheduledAlignment},
                count, room);
  if (!split) return split;
  std::vector<CUdevResource> groups(count);
  CUdevResource left_over{};
  unsigned given = count;
  PLUMBLINE_CUDA(driver_, cuDevSmResourceSplitByCount, groups.data(), &given, &whole, &left_over, 0,
                 split->sms);
  if (given < count) {
    return no_device(
        fmt::format("the driver gives {} group{} of {} SMs, not the {} that it said it would",
                    given, given == 1 ? "" : "s", split->sms, count),
        "take fewer devices");
  }
  // The primary context first: else each green context would start and end it anew.
  const CUcontext primary = retain(device);
  devices_.reserve(count);
  greens_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    CudaDevice one;
    greens_.push_back(open_green(groups[i], device, one));
    one.primary = primary;
    devices_.push_back(std::move(one));
    open_work(devices_.back(), greens_.back());
  }
  open_movers(left_over, device, primary);
  return split;
}

void OpenDevices::close() noexcept {
  // A context that is about to be destroyed must not stay current.
  CUcontext current = nullptr;
  driver_.cuCtxGetCurrent(&current);
  const auto is_current = [&](const CudaDevice& device) {
    return current != nullptr && device.context == current;
  };
  if (std::any_of(devices_.begin(), devices_.end(), is_current) ||
      std::any_of(movers_.begin(), movers_.end(), is_current))
    driver_.cuCtxSetCurrent(nullptr);
  close_movers();
  for (auto device = devices_.rbegin(); device != devices_.rend(); ++device) {
    if (device->context == nullptr) continue;
    driver_.cuCtxPushCurrent(device->context);
    device->kernels.reset();
    const auto place = static_cast<std::size_t>(&*device - devices_.data());
    if (place < urgent_.size())
      for (const Urgent& one : urgent_[place]) driver_.cuStreamDestroy(one.stream);
    if (device->compute != nullptr) driver_.cuStreamDestroy(device->compute);
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent(&popped);
  }
  for (auto green = greens_.rbegin(); green != greens_.rend(); ++green)
    driver_.cuGreenCtxDestroy(*green);
  for (auto gpu = retained_.rbegin(); gpu != retained_.rend(); ++gpu)
    driver_.cuDevicePrimaryCtxRelease(*gpu);
}

}  // namespace

Result<std::unique_ptr<CudaDevices>> open_cuda_devices(const CudaDriver& driver,
                                                       std::uint32_t count, bool one_gpu) {
  try {
    auto devices = std::make_unique<OpenDevices>(driver);
    int gpus = 0;
    PLUMBLINE_CUDA(driver, cuDeviceGetCount, &gpus);
    if (count == 1 || (!one_gpu && count <= static_cast<std::uint32_t>(gpus))) {
      devices->open_whole(count);
    } else if (const auto split = devices->open_split(count); !split) {
      return split.problems();
    }
    return std::unique_ptr<CudaDevices>(std::move(devices));
  } catch (const CudaError& error) {
    return no_device(error.what());
  }
}

}  // namespace plumbline
