// Arrangements of unlike devices, each tried.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "sim/scenario/placement.h"

namespace plumbline {
namespace {

/// The device of each place in the pipeline.
using Arrangement = std::vector<std::uint32_t>;

/// The devices of one copy by their run, ascending. A device whose copies are of several kinds is
/// left out.
std::vector<Arrangement> devices_by_run(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto copies = static_cast<std::uint32_t>(scenario.copies);
  std::vector<Arrangement> by_run(std::max<std::size_t>(1, cluster.runs.size()));
  for (std::uint32_t device = 0; device < cluster.device_count() / copies; ++device) {
    const DeviceId first{device * copies};
    bool is_alike = true;
    for (std::uint32_t copy = 1; copy < copies; ++copy)
      is_alike = is_alike && cluster.kind_of({first.value + copy}) == cluster.kind_of(first);
    if (is_alike) by_run[cluster.runs.empty() ? 0 : cluster.run_of(first)].push_back(device);
  }
  return by_run;
}

/// Arrangements of `places` devices, run by run.
class Arranging {
 public:
  Arranging(std::vector<Arrangement> by_run, std::size_t places)
      : by_run_(std::move(by_run)), places_(places), used_(by_run_.size(), 0) {}

  std::vector<Arrangement> run() {
    std::size_t devices = 0;
    for (const Arrangement& one : by_run_) devices += one.size();
    if (devices < places_) return {};
    if (add_all()) return std::move(found_);
    found_.clear();
    begun_.clear();
    used_.assign(by_run_.size(), 0);
    add_blocks(false);
    add_blocks(true);
    return std::move(found_);
  }

 private:
  /// Adds all arrangements; false: there are more than can be tried.
  bool add_all() {
    if (begun_.size() == places_) {
      found_.push_back(begun_);
      return found_.size() <= kMaxArrangements;
    }
    for (std::size_t run = 0; run < by_run_.size(); ++run) {
      if (used_[run] == by_run_[run].size()) continue;
      begun_.push_back(by_run_[run][used_[run]++]);
      const bool goes_on = add_all();
      begun_.pop_back();
      --used_[run];
      if (!goes_on) return false;
    }
    return true;
  }

  /// Adds those in which the devices of a run follow each other; mirrored: in both halves of the
  /// pipeline, from its ends to its middle, as pipelines in two directions need it.
  void add_blocks(bool mirrored) {
    const std::size_t needed = mirrored ? places_ / 2 : places_;
    if (mirrored && places_ % 2 != 0) return;
    if (begun_.size() == needed) {
      Arrangement one = begun_;
      if (mirrored) one.insert(one.end(), ends_.rbegin(), ends_.rend());
      if (found_.size() < kMaxArrangements) found_.push_back(std::move(one));
      return;
    }
    for (std::size_t run = 0; run < by_run_.size() && found_.size() < kMaxArrangements; ++run) {
      const Arrangement& devices = by_run_[run];
      const std::size_t held = mirrored ? devices.size() / 2 : devices.size();
      if (used_[run] > 0 || held == 0) continue;
      const std::size_t more = std::min(held, needed - begun_.size());
      const auto middle = devices.begin() + static_cast<std::ptrdiff_t>(more);
      begun_.insert(begun_.end(), devices.begin(), middle);
      if (mirrored) ends_.insert(ends_.end(), middle, middle + static_cast<std::ptrdiff_t>(more));
      used_[run] = more;
      add_blocks(mirrored);
      used_[run] = 0;
      begun_.resize(begun_.size() - more);
      if (mirrored) ends_.resize(ends_.size() - more);
    }
  }

  std::vector<Arrangement> by_run_;
  std::size_t places_;
  std::vector<std::size_t> used_;  ///< Of each run.
  Arrangement begun_;
  Arrangement ends_;  ///< From the end of the pipeline, where it is mirrored.
  std::vector<Arrangement> found_;
};

/// The arrangements to try, that of the devices' numbers first.
std::vector<Arrangement> arrangements(const Scenario& scenario, std::size_t places) {
  Arrangement numbered(places);
  std::iota(numbered.begin(), numbered.end(), std::uint32_t{0});
  std::vector<Arrangement> all = Arranging(devices_by_run(scenario), places).run();
  std::erase(all, numbered);
  all.insert(all.begin(), std::move(numbered));
  return all;
}

class DeviceSearch {
 public:
  DeviceSearch(Scenario scenario, const TryDevices& attempt, const TryDevices& careful)
      : scenario_(std::move(scenario)), attempt_(attempt), careful_(careful) {
    scenario_.plan.devices_open = false;
  }

  Result<ChosenDevices> run() {
    const auto places = places_in_pipeline(scenario_);
    if (!places) return places.problems();
    for (const Arrangement& one : arrangements(scenario_, *places)) take_if_better(one);
    // Devices of one run differ only in the links that they have by their numbers.
    if (!scenario_.cluster.pair_links.empty() || scenario_.cluster.levels.size() > 1) exchange();
    if (!best_) return problems_;
    if (careful_) decide();
    scenario_.plan.device_order = order_;
    return ChosenDevices{std::move(scenario_), text()};
  }

 private:
  /// Tries an arrangement. Returns whether it is the best so far.
  bool take_if_better(const Arrangement& one) {
    scenario_.plan.device_order = one;
    const auto tried = attempt_(scenario_);
    const bool is_first = count_++ == 0;
    if (!tried) {
      if (problems_.empty()) problems_ = tried.problems();
      return false;
    }
    if (is_first) numbered_ = *tried;
    ranked_.emplace_back(*tried, one);
    return take_if_first(*tried, one);
  }

  static bool is_better(const TriedDevices& a, const TriedDevices& b) {
    return std::tuple(!a.fits, a.time_s, a.peak_memory) <
           std::tuple(!b.fits, b.time_s, b.peak_memory);
  }

  bool take_if_first(const TriedDevices& tried, const Arrangement& one) {
    if (best_ && !is_better(tried, *best_)) return false;
    best_ = tried;
    order_ = one;
    return true;
  }

  /// Tries the best few, and the one in the order of the numbers, once more.
  void decide() {
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [](const auto& a, const auto& b) { return is_better(a.first, b.first); });
    ranked_.resize(std::min(ranked_.size(), kFinalists));
    if (numbered_) {
      Arrangement numbered(order_.size());
      std::iota(numbered.begin(), numbered.end(), std::uint32_t{0});
      ranked_.emplace_back(*numbered_, std::move(numbered));
    }
    best_.reset();
    for (const auto& [before, one] : ranked_) {
      scenario_.plan.device_order = one;
      const auto again = careful_(scenario_);
      const TriedDevices tried = again ? *again : before;
      if (numbered_ && &one == &ranked_.back().second) numbered_ = tried;
      take_if_first(tried, one);
    }
  }

  /// Exchanges two devices, or one for a device that is not in use, as long as that helps.
  void exchange() {
    const std::uint32_t devices =
        scenario_.cluster.device_count() / static_cast<std::uint32_t>(scenario_.copies);
    for (bool helps = best_.has_value(); helps;) {
      helps = false;
      for (std::size_t place = 0; place < order_.size() && !helps; ++place) {
        for (std::uint32_t device = 0; device < devices && !helps; ++device) {
          if (count_ >= kMaxArrangements) return;
          Arrangement other = order_;
          const auto at = std::find(other.begin(), other.end(), device);
          if (at != other.end() && at - other.begin() <= static_cast<std::ptrdiff_t>(place))
            continue;
          if (at != other.end()) *at = other[place];
          other[place] = device;
          helps = take_if_better(other);
        }
      }
    }
  }

  /// "4, 5, 0, 1 along the pipeline, the best of 6 arrangements; in the order of their numbers
  /// ...".
  std::string text() const {
    constexpr std::size_t shown = 16;
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(std::min(shown, order_.size()));
    if (count_ == 1) return "there is only one arrangement";
    std::string text =
        fmt::format("{}{} along the pipeline, the best of {} arrangement{}",
                    fmt::join(order_.begin(), last, ", "), order_.size() > shown ? ", ..." : "",
                    count_, count_ == 1 ? "" : "s");
    if (!best_->fits) return text + "; none of them fits the memory";
    if (!numbered_) return text + "; in the order of their numbers they cannot run";
    if (numbered_->time_s == best_->time_s && numbered_->fits == best_->fits) return text;
    if (!numbered_->fits) return text + "; in the order of their numbers it does not fit";
    const double longer = numbered_->time_s / best_->time_s - 1;
    if (longer < 5e-4) return text + "; in the order of their numbers it is nearly as fast";
    return text +
           fmt::format("; in the order of their numbers it takes {:.1f} % longer", 100 * longer);
  }

  Scenario scenario_;
  const TryDevices& attempt_;
  const TryDevices& careful_;
  std::vector<std::pair<TriedDevices, Arrangement>> ranked_;  ///< Those that can run.
  std::optional<TriedDevices> best_;
  std::optional<TriedDevices> numbered_;  ///< In the order of the devices' numbers.
  Arrangement order_;                     ///< The best.
  std::size_t count_ = 0;                 ///< Arrangements that were tried.
  Diagnostics problems_;
};

}  // namespace

Result<ChosenDevices> choose_devices(Scenario scenario, const TryDevices& attempt,
                                     const TryDevices& careful) {
  return DeviceSearch(std::move(scenario), attempt, careful).run();
}

}  // namespace plumbline
