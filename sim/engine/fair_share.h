// Activities that share capacities, such as transfers on network cards: max-min fair rates over
// time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// Keeps the remaining work and the rate of each running activity. When an activity starts or ends,
/// all rates are computed again, max-min fairly. The capacity with the least bandwidth per activity
/// gives each of its activities that rate; then the rest is divided in the same way. The class
/// knows no clock and no queue: its user schedules an end for every reported change.
class FairShare {
 public:
  /// The end of an activity, unless another change comes first; then `version` is out of date.
  struct Change {
    std::uint32_t activity = 0;
    std::uint32_t version = 0;
    SimTime end;
  };

  /// `capacities`: bytes per second of capacity 0, 1, ...
  explicit FairShare(const std::vector<BytesPerSecond>& capacities);

  /// Activity `activity` (a small number, unique among the running ones) starts to move `work`
  /// through both capacities. `alone` is its time at full rate; if no rate ever changes, it takes
  /// exactly that time, to the tick. Returns the changes; valid until the next call.
  const std::vector<Change>& start(std::uint32_t activity, Bytes work, Duration alone,
                                   std::uint32_t out, std::uint32_t in, SimTime now);

  /// The end that was announced with `version` is due. Returns whether it is still valid. If so,
  /// the activity is over, and changes() has the changes of the others.
  bool end(std::uint32_t activity, std::uint32_t version, SimTime now);
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Activity {
    std::uint32_t id = 0;
    std::uint32_t version = 0;
    std::uint32_t out = 0;
    std::uint32_t in = 0;
    double left = 0;  ///< Bytes at `since`.
    double rate = 0;  ///< Bytes per nanosecond from `since` on; 0 = not set yet.
    double next_rate = 0;
    Duration alone{};
    SimTime since;
    bool undisturbed = true;  ///< At full rate from its start.
  };

  void set_rates(SimTime now);

  std::vector<double> capacities_;  ///< Bytes per nanosecond.
  std::vector<Activity> active_;    ///< Ascending by start.
  std::vector<Change> changes_;
  std::vector<double> left_of_;  ///< Scratch: the rest of each capacity.
  std::vector<std::uint32_t> users_of_;
  std::vector<std::uint32_t> used_;  ///< The capacities that have users.
  std::vector<bool> tight_;
  std::uint32_t next_version_ = 1;
};

}  // namespace plumbline
