// The quantities of the tool: simulated time, bytes, bandwidth and typed ids.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>

namespace plumbline {

/// A length of time in whole nanoseconds. So sums do not depend on order, and closed forms hold
/// with `==`.
using Duration = std::chrono::duration<std::int64_t, std::nano>;

/// The clock of the simulation. It has no `now()`, because simulated time is only ever computed.
struct SimClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};

/// A point in simulated (or measured) time; the run starts at `SimTime{}`.
using SimTime = SimClock::time_point;

/// A number of bytes.
struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.count * n}; }
};

/// A rate of transfer, in whole bytes per second.
struct BytesPerSecond {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
};

/// A number of floating-point operations; a multiplication and its addition are two.
struct Flops {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Flops, Flops) = default;
};

/// A rate of computing, in whole FLOP per second.
struct FlopsPerSecond {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(FlopsPerSecond, FlopsPerSecond) = default;
};

/// A number that names one thing of one kind. Ids of different kinds do not convert into each
/// other.
template <class Tag>
struct Id {
  std::uint32_t value = 0;

  friend constexpr auto operator<=>(Id, Id) = default;
};

using LayerId = Id<struct LayerTag>;
using StageId = Id<struct StageTag>;
using DeviceId = Id<struct DeviceTag>;
using MicroBatchId = Id<struct MicroBatchTag>;

/// The largest single quantity in an input: 10^15 ns (11.5 days) or 10^15 B (1 PB). Sums over a
/// model stay far below the end of 64 bits; lowering checks the sum over a run.
inline constexpr std::int64_t kLargestQuantity = 1'000'000'000'000'000;

/// The most FLOPs of a layer, and the fastest device: 10^18 FLOP and 10^18 FLOP/s.
inline constexpr std::int64_t kMaxFlops = 1'000'000'000'000'000'000;

/// The time of `bytes` at `rate`, rounded up to a whole nanosecond, so that no transfer ends early.
/// Requires: bytes >= 0, rate > 0.
Duration transfer_time(Bytes bytes, BytesPerSecond rate);

/// The nanoseconds of a computed real duration, rounded up. A value slightly above a whole number,
/// from rounding in the last bits, counts as that number.
Duration round_up(double nanoseconds);

/// The same duration in seconds, for reports.
constexpr double seconds(Duration d) { return static_cast<double>(d.count()) / 1e9; }

}  // namespace plumbline
