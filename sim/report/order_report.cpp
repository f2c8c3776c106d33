// One line for each number, or one field.
//
// SPDX-License-Identifier: MIT
#include "sim/report/order_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

std::string reason_text(const OrderReport& report) {
  const OrderBound& bound = report.answer.bound;
  const std::string device = std::to_string(report.setup.devices[bound.device].value);
  switch (bound.reason) {
    case BoundReason::work:
      return fmt::format("the work of device {}, with what comes before and after it", device);
    case BoundReason::chain:
      return "the ops of one micro-batch, one after the other";
    case BoundReason::memory:
      return fmt::format("the work of device {}, whose memory is full before the first backward",
                         device);
    case BoundReason::turn:
      return fmt::format(
          "the memory of device {}: each micro-batch takes its place for a whole "
          "round trip",
          device);
  }
  return "";
}

std::string_view name(BoundReason reason) {
  switch (reason) {
    case BoundReason::work:
      return "work";
    case BoundReason::chain:
      return "chain";
    case BoundReason::memory:
      return "memory";
    case BoundReason::turn:
      return "turn";
  }
  return "";
}

/// What was chosen with the order.
void add_choices(const OrderAnswer& answer, Json& json) {
  for (const TriedPlacement& one : answer.placements) {
    Json placement = {{"name", one.name}, {"time_s", nullptr}};
    if (one.time_s) placement["time_s"] = *one.time_s;
    if (!one.time_s) placement["why_not"] = one.why_not;
    json["placements"].push_back(std::move(placement));
  }
  if (answer.partition) {
    json["partition"] = {{"layers", answer.partition->layers}, {"balanced_s", nullptr}};
    if (answer.partition->balanced_s)
      json["partition"]["balanced_s"] = *answer.partition->balanced_s;
  }
  if (!answer.devices.empty()) json["device_choice"] = answer.devices;
  if (answer.noisy) {
    json["noise"] = {{"share", kNoisyShare},
                     {"iteration_time_s", answer.noisy->time_s},
                     {"without_noise_s", answer.noisy->calm_time_s}};
  }
}

double seconds_of(const OrderBound& bound) { return static_cast<double>(bound.time) * 1e-9; }

}  // namespace

std::string order_text(const OrderReport& report, PageWidth width) {
  const OrderAnswer& answer = report.answer;
  std::vector<std::string> lines;
  const bool flushes = answer.problem.goal == OrderGoal::makespan;
  lines.push_back(fmt::format("order: {}, {}",
                              flushes
                                  ? time_in_words(answer.time_s) + " from the first op to the last"
                                  : "a period of " + time_in_words(answer.time_s),
                              gap_text(answer)));
  lines.push_back(fmt::format("lower bound: {}, by {}", time_in_words(seconds_of(answer.bound)),
                              reason_text(report)));
  for (std::string& line : choice_lines(answer)) lines.push_back(std::move(line));
  std::size_t shown = 0;
  std::string too_large;
  for (const NamedOrder& named : answer.named) {
    if (!named.fits) {
      too_large += (too_large.empty() ? "" : ", ") + named.name;
    } else if (shown++ < 4) {
      lines.push_back(fmt::format("{}: {}, {}", named.name, time_in_words(named.time_s),
                                  longer_text(named.time_s, answer.time_s)));
    }
  }
  if (!too_large.empty()) lines.push_back("too little memory for " + too_large);
  if (report.compared_s) {
    lines.push_back(fmt::format("{}: {}, {}", report.compared, time_in_words(*report.compared_s),
                                longer_text(*report.compared_s, answer.time_s)));
  }
  std::string text;
  for (const std::string& line : lines) text += wrapped(line, width) + '\n';
  return text;
}

std::string order_json(const OrderReport& report, const std::string& version) {
  const OrderAnswer& answer = report.answer;
  Json named = Json::array();
  for (const NamedOrder& one : answer.named)
    named.push_back({{"name", one.name}, {"time_s", one.time_s}, {"fits", one.fits}});
  Json devices = Json::array();
  const auto lists = report.setup.schedule.lists();
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    Json ops = Json::array();
    for (const Op& op : lists[slot]) ops.push_back(to_text(op));
    devices.push_back({{"device", report.setup.devices[slot].value}, {"ops", std::move(ops)}});
  }
  const OrderBound& bound = answer.bound;
  const bool of_device = bound.reason != BoundReason::chain;
  Json json = {{"schema_version", 1},
               {"kind", "order"},
               {"tool", {{"name", "plumbline"}, {"version", version}}},
               {"scenario", report.setup.name},
               {"flush", answer.problem.goal == OrderGoal::makespan ? "all" : "none"},
               {"time_s", answer.time_s},
               {"lower_bound_s", seconds_of(bound)},
               {"lower_bound_by", name(bound.reason)},
               {"lower_bound_device",
                of_device ? Json(report.setup.devices[bound.device].value) : Json(nullptr)},
               {"peak_memory_bytes", answer.peak_memory.count},
               {"published", std::move(named)}};
  add_choices(answer, json);
  if (report.compared_s)
    json["compared"] = {{"file", report.compared}, {"time_s", *report.compared_s}};
  json["devices"] = std::move(devices);
  json["estimated"] = report.setup.estimated;
  json["notes"] = report.setup.notes;
  return json.dump(1) + '\n';
}

}  // namespace plumbline
