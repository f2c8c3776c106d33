// Copies back and forth between ops of a known time.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/link_benchmark.h"

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

#include "calibrate/cuda/driver/copy.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/pinned.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/driver/stopwatch.h"
#include "calibrate/measure/sampling.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxCopies = 32;
constexpr std::size_t kMaxCopied = std::size_t{1} << 29;

/// The way of a transfer.
enum class Way : std::uint8_t { copy, host, nccl };

/// The streams of transfers: their own, or those of the ops.
enum class Streams : std::uint8_t { own, compute };

/// Devices in a row that pass on tensors as a pipeline does: up to the last one and down again.
/// Each device has its own stream for each direction, as in a run. On an H100 a transfer back and
/// forth on one stream takes 2 us less.
class Chain {
 public:
  /// A chain of `count` devices from `first` on; two, except for copies. Allocates memory for the
  /// largest size that fits, and drops the larger sizes.
  Chain(CudaDevices& devices, std::size_t first, std::size_t count, Way way, Streams streams,
        const Nccl* nccl, std::vector<Bytes>& sizes)
      : devices_(devices), streams_(streams), ends_(count) {
    try {
      for (std::size_t i = 0; i < count; ++i) {
        End& end = ends_[i];
        end.device = first + i;
        const CudaDevice& device = devices_.all()[end.device];
        end.compute = {&device, device.compute};
        end.made = event_of(end.compute);
        if (i + 1 < count) open(end, end.up);
        if (i > 0) open(end, end.down);
      }
      while (!sizes.empty() && !take(sizes.back())) sizes.pop_back();
      prepare(way, nccl, sizes);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Chain() { close(); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// The number of ops, and of hand-overs behind them, in one round up and down.
  std::size_t ops() const { return 2 * ends_.size(); }
  std::size_t transfers() const { return 2 * (ends_.size() - 1); }

  /// From now on each op writes what is sent behind it.
  void let_write(CudaSpinOps& ops, std::size_t bytes) const {
    for (const End& end : ends_) ops.let_write(end.device, end.memory.data(), bytes);
  }

  /// Enqueues `rounds` rounds up and down. Each transfer comes after an op that makes its tensor.
  void enqueue(CudaSpinOps& ops, std::size_t bytes, std::uint32_t rounds) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        ops.enqueue(ends_[i].device);
        if (i + 1 < ends_.size())
          hand_on(ends_[i], ends_[i].up, ends_[i + 1], ends_[i + 1].down, bytes);
      }
      for (std::size_t i = ends_.size(); i-- > 0;) {
        ops.enqueue(ends_[i].device);
        if (i > 0) hand_on(ends_[i], ends_[i].down, ends_[i - 1], ends_[i - 1].up, bytes);
      }
    }
  }

 private:
  /// A device's stream and event for sending to one neighbour, or for receiving if that needs a
  /// stream.
  struct Sending {
    CudaUrgentStream own;  ///< A stream beside its ops.
    CudaPoint moving;
    CudaEvents sent;
  };
  struct End {
    std::size_t device = 0;
    CudaPoint compute;
    CudaEvents made;
    Sending up;
    Sending down;
    CudaScratch memory;
  };

  void use(CudaPoint point) {
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, point.on->context);
  }
  CudaEvents event_of(CudaPoint point) {
    use(point);
    return {devices_.driver(), 1, CU_EVENT_DISABLE_TIMING};
  }
  void open(const End& end, Sending& way) {
    way.moving = end.compute;
    if (streams_ == Streams::own) {
      way.own = CudaUrgentStream(devices_, end.device);
      way.moving = {&devices_.mover(end.device), way.own.get()};
    }
    way.sent = event_of(way.moving);
  }

  /// Work on the same stream needs no event.
  void signal_between(CudaPoint first, const CudaEvents& event, CudaPoint second) {
    if (first.stream != second.stream) signal(devices_.driver(), first, event[0], second);
  }

  void hand_on(const End& from, const Sending& sends, const End& to, const Sending& receives,
               std::size_t bytes) {
    signal_between(from.compute, from.made, sends.moving);
    if (!communicators_.empty()) {
      signal_between(from.compute, from.made, receives.moving);
      communicators_[&from == &ends_[0] ? 0 : 1].transfer(
          0, {from.memory.data(), sends.moving.stream}, 1,
          {to.memory.data(), receives.moving.stream}, bytes);
      signal_between(sends.moving, sends.sent, to.compute);
      signal_between(receives.moving, receives.sent, to.compute);
    } else if (host_) {
      copy_by_host(from, sends, to, receives, bytes);
      signal_between(receives.moving, receives.sent, to.compute);
    } else {
      if (streams_ == Streams::compute)
        signal(devices_.driver(), to.compute, to.made[0], sends.moving);
      use(sends.moving);
      copy_between(devices_.driver(), {devices_.all()[from.device], from.memory.data()},
                   {devices_.all()[to.device], to.memory.data()}, bytes, sends.moving.stream);
      signal_between(sends.moving, sends.sent, to.compute);
    }
  }

  void prepare(Way way, const Nccl* nccl, const std::vector<Bytes>& sizes) {
    if (sizes.empty()) return;
    use(ends_[0].compute);
    if (way == Way::host)
      host_.emplace(devices_.driver(), static_cast<std::size_t>(sizes.back().count));
    if (way != Way::nccl) return;
    const std::array<int, 2> gpus = {devices_.all()[ends_[0].device].ordinal,
                                     devices_.all()[ends_[1].device].ordinal};
    communicators_.emplace_back(*nccl, std::vector<int>{gpus[0], gpus[1]});
    communicators_.emplace_back(*nccl, std::vector<int>{gpus[1], gpus[0]});
  }

  /// Copies in two steps, through the host's memory.
  void copy_by_host(const End& from, const Sending& sends, const End& to, const Sending& receives,
                    std::size_t bytes) {
    const CudaDriver& driver = devices_.driver();
    use(sends.moving);
    PLUMBLINE_CUDA(driver, cuMemcpyDtoHAsync, host_->data(), from.memory.data(), bytes,
                   sends.moving.stream);
    signal(driver, sends.moving, sends.sent[0], receives.moving);
    PLUMBLINE_CUDA(driver, cuMemcpyHtoDAsync, to.memory.data(), host_->data(), bytes,
                   receives.moving.stream);
  }

  bool take(Bytes size) {
    try {
      for (End& end : ends_) {
        use(end.compute);
        end.memory = {};  // before the next one is allocated
        end.memory = CudaScratch(devices_.driver(), static_cast<std::size_t>(size.count));
      }
      return true;
    } catch (const CudaError& error) {
      if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
      return false;
    }
  }

  void close() noexcept {
    communicators_.clear();
    devices_.driver().cuCtxSetCurrent(devices_.all()[ends_[0].device].context);
    host_.reset();
    for (End& end : ends_) {
      devices_.driver().cuCtxSetCurrent(devices_.all()[end.device].context);
      end.made = {};
      end.up.sent = {};
      end.down.sent = {};
      end.memory = {};
    }
  }

  CudaDevices& devices_;
  Streams streams_;
  std::vector<End> ends_;
  std::optional<CudaPinned> host_;               ///< Set if copies go through it.
  std::vector<NcclCommunicator> communicators_;  ///< There and back, if they move the tensors.
};

/// The number of rounds that takes no long time.
std::uint32_t rounds_of(std::size_t bytes, std::size_t transfers) {
  const std::size_t all = std::min(kMaxCopied / bytes, kMaxCopies);
  return static_cast<std::uint32_t>(std::max<std::size_t>(all / transfers, 1));
}

/// How a link is measured.
struct Route {
  std::size_t first = 0;
  std::size_t count = 2;
  Way way = Way::copy;
  Streams streams = Streams::own;
};

/// The time of a link in `each` transfer of a chain: a prediction adds the hand-over, and to the op
/// before it what copies beside it take.
Duration of_link(double each, const CudaLaunchTimes& launches) {
  return std::max(Duration{std::llround(each - launches.crossing - launches.signals)}, Duration{1});
}

/// The times of all sizes that fit into memory, without the ops between transfers and without the
/// hand-over that a prediction adds. The ops are as a network's: several kernels, of which the last
/// one writes what is sent.
TransferTable timed_transfers(CudaDevices& devices, const Route& route, const Nccl* nccl,
                              std::vector<Bytes> sizes, CudaSpinOps& ops,
                              const CudaLaunchTimes& launches) {
  Chain chain(devices, route.first, route.count, route.way, route.streams, nccl, sizes);
  CudaStopwatch stopwatch(devices, route.first);
  TransferTable table;
  table.reserve(sizes.size());
  for (const Bytes size : sizes) {
    const auto bytes = static_cast<std::size_t>(size.count);
    chain.let_write(ops, bytes);
    // Only an op that receives waits for anything.
    const auto transfers = static_cast<double>(chain.transfers());
    const double of_ops = transfers * time_of_spin_op(devices, route.first, ops, /*signals=*/true) +
                          (static_cast<double>(chain.ops()) - transfers) *
                              time_of_spin_op(devices, route.first, ops, /*signals=*/false);
    const std::uint32_t rounds = rounds_of(bytes, chain.transfers());
    const double all = stopwatch.time([&] { chain.enqueue(ops, bytes, rounds); });
    table.emplace_back(size, of_link((all / rounds - of_ops) / transfers, launches));
  }
  chain.let_write(ops, 0);
  return table;
}

/// The same between the first two devices while so many others work. Its ops write nothing: they
/// would take now more and now less of what others leave of the memory. Empty where the host cannot
/// enqueue the work of the others fast enough, or where that ends too early.
TransferTable busy_transfers(CudaDevices& devices, Streams streams, std::vector<Bytes> sizes,
                             CudaSpinOps& ops, const CudaLaunchTimes& launches,
                             const CudaWorkBeside& others, std::uint32_t workers) {
  constexpr std::uint32_t kRow = 16;
  constexpr std::uint32_t kMaxRounds = 4;
  Chain chain(devices, 0, 2, Way::copy, streams, nullptr, sizes);
  CudaStopwatch stopwatch(devices, 0);
  const auto time = [&](const std::function<void()>& enqueue) -> std::optional<double> {
    others.wait();
    const double at_rest = stopwatch.time(enqueue);
    if (!others.lasts(workers, 2 * at_rest)) return std::nullopt;
    const auto beside_work = [&] {
      others.enqueue(0, workers, 2 * at_rest);
      enqueue();
    };
    const auto took = stopwatch.time_behind_gate(beside_work, [&] { others.wait(); });
    others.wait();
    return took;
  };
  const auto row = time([&] {
    for (std::uint32_t op = 0; op < kRow; ++op) ops.enqueue(0);
  });
  if (!row) return {};
  // An op that receives waits for something, at rest as beside work.
  const double of_wait = time_of_spin_op(devices, 0, ops, /*signals=*/true) -
                         time_of_spin_op(devices, 0, ops, /*signals=*/false);
  const auto transfers = static_cast<double>(chain.transfers());
  const double of_ops = *row / kRow * static_cast<double>(chain.ops()) + of_wait * transfers;
  TransferTable table;
  for (const Bytes size : sizes) {
    const auto bytes = static_cast<std::size_t>(size.count);
    const std::uint32_t rounds = std::min(rounds_of(bytes, chain.transfers()), kMaxRounds);
    const auto all = time([&] { chain.enqueue(ops, bytes, rounds); });
    if (!all) return {};
    table.emplace_back(size, of_link((*all / rounds - of_ops) / transfers, launches));
  }
  return table;
}

/// Some of ascending sizes, each about four times the last one: between them a busy link's times
/// lie on straight lines, as far as is known.
std::vector<Bytes> some_of(const std::vector<Bytes>& sizes) {
  constexpr Bytes kMax{1 << 24};
  std::vector<Bytes> some;
  for (const Bytes size : sizes) {
    if (size > kMax && some.size() > 1) break;
    if (some.empty() || 2 * size.count >= 7 * some.back().count) some.push_back(size);
  }
  return some;
}

/// 1, 2, 4 and so on, and the most.
std::vector<std::uint32_t> numbers_up_to(std::uint32_t most) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 1; number < most; number *= 2) numbers.push_back(number);
  numbers.push_back(most);
  return numbers;
}

/// Whether others' work makes some transfer, hand-over included, longer by a twentieth or more.
bool is_slowed(const MeasuredLink& link, const CudaLaunchTimes& launches) {
  const Link at_rest{link.latency, link.bandwidth, link.table};
  const auto whole = [&](Duration time) {
    return static_cast<double>(time.count()) + launches.crossing;
  };
  for (const BusyTransfers& busy : link.busy) {
    for (const auto& [size, time] : busy.table)
      if (whole(time) >= 1.05 * whole(at_rest.time_of(size).whole())) return true;
  }
  return false;
}

/// Sorts links by the time of the largest size that all of them have.
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
                                             const std::vector<Bytes>& sizes,
                                             CudaWorkBeside* others) {
  std::vector<MeasuredLink> links;
  if (devices.all().size() < 2) return links;
  CudaSpinOps ops(devices, launching, CudaSpinOps::kKernelsOfPass);
  const auto add = [&](const Route& route, std::string kind) {
    TransferTable table = timed_transfers(devices, route, nccl, sizes, ops, launches);
    auto link = table.size() < 2 ? std::nullopt : measured_link(std::move(kind), std::move(table));
    if (!link) return false;
    links.push_back(*std::move(link));
    return true;
  };
  const auto add_busy = [&](Streams streams, MeasuredLink& link) {
    for (const std::uint32_t workers : numbers_up_to(others->workers())) {
      TransferTable table =
          busy_transfers(devices, streams, some_of(sizes), ops, launches, *others, workers);
      if (!table.empty()) link.busy.push_back({workers, std::move(table)});
    }
    if (!is_slowed(link, launches)) link.busy.clear();
  };
  const std::string_view between = nccl == nullptr ? "peer" : "nccl";
  const Way way = nccl == nullptr ? Way::copy : Way::nccl;
  for (const Streams streams : {Streams::own, Streams::compute}) {
    const auto named = [&](const std::string& kind) {
      return streams == Streams::own ? kind : blocking_link(kind);
    };
    if (devices.split()) {
      const bool is_there = add({0, devices.all().size(), Way::copy, streams}, named("copy"));
      if (is_there && others != nullptr) add_busy(streams, links.back());
      continue;
    }
    const std::size_t before = links.size();
    for (std::size_t first = 0; first + 1 < devices.all().size(); ++first)
      add({first, 2, way, streams}, named(fmt::format("{} {}-{}", between, first, first + 1)));
    slowest_first({links.begin() + static_cast<std::ptrdiff_t>(before), links.end()});
  }
  try {
    add({0, 2, Way::host, Streams::own}, "host");
  } catch (const CudaError& error) {  // not every machine has so much pinned memory
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
  }
  return links;
}

}  // namespace plumbline
