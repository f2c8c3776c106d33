// The tables of an explanation.
//
// SPDX-License-Identifier: MIT
#include "sim/report/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/engine/critical.h"
#include "sim/report/bubble_words.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

constexpr std::size_t kShownSegments = 16;
constexpr std::size_t kShownSensitivities = 8;  // besides the sensitivities of every stage or link
constexpr std::size_t kShownWaits = 8;
constexpr std::size_t kShownSteps = 8;

std::string at(SimTime time) { return to_text(time.time_since_epoch()); }
std::string device_name(const OpGraph& graph, std::uint32_t slot) {
  return std::to_string(graph.devices[slot].value);
}

std::string link_name(const OpGraph& graph, std::uint32_t from, std::uint32_t to) {
  return fmt::format("link {}-{}", device_name(graph, from), device_name(graph, to));
}

std::string share_of(double part, double whole) { return whole > 0 ? percent(part / whole) : "-"; }

/// "0F0", "1F2 .. 1B7, 6 F, 5 B".
std::string what_of(const OpGraph& graph, const PathSegment& segment) {
  const Activity& first = graph.activities[segment.nodes.front()];
  if (segment.nodes.size() == 1) return to_text(first);
  std::string text =
      fmt::format("{} .. {}", to_text(first), to_text(graph.activities[segment.nodes.back()]));
  constexpr std::pair<ActivityKind, char> kinds[] = {{ActivityKind::forward, 'F'},
                                                     {ActivityKind::backward, 'B'},
                                                     {ActivityKind::backward_input, 'I'},
                                                     {ActivityKind::backward_weight, 'W'},
                                                     {ActivityKind::update, 'U'}};
  for (const auto& [kind, letter] : kinds) {
    const auto count = std::count_if(
        segment.nodes.begin(), segment.nodes.end(),
        [&, wanted = kind](std::uint32_t node) { return graph.activities[node].kind == wanted; });
    if (count > 0) text += fmt::format(", {} {}", count, letter);
  }
  return text;
}

void add_path(const Outcome& p, const Explanation& e, Document& text) {
  const double whole = seconds(e.path_length());
  Table table;
  table.row({"from", "to", "length", "share", "where", "what"});
  const bool cut = e.path.size() > kShownSegments + 1;
  const std::size_t shown = cut ? kShownSegments / 2 : e.path.size();
  const auto row = [&](const PathSegment& segment) {
    table.row({at(segment.begin), at(segment.end), to_text(segment.length()),
               share_of(seconds(segment.length()), whole), place_name(p.graph, segment),
               what_of(p.graph, segment)});
  };
  for (std::size_t i = 0; i < shown; ++i) row(e.path[i]);
  if (cut) {
    const std::size_t last = e.path.size() - shown;
    Duration left{};
    for (std::size_t i = shown; i < last; ++i) left += e.path[i].length();
    table.row({"...", "", to_text(left), share_of(seconds(left), whole), "",
               fmt::format("{} more stretches", last - shown)});
    for (std::size_t i = last; i < e.path.size(); ++i) row(e.path[i]);
  }
  text.sentence(fmt::format("\nthe critical path{}: {} in {}",
                            p.metrics.steady   ? " of the steady state"
                            : p.metrics.period ? " of the device with the longest span"
                                               : "",
                            to_text(e.path_length()), plural(e.path.size(), "stretch")));
  text.table(std::move(table));
}

/// The time down to which a reduction gains at the same rate.
std::string limit_of(const Sensitivity& sensitivity) {
  if (!sensitivity.until) return "?";
  if (*sensitivity.until >= 1) return "0 s";
  return to_text(Duration(
      std::llround((1 - *sensitivity.until) * static_cast<double>(sensitivity.now.count()))));
}

void add_sensitivities(const Outcome& p, const Explanation& e, Document& text) {
  const double whole = p.iteration_time_s;
  Table table;
  table.row({"", "takes now", "on path", "1 % less saves", "down to", "saves then", "of the time"});
  table.may_lack({"on path", "down to", "of the time"});
  std::size_t shown = 0;
  std::size_t gaining = 0;
  std::size_t singles = 0;
  for (const Sensitivity& sensitivity : e.sensitivities.all) {
    if (!(sensitivity.gain_s > 0)) break;
    ++gaining;
    if (!sensitivity.every && singles++ >= kShownSensitivities) continue;
    ++shown;
    table.row({to_text(sensitivity), to_text(sensitivity.now),
               e.sensitivities.exact ? fmt::format("{:.4g}", sensitivity.derivative) : "?",
               time_text(sensitivity.gain_s / 100), limit_of(sensitivity),
               sensitivity.until ? time_text(sensitivity.gain_until_s()) : "?",
               sensitivity.until ? share_of(sensitivity.gain_until_s(), whole) : "?"});
  }
  if (gaining == 0)
    return text.sentence(
        "\nwhat to speed up first: nothing alone would help, each path has another as long");
  text.sentence("\nwhat to speed up first");
  text.table(std::move(table));
  if (gaining > shown) text.sentence(fmt::format("  and {} more that gain less", gaining - shown));
  if (!e.sensitivities.exact) {
    text.sentence(fmt::format(
        "  {}: this is what steps of up to 10 % save in simulations, for each 1 %",
        p.graph.flushes ? "rates change under way" : "a step moves both ends of a device's span"));
  }
  if (!p.graph.pairs.empty())
    text.sentence("  of a pair each op is changed by itself: what the other one hides of it stays");
}

void add_room(const Explanation& e, Document& text) {
  Table table;
  table.row({"stage", "ops", "on a longest path", "least slack", "most slack"});
  for (std::size_t s = 0; s < e.stages.size(); ++s) {
    const StageRoom& room = e.stages[s];
    table.row({std::to_string(s), std::to_string(room.ops), std::to_string(room.critical),
               to_text(room.min_slack), to_text(room.max_slack)});
  }
  text.sentence("\nhow much longer each op could take, alone, for nothing");
  text.table(std::move(table));
}

std::string cause_text(const Wait& wait) {
  std::string text;
  for (std::size_t i = 0; i < wait.parts.size();) {
    const IdleCause why = wait.parts[i].cause;
    Duration length{};
    for (; i < wait.parts.size() && wait.parts[i].cause == why; ++i)
      length += wait.parts[i].end - wait.parts[i].begin;
    std::string cause(name(why));
    std::replace(cause.begin(), cause.end(), '_', '-');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, to_text(length));
  }
  return text;
}

/// A wait that several copies of a pipeline share: for the same op, at the same time.
struct SharedWait {
  const Wait* first = nullptr;
  std::uint32_t devices = 1;
};

std::vector<SharedWait> joined(const OpGraph& graph, const std::vector<Wait>& waits) {
  const auto op = [&](std::uint32_t node) {
    return node == kNobody ? std::string() : to_text(graph.activities[node]);
  };
  std::map<std::tuple<SimTime, SimTime, std::string, std::string>, std::size_t> places;
  std::vector<SharedWait> shared;
  for (const Wait& wait : waits) {
    const auto [place, is_new] =
        places.try_emplace({wait.begin, wait.end, op(wait.next), op(wait.culprit)}, shared.size());
    if (is_new) {
      shared.push_back({&wait, 1});
    } else {
      ++shared[place->second].devices;
    }
  }
  return shared;
}

void add_waits(const Outcome& p, const Explanation& e, std::optional<DeviceId> device,
               Document& text) {
  std::vector<SharedWait> shown;
  if (device) {
    for (const Wait& wait : e.waits) {
      if (p.graph.devices[wait.slot] == *device) shown.push_back({&wait, 1});
    }
  } else {
    shown = joined(p.graph, e.waits);
  }
  const std::size_t all = shown.size();
  if (all == 0) return;
  if (!device && all > kShownWaits) {
    std::stable_sort(shown.begin(), shown.end(), [](const SharedWait& a, const SharedWait& b) {
      return a.first->length() > b.first->length();
    });
    shown.resize(kShownWaits);
  }
  text.sentence(device ? fmt::format("\nwhy device {} was idle", device->value)
                       : "\nwhy devices were idle");
  for (const SharedWait& one : shown) {
    const Wait* const wait = one.first;
    const std::string others =
        one.devices > 1 ? fmt::format("; {} more devices likewise", one.devices - 1) : "";
    text.sentence(fmt::format("  device {} idle {} to {}: {} ({}{})",
                              device_name(p.graph, wait->slot), at(wait->begin), at(wait->end),
                              to_text(p.graph, *wait), cause_text(*wait), others));
  }
  if (shown.size() < all)
    text.sentence(fmt::format("  and {} shorter ones; --device N shows all of one device",
                              all - shown.size()));
}

std::string advice(const Outcome& p, const Explanation& e) {
  const auto worth = [](const Sensitivity& sensitivity) {
    return sensitivity.every ? 0 : sensitivity.gain_until_s();
  };
  const auto best = std::max_element(
      e.sensitivities.all.begin(), e.sensitivities.all.end(),
      [&](const Sensitivity& a, const Sensitivity& b) { return worth(a) < worth(b); });
  if (best == e.sensitivities.all.end() || !(worth(*best) > 0)) return "";
  const double saved = best->gain_until_s();
  const std::string gain = fmt::format("{} ({}) of each iteration", time_text(saved),
                                       share_of(saved, p.iteration_time_s));
  if (*best->until >= 1)
    return fmt::format("\n{} is worth the most: without it, {} would be saved\n", to_text(*best),
                       gain);
  return fmt::format(
      "\n{} is worth the most: {} instead of {} saves {}; then another path is as long\n",
      to_text(*best), limit_of(*best), to_text(best->now), gain);
}

}  // namespace

std::string to_text(const Sensitivity& sensitivity) {
  constexpr std::string_view ops[] = {"F", "B", "I", "W", "U"};
  const auto kind = static_cast<std::size_t>(sensitivity.kind);
  if (sensitivity.every) {
    switch (sensitivity.kind) {
      case SensitivityKind::latency:
        return "latency of every link";
      case SensitivityKind::bandwidth:
        return "bytes over every link";
      default:
        return fmt::format("{} of every stage", ops[kind]);
    }
  }
  const std::string alike =
      sensitivity.links > 1 ? fmt::format(" and {} like it", sensitivity.links - 1) : std::string();
  const bool in_group = sensitivity.from == sensitivity.to;
  switch (sensitivity.kind) {
    case SensitivityKind::latency:
      if (in_group)
        return fmt::format("latency in group of device {}{}", sensitivity.from.value, alike);
      return fmt::format("latency of link {}-{}{}", sensitivity.from.value, sensitivity.to.value,
                         alike);
    case SensitivityKind::bandwidth:
      if (in_group)
        return fmt::format("bytes in group of device {}{}", sensitivity.from.value, alike);
      return fmt::format("bytes over link {}-{}{}", sensitivity.from.value, sensitivity.to.value,
                         alike);
    case SensitivityKind::overhead:
      return "overhead per iteration";
    default:
      return fmt::format("{} of stage {}", ops[kind], sensitivity.stage.value);
  }
}

std::string to_text(const OpGraph& graph, const Wait& wait) {
  const std::string culprit =
      wait.culprit == kNobody ? "" : to_text(graph.activities[wait.culprit]);
  if (wait.next == kNobody)
    return fmt::format("the {} was not over before {}", graph.asynchronous() ? "run" : "mini-batch",
                       culprit);
  const std::string next = to_text(graph.activities[wait.next]);
  if (culprit.empty()) return next + " waited for its weights";
  std::string text = fmt::format("{} waited for {}", next, culprit);
  if (wait.transfer != kNobody) {
    text += fmt::format(
        " over {}", link_name(graph, graph.sender(wait.transfer), graph.receiver(wait.transfer)));
  } else if (graph.nodes[wait.culprit].resource != wait.slot) {
    text += " of device " + device_name(graph, graph.nodes[wait.culprit].resource);
  }
  return text;
}

Document to_table(const Outcome& p, const Explanation& e, std::optional<DeviceId> device) {
  Document text;
  text.sentence(fmt::format("{}\n\n  iteration time {}\n{}", headline(p),
                            time_text(p.iteration_time_s), remarks(p)));
  if (!device) {
    if (p.bubble_terms) text.append(bubble_or_base(p, *p.bubble_terms));
    add_path(p, e, text);
    add_sensitivities(p, e, text);
    add_room(e, text);
  }
  add_waits(p, e, device, text);
  if (device) return text;
  text.sentence(other_orders_text(p, e.orders));
  text.sentence(advice(p, e));
  return text;
}

Document op_table(const Outcome& p, std::uint32_t node) {
  const OpGraph& graph = p.graph;
  const std::vector<Span>& spans = p.trace.spans;
  const auto name_of = [&](std::uint32_t n) { return to_text(graph.activities[n]); };
  const std::uint32_t slot = graph.nodes[node].resource;
  const std::vector<std::uint32_t> ops = ops_of_parts(graph);
  const auto first = static_cast<std::uint32_t>(  // the first of its parts
      std::find(ops.begin(), ops.end(), node) - ops.begin());
  std::string text =
      fmt::format("{}\n\n  {} on device {}: {} to {}\n", headline(p), name_of(node),
                  device_name(graph, slot), at(spans[first].begin), at(spans[node].end));
  const std::uint32_t by = spans[first].released_by;
  text += by == kNobody ? "  it began with the run\n"
                        : fmt::format("  it began when {} had {}\n", name_of(by),
                                      is_transfer(graph.activities[by].kind) ? "arrived" : "ended");
  for (const Wait& wait : waits(graph, p.trace)) {
    if (wait.next == kNobody || ops[wait.next] != node) continue;
    text += fmt::format("  {} it the device was idle from {}: {} ({})\n",
                        wait.next == first ? "before" : "within", at(wait.begin),
                        to_text(graph, wait), cause_text(wait));
  }
  const std::vector<Duration> slacks = slack(graph, p.trace);
  Duration room = slacks[node];
  for (std::uint32_t part = first; part < node; ++part) {
    if (ops[part] == node) room = std::min(room, slacks[part]);
  }
  text += room.count() == 0 ? "  it has no slack: it lies on a longest path\n"
                            : fmt::format("  it could end {} later for nothing\n", to_text(room));
  const std::vector<std::uint32_t> path = path_to(p.trace, node);
  const std::size_t shown = path.size() > kShownSteps ? path.size() - kShownSteps : 0;
  std::string steps;
  for (std::size_t i = shown; i < path.size(); ++i)
    steps += (steps.empty() ? "" : ", ") + name_of(path[i]);
  text += fmt::format("  what led to it: {}{}\n", shown > 0 ? "..., " : "", steps);
  std::string followers;
  for (std::uint32_t other = node + 1; other < graph.size(); ++other) {
    if (spans[other].released_by == node)
      followers += (followers.empty() ? "" : ", ") + name_of(other);
  }
  if (!followers.empty()) text += "  what it let begin: " + followers + '\n';
  Document document;
  document.sentence(std::move(text));
  return document;
}

Diagnostic no_such_op(const Outcome& p, const std::string& what, const std::string& name) {
  Diagnostic wrong;
  wrong.message = fmt::format("{} is '{}', which is no op of this run", what, clipped(name));
  wrong.help =
      fmt::format("{} stages, {} 0 to {}: {} is one", p.graph.stage_slots.size(),
                  p.setup.slices > 1 ? "slices" : "micro-batches", p.graph.micro_batches - 1,
                  to_text(p.setup.schedule.issue_order.front()));
  return wrong;
}

std::string place_name(const OpGraph& graph, const PathSegment& segment) {
  if (segment.overhead) return "overhead";
  if (segment.in_group) return "group of device " + device_name(graph, segment.from);
  if (segment.from == segment.to) return "device " + device_name(graph, segment.from);
  return link_name(graph, segment.from, segment.to);
}

}  // namespace plumbline
