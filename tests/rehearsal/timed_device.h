// A device that takes its time: what is enqueued runs by the host's own clock, and streams compete
// for SMs, memory and connections.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "tests/support/fake_work.h"

namespace plumbline {

/// The properties of a device: those of an H100, where these were measured.
struct TimedDevice {
  double memory_bandwidth = 2.8e12;   ///< Bytes per second of all SMs together. An estimate.
  double bandwidth_of_sm = 80e9;      ///< The most for one SM: of copies, read and written.
  std::uint64_t launch = 2500;        ///< From the host's call to its start, in ns. An estimate.
  std::uint64_t gap = 1800;           ///< Between two kernels of a stream.
  std::uint64_t crossing = 1200;      ///< From a stream to one that waits for it.
  std::uint64_t gap_in_graph = 950;   ///< Between two nodes of a graph,
  std::uint64_t node_crossing = 950;  ///< and where they were captured from two streams.
  unsigned connections = 32;          ///< Streams beyond that share one.
  unsigned max_pending = 1021;        ///< Launches of a stream; then the host waits.
  double spread = 0.004;              ///< Spread of a kernel's time over launches. An estimate.
};

/// Work begins when its stream, the events before it, its launch and its connection let it, and
/// goes on as fast as SMs and memory that others use, too, let it: progress is shared evenly among
/// those that are under way, and told anew whenever one begins or ends. The host's clock is the
/// machine's.
class TimedWorks : public FakeWorks {
 public:
  TimedWorks(TimedDevice device, std::uint64_t seed);

  /// Lets other threads of the host have their turn for some part of so long.
  using Pause = std::function<void(std::chrono::nanoseconds)>;
  void set_pause(Pause pause) { pause_ = std::move(pause); }

  /// Waits where too much is pending on the lane.
  FakeWorkPointer add(FakeTask task, std::size_t lane,
                      const std::vector<FakeWorkPointer>& predecessors) override;
  void finish(const FakeWorkPointer& work) override;
  void finish_all() override;
  void step() override { advance(host_time()); }

 private:
  struct Work;
  using Pointer = std::shared_ptr<Work>;
  struct Start {
    std::uint64_t at = 0;
    std::uint64_t number = 0;  ///< The order of what begins together.
    Pointer work;
    bool operator<(const Start& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  std::uint64_t host_time() const;
  std::uint64_t between(const FakeWork& before, const FakeWork& after) const;
  void ready(const Pointer& work);
  /// All that begins or ends until then, and what the host has let go.
  void advance(std::uint64_t until);
  /// All that begins or ends until then.
  void run(std::uint64_t until);
  void begin(const Pointer& work);
  /// Begins what waited for the host, where the host has let it go or has taken too long. Returns
  /// whether anything has begun.
  bool release();
  void end(const Pointer& work);
  void set_rates();
  void wait_a_little();

  const TimedDevice device_;
  const std::uint64_t seed_;
  const std::chrono::steady_clock::time_point zero_ = std::chrono::steady_clock::now();
  Pause pause_ = [](std::chrono::nanoseconds) {};
  std::uint64_t clock_ = 0;  ///< Until where the device has got, in ns.
  std::uint64_t numbered_ = 0;
  std::size_t open_ = 0;  ///< Not done.
  std::priority_queue<Start> starts_;
  std::vector<Pointer> running_;
  std::vector<Pointer> held_;      ///< Begun, and waiting for the host.
  std::vector<Pointer> last_on_;   ///< By connection.
  std::vector<unsigned> pending_;  ///< Kernels, by lane.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace plumbline
