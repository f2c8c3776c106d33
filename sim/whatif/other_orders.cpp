// The scenario is read again for each schedule, with the partition of the run.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/other_orders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/quantity.h"
#include "base/table.h"
#include "schedules/generators/generators.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxShown = 4;
constexpr double kMaxNodes = 2e7;  ///< The most nodes of all runs together.
constexpr double kNoFaster = 1e-9;

/// The number of stages per device if the rule can place these stages on these devices; 0 if it
/// cannot.
std::uint32_t chunks_on(const PipelineShape& shape, const ScheduleRule& rule) {
  if (rule.chunks) {
    const std::uint32_t chunks = shape.stages() / shape.slots;
    if (chunks < rule.chunks->min_chunks || chunks > rule.chunks->max_chunks) return 0;
    const ChunkShape wanted{shape.slots, chunks, shape.micro_batches};
    const bool same = wanted.stages() == shape.stages() &&
                      placed_stages(rule.chunks->placement, wanted) == shape.stage_slots;
    return same ? chunks : 0;
  }
  std::vector<std::uint32_t> positions(shape.slots, 0);
  for (const Position& position : shape.positions) {
    for (const std::uint32_t slot : shape.stage_slots[position.first_stage]) ++positions[slot];
  }
  const bool one_each = std::all_of(positions.begin(), positions.end(),
                                    [](std::uint32_t count) { return count == 1; });
  return one_each ? 1 : 0;
}

/// The keys for the replaced order that this schedule does not accept. They are removed.
std::vector<std::string> keys_of_order(const Scenario& scenario, const ScheduleRule& rule) {
  std::vector<std::string> keys = {"plan.warm_up"};
  const std::uint32_t chunks = scenario.schedule.chunks;
  if (!rule.chunks || chunks < rule.chunks->min_chunks || chunks > rule.chunks->max_chunks)
    keys.emplace_back("schedule.chunks");
  if (!rule.chunks || !rule.chunks->takes_group) keys.emplace_back("schedule.group");
  if (scenario.schedule.wish) {
    for (const char* const key : {"schedule.placement", "schedule.in_flight", "schedule.effort"})
      keys.emplace_back(key);
  }
  return keys;
}

/// The overrides, with this schedule in place of the one in them or in the file.
std::vector<std::string> renamed(const Scenario& scenario, const std::vector<std::string>& all,
                                 const ScheduleRule& rule) {
  const bool from_file = scenario.schedule.file.has_value();
  const std::vector<std::string> gone = keys_of_order(scenario, rule);
  std::vector<std::string> kept;
  for (const std::string& one : all) {
    const std::string key = one.substr(0, one.find('='));
    const bool is_order = key == "schedule.name" || key == "schedule.file" ||
                          (from_file && key == "schedule.micro_batches");
    const bool goes = std::find(gone.begin(), gone.end(), key) != gone.end();
    if (!is_order && !goes) kept.push_back(one);
  }
  for (const std::string& key : gone) kept.push_back(key + "=null");
  kept.push_back(fmt::format("schedule.name={}", rule.name));
  if (from_file) {
    kept.emplace_back("schedule.file=");
    kept.push_back(fmt::format("schedule.micro_batches={}", scenario.schedule.micro_batches));
  }
  return kept;
}

Bytes highest_peak(const Outcome& outcome) {
  Bytes highest{};
  for (const DeviceMemory& device : outcome.memory) highest = std::max(highest, device.peak.sum());
  return highest;
}

/// The devices along the pipeline of a run: those of its stages, each where it comes first.
std::vector<std::uint32_t> devices_along(const TrainingSetup& setup) {
  std::vector<std::uint32_t> devices;
  for (const Stage& stage : setup.partition.stages) {
    for (const DeviceId device : stage.devices) {
      if (std::find(devices.begin(), devices.end(), device.value) == devices.end())
        devices.push_back(device.value);
    }
  }
  return devices;
}

/// The run under one schedule, or the reason for none.
OtherOrder run_under(const Scenario& scenario, const std::vector<std::string>& overrides,
                     const Outcome& p, const ScheduleRule& rule) {
  OtherOrder order;
  order.schedule = rule.name;
  const auto cannot = [&](std::string why) {
    order.why_not = std::move(why);
    return order;
  };
  const std::uint32_t chunks = chunks_on(p.setup.schedule.shape, rule);
  if (rule.whole_model || (chunks == 0 && scenario.plan.is_planned()))
    return cannot("it places stages otherwise");
  if (rule.asynchronous && !p.graph.asynchronous())
    return cannot("it updates after every backward");
  auto other = parse_scenario(scenario.source, renamed(scenario, overrides, rule));
  if (!other) return cannot(other.problems().front().message);
  if (other->copies != scenario.copies ||
      other->schedule.micro_batches != scenario.schedule.micro_batches)
    return cannot("it has other copies or micro-batches");
  // Where each device has one stage, a schedule with several keeps its own default number.
  const bool keeps_stages =
      chunks > 0 && !(rule.chunks && chunks == 1 && other->schedule.chunks > 1);
  if (keeps_stages && other->schedule.recompute.as_few_as_fit()) {
    other->schedule.recompute.layers =
        std::vector<std::int64_t>(p.setup.recomputed.begin(), p.setup.recomputed.end());
  }
  if (rule.chunks && keeps_stages) other->schedule.chunks = chunks;
  if (std::exchange(other->plan.devices_open, false))
    other->plan.device_order = devices_along(p.setup);
  other->noise.reset();
  if (!keeps_stages) other = resolve_plan(*std::move(other));
  if (!other) return cannot(other.problems().front().message);
  const auto outcome =
      predict(*other, Evaluation::fastest, keeps_stages ? &p.setup.partition : nullptr);
  if (!outcome) return cannot(outcome.problems().front().message);
  if (outcome->setup.devices != p.setup.devices) return cannot("it uses other devices");
  order.assumes_split = outcome->setup.split.halved > 0;
  order.stages = static_cast<std::uint32_t>(outcome->setup.partition.stages.size());
  order.iteration_time_s = outcome->iteration_time_s;
  order.peak_memory = highest_peak(*outcome);
  order.fits = outcome->fits();
  return order;
}

/// "4.1 % less", "the same".
std::string change_text(double time_s, double now_s) {
  const double change = time_s / now_s - 1;
  if (std::abs(change) < 5e-5) return "the same";
  return fmt::format("{:.{}f} % {}", 100 * std::abs(change), std::abs(change) < 5e-4 ? 2 : 1,
                     change < 0 ? "less" : "more");
}

std::string line_of(const Outcome& p, const OtherOrder& order) {
  const Bytes now = highest_peak(p);
  std::string text = fmt::format("under {} the same costs take {} ({})", order.schedule,
                                 time_text(*order.iteration_time_s),
                                 change_text(*order.iteration_time_s, p.iteration_time_s));
  if (order.stages != p.setup.partition.stages.size())
    text += fmt::format(", with {} stages instead of {}", order.stages,
                        p.setup.partition.stages.size());
  if (order.peak_memory != now)
    text += fmt::format(", {} a peak memory of {} instead of {}",
                        order.stages == p.setup.partition.stages.size() ? "with" : "and",
                        to_text(order.peak_memory), to_text(now));
  if (order.assumes_split) text += "; its backwards are halved, which is assumed";
  return text;
}

}  // namespace

std::vector<OtherOrder> other_orders(const Scenario& scenario,
                                     const std::vector<std::string>& overrides, const Outcome& p) {
  if (scenario.schedule.whole_model()) return {};
  std::vector<OtherOrder> orders;
  double nodes = 0;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (&rule == scenario.schedule.rule) continue;
    OtherOrder order{.schedule = std::string(rule.name),
                     .iteration_time_s = {},
                     .fits = {},
                     .why_not = "the run is too long"};
    if (nodes + p.graph.size() <= kMaxNodes) order = run_under(scenario, overrides, p, rule);
    if (order.iteration_time_s) nodes += p.graph.size();
    orders.push_back(std::move(order));
  }
  std::stable_sort(orders.begin(), orders.end(), [](const OtherOrder& a, const OtherOrder& b) {
    if (a.iteration_time_s.has_value() != b.iteration_time_s.has_value())
      return a.iteration_time_s.has_value();
    if (!a.iteration_time_s) return false;
    return std::pair(*a.iteration_time_s, a.peak_memory) <
           std::pair(*b.iteration_time_s, b.peak_memory);
  });
  return orders;
}

std::string other_orders_text(const Outcome& p, const std::vector<OtherOrder>& orders) {
  std::vector<const OtherOrder*> fitting;
  std::vector<std::string> too_large;
  for (const OtherOrder& order : orders) {
    if (!order.iteration_time_s) continue;
    if (order.is_too_large()) {
      too_large.push_back(order.schedule);
    } else {
      fitting.push_back(&order);
    }
  }
  if (p.iteration_time_s <= 0 || (fitting.empty() && too_large.empty())) return "";
  const auto is_faster = [&](const OtherOrder* order) {
    return *order->iteration_time_s < p.iteration_time_s * (1 - kNoFaster);
  };
  const auto faster = std::count_if(fitting.begin(), fitting.end(), is_faster);
  std::string text = "\nother schedules on the same devices\n";
  if (faster == 0) {
    text += fitting.empty() ? "  none fits the memory\n"
                            : "  none of those that can be tried here is faster; the nearest:\n";
  }
  const std::size_t shown = faster > 0
                                ? std::min<std::size_t>(static_cast<std::size_t>(faster), kMaxShown)
                                : std::min<std::size_t>(fitting.size(), 1);
  for (std::size_t i = 0; i < shown; ++i) text += "  " + line_of(p, *fitting[i]) + '\n';
  if (static_cast<std::size_t>(faster) > shown)
    text +=
        fmt::format("  and {} more that {} faster\n", faster - static_cast<std::ptrdiff_t>(shown),
                    faster - static_cast<std::ptrdiff_t>(shown) == 1 ? "is" : "are");
  if (!too_large.empty())
    text += fmt::format("  too little memory for {}\n", fmt::join(too_large, ", "));
  return text;
}

}  // namespace plumbline
