// The window family: naive, GPipe, 1F1B, eager 1F1B, delayed backward, PipeDream.
// SPDX-License-Identifier: MIT
#include "schedules/generators.h"

#include <algorithm>

#include "models/bug.h"
#include "schedules/check.h"

namespace plumbline {

const std::vector<ScheduleRule>& schedule_rules() {
  using U = std::uint32_t;
  static const std::vector<ScheduleRule> rules = {
      {.name = "naive",
       .window = [](U, U) -> U { return 1; },
       .asynchronous = false,
       .host_loop = true,
       .takes_warm_up = false,
       .summary = "one micro-batch at a time through the whole pipeline and back",
       .order = "F0 B0 F1 B1 ... on every device",
       .bubble = "fraction (p-1)/p",
       .in_flight = "1",
       .makespan = "m p (f+b)",
       .elsewhere = "m (sum f + sum b + 2 sum c), for any stages and latencies c",
       .source = "the baseline of Huang et al. 2019 (GPipe), figure 2b"},
      {.name = "gpipe",
       .window = [](U, U m) -> U { return m; },
       .asynchronous = false,
       .host_loop = true,
       .takes_warm_up = false,
       .summary = "all forwards, then all backwards in micro-batch order",
       .order = "F0..F(m-1) B0..B(m-1) on every device",
       .bubble = "fraction (p-1)/(m+p-1), overhead (p-1)/m",
       .in_flight = "m",
       .makespan = "(m+p-1)(f+b)",
       .elsewhere = "+ 2 sum c with latencies c; free links, any stages: sum f + sum b + (m-1)(max "
                    "f + max b)",
       .source = "Huang et al. 2019 (GPipe), section 2.3"},
      {.name = "1f1b",
       .window = [](U depth, U) -> U { return depth; },
       .asynchronous = false,
       .host_loop = false,
       .takes_warm_up = true,
       .summary = "p-s forwards on position s, then one backward, one forward",
       .order = "a window of min(m, p-s) micro-batches on position s",
       .bubble = "fraction (p-1)/(m+p-1), overhead (p-1)/m",
       .in_flight = "min(m, p-s)",
       .makespan = "(m+p-1)(f+b)",
       .elsewhere = "+ 2c((p-1)m/p + p-2) with a latency c, for p >= 2 and m a multiple of p",
       .source = "Narayanan et al. 2021 (Megatron-LM), section 2.2; Fan et al. 2021 (DAPPLE)"},
      {.name = "eager-1f1b",
       .window = [](U depth, U) -> U { return 2 * depth - 1; },
       .asynchronous = false,
       .host_loop = false,
       .takes_warm_up = true,
       .summary = "1F1B with a longer warm-up, which hides the latency of links",
       .order = "a window of min(m, 2(p-s)-1) micro-batches on position s",
       .bubble = "fraction (p-1)/(m+p-1), overhead (p-1)/m",
       .in_flight = "min(m, 2(p-s)-1)",
       .makespan = "(m+p-1)(f+b)",
       .elsewhere = "+ 2c(p-1) with a latency c, while 2c <= f+b",
       .source = "Zhuang et al. 2023 (cross-mesh resharding), section 4"},
      {.name = "delayed-backward",
       .window = [](U, U) -> U { return 2; },
       .asynchronous = false,
       .host_loop = true,
       .takes_warm_up = false,
       .summary = "the one-thread loop \"forward i, then backward i-1\", often taken for 1F1B",
       .order = "F0 F1 B0 F2 B1 ... on every device",
       .bubble = "fraction (m-1)(p-1)/((m-1)p+1) for m >= 2",
       .in_flight = "min(m, 2)",
       .makespan = "((m-1)p+1)(f+b) for m >= 2",
       .source = "a window of 2 on every position; see gpipe and naive for windows m and 1"},
      {.name = "pipedream",
       .window = [](U depth, U) -> U { return depth; },
       .asynchronous = true,
       .host_loop = false,
       .takes_warm_up = true,
       .summary = "asynchronous 1F1B: an update after every backward, weight versions, no flush",
       .order = "a window of p-s micro-batches on position s; with replicas as many as reach it",
       .bubble = "none in the steady state: its period is the slowest stage's F + B + U",
       .in_flight = "min(m, p-s), each with its own version of the weights",
       .makespan = "(m+p-1)(f+b) for all m together, without the updates",
       .source = "Narayanan et al. 2019 (PipeDream), sections 3.2 and 3.3"},
      {.name = "data-parallel",
       .window = [](U, U) -> U { return 1; },
       .asynchronous = false,
       .host_loop = true,
       .takes_warm_up = false,
       .whole_model = true,
       .summary = "the whole model on every device, gradients all-reduced in buckets",
       .order = "F0 B0 F1 B1 ... on every device",
       .bubble = "none; what the all-reduces leave exposed is idle time",
       .in_flight = "1",
       .makespan = "m (f+b) of the whole model, and what the all-reduces leave exposed",
       .source = "Li et al. 2020 (PyTorch Distributed), section 3.2.3"},
  };
  return rules;
}

std::vector<std::string> limits_of(const ScheduleRule& rule) {
  std::vector<std::string> limits;
  if (rule.whole_model) {
    limits.emplace_back("one stage on every device: no plan.stages, replicas, devices or copies");
  } else if (rule.asynchronous) {
    limits.emplace_back("plan.replicas as given; no copies: plan.data_parallel is 1");
  } else {
    limits.emplace_back("plan.replicas divide schedule.micro_batches; plan.data_parallel as given");
  }
  limits.emplace_back(rule.takes_warm_up ? "plan.warm_up may set the window of each stage, less 1"
                                         : "no plan.warm_up");
  limits.emplace_back(rule.asynchronous
                          ? "an update after every backward; with weights: two, every mini-batch"
                          : "a flush and an update at the end of every mini-batch");
  return limits;
}

const ScheduleRule* find_schedule_rule(std::string_view name) {
  const auto& rules = schedule_rules();
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const ScheduleRule& r) { return r.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> windows(const ScheduleRule& rule, const PipelineShape& shape,
                                   const std::optional<std::vector<std::uint32_t>>& warm_up) {
  std::uint32_t behind = 0;  // the devices from this position on
  for (const Position& position : shape.positions) behind += shape.replicas(position);
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    const std::uint32_t r = shape.replicas(shape.positions[i]);
    const std::uint32_t own = shape.share(0, r);  // replica 0 has the most
    const std::uint32_t depth = (behind - 1) / r + 1;
    const std::uint32_t window =
        warm_up ? std::min((*warm_up)[i], own) + 1 : rule.window(depth, own);
    result.push_back(std::min(window, own));
    behind -= r;
  }
  return result;
}

std::vector<Op> window_list(const Position& position, std::uint32_t window,
                            std::uint32_t micro_batches, std::uint32_t replica,
                            std::uint32_t replicas) {
  const std::uint32_t own = (micro_batches - replica + replicas - 1) / replicas;
  window = std::min(window, own);
  std::vector<Op> list;
  list.reserve(std::size_t{2} * position.stages * own);
  const auto forward = [&](std::uint32_t k) {
    for (std::uint32_t i = 0; i < position.stages; ++i) {
      list.push_back({OpKind::forward, {position.first_stage + i}, {k * replicas + replica}});
    }
  };
  const auto backward = [&](std::uint32_t k) {
    for (std::uint32_t i = position.stages; i-- > 0;) {
      list.push_back({OpKind::backward, {position.first_stage + i}, {k * replicas + replica}});
    }
  };
  for (std::uint32_t k = 0; k < window; ++k) forward(k);
  for (std::uint32_t k = 0; k + window < own; ++k) {
    backward(k);
    forward(window + k);
  }
  for (std::uint32_t k = own - window; k < own; ++k) backward(k);
  return list;
}

Result<Schedule> generate(const ScheduleRule& rule, const PipelineShape& shape,
                          const std::vector<std::uint32_t>& windows, const Mark& mark) {
  PLUMBLINE_CHECK(windows.size() == shape.positions.size(), windows.size(), shape.positions.size());
  if (rule.host_loop) {
    // The loop runs over the whole model as over one position: its list is the issue order.
    const std::uint32_t window = rule.window(1, shape.micro_batches);
    Schedule schedule{std::string(rule.name), rule.asynchronous, true, shape, {}, {}};
    schedule.issue_order = window_list({0, shape.stages()}, window, shape.micro_batches);
    for (std::uint32_t i = 0; i < schedule.issue_order.size(); ++i) schedule.waves.push_back(i);
    return schedule;
  }
  OpLists lists(shape.slots);
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    const Position& position = shape.positions[i];
    const auto& slots = shape.stage_slots[position.first_stage];
    for (std::uint32_t replica = 0; replica < slots.size(); ++replica) {
      lists[slots[replica]] =
          window_list(position, windows[i], shape.micro_batches, replica, shape.replicas(position));
    }
  }
  return checked_schedule(std::string(rule.name), rule.asynchronous, shape, lists, mark);
}

}  // namespace plumbline
