// The question, the search, and the simulation that judges its answer.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/found_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
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

/// Errors: what the search does not go with.
std::optional<Diagnostic> check_open(const Scenario& scenario) {
  const ScheduleChoice& choice = scenario.schedule;
  if (choice.recompute.as_few_as_fit()) {
    return input_error(choice.recompute.layers_mark,
                       "schedule.recompute_layers: fit does not go with the schedule 'auto'",
                       "the order uses the memory that there is: take a number of layers, or all");
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

/// The error of a device without room for one micro-batch.
Diagnostic lack_error(const Outcome& outcome, const OrderLack& lack, bool in_bytes,
                      const Scenario& scenario) {
  const std::string device = outcome.device_name(lack.device);
  Diagnostic error;
  if (in_bytes) {
    const Bytes memory = *outcome.setup.cluster.memory;
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
    const Bytes peak = outcome.memory[std::size_t{slot} * copies].peak.sum();
    if (peak <= *outcome.setup.cluster.memory) continue;
    problem.limits.front().room[slot] -= (peak - *outcome.setup.cluster.memory).count;
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
    NamedOrder named{name, time_of_ops(*outcome), true};
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
    const bool is_better = named.time_s < answer.time_s ||
                           (named.time_s == answer.time_s && peak < answer.peak_memory);
    if (named.fits && is_better) {
      answer.time_s = named.time_s;
      answer.peak_memory = peak;
      answer.scenario.schedule.wish->found = scenario.schedule.wish->found;
    }
    answer.named.push_back(std::move(named));
  }
  std::stable_sort(answer.named.begin(), answer.named.end(),
                   [](const NamedOrder& a, const NamedOrder& b) { return a.time_s < b.time_s; });
}

}  // namespace

double time_of_ops(const Outcome& outcome) {
  SimTime end;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (!outcome.graph.mini_batches.empty() && node > outcome.graph.mini_batches.front().gate)
      break;
    if (is_op(outcome.graph.activities[node].kind))
      end = std::max(end, outcome.trace.spans[node].end);
  }
  return static_cast<double>(end.time_since_epoch().count()) * 1e-9;
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

Result<OrderAnswer> answer_order(Scenario scenario, const std::atomic<bool>* stop) {
  if (auto refused = check_open(scenario)) return *refused;
  const std::optional<NoiseSection> noise = scenario.noise;
  scenario.noise.reset();
  auto stand_in = predict_resolved(scenario, Evaluation::fastest);
  if (!stand_in) return stand_in.problems();
  const OrderWish& wish = *scenario.schedule.wish;
  const auto in_flight = wish.in_flight ? std::optional(wish.in_flight->value) : std::nullopt;
  OrderAnswer answer{.scenario = scenario,
                     .problem = order_question(*stand_in, in_flight),
                     .bound = {},
                     .time_s = 0,
                     .peak_memory = {},
                     .named = {}};
  if (const auto lack = lack_of_room(answer.problem)) {
    const bool in_bytes = lack->limit == 0 && stand_in->setup.cluster.memory.has_value();
    return lack_error(*stand_in, *lack, in_bytes, scenario);
  }
  answer.bound = order_bound(answer.problem);
  const auto all = named_lists(scenario, *stand_in);
  OrderSearchOptions options;
  options.stop = stop;
  options.effort = static_cast<std::int64_t>(static_cast<double>(options.effort) * wish.effort);
  for (const auto& [name, lists] : all) {
    if (auto orders = device_orders(answer.problem, lists))
      options.known.push_back(*std::move(orders));
  }
  const auto outcome = search_and_run(answer.scenario, options, answer.problem);
  if (!outcome) return outcome.problems();
  answer.time_s = time_of_ops(*outcome);
  answer.peak_memory = highest_peak(*outcome);
  try_named(scenario, all, answer);
  answer.scenario.noise = noise;
  return answer;
}

std::string gap_text(const OrderAnswer& answer) {
  const std::string where =
      answer.problem.limits.empty() ? "any order" : "any order within this memory";
  if (answer.gap() <= 5e-7) return fmt::format("no order{} is faster", where.substr(9));
  return fmt::format("at most {:.{}f} % above {}", 100 * answer.gap(), answer.gap() < 0.001 ? 3 : 1,
                     where);
}

Result<Scenario> find_order(Scenario scenario) {
  auto answer = answer_order(std::move(scenario));
  if (!answer) return answer.problems();
  Scenario settled = std::move(answer->scenario);
  settled.notes.push_back(fmt::format("order: found for these costs, {}", gap_text(*answer)));
  return settled;
}

}  // namespace plumbline
