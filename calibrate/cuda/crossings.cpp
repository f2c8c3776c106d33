// Copies back and forth between ops of a known time.
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/crossings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/cuda/copy.h"
#include "calibrate/cuda/events.h"
#include "calibrate/cuda/scratch.h"
#include "calibrate/cuda/stopwatch.h"
#include "calibrate/sampling.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kMostCopies = 32;  // an even number: they end where they began
constexpr std::size_t kMostCopied = std::size_t{1} << 29;
/// Of an op between two copies, in ns: longer than it takes to launch one.
constexpr long long kOp = 20'000;

/// Pinned memory of the host.
class HostBuffer {
 public:
  HostBuffer(const CudaDriver& driver, std::size_t bytes) : driver_(driver) {
    PLUMBLINE_CUDA(driver, cuMemHostAlloc, &data_, bytes, CU_MEMHOSTALLOC_PORTABLE);
  }
  ~HostBuffer() { driver_.cuMemFreeHost(data_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  void* data() const { return data_; }

 private:
  const CudaDriver& driver_;
  void* data_ = nullptr;
};

/// How tensors go.
enum class Way : std::uint8_t { copy, host, nccl };

/// Beside the ops, or on their streams.
enum class Streams : std::uint8_t { own, compute };

/// Two devices that send each other tensors.
class Pair {
 public:
  /// Takes memory for the largest size that there is memory for, and drops those beyond it.
  Pair(CudaDevices& devices, std::size_t first, Way way, Streams streams, const Nccl* nccl,
       std::vector<Bytes>& sizes)
      : devices_(devices), streams_(streams), ends_{End{first}, End{first + 1}} {
    try {
      for (End& end : ends_) {
        const CudaDevice& device = devices_.all()[end.device];
        end.compute = end.moving = {&device, device.compute};
        if (streams_ == Streams::own) {
          end.own = CudaUrgentStream(devices_, end.device);
          end.moving = {&devices_.mover(end.device), end.own.get()};
        }
        end.made = event_of(end.compute);
        end.sent = event_of(end.moving);
      }
      while (!sizes.empty() && !take(sizes.back())) sizes.pop_back();
      prepare(way, nccl, sizes);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Pair() { close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// There and back, so often, each from an op that makes what is sent.
  void enqueue(CudaSpinOps& ops, std::size_t bytes, std::uint32_t copies) {
    for (std::uint32_t i = 0; i < copies; ++i) {
      const End& from = ends_[i % 2];
      const End& to = ends_[(i + 1) % 2];
      ops.enqueue(from.device);
      signal_between(from.compute, from.made, from.moving);
      if (!ways_.empty()) {
        signal_between(from.compute, from.made, to.moving);
        ways_[i % 2].transfer(0, {from.memory.data(), from.moving.stream}, 1,
                              {to.memory.data(), to.moving.stream}, bytes);
        signal_between(from.moving, from.sent, to.compute);
        signal_between(to.moving, to.sent, to.compute);
      } else if (host_) {
        copy_by_host(from, to, bytes);
        signal_between(to.moving, to.sent, to.compute);
      } else {
        if (streams_ == Streams::compute)
          signal(devices_.driver(), to.compute, to.made[0], from.moving);
        use(from.moving);
        copy_between(devices_.driver(), {devices_.all()[from.device], from.memory.data()},
                     {devices_.all()[to.device], to.memory.data()}, bytes, from.moving.stream);
        signal_between(from.moving, from.sent, to.compute);
      }
    }
  }

 private:
  struct End {
    explicit End(std::size_t on) : device(on) {}

    std::size_t device;
    CudaUrgentStream own;  ///< Where it sends beside its ops.
    CudaPoint compute;
    CudaPoint moving;  ///< That it sends and receives on.
    CudaEvents made;
    CudaEvents sent;
    CudaScratch memory;
  };

  void use(CudaPoint point) {
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, point.on->context);
  }
  CudaEvents event_of(CudaPoint point) {
    use(point);
    return {devices_.driver(), 1, CU_EVENT_DISABLE_TIMING};
  }

  /// What stands on the same stream needs none.
  void signal_between(CudaPoint first, const CudaEvents& event, CudaPoint second) {
    if (first.stream != second.stream) signal(devices_.driver(), first, event[0], second);
  }

  void prepare(Way way, const Nccl* nccl, const std::vector<Bytes>& sizes) {
    if (sizes.empty()) return;
    use(ends_[0].compute);
    if (way == Way::host)
      host_.emplace(devices_.driver(), static_cast<std::size_t>(sizes.back().count));
    if (way != Way::nccl) return;
    const std::array<int, 2> gpus = {devices_.all()[ends_[0].device].ordinal,
                                     devices_.all()[ends_[1].device].ordinal};
    ways_.emplace_back(*nccl, std::vector<int>{gpus[0], gpus[1]});
    ways_.emplace_back(*nccl, std::vector<int>{gpus[1], gpus[0]});
  }

  /// In two halves, through its memory.
  void copy_by_host(const End& from, const End& to, std::size_t bytes) {
    const CudaDriver& driver = devices_.driver();
    use(from.moving);
    PLUMBLINE_CUDA(driver, cuMemcpyDtoHAsync, host_->data(), from.memory.data(), bytes,
                   from.moving.stream);
    signal(driver, from.moving, from.sent[0], to.moving);
    PLUMBLINE_CUDA(driver, cuMemcpyHtoDAsync, to.memory.data(), host_->data(), bytes,
                   to.moving.stream);
  }

  bool take(Bytes size) {
    try {
      for (End& end : ends_) {
        use(end.compute);
        end.memory = {};  // before the next one is there
        end.memory = CudaScratch(devices_.driver(), static_cast<std::size_t>(size.count));
      }
      return true;
    } catch (const CudaError& error) {
      if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
      return false;
    }
  }

  void close() noexcept {
    ways_.clear();
    devices_.driver().cuCtxSetCurrent(devices_.all()[ends_[0].device].context);
    host_.reset();
    for (End& end : ends_) {
      devices_.driver().cuCtxSetCurrent(devices_.all()[end.device].context);
      end.made = {};
      end.sent = {};
      end.memory = {};
    }
  }

  CudaDevices& devices_;
  Streams streams_;
  std::array<End, 2> ends_;
  std::optional<HostBuffer> host_;      ///< Where copies go through it.
  std::vector<NcclCommunicator> ways_;  ///< There and back, where they go by these.
};

/// An even number that takes no long time.
std::uint32_t copies_of(std::size_t bytes) {
  const std::size_t pairs = std::clamp<std::size_t>(kMostCopied / bytes / 2, 1, kMostCopies / 2);
  return static_cast<std::uint32_t>(2 * pairs);
}

/// Times of all sizes, without the ops between them and the hand-over that a prediction adds to
/// each transfer: `beside`, in ns.
std::optional<MeasuredLink> timed_link(CudaDevices& devices, std::size_t first, std::string kind,
                                       Way way, Streams streams, const Nccl* nccl,
                                       std::vector<Bytes> sizes, CudaSpinOps& ops, double beside) {
  Pair pair(devices, first, way, streams, nccl, sizes);
  if (sizes.size() < 2) return std::nullopt;
  CudaStopwatch stopwatch(devices, first);
  TransferTable table;
  table.reserve(sizes.size());
  for (const Bytes size : sizes) {
    const auto bytes = static_cast<std::size_t>(size.count);
    const std::uint32_t copies = copies_of(bytes);
    const double all = stopwatch.time([&] { pair.enqueue(ops, bytes, copies); });
    const Duration one{std::llround(all / copies - beside)};
    table.emplace_back(size, std::max(one, Duration{1}));
  }
  return measured_link(std::move(kind), std::move(table));
}

/// By the largest size that all of them have.
void slowest_first(std::span<MeasuredLink> links) {
  std::size_t common = std::numeric_limits<std::size_t>::max();
  for (const MeasuredLink& link : links) common = std::min(common, link.table.size());
  std::stable_sort(links.begin(), links.end(), [&](const MeasuredLink& a, const MeasuredLink& b) {
    return a.table[common - 1].second > b.table[common - 1].second;
  });
}

}  // namespace

std::vector<MeasuredLink> measure_cuda_links(CudaDevices& devices, CudaLaunching& launching,
                                             const CudaLaunchTimes& launches, const Nccl* nccl,
                                             const std::vector<Bytes>& sizes) {
  std::vector<MeasuredLink> links;
  if (devices.all().size() < 2) return links;
  CudaSpinOps ops(devices, launching, kOp);
  const double beside = ops.nanoseconds() + launches.alone + launches.crossing;
  const std::size_t pairs = devices.split() ? 1 : devices.all().size() - 1;
  const auto add = [&](std::size_t first, std::string kind, Way way, Streams streams) {
    auto link = timed_link(devices, first, std::move(kind), way, streams, nccl, sizes, ops, beside);
    if (link) links.push_back(*std::move(link));
  };
  const std::string_view between = nccl == nullptr ? "peer" : "nccl";
  for (const Streams streams : {Streams::own, Streams::compute}) {
    const std::size_t before = links.size();
    for (std::size_t first = 0; first < pairs; ++first) {
      const std::string kind = devices.split() ? std::string("copy")
                                               : fmt::format("{} {}-{}", between, first, first + 1);
      add(first, streams == Streams::own ? kind : blocking_link(kind),
          nccl == nullptr ? Way::copy : Way::nccl, streams);
    }
    slowest_first({links.begin() + static_cast<std::ptrdiff_t>(before), links.end()});
  }
  try {
    add(0, "host", Way::host, Streams::own);
  } catch (const CudaError& error) {  // as much pinned memory is not to be had everywhere
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
  }
  return links;
}

}  // namespace plumbline
