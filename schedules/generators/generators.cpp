// The table of schedules, and the window family: naive, GPipe, 1F1B, eager 1F1B, delayed backward,
// PipeDream.
//
// SPDX-License-Identifier: MIT
#include "schedules/generators/generators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bug.h"
#include "schedules/generators/v_half.h"
#include "schedules/order/check.h"

namespace plumbline {
/// It is over 80 lines as it is a table of data: a row for each schedule, so that they can be
/// compared.
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
       .takes_slices = true,
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
       .takes_slices = true,
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
       .takes_slices = true,
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
      {.name = "interleaved-1f1b",
       .chunks = ChunkRule{.lists = interleaved_1f1b,
                           .min_chunks = 2,
                           .max_chunks = kMaxChunks,
                           .takes_group = true,
                           .settles = true},
       .summary = "1F1B over v stages on each device, each 1/v as long",
       .order = "groups of g micro-batches go round chunk by chunk; then one F, one B",
       .bubble = "fraction (p-1)/(vm+p-1), overhead (p-1)/(vm), where every group has p or more",
       .in_flight = "min(vm, (v-1)g + 2(p-1-d) + 1) chunks on device d",
       .makespan = "(vm+p-1)(f+b) where every group has p or more",
       .source = "Narayanan et al. 2021 (Megatron-LM), section 2.2"},
      {.name = "looped-bfs",
       .chunks =
           ChunkRule{.lists = looped_breadth_first, .min_chunks = 1, .max_chunks = kMaxChunks},
       .summary = "breadth-first: chunk by chunk all forwards, then all backwards",
       .order = "all F of the first chunk, of the next, ...; all B of the last, newest first, ...",
       .bubble = "fraction (p-1)/(vm+p-1), overhead (p-1)/(vm), for m >= p",
       .in_flight = "vm chunks",
       .makespan = "(vm+p-1)(f+b) for m >= p",
       .source = "Lamy-Poirier 2023 (breadth-first pipeline parallelism)"},
      {.name = "interleaved-zb",
       .chunks = ChunkRule{.lists = interleaved_zero_bubble,
                           .min_chunks = 2,
                           .max_chunks = kMaxChunks,
                           .takes_group = true},
       .summary = "zb-h1 over v stages on each device, each 1/v as long",
       .order = "(v-1)g+p-1-d forwards; then F I in turn, and W from the d-th backward on",
       .bubble = "overhead (p-1)(f+i-w) / (vm(f+b)) for f, i >= w, where every group has p or more",
       .in_flight = "min(vm, (v-1)g + p) chunks, until W",
       .makespan = "vm(f+b) + (p-1)(f+i-w) for f, i >= w, where every group has p or more",
       .source = "Qi et al. 2024 (zero bubble), as PyTorch's ScheduleInterleavedZeroBubble"},
      {.name = "zb-h1",
       .chunks = ChunkRule{.lists = interleaved_zero_bubble},
       .summary = "1F1B with split backwards: weight parts fill the gaps, memory as with 1F1B",
       .order = "p-1-d forwards; then F I in turn, and W from the d-th backward on",
       .bubble = "overhead (p-1)(f+i-w) / (m(f+b)) for f, i >= w and m >= p",
       .in_flight = "min(m, p), until W",
       .makespan = "m(f+b) + (p-1)(f+i-w) for f, i >= w and m >= p",
       .source = "Qi et al. 2024 (zero bubble)"},
      {.name = "zb-h2",
       .chunks = ChunkRule{.lists = zero_bubble_h2},
       .summary = "zero bubble: twice as many micro-batches in flight, and no gap on any device",
       .order = "I as soon as it can, else F with at most 2p-1 in flight, else W",
       .bubble = "none between a device's first op and its last, for f = i = w and m >= 2p-1",
       .in_flight = "min(m, 2p-1), until W",
       .makespan = "m(f+b) + (p-1)f for f = i = w and m >= 2p-1",
       .source = "Qi et al. 2024 (zero bubble)"},
      {.name = "zb-v",
       .chunks = ChunkRule{.lists = zero_bubble_v,
                           .placement = StagePlacement::vee,
                           .min_chunks = 2,
                           .max_chunks = 2},
       .summary = "zero bubble with the memory of 1F1B: stages d and 2p-1-d on device d",
       .order = "down and back up; I and W of both stages in turn once the pipeline is full",
       .bubble = "none between a device's first op and its last, for f = i = w and m >= 2p-1",
       .in_flight = "min(2m, 2p) chunks, until W",
       .makespan = "2m(f+b) + (p-1)f for f = i = w and m >= 2p-1",
       .source = "Qi et al. 2024 (zero bubble), in the order of PyTorch's ScheduleZBVZeroBubble"},
      {.name = "v-half",
       .chunks =
           ChunkRule{
               .lists = v_half, .placement = StagePlacement::vee, .min_chunks = 2, .max_chunks = 2},
       .summary = "half of the memory of 1F1B: stages d and 2p-1-d on device d",
       .order = "one block of ops every six, pushed together as far as that memory allows",
       .bubble = "(3p-7)f, with odd p (3p-4)f, for f = i = w, p >= 3 and m >= p",
       .in_flight = "min(2m, 2 floor((p+2)/2)) chunks, until W",
       .makespan = "2m(f+b) + (3p-7)f, with odd p + (3p-4)f, for f = i = w, p >= 3 and m >= p",
       .source = "Qi et al. 2024 (controllable memory), pushed together in one pass"},
      {.name = "v-min",
       .chunks =
           ChunkRule{
               .lists = v_min, .placement = StagePlacement::vee, .min_chunks = 2, .max_chunks = 2},
       .summary = "a third of the memory of 1F1B: stages d and 2p-1-d on device d",
       .order = "as v-half, with a block that keeps less",
       .bubble = "(4p-7)f, where p mod 3 = 1 (4p-5)f, for f = i = w, p >= 2 and m >= p",
       .in_flight = "min(2m, 2 floor((p+4)/3)) chunks, until W",
       .makespan = "2m(f+b) + (4p-7)f, where p mod 3 = 1 + (4p-5)f, for f = i = w, p >= 2, m >= p",
       .source = "Qi et al. 2024 (controllable memory), pushed together in one pass"},
      {.name = "dualpipev",
       .chunks = ChunkRule{.lists = dualpipe_v,
                           .placement = StagePlacement::vee,
                           .min_chunks = 2,
                           .max_chunks = 2,
                           .min_rounds = 2,
                           .has_own_pairs = true},
       .summary = "forwards and backwards in pairs, stages d and 2p-1-d on device d",
       .order = "eight phases; a pair runs one after the other, or with schedule.pairs at once",
       .bubble = "overhead (p-1)(f+i-w) / (2m(f+b)) for b >= f >= i >= w",
       .in_flight = "2p+1 chunks, until W",
       .makespan = "2m(f+b) + (p-1)(f+i-w) for b >= f >= i >= w",
       .source = "DeepSeek-AI 2024 (DualPipe), the variant on half of the devices"},
      {.name = "dualpipe",
       .chunks = ChunkRule{.lists = dualpipe,
                           .placement = StagePlacement::both,
                           .even_devices = true,
                           .min_rounds = 2,
                           .has_own_pairs = true},
       .summary = "dualpipev in both directions, stages d and p-1-d on device d",
       .order = "eight phases; a pair runs one after the other, or with schedule.pairs at once",
       .bubble = "(p/2-1)(f+i-w) for b >= f >= i >= w",
       .in_flight = "p+1, until W",
       .makespan = "m(f+b) + (p/2-1)(f+i-w) for b >= f >= i >= w",
       .source = "DeepSeek-AI 2024 (DualPipe), section 3.2.1"},
      {.name = "chimera",
       .chunks =
           ChunkRule{.lists = chimera, .placement = StagePlacement::both, .even_devices = true},
       .summary = "two pipelines in opposite directions, stages d and p-1-d on device d",
       .order = "micro-batch by micro-batch down and up in turn; a backward goes first",
       .bubble = "(p-2) max(f,b) for m = p; (p-2)f for f = b and m a multiple of p",
       .in_flight = "min(m, p) at most; p/2+1 on the outer devices for m = p",
       .makespan = "m(f+b) + (p-2) max(f,b) for m = p; m(f+b) + (p-2)f for f = b, p divides m",
       .source = "Li and Hoefler 2021 (Chimera), both ways merged step by step"},
  };
  return rules;
}

std::optional<Diagnostic> ChunkRule::refuse(const ChunkShape& shape, const Mark& mark,
                                            const Mark& name) const {
  const std::uint32_t m = shape.micro_batches;
  const std::uint32_t p = shape.devices;
  if (even_devices && p % 2 != 0) {
    return input_error(name, fmt::format("the schedule needs an even number of devices, not {}", p),
                       p == 1 ? "take 2 stages, or fewer copies"
                              : fmt::format("take {} stages, or {}", p - 1, p + 1));
  }
  if (m < min_rounds * p) {
    return input_error(
        mark,
        fmt::format("schedule.micro_batches is {}, too few for {} device{}", m, p,
                    p == 1 ? "" : "s"),
        fmt::format("{} or more: {} times as many as devices", min_rounds * p, min_rounds));
  }
  return std::nullopt;
}

std::vector<std::string> limits_of(const ScheduleRule& rule) {
  std::vector<std::string> limits;
  if (rule.chunks) {
    const ChunkRule& chunks = *rule.chunks;
    if (replicas_in(chunks.placement) > 1) {
      limits.emplace_back(
          "each stage on two devices, no plan.replicas; schedule.micro_batches is even");
    } else if (chunks.max_chunks == 1) {
      limits.emplace_back("one stage on each device; no plan.replicas");
    } else {
      limits.push_back(fmt::format("schedule.chunks stages on each device ({}); no plan.replicas",
                                   chunks.max_chunks == chunks.min_chunks
                                       ? std::to_string(chunks.max_chunks)
                                       : "2 where it is not given"));
    }
    if (chunks.even_devices) limits.emplace_back("an even number of devices");
    if (chunks.takes_group) {
      limits.emplace_back(
          "schedule.group micro-batches go round together; without it as many as PyTorch takes, "
          "then Megatron-LM");
    }
    if (chunks.min_rounds > 0) {
      limits.push_back(
          fmt::format("schedule.micro_batches: {} times the devices, or more", chunks.min_rounds));
    }
  } else if (rule.whole_model) {
    limits.emplace_back("one stage on every device: no plan.stages, replicas, devices or copies");
  } else if (rule.asynchronous) {
    limits.emplace_back("plan.replicas as given; no copies: plan.data_parallel is 1");
  } else {
    limits.emplace_back("plan.replicas divide schedule.micro_batches; plan.data_parallel as given");
  }
  if (rule.takes_slices)
    limits.emplace_back(
        "schedule.slices cuts micro-batches along their sequence; no plan.replicas");
  limits.emplace_back(rule.takes_warm_up ? "plan.warm_up may set the window of each stage, less 1"
                                         : "no plan.warm_up");
  limits.emplace_back(rule.asynchronous
                          ? "an update after every backward; with weights: two, every mini-batch"
                          : "a flush and an update at the end of every mini-batch");
  return limits;
}

namespace {

/// Other names of listed schedules, by plain_name(): PyTorch's classes and the names of papers and
/// other programs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kOtherNames = {{
    {"interleavedzerobubble", "interleaved-zb"},
    {"zbvzerobubble", "zb-v"},
    {"zerobubblev", "zb-v"},
    {"zerobubbleh1", "zb-h1"},
    {"zb1p", "zb-h1"},
    {"zerobubbleh2", "zb-h2"},
    {"zb2p", "zb-h2"},
    {"loopedbreadthfirst", "looped-bfs"},
    {"breadthfirst", "looped-bfs"},
    {"bfs", "looped-bfs"},
    {"1f1binterleaved", "interleaved-1f1b"},
    {"1f1bflush", "1f1b"},
    {"pipedreamflush", "1f1b"},
    {"dapple", "1f1b"},
    {"fthenb", "gpipe"},
    {"afab", "gpipe"},
    {"dataparallelism", "data-parallel"},
}};

/// A name reduced to lower-case letters and digits, without PyTorch's `Schedule` in front.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : lower_case(name)) {
    if (c != '-' && c != '_' && c != ' ') plain += c;
  }
  constexpr std::string_view prefix = "schedule";
  return plain.starts_with(prefix) ? plain.substr(prefix.size()) : plain;
}

}  // namespace

std::string_view name(OpenPlacement placement) {
  switch (placement) {
    case OpenPlacement::straight:
      return "straight";
    case OpenPlacement::looped:
      return "looped";
    case OpenPlacement::vee:
      break;
  }
  return "v";
}

const ScheduleRule& open_rule(OpenPlacement placement) {
  const auto rule = [](ChunkRule chunks) {
    return ScheduleRule{.name = "auto",
                        .chunks = chunks,
                        .summary = "the best order that is found for these costs and this memory",
                        .order = "found by a search",
                        .bubble = "",
                        .in_flight = "schedule.in_flight, or what the memory holds",
                        .makespan = "",
                        .source = "docs/explanation/best-order.md"};
  };
  static const ScheduleRule straight = rule({.lists = nullptr});
  static const ScheduleRule looped =
      rule({.lists = nullptr, .min_chunks = 2, .max_chunks = kMaxChunks});
  static const ScheduleRule vee =
      rule({.lists = nullptr, .placement = StagePlacement::vee, .min_chunks = 2, .max_chunks = 2});
  if (placement == OpenPlacement::straight) return straight;
  return placement == OpenPlacement::looped ? looped : vee;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  names.reserve(schedule_rules().size() + 1);
  for (const ScheduleRule& rule : schedule_rules()) names.emplace_back(rule.name);
  names.emplace_back("auto");
  return names;
}

const Abbreviations& schedule_abbreviations() {
  static const Abbreviations short_for = {
      {"zero-bubble", "zb"}, {"zero_bubble", "zb"}, {"zerobubble", "zb"}, {"breadth-first", "bfs"}};
  return short_for;
}

std::uint32_t settled_micro_batches(const ScheduleRule& rule, std::uint32_t devices,
                                    std::uint32_t micro_batches) {
  const std::uint32_t few = 4 * devices;
  if (micro_batches <= few || rule.asynchronous) return micro_batches;
  if (rule.chunks)
    return rule.chunks->settles && micro_batches % devices == 0 ? few : micro_batches;
  for (std::uint32_t depth = 1; depth <= devices; ++depth) {
    if (rule.window(depth, few) != rule.window(depth, micro_batches)) return micro_batches;
  }
  return few;
}

const ScheduleRule* find_schedule_rule(std::string_view name) {
  std::string plain = plain_name(name);
  for (const auto& [other, ours] : kOtherNames) {
    if (plain == other) plain = plain_name(ours);
  }
  if (plain == "auto") return &open_rule(OpenPlacement::straight);
  const auto& rules = schedule_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const ScheduleRule& r) {
    return r.name == name || plain_name(r.name) == plain;
  });
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
        warm_up ? std::min((*warm_up)[i], own) + 1 : rule.window(depth, own) + shape.slices - 1;
    result.push_back(std::min(window, own));
    behind -= r;
  }
  return result;
}

std::vector<Op> window_list(const Position& position, std::uint32_t window,
                            std::uint32_t micro_batches, std::uint32_t replica,
                            std::uint32_t replicas, std::uint32_t slices) {
  PLUMBLINE_CHECK(slices == 1 || (replicas == 1 && micro_batches % slices == 0), slices, replicas,
                  micro_batches);
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
    if (slices > 1) k += slices - 1 - 2 * (k % slices);
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
  PLUMBLINE_CHECK(rule.window != nullptr, rule.name);
  PLUMBLINE_CHECK(windows.size() == shape.positions.size(), windows.size(), shape.positions.size());
  if (rule.host_loop) {
    // The host loop treats the whole model as one position: its list is the issue order.
    const std::uint32_t window = rule.window(1, shape.micro_batches);
    Schedule schedule{std::string(rule.name), rule.asynchronous, true, shape, {}, {}};
    schedule.issue_order =
        window_list({0, shape.stages()}, window, shape.micro_batches, 0, 1, shape.slices);
    for (std::uint32_t i = 0; i < schedule.issue_order.size(); ++i) schedule.waves.push_back(i);
    return schedule;
  }
  OpLists lists(shape.slots);
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    const Position& position = shape.positions[i];
    const auto& slots = shape.stage_slots[position.first_stage];
    for (std::uint32_t replica = 0; replica < slots.size(); ++replica) {
      lists[slots[replica]] = window_list(position, windows[i], shape.micro_batches, replica,
                                          shape.replicas(position), shape.slices);
    }
  }
  return checked_schedule(std::string(rule.name), rule.asynchronous, shape, lists, mark);
}

}  // namespace plumbline
