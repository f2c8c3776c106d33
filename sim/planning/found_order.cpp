// What is chosen besides the order: the placement, the partition.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/found_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "sim/planning/device_choice.h"
#include "sim/planning/given_order.h"
#include "sim/prediction/predict_resolved.h"

namespace plumbline {

std::vector<std::string> for_open_order(std::vector<std::string> overrides) {
  const auto any = [&](const auto& is) {
    return std::any_of(overrides.begin(), overrides.end(), is);
  };
  const bool is_wish = any([](const std::string& one) {
    return one.starts_with("schedule.placement=") || one.starts_with("schedule.in_flight=") ||
           one.starts_with("schedule.effort=") || one == "plan.partition=auto";
  });
  const bool is_named = any([](const std::string& one) {
    return one.starts_with("schedule.name=") || one.starts_with("schedule.file=") ||
           one.starts_with("schedule=");
  });
  if (is_wish && !is_named) overrides.emplace_back("schedule.name=auto");
  return overrides;
}

Result<Scenario> with_open_order(Scenario scenario, std::vector<std::string> overrides) {
  if (scenario.schedule.wish) return scenario;
  if (scenario.schedule.file) {
    return Diagnostics{input_error(scenario.schedule.name_mark,
                                   "the order is given by schedule.file, so none is searched",
                                   "schedule.name: auto, and the file under --compare")};
  }
  const ChunkRule* const rule = scenario.schedule.chunk_rule();
  std::erase_if(overrides,
                [](const std::string& one) { return one.starts_with("schedule.name="); });
  std::string placement = "straight";
  if (rule != nullptr && rule->placement == StagePlacement::vee) placement = "v";
  if (rule != nullptr && rule->placement == StagePlacement::loop && scenario.schedule.chunks > 1)
    placement = "looped";
  overrides.push_back("schedule.placement=" + placement);
  for (const char* const gone : {"schedule.group=null", "plan.warm_up=null", "schedule.name=auto"})
    overrides.emplace_back(gone);
  return parse_scenario(scenario.source, overrides);
}

namespace {

bool beats(const OrderAnswer& a, const OrderAnswer& b) {
  return std::tuple(!a.fits, a.decisive_time_s(), a.peak_memory) <
         std::tuple(!b.fits, b.decisive_time_s(), b.peak_memory);
}

Result<OrderAnswer> answer_given(Scenario scenario, const std::atomic<bool>* stop) {
  auto asked = ask_order(std::move(scenario));
  if (!asked) return asked.problems();
  return answer_asked(*std::move(asked), stop);
}

// ---- the partition ----

using LayerCounts = std::vector<std::int64_t>;

Scenario with_layers(Scenario scenario, LayerCounts layers) {
  scenario.plan.partition = std::move(layers);
  return scenario;
}

/// The partitions with one layer more in a stage, and one less in a stage that is near.
std::vector<LayerCounts> neighbours_of(const LayerCounts& layers) {
  std::vector<LayerCounts> all;
  constexpr std::size_t near = 4;
  for (std::size_t from = 0; from < layers.size(); ++from) {
    if (layers[from] == 1) continue;
    const std::size_t first = from < near ? 0 : from - near;
    const std::size_t last = std::min(layers.size() - 1, from + near);
    for (std::size_t to = first; to <= last; ++to) {
      if (to == from) continue;
      all.push_back(layers);
      --all.back()[from];
      ++all.back()[to];
    }
  }
  return all;
}

/// The neighbours of the neighbours; none where they are more than can be asked.
std::vector<LayerCounts> second_neighbours_of(const LayerCounts& layers) {
  constexpr std::size_t most = 2000;
  const std::vector<LayerCounts> first = neighbours_of(layers);
  if (first.size() * first.size() > most) return {};
  std::set<LayerCounts> all;
  for (const LayerCounts& one : first)
    for (LayerCounts& other : neighbours_of(one)) all.insert(std::move(other));
  for (const LayerCounts& one : first) all.erase(one);
  all.erase(layers);
  return {all.begin(), all.end()};
}

/// The questions of partitions whose bound is below a time in ns, the most promising first.
std::vector<std::pair<AskedOrder, LayerCounts>> promising(
    const Scenario& scenario, const std::vector<LayerCounts>& partitions, double below_ns,
    const std::atomic<bool>* stop) {
  std::vector<std::pair<AskedOrder, LayerCounts>> asked;
  for (const LayerCounts& layers : partitions) {
    if (stop && *stop) break;
    auto one = ask_order(with_layers(scenario, layers));
    if (one && static_cast<double>(one->bound.time) < below_ns)
      asked.emplace_back(*std::move(one), layers);
  }
  std::stable_sort(asked.begin(), asked.end(), [](const auto& a, const auto& b) {
    return a.first.bound.time < b.first.bound.time;
  });
  return asked;
}

/// Goes from a partition to one that is near and whose order is faster, as long as there is one, by
/// short searches. Where the partition has too little memory, the first that has enough is faster.
class PartitionClimb {
 public:
  PartitionClimb(Scenario scenario, LayerCounts layers, const std::atomic<bool>* stop)
      : scenario_(std::move(scenario)), layers_(std::move(layers)), stop_(stop) {
    scenario_.schedule.wish->effort /= 8;
    scenario_.noise.reset();
  }

  /// The layers of each stage.
  LayerCounts run() {
    if (const auto first = answer_given(with_layers(scenario_, layers_), stop_)) take(*first);
    while (climb(neighbours_of(layers_)) || climb(second_neighbours_of(layers_))) {
    }
    return layers_;
  }

 private:
  void take(const OrderAnswer& answer) {
    time_s_ = answer.time_s;
    fits_ = answer.fits;
  }

  /// Whether one of the partitions is better.
  bool climb(const std::vector<LayerCounts>& partitions) {
    const double below = fits_ ? time_s_ * 1e9 : std::numeric_limits<double>::infinity();
    for (auto& [asked, layers] : promising(scenario_, partitions, below, stop_)) {
      if (left_-- <= 0 || (stop_ && *stop_)) return false;
      const auto answer = answer_asked(std::move(asked), stop_);
      if (!answer || !answer->fits || (fits_ && !(answer->time_s < time_s_))) continue;
      take(*answer);
      layers_ = layers;
      return true;
    }
    return false;
  }

  Scenario scenario_;
  LayerCounts layers_;
  const std::atomic<bool>* stop_;
  double time_s_ = 0;
  bool fits_ = false;
  int left_ = 64;  ///< Searches, each with an eighth of the effort.
};

/// The layers of each stage of the balanced partition. Errors: more stages than layers, and other
/// faults of the scenario.
Result<LayerCounts> balanced_layers(const Scenario& scenario) {
  Scenario roomy = scenario;
  roomy.cluster.memory.reset();
  roomy.noise.reset();
  const auto stand_in = predict_resolved(roomy, Evaluation::fastest);
  if (!stand_in) return stand_in.problems();
  LayerCounts layers;
  for (const Stage& stage : stand_in->setup.partition.stages)
    layers.push_back(static_cast<std::int64_t>(stage.layers.size()));
  return layers;
}

/// The answer for a placement on devices that are decided. Where the partition is open, it is
/// chosen, too.
Result<OrderAnswer> answer_on_devices(const Scenario& scenario, const std::atomic<bool>* stop) {
  if (!scenario.plan.goes_with_order()) return answer_given(scenario, stop);
  const auto balanced = balanced_layers(scenario);
  if (!balanced) return balanced.problems();
  auto best = answer_given(with_layers(scenario, *balanced), stop);
  const auto balanced_s = best ? std::optional(best->time_s) : std::nullopt;
  LayerCounts layers = PartitionClimb(scenario, *balanced, stop).run();
  if (layers != *balanced) {
    auto other = answer_given(with_layers(scenario, layers), stop);
    if (other && (!best || beats(*other, *best))) {
      best = std::move(other);
    } else {
      layers = *balanced;
    }
  }
  if (best) best->partition = ChosenPartition{std::move(layers), balanced_s};
  return best;
}

// ---- the devices ----

/// The answer for a placement. Where the devices are open, they are chosen by short searches.
Result<OrderAnswer> answer_placement(const Scenario& scenario, const std::atomic<bool>* stop) {
  if (!scenario.plan.devices_open) return answer_on_devices(scenario, stop);
  const auto attempt_with = [&](double share) {
    return [share, stop](const Scenario& one) -> Result<TriedDevices> {
      Scenario quick = one;
      quick.schedule.wish->effort *= share;
      quick.noise.reset();
      if (quick.plan.goes_with_order()) quick.plan.partition = PartitionRule::balanced;
      const auto answer = answer_given(std::move(quick), stop);
      if (!answer) return answer.problems();
      return TriedDevices{answer->fits, answer->time_s, answer->peak_memory};
    };
  };
  auto chosen = choose_devices(scenario, attempt_with(1.0 / 32), attempt_with(0.5));
  if (!chosen) return chosen.problems();
  auto answer = answer_on_devices(chosen->scenario, stop);
  if (answer) answer->devices = std::move(chosen->text);
  return answer;
}

// ---- the placement ----

TriedPlacement tried(const Scenario& scenario, const Result<OrderAnswer>& answer) {
  const std::string placement(name(scenario.schedule.wish->placement));
  if (!answer) return {placement, std::nullopt, answer.problems().front().message};
  return {placement, answer->decisive_time_s(), ""};
}

/// Adds a published order, unless there is a better one of this name.
void add_named(OrderAnswer& answer, const NamedOrder& named) {
  const auto same = std::find_if(answer.named.begin(), answer.named.end(),
                                 [&](const NamedOrder& one) { return one.name == named.name; });
  if (same == answer.named.end()) return answer.named.push_back(named);
  const bool fits_alone = named.fits && !same->fits;
  if (fits_alone || (named.fits == same->fits && named.time_s < same->time_s)) *same = named;
}

/// Keeps the better of two answers as the first, and what both say of published orders and bounds.
void keep_better(OrderAnswer& best, OrderAnswer other) {
  if (beats(other, best)) std::swap(best, other);
  for (const NamedOrder& named : other.named) add_named(best, named);
  sort_named(best);
  if (other.bound.time < best.bound.time) best.bound = other.bound;
}

}  // namespace

Result<OrderAnswer> answer_order(Scenario scenario, const std::atomic<bool>* stop) {
  if (auto refused = check_open_order(scenario)) return *refused;
  const auto others = std::exchange(scenario.schedule.wish->others, nullptr);
  if (!others) return answer_placement(scenario, stop);
  auto best = answer_placement(scenario, stop);
  std::vector<TriedPlacement> placements = {tried(scenario, best)};
  for (const Scenario& other : *others) {
    auto answer = answer_placement(other, stop);
    const bool wins = answer && (!best || beats(*answer, *best));
    placements.insert(wins ? placements.begin() : placements.end(), tried(other, answer));
    if (answer && best) {
      keep_better(*best, *std::move(answer));
    } else if (answer) {
      best = std::move(answer);
    }
  }
  if (!best) return best;
  for (const auto& [placement, why] : scenario.schedule.wish->impossible)
    placements.push_back({std::string(name(placement)), std::nullopt, why});
  best->placements = std::move(placements);
  return best;
}

std::string gap_text(const OrderAnswer& answer) {
  std::string where;
  if (answer.partition)
    where = answer.placements.empty() ? " of this partition" : " of these partitions";
  if (!answer.devices.empty()) where += " on these devices";
  if (!answer.problem.limits.empty()) where += " within this memory";
  if (answer.gap() <= 5e-7) return fmt::format("no order{} is faster", where);
  return fmt::format("at most {:.{}f} % above any order{}", 100 * answer.gap(),
                     answer.gap() < 0.001 ? 3 : 1, where);
}

std::string time_in_words(double time_s) { return to_text(round_up(time_s * 1e9 - 0.5)); }

std::string longer_text(double time_s, double than_s) {
  const double change = than_s > 0 ? time_s / than_s - 1 : 0;
  if (std::abs(change) < 5e-6) return "the same";
  return fmt::format("{:.{}f} % {}", 100 * std::abs(change), std::abs(change) < 1e-3 ? 3 : 1,
                     change > 0 ? "longer" : "shorter");
}

namespace {

/// "v; looped takes 31 ms, 2.0 % longer".
std::string placements_text(const OrderAnswer& answer) {
  std::string text;
  for (const TriedPlacement& one : answer.placements) {
    text += text.empty() ? one.name : "; " + one.name;
    if (!one.time_s) {
      text += " cannot run: " + one.why_not;
    } else if (&one != &answer.placements.front()) {
      text += fmt::format(" takes {}, {}", time_in_words(*one.time_s),
                          longer_text(*one.time_s, answer.decisive_time_s()));
    }
  }
  return text;
}

/// "5, 4, 4, 3 layers; balanced takes 31 ms, 2.0 % longer".
std::string partition_text(const OrderAnswer& answer) {
  const ChosenPartition& chosen = *answer.partition;
  std::string text = fmt::format("{} layers; balanced ", fmt::join(chosen.layers, ", "));
  if (!chosen.balanced_s) return text + "has too little memory";
  return text + fmt::format("takes {}, {}", time_in_words(*chosen.balanced_s),
                            longer_text(*chosen.balanced_s, answer.time_s));
}

/// "95 % of the runs take at most 31 ms; 32 ms in the order that is the fastest without it".
std::string noise_text(const NoisyOrder& noisy) {
  std::string text = fmt::format("{:g} % of the runs take at most {}", 100 * kNoisyShare,
                                 time_in_words(noisy.time_s));
  if (noisy.calm_time_s > noisy.time_s) {
    text += fmt::format("; {} in the order that is the fastest without it",
                        time_in_words(noisy.calm_time_s));
  }
  return text;
}

}  // namespace

std::vector<std::string> choice_lines(const OrderAnswer& answer) {
  std::vector<std::string> lines;
  if (!answer.placements.empty()) lines.push_back("placement: " + placements_text(answer));
  if (answer.partition) lines.push_back("partition: " + partition_text(answer));
  if (!answer.devices.empty()) lines.push_back("devices: " + answer.devices);
  if (answer.noisy) lines.push_back("noise: " + noise_text(*answer.noisy));
  return lines;
}

Result<Scenario> find_order(Scenario scenario) {
  auto answer = answer_order(std::move(scenario));
  if (!answer) return answer.problems();
  Scenario settled = std::move(answer->scenario);
  settled.notes.push_back(fmt::format("order: found for these costs, {}", gap_text(*answer)));
  for (std::string& line : choice_lines(*answer)) settled.notes.push_back(std::move(line));
  return settled;
}

}  // namespace plumbline
