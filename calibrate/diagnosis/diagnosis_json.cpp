// The JSON of a diagnosis; the only file of this folder that uses the JSON library.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibrate/diagnosis/diagnosis_report.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

Json if_any(const std::optional<Duration>& time) {
  return time ? Json(seconds(*time)) : Json(nullptr);
}

Json statistics_json(const Statistics& s) {
  return {{"samples", s.samples}, {"mean", s.mean}, {"median", s.median}, {"q1", s.q1},
          {"q3", s.q3},           {"least", s.min}, {"most", s.max}};
}

Json devices_json(const Diagnosis& d) {
  Json all = Json::array();
  for (std::size_t i = 0; i < d.times.size(); ++i) {
    const RunDevice& device = d.run.devices[i];
    Json idle;
    for (std::size_t c = 0; c < kRunIdles; ++c) {
      const auto cause = static_cast<RunIdle>(c);
      idle[std::string(name(cause))] = seconds(d.times[i].of(cause));
    }
    all.push_back({{"device", i},
                   {"rank", device.rank},
                   {"device_of_rank", device.device},
                   {"stages", device.stages},
                   {"busy_s", seconds(d.times[i].busy())},
                   {"update_s", seconds(d.times[i].update)},
                   {"idle_s", std::move(idle)},
                   {"clock_ahead_s", seconds(device.clock_ahead)},
                   {"clock_known_to_s", if_any(device.clock_known_to)}});
  }
  return all;
}

Json ops_json(const Diagnosis& d) {
  Json all = Json::array();
  for (const auto& [key, of] : d.costs.ops) {
    all.push_back({{"stage", key.first},
                   {"op", std::string(1, letter(key.second))},
                   {"time_s", seconds(of.time)},
                   {"busy_share", of.busy_share},
                   {"statistics_s", statistics_json(of.seconds)}});
  }
  return all;
}

Json links_json(const Diagnosis& d) {
  Json all = Json::array();
  for (const LinkCosts& link : d.costs.links) {
    all.push_back({{"from", link.from},
                   {"to", link.to},
                   {"transfers", link.transfers},
                   {"latency_s", if_any(link.latency)},
                   {"moving_s", if_any(link.moving)},
                   {"waiting_s", if_any(link.waiting)},
                   {"bytes", link.bytes.count > 0 ? Json(link.bytes.count) : Json(nullptr)}});
  }
  return all;
}

Json order_json(const Diagnosis& d) {
  Json all = Json::array();
  for (const auto& list : d.run.lists) {
    Json row = Json::array();
    for (const Op& op : list) row.push_back(to_text(op));
    all.push_back(std::move(row));
  }
  return all;
}

Json iterations_json(const Diagnosis& d) {
  Json all = Json::array();
  for (const RunIteration& iteration : d.run.iterations) {
    Json of_devices = Json::array();
    for (const auto& device : iteration.ops) {
      Json of_ops = Json::array();
      for (const RunOp& op : device)
        of_ops.push_back({to_text(op.op), seconds(op.work.begin.time_since_epoch()),
                          seconds(op.work.end.time_since_epoch())});
      of_devices.push_back(std::move(of_ops));
    }
    all.push_back({{"number", iteration.number},
                   {"pass", iteration.pass},
                   {"begin_s", seconds(iteration.begin.time_since_epoch())},
                   {"end_s", seconds(iteration.end.time_since_epoch())},
                   {"time_s", if_any(iteration.period)},
                   {"ops", std::move(of_devices)}});
  }
  return all;
}

}  // namespace

std::string to_json(const Diagnosis& d, const std::string& version) {
  constexpr std::string_view clocks[] = {"kernels", "calls", "ranges"};
  Json critical = Json::object();
  for (const CriticalShare& share : d.critical) critical[share.what] = seconds(share.time);
  const Json json = {
      {"schema_version", 1},
      {"tool", {{"name", "plumbline"}, {"version", version}}},
      {"clock", clocks[static_cast<std::size_t>(d.run.clock)]},
      {"stages", d.run.stages},
      {"micro_batches", d.run.micro_batches},
      {"copies", d.run.copies},
      {"copy_times_s", d.run.copy_times_s},
      {"schedule", d.scenario.schedule.empty() ? Json(nullptr) : Json(d.scenario.schedule)},
      {"iteration_time_s", statistics_json(d.costs.iteration_s)},
      {"bubble_fraction", d.bubble_fraction()},
      {"between_ops_s", seconds(d.costs.between_ops)},
      {"between_iterations_s", seconds(d.costs.between_iterations)},
      {"devices", devices_json(d)},
      {"ops", ops_json(d)},
      {"links", links_json(d)},
      {"critical_path_s", std::move(critical)},
      {"replayed_s", d.replayed->iteration_time_s},
      {"replay_error", d.replay_error()},
      {"left_out", d.run.left_out},
      {"notes", d.run.notes},
      {"order", order_json(d)},
      {"iterations", iterations_json(d)}};
  std::string text = "{\n";
  for (auto at = json.begin(); at != json.end(); ++at) {
    text += fmt::format("  {}: {}{}\n", Json(at.key()).dump(),
                        at.value().dump(-1, ' ', false, Json::error_handler_t::replace),
                        std::next(at) == json.end() ? "" : ",");
  }
  return text + "}\n";
}

}  // namespace plumbline
