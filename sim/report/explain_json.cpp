// The JSON of an explanation.
//
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "sim/report/bubble_json.h"
#include "sim/report/explain_report.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

double at_s(SimTime time) { return seconds(time.time_since_epoch()); }

Json segment(const Outcome& p, const PathSegment& s, double whole) {
  const auto device = [&](std::uint32_t slot) { return p.graph.devices[slot].value; };
  Json place = nullptr;
  if (!s.overhead) {
    place = s.in_group       ? Json{{"group", device(s.from)}}
            : s.from == s.to ? Json{{"device", device(s.from)}}
                             : Json{{"link", {device(s.from), device(s.to)}}};
  }
  Json activities = Json::array();
  for (const std::uint32_t node : s.nodes) activities.push_back(to_text(p.graph.activities[node]));
  return {{"begin_s", at_s(s.begin)},
          {"end_s", at_s(s.end)},
          {"share", whole > 0 ? seconds(s.length()) / whole : 0.0},
          {"place", std::move(place)},
          {"activities", std::move(activities)}};
}

Json sensitivity(const Outcome& p, const Sensitivity& l) {
  constexpr std::string_view kinds[] = {"forward", "backward", "backward_input", "backward_weight",
                                        "update",  "latency",  "bandwidth",      "overhead"};
  const bool is_link = l.kind == SensitivityKind::latency || l.kind == SensitivityKind::bandwidth;
  const bool is_one_link = is_link && !l.every;
  const bool is_op = !is_link && l.kind != SensitivityKind::overhead;
  return {{"kind", kinds[static_cast<std::size_t>(l.kind)]},
          {"every", l.every},
          {"stage", is_op && !l.every ? Json(l.stage.value) : Json(nullptr)},
          {"link", is_one_link && l.from != l.to ? Json{l.from.value, l.to.value} : Json(nullptr)},
          {"group", is_one_link && l.from == l.to ? Json(l.from.value) : Json(nullptr)},
          {"links", is_one_link ? Json(l.links) : Json(nullptr)},
          {"now_s", seconds(l.now)},
          {"derivative", l.derivative},
          {"gain_s", l.gain_s},
          {"share", p.iteration_time_s > 0 ? l.gain_s / p.iteration_time_s : 0.0},
          {"until", or_null(l.until)},
          {"gain_until_s", l.until ? Json(l.gain_until_s()) : Json(nullptr)},
          {"least_iteration_time_s", or_null(l.min_s)}};
}

Json wait(const Outcome& p, const Wait& w) {
  const auto device = [&](std::uint32_t slot) { return p.graph.devices[slot].value; };
  const auto name_of = [&](std::uint32_t node) {
    return node == kNobody ? Json(nullptr) : Json(to_text(p.graph.activities[node]));
  };
  Json parts = Json::array();
  for (const IdleGap& part : w.parts)
    parts.push_back({{"cause", name(part.cause)}, {"length_s", seconds(part.end - part.begin)}});
  Json link = nullptr;
  if (w.transfer != kNobody)
    link = {device(p.graph.sender(w.transfer)), device(p.graph.receiver(w.transfer))};
  return {{"device", device(w.slot)},   {"begin_s", at_s(w.begin)},      {"end_s", at_s(w.end)},
          {"next", name_of(w.next)},    {"culprit", name_of(w.culprit)}, {"link", std::move(link)},
          {"causes", std::move(parts)}, {"text", to_text(p.graph, w)}};
}

Json other_order(const Outcome& p, const OtherOrder& order) {
  const auto& time = order.iteration_time_s;
  return {{"schedule", order.schedule},
          {"iteration_time_s", or_null(time)},
          {"change",
           time && p.iteration_time_s > 0 ? Json(*time / p.iteration_time_s - 1) : Json(nullptr)},
          {"peak_memory_bytes", time ? Json(order.peak_memory.count) : Json(nullptr)},
          {"fits", or_null(order.fits)},
          {"stages", order.iteration_time_s ? Json(order.stages) : Json(nullptr)},
          {"assumes_split", order.assumes_split},
          {"why_not", order.why_not.empty() ? Json(nullptr) : Json(order.why_not)}};
}

}  // namespace

std::string to_json(const Outcome& p, const Explanation& e, const std::string& version) {
  const double whole = seconds(e.path_length());
  Json path = Json::array();
  for (const PathSegment& s : e.path) path.push_back(segment(p, s, whole));
  Json sensitivities = Json::array();
  for (const Sensitivity& l : e.sensitivities.all) sensitivities.push_back(sensitivity(p, l));
  Json stages = Json::array();
  for (std::size_t s = 0; s < e.stages.size(); ++s) {
    stages.push_back({{"stage", s},
                      {"ops", e.stages[s].ops},
                      {"critical_ops", e.stages[s].critical},
                      {"least_slack_s", seconds(e.stages[s].min_slack)},
                      {"most_slack_s", seconds(e.stages[s].max_slack)}});
  }
  Json waits = Json::array();
  for (const Wait& w : e.waits) waits.push_back(wait(p, w));
  Json orders = Json::array();
  for (const OtherOrder& order : e.orders) orders.push_back(other_order(p, order));
  const Json json = {
      {"schema_version", 1},
      {"tool", {{"name", "plumbline"}, {"version", version}}},
      {"scenario", p.setup.name},
      {"schedule", p.setup.schedule.name},
      {"iteration_time_s", p.iteration_time_s},
      {"critical_path",
       {{"begin_s", at_s(e.path_begin())}, {"length_s", whole}, {"segments", std::move(path)}}},
      {"exact", e.sensitivities.exact},
      {"levers", std::move(sensitivities)},
      {"stages", std::move(stages)},
      {"waits", std::move(waits)},
      {"bubble_terms", p.bubble_terms ? bubble_json(*p.bubble_terms) : Json(nullptr)},
      {"other_schedules", std::move(orders)},
      {"estimated", p.setup.estimated},
      {"notes", p.setup.notes}};
  return json.dump(1) + '\n';
}

}  // namespace plumbline
