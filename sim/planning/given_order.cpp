// The question, the search, and the simulation that judges its answer.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/given_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/quantity.h"
#include "schedules/search/order_search.h"
#include "sim/planning/order_question.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/placement.h"
#include "sim/setup/file_order.h"

namespace plumbline {
namespace {

/// The error of a device without room for one micro-batch.
Diagnostic lack_error(const Outcome& outcome, const OrderLack& lack, bool in_bytes,
                      const Scenario& scenario) {
  const std::string device = outcome.device_name(lack.device);
  Diagnostic error;
  if (in_bytes) {
    const std::uint32_t copies = outcome.graph.slots() / outcome.setup.schedule.shape.slots;
    const Bytes memory = *outcome.memory_limit(std::size_t{lack.device} * copies);
    const Bytes needs{lack.needs};
    const Bytes lacks{lack.lacks};
    const Bytes throughout = memory + lacks - needs;
    error = input_error(
        scenario.cluster_mark,
        fmt::format("device {} lacks {} for any order: one micro-batch needs {} beside {}, and "
                    "there are {}",
                    device, to_text(lacks), to_text(needs), to_text(throughout), to_text(memory)),
        "smaller micro-batches, recomputation, more stages, or devices with more memory");
  } else {
    const Marked<double>& given = *scenario.schedule.wish->in_flight;
    error = input_error(given.mark,
                        fmt::format("schedule.in_flight is {:g}, but device {} holds {} "
                                    "activations for one micro-batch",
                                    given.value, device, lack.needs),
                        fmt::format("schedule.in_flight: {} or more", lack.needs));
  }
  error.fault = Fault::infeasible;
  return error;
}

/// The published orders with this placement: their names and lists, by slot.
std::vector<std::pair<std::string, OpLists>> named_lists(const Scenario& scenario,
                                                         const Outcome& outcome) {
  const PipelineShape& shape = outcome.setup.schedule.shape;
  const ChunkRule& own = *scenario.schedule.chunk_rule();
  const ChunkShape chunks = chunk_shape(scenario, shape.stages());
  const auto placed = placed_stages(own.placement, chunks);
  const std::vector<std::uint32_t> slots = slots_of(placed, shape);
  std::vector<std::pair<std::string, OpLists>> all;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.asynchronous || rule.whole_model) continue;
    if (rule.chunks) {
      const ChunkRule& other = *rule.chunks;
      const bool same =
          placed_stages(other.placement, chunks) == placed && replicas_in(other.placement) == 1;
      if (!same || chunks.chunks < other.min_chunks || chunks.chunks > other.max_chunks) continue;
      if (other.refuse(chunks, {}, {})) continue;
      all.emplace_back(rule.name, by_slot(other.lists(chunks), slots));
    } else if (chunks.chunks == 1 && rule.window != nullptr) {
      OpLists lists(shape.slots);
      for (std::uint32_t s = 0; s < shape.stages(); ++s) {
        const std::uint32_t window =
            std::min(rule.window(rule.host_loop ? 1 : shape.stages() - s, chunks.micro_batches),
                     chunks.micro_batches);
        lists[shape.stage_slots[s].front()] =
            window_list({s, 1}, window, chunks.micro_batches, 0, 1, 1);
      }
      all.emplace_back(rule.name, std::move(lists));
    }
  }
  return all;
}

/// The run of the scenario with these lists.
Result<Outcome> run_with(Scenario& scenario, OpLists lists) {
  scenario.schedule.wish->found = std::make_shared<const OpLists>(std::move(lists));
  scenario.noise.reset();
  return predict_resolved(scenario, Evaluation::fastest);
}

/// Takes bytes from the room of the devices whose simulated peak is above their memory. Returns
/// whether there was one.
bool tighten(const Outcome& outcome, OrderProblem& problem) {
  if (!outcome.setup.cluster.memory) return false;
  const std::uint32_t copies = outcome.graph.slots() / problem.devices;
  bool above = false;
  for (std::uint32_t slot = 0; slot < problem.devices; ++slot) {
    const std::size_t first = std::size_t{slot} * copies;
    const Bytes peak = outcome.memory[first].peak.sum();
    const Bytes limit = *outcome.memory_limit(first);
    if (peak <= limit) continue;
    problem.limits.front().room[slot] -= (peak - limit).count;
    above = true;
  }
  return above;
}

/// Searches, simulates, and searches again in less room while a device holds more than it can, by
/// tensors that wait or arrive early.
Result<Outcome> search_and_run(Scenario& scenario, const OrderSearchOptions& options,
                               OrderProblem problem) {
  constexpr int rounds = 5;
  for (int round = 0;; ++round) {
    const FoundOrder found = search_order(problem, options);
    auto outcome = run_with(scenario, op_lists(problem, found.orders));
    if (!outcome || round + 1 == rounds || !tighten(*outcome, problem) || lack_of_room(problem))
      return outcome;
  }
}

Bytes highest_peak(const Outcome& outcome) {
  Bytes highest;
  for (const DeviceMemory& device : outcome.memory) highest = std::max(highest, device.peak.sum());
  return highest;
}

/// The problem as if each transfer took longer, by a share of its stages' mean op.
OrderProblem with_slack(OrderProblem problem, double share) {
  for (OrderStage& stage : problem.stages) {
    const OrderTime sum = std::accumulate(stage.time.begin(), stage.time.end(), OrderTime{0});
    const auto mean = static_cast<double>(sum) / static_cast<double>(problem.kinds());
    stage.to_next += static_cast<OrderTime>(share * mean);
    stage.to_previous += static_cast<OrderTime>(share * mean);
  }
  return problem;
}

/// An order with the time that kNoisyShare of its runs do not exceed.
struct SampledOrder {
  std::shared_ptr<const OpLists> lists;
  double time_s = 0;
  Bytes peak;
  double slow_s = 0;
};

/// The order's runs with noise; nothing where it cannot run or does not fit.
std::optional<SampledOrder> sample_order(const Scenario& asked, const NoiseSection& noise,
                                         OpLists lists) {
  Scenario scenario = asked;
  scenario.noise = noise;
  scenario.noise->samples = std::min(noise.samples, kOrderSamples);
  scenario.schedule.wish->found = std::make_shared<const OpLists>(std::move(lists));
  const auto outcome = predict_resolved(scenario, Evaluation::fastest);
  if (!outcome || !outcome->uncertainty || !outcome->fits().value_or(true)) return std::nullopt;
  return SampledOrder{scenario.schedule.wish->found, order_time_s(*outcome), highest_peak(*outcome),
                      outcome->uncertainty->iteration_time_s(kNoisyShare)};
}

/// Simulates the published orders, and takes one where it is faster and fits: where transfers queue
/// or block, the search does not see all. One that is as fast and holds less is taken, too.
void try_named(const Scenario& open, const std::vector<std::pair<std::string, OpLists>>& all,
               OrderAnswer& answer) {
  for (const auto& [name, lists] : all) {
    const auto orders = device_orders(answer.problem, lists);
    if (!orders || !times_of(answer.problem, *orders)) continue;
    Scenario scenario = open;
    // With I and W where the costs have them.
    const auto outcome = run_with(scenario, op_lists(answer.problem, *orders));
    if (!outcome) continue;
    NamedOrder named{name, order_time_s(*outcome), true};
    for (std::size_t l = 0; l < answer.problem.limits.size(); ++l) {
      const bool in_bytes = l == 0 && outcome->setup.cluster.memory.has_value();
      if (in_bytes) {
        named.fits = named.fits && outcome->fits().value_or(true);
        continue;
      }
      const OrderLimit& limit = answer.problem.limits[l];
      const auto held = held_at_most(answer.problem, limit, *orders);
      for (std::size_t d = 0; d < held.size(); ++d)
        named.fits = named.fits && held[d] <= limit.room[d];
    }
    const Bytes peak = highest_peak(*outcome);
    const bool is_better = !answer.fits || named.time_s < answer.time_s ||
                           (named.time_s == answer.time_s && peak < answer.peak_memory);
    if (named.fits && is_better) {
      answer.time_s = named.time_s;
      answer.peak_memory = peak;
      answer.fits = true;
      answer.scenario.schedule.wish->found = scenario.schedule.wish->found;
    }
    answer.named.push_back(std::move(named));
  }
  sort_named(answer);
}

/// Takes the order whose slow runs are the fastest: of the one found, of the published ones, and of
/// those found as if transfers took longer, which leave time where ops wait for each other.
void choose_for_noise(const NoiseSection& noise, const OrderSearchOptions& options,
                      const std::vector<std::pair<std::string, OpLists>>& published,
                      OrderAnswer& answer) {
  const auto calm = sample_order(answer.scenario, noise, *answer.scenario.schedule.wish->found);
  std::optional<SampledOrder> best = calm;
  const auto try_lists = [&](OpLists lists) {
    if (options.stop && *options.stop) return;
    const auto other = sample_order(answer.scenario, noise, std::move(lists));
    if (other && (!best || other->slow_s < best->slow_s)) best = other;
  };
  for (const auto& order : published) {
    const auto named = std::find_if(answer.named.begin(), answer.named.end(),
                                    [&](const NamedOrder& one) { return one.name == order.first; });
    if (named == answer.named.end() || !named->fits) continue;
    try_lists(op_lists(answer.problem, *device_orders(answer.problem, order.second)));
  }
  for (const double slack : {0.25, 0.5, 1.0}) {
    if (options.stop && *options.stop) break;
    const FoundOrder found = search_order(with_slack(answer.problem, slack), options);
    try_lists(op_lists(answer.problem, found.orders));
  }
  if (!best) return;
  answer.noisy = NoisyOrder{best->slow_s, calm ? calm->slow_s : best->slow_s};
  answer.time_s = best->time_s;
  answer.peak_memory = best->peak;
  answer.fits = true;
  answer.scenario.schedule.wish->found = best->lists;
}

}  // namespace

std::optional<Diagnostic> check_open_order(const Scenario& scenario) {
  const ScheduleChoice& choice = scenario.schedule;
  if (scenario.plan.is_planned()) {
    return input_error(scenario.plan.partition_mark,
                       "a planned partition does not go with the schedule 'auto'",
                       "plan.partition: auto chooses it with the order");
  }
  if (choice.recompute.as_few_as_fit()) {
    return input_error(choice.recompute.layers_mark,
                       "schedule.recompute_layers: fit does not go with the schedule 'auto'",
                       "the order uses the memory that there is: take a number of layers, or all");
  }
  if (choice.recompute.is_early()) {
    return input_error(
        choice.recompute.early_mark,
        "schedule.recompute_early does not go with the schedule 'auto'",
        "schedule.recompute_early: false; the search recomputes when the gradient is there");
  }
  if (choice.overlaps_pairs) {
    return input_error(choice.pairs_mark,
                       "schedule.pairs: overlapped does not go with the schedule 'auto'",
                       "it searches orders of ops that run one after the other");
  }
  const double ops = 3.0 * stage_count(scenario) * choice.micro_batches;
  if (ops > static_cast<double>(kMaxOpsToOrder)) {
    return input_error(choice.micro_batches_mark,
                       fmt::format("the schedule 'auto' has {:.0f} ops to order, more than {}", ops,
                                   kMaxOpsToOrder),
                       "fewer micro-batches or stages");
  }
  return std::nullopt;
}

void sort_named(OrderAnswer& answer) {
  std::stable_sort(answer.named.begin(), answer.named.end(),
                   [](const NamedOrder& a, const NamedOrder& b) { return a.time_s < b.time_s; });
}

double order_time_s(const Outcome& outcome) {
  if (!outcome.graph.flushes) return outcome.iteration_time_s;
  SimTime end;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (!outcome.graph.mini_batches.empty() && node > outcome.graph.mini_batches.front().gate)
      break;
    if (is_op(outcome.graph.activities[node].kind))
      end = std::max(end, outcome.trace.spans[node].end);
  }
  return static_cast<double>(end.time_since_epoch().count()) * 1e-9;
}

Result<AskedOrder> ask_order(Scenario scenario) {
  if (auto refused = check_open_order(scenario)) return *refused;
  Scenario calm = scenario;
  calm.noise.reset();
  auto stand_in = predict_resolved(calm, Evaluation::fastest);
  if (!stand_in) return stand_in.problems();
  const OrderWish& wish = *scenario.schedule.wish;
  const auto in_flight = wish.in_flight ? std::optional(wish.in_flight->value) : std::nullopt;
  OrderProblem problem = order_question(*stand_in, in_flight);
  if (const auto lack = lack_of_room(problem)) {
    const bool in_bytes = lack->limit == 0 && stand_in->setup.cluster.memory.has_value();
    return lack_error(*stand_in, *lack, in_bytes, scenario);
  }
  const OrderBound bound = order_bound(problem);
  return AskedOrder{std::move(scenario), *std::move(stand_in), std::move(problem), bound};
}

Result<OrderAnswer> answer_asked(AskedOrder asked, const std::atomic<bool>* stop) {
  const OrderWish& wish = *asked.scenario.schedule.wish;
  const auto all = named_lists(asked.scenario, asked.stand_in);
  OrderSearchOptions options;
  options.stop = stop;
  options.effort = static_cast<std::int64_t>(static_cast<double>(options.effort) * wish.effort);
  for (const auto& [name, lists] : all) {
    if (auto orders = device_orders(asked.problem, lists))
      options.known.push_back(*std::move(orders));
  }
  OrderAnswer answer{.scenario = asked.scenario,
                     .problem = std::move(asked.problem),
                     .bound = asked.bound,
                     .time_s = 0,
                     .peak_memory = {},
                     .named = {}};
  const auto outcome = search_and_run(answer.scenario, options, answer.problem);
  if (!outcome) return outcome.problems();
  answer.time_s = order_time_s(*outcome);
  answer.peak_memory = highest_peak(*outcome);
  answer.fits = outcome->fits().value_or(true);
  try_named(asked.scenario, all, answer);
  if (asked.scenario.noise) choose_for_noise(*asked.scenario.noise, options, all, answer);
  answer.scenario.noise = asked.scenario.noise;
  return answer;
}

}  // namespace plumbline
