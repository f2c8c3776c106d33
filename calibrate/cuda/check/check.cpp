// Kernels that note where and when they ran, and the conclusions from it.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/check/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "calibrate/cuda/check/layer_check.h"
#include "calibrate/cuda/check/stream_check.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/libraries/libraries.h"

namespace plumbline {
namespace {

/// Enough small blocks for every SM of any GPU. Each block runs long enough (0.1 ms) for the next
/// one to go elsewhere.
constexpr std::uint32_t kBlocks = 1024;
constexpr std::uint32_t kThreads = 64;
constexpr long long kCycles = 200'000;

/// One device under proof. Its context is current during calls of its members. The destructor frees
/// its objects.
class Subject {
 public:
  Subject(const CudaDriver& driver, CudaDevice& device) : driver_(driver), device_(device) {
    enter();
    try {
      PLUMBLINE_CUDA(driver_, cuMemAlloc, &places_, kBlocks * sizeof(std::uint32_t));
      PLUMBLINE_CUDA(driver_, cuMemAlloc, &times_, 2 * sizeof(std::uint64_t));
    } catch (...) {
      release();
      throw;
    }
  }
  ~Subject() { release(); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  void enter() const { PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context); }

  /// The SMs that a kernel's blocks run on.
  std::set<std::uint32_t> seen() {
    enter();
    forget();
    launch_where();
    return read_places();
  }
  /// The same for a graph that is captured here.
  std::set<std::uint32_t> seen_of_graph() {
    enter();
    forget();
    // The graph has the other kinds of nodes of passes, too.
    const CudaRecording graph(driver_, device_.compute, [&] {
      launch_where();
      PLUMBLINE_CUDA(driver_, cuMemsetD8Async, times_, 0, sizeof(std::uint64_t), device_.compute);
      PLUMBLINE_CUDA(driver_, cuMemcpyDtoDAsync, times_ + sizeof(std::uint64_t), times_,
                     sizeof(std::uint64_t), device_.compute);
    });
    graph.replay(device_.compute);
    return read_places();
  }
  void begin_spin() {
    enter();
    std::uint64_t nanoseconds = kSpinNanoseconds;
    void* arguments[] = {&nanoseconds, &times_};
    launch("plumbline_spin", device_.sms, arguments);
  }
  void end_spin(CudaDeviceProof& proof) const {
    enter();
    std::uint64_t times[2] = {};
    PLUMBLINE_CUDA(driver_, cuMemcpyDtoHAsync, times, times_, sizeof times, device_.compute);
    PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device_.compute);
    proof.begin = times[0];
    proof.end = times[1];
  }

 private:
  void launch(const char* kernel, std::uint32_t blocks, void** arguments) {
    PLUMBLINE_CUDA(driver_, cuLaunchKernel, (*device_.kernels)[kernel], blocks, 1, 1, kThreads, 1,
                   1, 0, device_.compute, arguments, nullptr);
  }
  void launch_where() {
    long long cycles = kCycles;
    void* arguments[] = {&places_, &cycles};
    launch("plumbline_where", kBlocks, arguments);
  }
  /// Clears the results of the earlier kernel, so that they are not taken for those of the next
  /// one.
  void forget() {
    PLUMBLINE_CUDA(driver_, cuMemsetD32Async, places_, std::numeric_limits<std::uint32_t>::max(),
                   kBlocks, device_.compute);
  }
  std::set<std::uint32_t> read_places() const {
    std::vector<std::uint32_t> places(kBlocks);
    PLUMBLINE_CUDA(driver_, cuMemcpyDtoHAsync, places.data(), places_,
                   places.size() * sizeof(std::uint32_t), device_.compute);
    PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device_.compute);
    return {places.begin(), places.end()};
  }
  void release() noexcept {
    driver_.cuCtxSetCurrent(device_.context);
    if (times_ != 0) driver_.cuMemFree(times_);
    if (places_ != 0) driver_.cuMemFree(places_);
    driver_.cuCtxSetCurrent(nullptr);
  }

  const CudaDriver& driver_;
  CudaDevice& device_;
  CUdeviceptr places_ = 0;
  CUdeviceptr times_ = 0;
};

using Sms = std::set<std::uint32_t>;

/// "0, 1, 2, ...".
std::string some_of(const std::vector<std::uint32_t>& sms) {
  constexpr std::size_t kMax = 4;
  const auto end = sms.begin() + static_cast<std::ptrdiff_t>(std::min(sms.size(), kMax));
  return fmt::format("{}{}", fmt::join(sms.begin(), end, ", "), sms.size() > kMax ? ", ..." : "");
}

std::string counted_sms(std::size_t count) {
  return fmt::format("{} SM{}", count, count == 1 ? "" : "s");
}

/// The SMs that ran in a graph but never ran a kernel launched by itself.
std::vector<std::uint32_t> strange_to(const Sms& seen, const Sms& graph) {
  std::vector<std::uint32_t> strange;
  std::set_difference(graph.begin(), graph.end(), seen.begin(), seen.end(),
                      std::back_inserter(strange));
  return strange;
}

void judge_places(const CudaDevices& devices, const std::vector<CudaDevice>& all,
                  CudaProof& proof) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Sms& seen = proof.devices[i].seen;
    if (seen.size() > all[i].sms) {
      proof.failures.push_back(fmt::format("device {} has {}, but its kernels ran on {}", i,
                                           counted_sms(all[i].sms), seen.size()));
    }
    const std::vector<std::uint32_t> strange = strange_to(seen, proof.devices[i].graph);
    if (!strange.empty()) {
      proof.failures.push_back(
          fmt::format("a graph captured on device {} ran on {} that its kernels do not run on ({})",
                      i, counted_sms(strange.size()), some_of(strange)));
    }
    for (std::size_t j = 0; devices.split() && j < i; ++j) {
      const Sms& other = proof.devices[j].seen;
      std::vector<std::uint32_t> both;
      std::set_intersection(seen.begin(), seen.end(), other.begin(), other.end(),
                            std::back_inserter(both));
      if (!both.empty()) {
        proof.failures.push_back(fmt::format("devices {} and {} share {} ({})", j, i,
                                             counted_sms(both.size()), some_of(both)));
      }
    }
  }
}

/// Requires: the devices are parts of one GPU.
void judge_overlap(CudaProof& proof) {
  const auto last = std::max_element(
      proof.devices.begin(), proof.devices.end(),
      [](const CudaDeviceProof& a, const CudaDeviceProof& b) { return a.begin < b.begin; });
  const auto first = std::min_element(
      proof.devices.begin(), proof.devices.end(),
      [](const CudaDeviceProof& a, const CudaDeviceProof& b) { return a.end < b.end; });
  proof.together = first->end - std::min(last->begin, first->end);
  if (proof.together >= kSpinNanoseconds / 2) return;
  const bool is_after = last->begin >= first->end;
  const std::uint64_t apart = is_after ? last->begin - first->end : first->end - last->begin;
  proof.failures.push_back(fmt::format(
      "the devices do not work at the same time: each spun for {} ms, but device {} "
      "began {:.2f} ms {} device {} had ended",
      kSpinNanoseconds / 1'000'000, last - proof.devices.begin(), static_cast<double>(apart) * 1e-6,
      is_after ? "after" : "before", first - proof.devices.begin()));
}

std::string driver_text(const CudaDriver& driver) {
  int version = 0;
  PLUMBLINE_CUDA(driver, cuDriverGetVersion, &version);
  const std::string missing = missing_for_split(driver);
  return fmt::format("driver      for CUDA {}.{}{}\n", version / 1000, version % 1000 / 10,
                     missing.empty() ? "" : "; it splits no GPU, as it lacks " + missing);
}

std::string gpu_text(const CudaDriver& driver, int ordinal) {
  CUdevice gpu = 0;
  PLUMBLINE_CUDA(driver, cuDeviceGet, &gpu, ordinal);
  char name[256] = "";
  std::size_t memory = 0;
  PLUMBLINE_CUDA(driver, cuDeviceGetName, name, static_cast<int>(sizeof name), gpu);
  PLUMBLINE_CUDA(driver, cuDeviceTotalMem, &memory, gpu);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    PLUMBLINE_CUDA(driver, cuDeviceGetAttribute, &value, which, gpu);
    return value;
  };
  return fmt::format("GPU {:<7} {}, {} SMs, {:.1f} GiB, compute capability {}.{}\n", ordinal, name,
                     attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                     static_cast<double>(memory) / (1 << 30),
                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

std::string proof_text(CudaDevices& devices, const CudaProof& proof) {
  const std::vector<CudaDevice>& all = devices.all();
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("device {:<4} {} of GPU {}; kernels seen on {}, of graphs on {}\n", i,
                        counted_sms(all[i].sms), all[i].ordinal, proof.devices[i].seen.size(),
                        proof.devices[i].graph.size());
  }
  if (all.size() == 1) return text;
  if (!devices.split())
    return text + "overlap     not looked at: each GPU has a clock of its own\n";
  return text + fmt::format("overlap     {:.2f} of {} ms\n",
                            static_cast<double>(proof.together) * 1e-6,
                            kSpinNanoseconds / 1'000'000);
}

}  // namespace

CudaProof prove_cuda_devices(CudaDevices& devices) {
  std::vector<CudaDevice>& all = devices.all();
  CudaProof proof;
  proof.devices.resize(all.size());
  std::vector<std::unique_ptr<Subject>> subjects;
  subjects.reserve(all.size());
  for (CudaDevice& device : all)
    subjects.push_back(std::make_unique<Subject>(devices.driver(), device));
  // Devices one after the other: where each runs. This also does the loading of first launches.
  for (std::size_t i = 0; i < all.size(); ++i) {
    proof.devices[i].seen = subjects[i]->seen();
    proof.devices[i].graph = subjects[i]->seen_of_graph();
  }
  judge_places(devices, all, proof);
  // All devices together, twice; the first time loads the kernel.
  for (int round = 0; round < 2; ++round) {
    for (const auto& subject : subjects) subject->begin_spin();
    for (std::size_t i = 0; i < all.size(); ++i) subjects[i]->end_spin(proof.devices[i]);
  }
  if (devices.split()) judge_overlap(proof);
  return proof;
}

CudaLaunching launching_on(CudaDevices& devices) {
  CudaLaunching launching;
  if (!devices.split()) return launching;
  for (std::size_t i = 0; i < devices.all().size() && launching.replays; ++i) {
    Subject subject(devices.driver(), devices.all()[i]);
    std::vector<std::uint32_t> strange;
    launching.try_to(devices.driver(), [&] {
      const Sms seen = subject.seen();
      strange = strange_to(seen, subject.seen_of_graph());
    });
    if (strange.empty()) continue;
    launching.replays = false;
    launching.why_not = fmt::format("graphs leave the SMs of device {} for {} others ({})", i,
                                    strange.size(), some_of(strange));
  }
  return launching;
}

Result<CudaCheck> check_cuda_devices(const CudaDriver& driver, std::uint32_t count, bool one_gpu) {
  auto devices = open_cuda_devices(driver, count, one_gpu);
  if (!devices) return devices.problems();
  CudaProof proof = prove_cuda_devices(**devices);
  CudaCheck check;
  check.text = driver_text(driver);
  int last = -1;
  for (const CudaDevice& device : (*devices)->all()) {
    if (device.ordinal != last) check.text += gpu_text(driver, device.ordinal);
    last = device.ordinal;
  }
  check.text += proof_text(**devices, proof) + streams_text(**devices) + copies_text(**devices);
  check.failures = std::move(proof.failures);
  return check;
}

std::string cuda_library_text() {
  std::string text;
  for (const CudaLibraryKind& kind : {kCublasLt, kCudnn, kNccl}) {
    const auto library = load_cuda_library(kind);
    if (library) {
      text += fmt::format("{:<11} {}, {}\n", kind.name, library->version, library->path);
    } else {
      const Diagnostic& problem = library.problems().front();
      text += fmt::format("{:<11} not found ({}):\n{}", kind.name, kind.file, problem.detail);
    }
  }
  return text;
}

std::optional<Diagnostic> cuda_is_missing() {
  const auto driver = load_cuda_driver();
  if (!driver) return driver.problems().front();
  return std::nullopt;
}

Result<CudaCheck> check_cuda_here(std::uint32_t devices) {
  const auto driver = load_cuda_driver();
  if (!driver) return driver.problems();
  try {
    auto check = check_cuda_devices(*driver, devices, /*one_gpu=*/false);
    if (!check) return check;
    check->text += cuda_library_text();
    if (auto wrong = check_cuda_layers(*driver, devices, /*own=*/false, *check)) return *wrong;
    return check;
  } catch (const CudaError& error) {
    Diagnostic wrong = input_error({}, error.what());
    wrong.fault = Fault::no_device;
    return wrong;
  }
}

}  // namespace plumbline
