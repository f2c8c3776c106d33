// The numbers of compared runs, and the sentence on why one is faster.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/quantity.h"
#include "sim/prediction/uncertainty.h"
#include "sim/whatif/likeness.h"

namespace plumbline {
namespace {

constexpr auto kDependency = static_cast<std::size_t>(IdleCause::dependency);

std::string length_text(double time_s) { return time_text(std::abs(time_s)); }

/// One part of an iteration of a device, on average.
struct Share {
  std::string text;  ///< "waits {} {} for transfers": time, less or more.
  double saved_s = 0;
};

/// The savings of the faster run, the largest first; negative where it spends more.
std::vector<Share> shares(const ComparedRun& fast, const ComparedRun& slow) {
  constexpr std::string_view texts[kIdleCauseCount] = {
      "idles {} {} while the pipeline fills",
      "idles {} {} while it drains",
      "waits {} {} for other devices' results",
      "waits {} {} for transfers",
      "waits {} {} for all-reduces",
      "waits {} {} for the other end of a transfer",
      "waits {} {} for the updates of others",
      "has {} {} of overhead"};
  std::vector<Share> all = {{"computes for {} {}", slow.busy_s - fast.busy_s}};
  for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause)
    all.push_back({std::string(texts[cause]), slow.idle_s[cause] - fast.idle_s[cause]});
  std::stable_sort(all.begin(), all.end(), [](const Share& a, const Share& b) {
    return std::abs(a.saved_s) > std::abs(b.saved_s);
  });
  return all;
}

/// The run's times for `factor` times as many samples as its iteration has.
ComparedRun of_samples(ComparedRun run, double factor) {
  run.iteration_time_s *= factor;
  run.busy_s *= factor;
  for (double& idle : run.idle_s) idle *= factor;
  return run;
}

/// Lists shares until the rest is less than a tenth of the difference.
std::string reason(const ComparedRun& fast, const ComparedRun& slow) {
  const double difference = slow.iteration_time_s - fast.iteration_time_s;
  double left = difference;
  std::vector<std::string> reasons;
  for (const Share& share : shares(fast, slow)) {
    if (std::abs(left) <= 0.1 * std::abs(difference) || share.saved_s == 0) break;
    reasons.push_back(fmt::format(fmt::runtime(share.text), length_text(share.saved_s),
                                  share.saved_s > 0 ? "less" : "more"));
    left -= share.saved_s;
  }
  std::string text = "on average a device ";
  for (std::size_t i = 0; i < reasons.size(); ++i)
    text += (i == 0 ? "" : i + 1 == reasons.size() ? " and " : ", ") + reasons[i];
  return text;
}

/// The difference in memory of the device where it is the largest; "" where both runs need the
/// same.
std::string device_memory_text(const ComparedRun& fast, const ComparedRun& slow) {
  const auto less = [&](std::size_t i) {
    return slow.devices[i].peak_memory_bytes - fast.devices[i].peak_memory_bytes;
  };
  std::size_t max = 0;
  for (std::size_t i = 1; i < fast.devices.size(); ++i) {
    if (std::abs(less(i)) > std::abs(less(max))) max = i;
  }
  if (less(max) == 0) return "";
  std::string text = fmt::format("needs {} {} on device {}", to_text(Bytes{std::abs(less(max))}),
                                 less(max) > 0 ? "less" : "more", fast.devices[max].device);
  const auto in_flight = [&](const ComparedRun& run) {  // whole micro-batches
    return static_cast<double>(run.devices[max].peak_in_flight) / static_cast<double>(run.slices);
  };
  const double ours = in_flight(fast);
  const double theirs = in_flight(slow);
  if (ours != theirs && (ours < theirs) == (less(max) > 0)) {
    text += fmt::format(", where at most {:.4g} micro-batch{} {} in flight instead of {:.4g}", ours,
                        ours == 1 ? "" : "es", ours == 1 ? "is" : "are", theirs);
  }
  const std::int64_t peak_less = slow.peak_memory_bytes() - fast.peak_memory_bytes();
  if (peak_less != less(max)) {
    text += fmt::format("; of all devices the highest peak is {} instead of {}",
                        to_text(Bytes{fast.peak_memory_bytes()}),
                        to_text(Bytes{slow.peak_memory_bytes()}));
  }
  return text;
}

/// The difference of the two runs in memory. It is for one device if the devices hold the same
/// stages in both runs, else for the highest peaks. "" where there is none.
std::string memory_text(const ComparedRun& fast, const ComparedRun& slow) {
  const bool same_stages =
      std::equal(fast.devices.begin(), fast.devices.end(), slow.devices.begin(), slow.devices.end(),
                 [](const ComparedDevice& a, const ComparedDevice& b) {
                   return a.device == b.device && a.stages == b.stages;
                 });
  if (same_stages && fast.stages == slow.stages && !fast.devices.empty())
    return device_memory_text(fast, slow);
  if (fast.peak_memory_bytes() == slow.peak_memory_bytes()) return "";
  return fmt::format("needs {} on a device at most instead of {}",
                     to_text(Bytes{fast.peak_memory_bytes()}),
                     to_text(Bytes{slow.peak_memory_bytes()}));
}

/// The chance that the faster run stays faster under noise; "" without noise.
std::string chance_text(const ComparedRun& fast, const ComparedRun& slow) {
  if (!fast.outcome || !slow.outcome || !fast.outcome->uncertainty || !slow.outcome->uncertainty)
    return "";
  return fmt::format("; with noise it is faster in {:.1f} % of the pairs of runs",
                     100 * probability_faster(*fast.outcome, *slow.outcome));
}

bool is_slower(const ComparedRun& a, const ComparedRun& b) { return a.speed() < b.speed(); }

std::string fit_text(const ComparedRun& fast, const std::vector<ComparedRun>& runs) {
  if (fast.fits != false) return "";
  std::vector<ComparedRun> fitting = runs;
  std::erase_if(fitting, [](const ComparedRun& run) { return run.fits == false; });
  std::string text = "; but it does not fit into the memory";
  if (!fitting.empty() && runs.size() > 2) {
    text += fmt::format(", of those that do {} is the fastest",
                        std::max_element(fitting.begin(), fitting.end(), is_slower)->title);
  }
  return text;
}

/// Notes that come before the comparison; "" where all runs are alike.
std::string unlike_text(const std::vector<ComparedRun>& runs,
                        const std::vector<RefusedRun>& refused) {
  std::vector<std::string> parts;
  if (const auto all = unlikenesses(runs); !all.empty())
    parts.push_back(fmt::format("not alike in {}", fmt::join(all, ", ")));
  for (const RefusedRun& run : refused)
    parts.push_back(fmt::format("{} cannot run ({})", run.title, run.reason));
  return parts.empty() ? "" : fmt::format("{}: ", fmt::join(parts, "; "));
}

/// The ranking of more than two runs. All times are for as many samples as the fastest run has.
std::string ranking_text(std::vector<ComparedRun> runs) {
  if (runs.size() < 3) return "";
  std::stable_sort(runs.begin(), runs.end(),
                   [](const ComparedRun& a, const ComparedRun& b) { return is_slower(b, a); });
  const double samples = runs.front().samples();
  const double speed = runs.front().speed();
  bool scaled = false;
  std::vector<std::string> parts;
  for (const ComparedRun& run : runs) {
    const double factor = run.samples() > 0 ? samples / run.samples() : 1;
    scaled = scaled || std::abs(factor - 1) > 1e-9;
    const bool has_share = run.speed() > 0 && std::isfinite(speed);
    const double more = has_share ? 100 * (speed / run.speed() - 1) : 0;
    parts.push_back(fmt::format("{} {}{}", run.title, length_text(run.iteration_time_s * factor),
                                more > 5e-3 ? fmt::format(" (+{:.2f} %)", more) : ""));
  }
  return fmt::format("; from fastest to slowest{}: {}", scaled ? ", for as many samples" : "",
                     fmt::join(parts, ", "));
}

}  // namespace

std::int64_t ComparedRun::peak_memory_bytes() const {
  std::int64_t max = 0;
  for (const ComparedDevice& device : devices) max = std::max(max, device.peak_memory_bytes);
  return max;
}

double ComparedRun::speed() const {
  if (throughput_samples_per_s) return *throughput_samples_per_s;
  return iteration_time_s > 0 ? 1 / iteration_time_s : std::numeric_limits<double>::infinity();
}

std::optional<double> ComparedRun::throughput_per_device() const {
  return per_device(throughput_samples_per_s, devices_used);
}

double ComparedRun::samples() const {
  return throughput_samples_per_s ? *throughput_samples_per_s * iteration_time_s : 1;
}

ComparedRun compared(std::shared_ptr<const Outcome> outcome, std::string title) {
  const Outcome& p = *outcome;
  const Metrics& m = p.metrics;
  ComparedRun run;
  run.title = std::move(title);
  run.model = p.setup.model->name;
  run.schedule = p.setup.schedule.name;
  run.stages = static_cast<std::int64_t>(p.setup.partition.stages.size());
  run.micro_batches = p.setup.micro_batches;
  run.slices = p.setup.slices;
  run.iteration_time_s = p.iteration_time_s;
  run.likely_time = p.likely_iteration_time();
  if (p.setup.errors) run.setting = p.setup.errors->setting;
  run.throughput_samples_per_s = p.throughput_samples_per_s;
  run.devices_used = p.devices_used();
  run.devices_in_all = p.devices_in_all();
  run.copies = p.setup.copies();
  run.layers = p.layers();
  if (const auto parameters = p.parameters()) run.parameters_bytes = parameters->count;
  if (p.model_flops) run.model_flops_per_sample = *p.model_flops / p.samples_per_iteration();
  run.flushes = !m.steady && p.graph.flushes;
  run.model_flops_utilization = p.model_flops_utilization();
  run.bubble_fraction = m.steady ? m.steady->bubble_fraction : m.bubble_fraction();
  run.communication_stall_fraction = m.communication_stall_fraction();
  run.sent_in_groups_fraction = p.sent_in_groups_fraction();
  run.bill = p.bill();
  if (m.steady) {
    run.idle_s[kDependency] = p.iteration_time_s * run.bubble_fraction;
    run.busy_s = p.iteration_time_s - run.idle_s[kDependency];
  } else {
    const double parts = static_cast<double>(p.graph.slots()) * p.setup.rules.mini_batches;
    run.busy_s = seconds(m.busy()) / parts;
    for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause)
      run.idle_s[cause] = seconds(m.idle_for(kIdleCauses[cause])) / parts;
  }
  auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    run.devices.push_back({p.graph.devices[slot].value, std::move(stages[slot]),
                           p.memory[slot].peak.sum().count, p.memory[slot].peak_in_flight});
  }
  run.fits = p.fits();
  run.estimated = p.setup.estimated;
  run.notes = p.setup.notes;
  run.outcome = std::move(outcome);
  return run;
}

std::string verdict(const std::vector<ComparedRun>& runs, const std::vector<RefusedRun>& refused) {
  const auto fastest = std::max_element(runs.begin(), runs.end(), is_slower);
  const ComparedRun& fast = *fastest;
  const ComparedRun* other = &runs.front();
  if (fastest == runs.begin()) {
    other = &*std::max_element(runs.begin() + 1, runs.end(), is_slower);
  }
  const ComparedRun& slow = *other;
  const std::string memory = memory_text(fast, slow);
  const std::string unlike = unlike_text(runs, refused);
  const std::string end = chance_text(fast, slow) + fit_text(fast, runs) + ranking_text(runs);
  constexpr double same_within = 1e-9;
  if (fast.speed() == slow.speed() ||
      std::abs(fast.speed() - slow.speed()) <= same_within * fast.speed()) {
    return fmt::format("{}{} and {} are as fast as each other ({}){}{}", unlike, fast.title,
                       slow.title, length_text(fast.iteration_time_s),
                       memory.empty() ? "" : fmt::format(", but {} {}", fast.title, memory), end);
  }
  const double factor = fast.speed() / slow.speed();
  std::string text = fmt::format("{}{} is {}faster than {}", unlike, fast.title,
                                 !std::isfinite(factor) ? std::string()
                                 : factor < 1.1 ? fmt::format("{:.2f} % ", 100 * (factor - 1))
                                                : fmt::format("{:.2f}x ", factor),
                                 slow.title);
  const double samples = slow.samples() > 0 ? fast.samples() / slow.samples() : 1;
  const ComparedRun as_many = of_samples(slow, samples);
  text += fmt::format(" ({} instead of {} {})", length_text(fast.iteration_time_s),
                      length_text(as_many.iteration_time_s),
                      std::abs(samples - 1) < same_within ? "an iteration" : "for as many samples");
  if (fast.devices_used != slow.devices_used) {
    text += fmt::format(", on {} devices instead of {}", fast.devices_used, slow.devices_used);
  } else {
    text += ", because " + reason(fast, as_many);
  }
  if (!memory.empty()) text += "; it " + memory;
  return text + end;
}

}  // namespace plumbline
