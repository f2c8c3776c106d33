// Progressive filling.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/fair_share.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {

FairShare::FairShare(const std::vector<BytesPerSecond>& capacities) {
  capacities_.reserve(capacities.size());
  for (const BytesPerSecond capacity : capacities)
    capacities_.push_back(static_cast<double>(capacity.count) / 1e9);
  left_of_.resize(capacities_.size());
  users_of_.resize(capacities_.size());
  tight_.resize(capacities_.size());
}

const std::vector<FairShare::Change>& FairShare::start(std::uint32_t activity, Bytes work,
                                                       Duration alone, std::uint32_t out,
                                                       std::uint32_t in, SimTime now) {
  active_.push_back({.id = activity,
                     .version = 0,
                     .out = out,
                     .in = in,
                     .left = static_cast<double>(work.count),
                     .rate = 0,
                     .next_rate = 0,
                     .alone = alone,
                     .since = now,
                     .undisturbed = true});
  set_rates(now);
  return changes_;
}

bool FairShare::end(std::uint32_t activity, std::uint32_t version, SimTime now) {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&](const Activity& a) { return a.id == activity; });
  if (found == active_.end() || found->version != version) return false;
  active_.erase(found);
  set_rates(now);
  return true;
}

void FairShare::set_rates(SimTime now) {
  // Fill: repeatedly, the capacity with the least rate per open activity fixes the rates of these
  // activities.
  for (const std::uint32_t c : used_) users_of_[c] = 0;
  used_.clear();
  std::size_t open = active_.size();
  for (Activity& a : active_) {
    a.next_rate = -1;
    for (const std::uint32_t c : {a.out, a.in}) {
      if (users_of_[c]++ > 0) continue;
      used_.push_back(c);
      left_of_[c] = capacities_[c];
    }
  }
  while (open > 0) {
    double tightest = -1;
    for (const std::uint32_t c : used_) {
      if (users_of_[c] == 0) continue;
      const double share = left_of_[c] / users_of_[c];
      if (tightest < 0 || share < tightest) tightest = share;
    }
    // All activities on a capacity that is as tight as the tightest are fixed together. These
    // capacities are determined before any rate is assigned.
    const double bound = tightest * (1 + 1e-12);
    for (const std::uint32_t c : used_)
      tight_[c] = users_of_[c] > 0 && left_of_[c] / users_of_[c] <= bound;
    const std::size_t open_before = open;
    for (Activity& a : active_) {
      if (a.next_rate >= 0 || !(tight_[a.out] || tight_[a.in])) continue;
      a.next_rate = tightest;
      for (const std::uint32_t c : {a.out, a.in}) {
        left_of_[c] = std::max(0.0, left_of_[c] - tightest);
        --users_of_[c];
      }
      --open;
    }
    PLUMBLINE_CHECK(open < open_before, open, tightest);
  }

  changes_.clear();
  for (Activity& a : active_) {
    if (a.version != 0 && a.next_rate == a.rate) continue;
    const bool is_new = a.version == 0;
    const double full = std::min(capacities_[a.out], capacities_[a.in]);
    if (!is_new)
      a.left = std::max(0.0, a.left - a.rate * static_cast<double>((now - a.since).count()));
    a.undisturbed = is_new && a.next_rate >= full;
    a.rate = a.next_rate;
    a.since = now;
    a.version = next_version_++;
    changes_.push_back(
        {a.id, a.version, now + (a.undisturbed ? a.alone : round_up(a.left / a.rate))});
  }
}

}  // namespace plumbline
