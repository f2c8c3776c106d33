// The doubts of a search about its first layout: the first on other devices, and those too close.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "base/table.h"
#include "models/kernels/kernel_model.h"
#include "sim/planning/predict.h"
#include "sim/report/search_report.h"
#include "sim/search/search.h"
#include "sim/setup/expected_errors.h"

namespace plumbline {
namespace {

/// Another device: its part and share in sentences, and its keys in the scenario.
struct Trial {
  std::string part;
  double share = 0;
  std::vector<std::string> overrides;
};

std::vector<Trial> trials_by_roofline(const DeviceRoofline& device) {
  std::vector<Trial> trials;
  for (const double factor : {0.8, 1.2}) {
    const double share = std::min(1.0, device.efficiency * factor);
    if (share == device.efficiency) continue;
    trials.push_back({"", share, {fmt::format("cluster.device.efficiency={:g}", share)}});
  }
  return trials;
}

/// A part of the device at a share of its speed. Rates that the device lacks are left out.
class SlowerPart {
 public:
  SlowerPart(std::string part, double share) : trial_{std::move(part), share, {}} {}

  template <class Rate>
  void add(const char* key, const std::optional<Rate>& rate, const char* unit) {
    if (!rate) return;
    trial_.overrides.push_back(
        fmt::format("cluster.device.{}={} {}", key,
                    std::llround(trial_.share * static_cast<double>(rate->count)), unit));
  }

  const Trial& trial() const { return trial_; }

 private:
  Trial trial_;
};

/// A device of numbers alone keeps its products: its peak decides which other traits it has.
std::vector<Trial> trials_by_kernels(const DeviceRoofline& device, const KernelModel& kernels) {
  constexpr double share = .8;
  SlowerPart products("products", share);
  const bool is_preset = !kernels.device().traits.device.empty();
  if (is_preset) {
    products.add("peak", std::optional(device.peak), "FLOP/s");
    products.add("fp8_peak", device.fp8_peak, "FLOP/s");
  }
  SlowerPart links("links", share);
  links.add("link", device.link_bandwidth, "B/s");
  links.add("network", device.network_bandwidth, "B/s");
  std::vector<Trial> trials = {products.trial(), links.trial()};
  std::erase_if(trials, [](const Trial& trial) { return trial.overrides.empty(); });
  return trials;
}

/// The value of the objective, if that is a throughput.
double goodness(const SearchReport& report, const SweepNumbers& numbers) {
  const Objective objective = report.selection.rows.objective;
  const auto rate = objective == Objective::per_device ? numbers.throughput_per_device()
                    : objective == Objective::goodput  ? numbers.bill.goodput_samples_per_s
                                                       : numbers.throughput_samples_per_s;
  return rate.value_or(0);
}

/// The first of the best rows on the other device; nothing if one of them cannot be predicted.
std::optional<OtherDevice> first_on(const Trial& trial, const Search& search,
                                    const SearchReport& report, unsigned threads) {
  std::vector<std::optional<SweepRow>> found(report.best.size());
  const std::atomic<bool> never{false};
  for_each_parallel(found.size(), threads > 0 ? threads : available_cores(), never,
                    [&](std::uint64_t i) {
                      auto scenario = search.read(report.best[i].layout, trial.overrides);
                      if (!scenario) return;
                      const auto settled = settle_and_predict(*std::move(scenario));
                      if (settled) found[i] = SweepRow{i, numbers_of(settled->outcome), "", {}};
                    });
  std::vector<SweepRow> rows;
  for (std::optional<SweepRow>& row : found) {
    if (!row) return std::nullopt;
    rows.push_back(*std::move(row));
  }
  const double before = goodness(report, *rows.front().numbers);
  const SweepRow best =
      select(std::move(rows), {report.selection.rows.objective, {}, Front::none, 1}).front();
  return OtherDevice{trial.part, trial.share, static_cast<std::size_t>(best.point),
                     before > 0 ? goodness(report, *best.numbers) / before - 1 : 0};
}

/// Whether published runs say how sure the order of the best rows is: each is such a run, and all
/// are of one model.
bool is_order_published(const Search& search, const SearchReport& report) {
  const auto& varied = report.facts.varied_keys;
  const bool has_models = std::any_of(varied.begin(), varied.end(), [](const std::string& key) {
    return key == "model" || key == "model.huggingface" || key == "model.profile";
  });
  return !has_models &&
         std::all_of(report.best.begin(), report.best.end(), [&](const SearchRow& row) {
           const auto scenario = search.read(row.layout);
           return scenario && expected_errors(*scenario);
         });
}

/// The rows of the best, besides the first, that are slower than it by no more than kTooClose.
std::size_t close_to_first(const SearchReport& report) {
  const double least = goodness(report, *report.best.front().row.numbers) / (1 + kTooClose);
  const auto close = std::count_if(
      report.best.begin() + 1, report.best.end(),
      [&](const SearchRow& row) { return goodness(report, *row.row.numbers) >= least; });
  return static_cast<std::size_t>(close);
}

std::string words_of(const OtherDevice& other, const SearchReport& report) {
  if (other.part.empty())
    return fmt::format("if devices reached {:g} % of their peaks instead of {:g} %",
                       100 * other.share, 100 * report.efficiency);
  return fmt::format("if {} ran at {:g} % of their speed", other.part, 100 * other.share);
}

std::string words_on_close(const SearchReport& report) {
  const std::size_t close = *report.too_close;
  const std::string within = fmt::format("within {:g} % of number 1", 100 * kTooClose);
  if (close == 0) return "no other layout is " + within;
  if (close == 1) return fmt::format("number 2 is {}: too close to call", within);
  const bool has_more =
      close + 1 == report.best.size() && report.feasible + report.slower > report.best.size();
  return fmt::format("numbers 2 to {}{} are {}: too close to call", close + 1,
                     has_more ? ", and maybe more," : "", within);
}

}  // namespace

void try_other_devices(const Search& search, SearchReport& report, unsigned threads) {
  const Objective objective = report.selection.rows.objective;
  const auto& varied = report.facts.varied_keys;
  const bool by_speed = objective == Objective::throughput || objective == Objective::per_device ||
                        objective == Objective::goodput;
  const bool is_varied = std::any_of(varied.begin(), varied.end(), [](const std::string& key) {
    return key == "cluster" || key.starts_with("cluster.device");
  });
  if (report.best.size() < 2 || !by_speed || is_varied) return;
  const auto first = search.read(report.best.front().layout);
  if (!first || !first->estimated_for) return;
  const DeviceRoofline& device = *first->estimated_for;
  const bool is_published = is_order_published(search, report);
  // Measured kernels feel no other rates. A table that holds none of a model's changes nothing.
  if (first->kernels && first->kernels->measured() && !is_published) return;
  if (is_published) report.too_close = close_to_first(report);
  if (!first->kernels) report.efficiency = device.efficiency;
  for (const Trial& trial :
       first->kernels ? trials_by_kernels(device, *first->kernels) : trials_by_roofline(device)) {
    auto other = first_on(trial, search, report, threads);
    if (!other) return;
    report.others.push_back(*std::move(other));
  }
}

std::vector<std::string> doubts(const SearchReport& report) {
  std::vector<std::string> lines;
  if (report.too_close) lines.insert(lines.end(), {words_on_close(report), order_sentence()});
  for (const OtherDevice& other : report.others) {
    const std::string on = words_of(other, report);
    lines.push_back(other.first == 0
                        ? fmt::format("{}, number 1 would still be the first of the best {}", on,
                                      report.best.size())
                        : fmt::format("{}, number {} would be the first of the best {}, {} faster",
                                      on, other.first + 1, report.best.size(),
                                      percent(other.gain)));
  }
  if (report.others_untried)
    lines.push_back(
        fmt::format("the scenario ({}) is not here as it was searched: who would be first on "
                    "slower or faster devices was not tried",
                    report.facts.file));
  return lines;
}

}  // namespace plumbline
