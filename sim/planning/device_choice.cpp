// Arrangements of unlike devices, each tried.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

/// The device of each place in the pipeline.
using Arrangement = std::vector<std::uint32_t>;

/// The devices of one copy by their run, ascending. A device whose copies are of several runs is
/// left out.
std::vector<Arrangement> devices_by_run(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto copies = static_cast<std::uint32_t>(scenario.copies);
  std::vector<Arrangement> by_run(std::max<std::size_t>(1, cluster.runs.size()));
  for (std::uint32_t device = 0; device < cluster.device_count() / copies; ++device) {
    if (cluster.runs.empty()) {
      by_run.front().push_back(device);
      continue;
    }
    const std::size_t run = cluster.run_of({device * copies});
    if (cluster.run_of({device * copies + copies - 1}) == run) by_run[run].push_back(device);
  }
  return by_run;
}

/// Adds all arrangements of `places` devices; false: there are more than can be tried.
bool add_all(const std::vector<Arrangement>& by_run, std::size_t places,
             std::vector<std::size_t>& used, Arrangement& begun, std::vector<Arrangement>& all) {
  if (begun.size() == places) {
    all.push_back(begun);
    return all.size() <= kMaxArrangements;
  }
  for (std::size_t run = 0; run < by_run.size(); ++run) {
    if (used[run] == by_run[run].size()) continue;
    begun.push_back(by_run[run][used[run]++]);
    const bool goes_on = add_all(by_run, places, used, begun, all);
    begun.pop_back();
    --used[run];
    if (!goes_on) return false;
  }
  return true;
}

/// Those in which the devices of a run follow each other.
std::vector<Arrangement> in_blocks(const std::vector<Arrangement>& by_run, std::size_t places) {
  std::vector<std::size_t> runs(by_run.size());
  std::iota(runs.begin(), runs.end(), std::size_t{0});
  std::set<Arrangement> known;
  std::vector<Arrangement> all;
  do {
    Arrangement one;
    for (const std::size_t run : runs) {
      const std::size_t more = std::min(by_run[run].size(), places - one.size());
      one.insert(one.end(), by_run[run].begin(),
                 by_run[run].begin() + static_cast<std::ptrdiff_t>(more));
    }
    if (one.size() == places && known.insert(one).second) all.push_back(std::move(one));
  } while (all.size() < kMaxArrangements && std::next_permutation(runs.begin(), runs.end()));
  return all;
}

/// The arrangements to try, that of the devices' numbers first.
std::vector<Arrangement> arrangements(const Scenario& scenario, std::size_t places) {
  Arrangement numbered(places);
  std::iota(numbered.begin(), numbered.end(), std::uint32_t{0});
  const std::vector<Arrangement> by_run = devices_by_run(scenario);
  std::vector<std::size_t> used(by_run.size(), 0);
  Arrangement begun;
  std::vector<Arrangement> all;
  if (!add_all(by_run, places, used, begun, all)) all = in_blocks(by_run, places);
  std::erase(all, numbered);
  all.insert(all.begin(), std::move(numbered));
  return all;
}

class DeviceSearch {
 public:
  DeviceSearch(Scenario scenario, const TryDevices& attempt)
      : scenario_(std::move(scenario)), attempt_(attempt) {
    scenario_.plan.devices_open = false;
  }

  Result<ChosenDevices> run() {
    Scenario probe = scenario_;  // its stages do not depend on what is recomputed
    probe.schedule.recompute = {};
    const auto setup = resolve_setup(probe, /*for_run=*/false);
    if (!setup) return setup.problems();
    const std::size_t places = setup->devices.back().value + std::size_t{1};
    for (const Arrangement& one : arrangements(scenario_, places)) take_if_better(one);
    if (scenario_.cluster.has_own_links() || scenario_.cluster.levels.size() > 1) exchange();
    if (!best_) return problems_;
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
    const auto rank = [](const TriedDevices& run) {
      return std::tuple(!run.fits, run.time_s, run.peak_memory);
    };
    if (best_ && !(rank(*tried) < rank(*best_))) return false;
    best_ = *tried;
    order_ = one;
    return true;
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

  /// "4, 5, 0, 1 along the pipeline, the best of 6 arrangements; as numbered 31 ms".
  std::string text() const {
    constexpr std::size_t shown = 16;
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(std::min(shown, order_.size()));
    std::string text =
        fmt::format("{}{} along the pipeline, the best of {} arrangement{}",
                    fmt::join(order_.begin(), last, ", "), order_.size() > shown ? ", ..." : "",
                    count_, count_ == 1 ? "" : "s");
    if (!best_->fits) return text + "; none of them fits the memory";
    if (!numbered_) return text + "; in the order of their numbers they cannot run";
    if (numbered_->time_s == best_->time_s && numbered_->fits == best_->fits) return text;
    if (!numbered_->fits) return text + "; in the order of their numbers it does not fit";
    return text + fmt::format("; in the order of their numbers {:.1f} % longer",
                              100 * (numbered_->time_s / best_->time_s - 1));
  }

  Scenario scenario_;
  const TryDevices& attempt_;
  std::optional<TriedDevices> best_;
  std::optional<TriedDevices> numbered_;  ///< In the order of the devices' numbers.
  Arrangement order_;                     ///< The best.
  std::size_t count_ = 0;                 ///< Arrangements that were tried.
  Diagnostics problems_;
};

}  // namespace

Result<ChosenDevices> choose_devices(Scenario scenario, const TryDevices& attempt) {
  return DeviceSearch(std::move(scenario), attempt).run();
}

}  // namespace plumbline
