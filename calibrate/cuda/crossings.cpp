// Rings of events, and copies back and forth, each behind a kernel that lets the host run ahead.
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/crossings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/clock.h"
#include "calibrate/cuda/copy.h"
#include "calibrate/cuda/events.h"
#include "calibrate/cuda/launch.h"
#include "calibrate/cuda/scratch.h"
#include "calibrate/sampling.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kHandOvers = 200;
constexpr std::uint32_t kMostCopies = 32;  // an even number: they end where they began
constexpr std::size_t kMostCopied = std::size_t{1} << 29;
constexpr int kTimings = 5;
/// The device waits for the host no longer than this.
constexpr std::int64_t kLongestWait = 100'000'000;

void use(CudaDevices& devices, std::size_t device) {
  PLUMBLINE_CUDA(devices.driver(), cuCtxSetCurrent, devices.all()[device].context);
}

/// A stream and the device that it belongs to.
struct On {
  std::size_t device;
  CUstream stream;
};

/// The second stream waits for what the first has so far.
void signal(CudaDevices& devices, On first, CUevent event, On second) {
  use(devices, first.device);
  PLUMBLINE_CUDA(devices.driver(), cuEventRecord, event, first.stream);
  use(devices, second.device);
  PLUMBLINE_CUDA(devices.driver(), cuStreamWaitEvent, second.stream, event, 0);
}

/// Times what is enqueued, by the clock of one device.
class Stopwatch {
 public:
  Stopwatch(CudaDevices& devices, std::size_t device) : devices_(devices), device_(device) {
    use(devices_, device_);
    events_ = CudaEvents(devices_.driver(), 2, CU_EVENT_DEFAULT);
    waited_ = CudaScratch(devices_.driver(), 2 * sizeof(std::uint64_t));
  }

  /// The median time of the work, in ns. It begins behind the device's compute stream, and its end
  /// is waited for there.
  double time(const std::function<void()>& enqueue) {
    std::int64_t wait = time_once(enqueue, 0).first;  // the first one warms up
    std::vector<double> times;
    times.reserve(kTimings);
    for (int round = 0; round < kTimings; ++round) {
      const auto [enqueuing, took] = time_once(enqueue, wait);
      wait = std::min(wait, enqueuing);
      times.push_back(took);
    }
    std::sort(times.begin(), times.end());
    return times[kTimings / 2];
  }

 private:
  /// How long the host enqueued, with a reserve, and what the work took; behind a kernel of `wait`.
  std::pair<std::int64_t, double> time_once(const std::function<void()>& enqueue,
                                            std::int64_t wait) {
    const CudaDriver& driver = devices_.driver();
    const CudaDevice& device = devices_.all()[device_];
    use(devices_, device_);
    if (wait > 0) {
      cuda::launch(bare_queue(driver, device, device.compute), "plumbline_spin", {}, 1, 0,
                   static_cast<unsigned long long>(wait), waited_.data());
    }
    const RealTime before = now();
    PLUMBLINE_CUDA(driver, cuEventRecord, events_[0], device.compute);
    enqueue();
    use(devices_, device_);
    PLUMBLINE_CUDA(driver, cuEventRecord, events_[1], device.compute);
    const std::int64_t enqueuing = std::min((now() - before) * 5 / 4 + 50'000, kLongestWait);
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, device.compute);
    float milliseconds = 0;
    PLUMBLINE_CUDA(driver, cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
    return {enqueuing, double{milliseconds} * 1e6};
  }

  CudaDevices& devices_;
  std::size_t device_;
  CudaEvents events_;
  CudaScratch waited_;
};

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
        use(devices_, end.device);
        end.stream = devices_.all()[end.device].compute;
        if (streams_ == Streams::own) {
          end.own = CudaUrgentStream(devices_, end.device);
          end.stream = end.own.get();
        }
        end.events = CudaEvents(devices_.driver(), 2, CU_EVENT_DISABLE_TIMING);
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

  /// There and back, so often.
  void enqueue(std::size_t bytes, std::uint32_t copies) {
    for (std::uint32_t i = 0; i < copies; ++i) {
      const End& from = ends_[i % 2];
      const End& to = ends_[(i + 1) % 2];
      const On made_on{from.device, devices_.all()[from.device].compute};
      const On received{to.device, devices_.all()[to.device].compute};
      const On sending{from.device, from.stream};
      const On receiving{to.device, to.stream};
      signal_between(made_on, from.events[made], sending);
      if (!ways_.empty()) {
        signal_between(made_on, from.events[made], receiving);
        ways_[i % 2].transfer(0, {from.memory.data(), from.stream}, 1,
                              {to.memory.data(), to.stream}, bytes);
        signal_between(sending, from.events[sent], received);
        signal_between(receiving, to.events[sent], received);
      } else if (host_) {
        copy_by_host(from, to, bytes);
        signal_between(receiving, to.events[sent], received);
      } else {
        if (streams_ == Streams::compute) signal(devices_, received, to.events[made], sending);
        use(devices_, from.device);
        copy_between(devices_.driver(), {devices_.all()[from.device], from.memory.data()},
                     {devices_.all()[to.device], to.memory.data()}, bytes, from.stream);
        signal_between(sending, from.events[sent], received);
      }
    }
  }

 private:
  struct End {
    explicit End(std::size_t on) : device(on) {}

    std::size_t device;
    CudaUrgentStream own;       ///< Where it sends beside its ops.
    CUstream stream = nullptr;  ///< That it sends and receives on.
    CudaEvents events;
    CudaScratch memory;
  };
  enum Event : std::uint8_t { made, sent };

  /// What stands on the same stream needs none.
  void signal_between(On first, CUevent event, On second) {
    if (first.stream != second.stream) signal(devices_, first, event, second);
  }

  void prepare(Way way, const Nccl* nccl, const std::vector<Bytes>& sizes) {
    if (sizes.empty()) return;
    use(devices_, ends_[0].device);
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
    use(devices_, from.device);
    PLUMBLINE_CUDA(driver, cuMemcpyDtoHAsync, host_->data(), from.memory.data(), bytes,
                   from.stream);
    signal(devices_, {from.device, from.stream}, from.events[sent], {to.device, to.stream});
    PLUMBLINE_CUDA(driver, cuMemcpyHtoDAsync, to.memory.data(), host_->data(), bytes, to.stream);
  }

  bool take(Bytes size) {
    try {
      for (End& end : ends_) {
        use(devices_, end.device);
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
      end.events = {};
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

/// Times of all sizes, without the hand-over that a prediction adds to each transfer.
std::optional<MeasuredLink> timed_link(CudaDevices& devices, std::size_t first, std::string kind,
                                       Way way, Streams streams, const Nccl* nccl,
                                       std::vector<Bytes> sizes, Duration hand_over) {
  Pair pair(devices, first, way, streams, nccl, sizes);
  if (sizes.size() < 2) return std::nullopt;
  Stopwatch stopwatch(devices, first);
  TransferTable table;
  table.reserve(sizes.size());
  for (const Bytes size : sizes) {
    const auto bytes = static_cast<std::size_t>(size.count);
    const std::uint32_t copies = copies_of(bytes);
    const double all = stopwatch.time([&] { pair.enqueue(bytes, copies); });
    const Duration one{std::llround(all / copies)};
    table.emplace_back(size, std::max(one - hand_over, Duration{1}));
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

Duration measure_cuda_hand_over(CudaDevices& devices) {
  const auto& all = devices.all();
  if (all.size() < 2) return {};
  std::vector<CudaEvents> signals;
  signals.reserve(all.size());
  for (std::size_t device = 0; device < all.size(); ++device) {
    use(devices, device);
    signals.emplace_back(devices.driver(), 1, CU_EVENT_DISABLE_TIMING);
  }
  // Whole rounds: the ring ends where it began.
  const std::size_t count = (kHandOvers + all.size() - 1) / all.size() * all.size();
  Stopwatch stopwatch(devices, 0);
  const double time = stopwatch.time([&] {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = i % all.size();
      const std::size_t to = (i + 1) % all.size();
      signal(devices, {from, all[from].compute}, signals[from][0], {to, all[to].compute});
    }
  });
  return round_up(time / static_cast<double>(count));
}

std::vector<MeasuredLink> measure_cuda_links(CudaDevices& devices, const Nccl* nccl,
                                             const std::vector<Bytes>& sizes, Duration hand_over) {
  std::vector<MeasuredLink> links;
  if (devices.all().size() < 2) return links;
  const std::size_t pairs = devices.split() ? 1 : devices.all().size() - 1;
  const auto add = [&](std::size_t first, std::string kind, Way way, Streams streams) {
    auto link = timed_link(devices, first, std::move(kind), way, streams, nccl, sizes, hand_over);
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
