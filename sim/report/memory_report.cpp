// Rows by device, then rows by way.
//
// SPDX-License-Identifier: MIT
#include "sim/report/memory_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

/// What a device has left of its memory, which may be negative.
std::string left_text(const Outcome& p, std::size_t slot) {
  const std::int64_t left = (*p.memory_limit(slot) - p.memory[slot].peak.sum()).count;
  return left >= 0 ? to_text(Bytes{left}) : "-" + to_text(Bytes{-left});
}

Table device_memory_table(const Outcome& p) {
  Table table;
  const bool limited = p.setup.cluster.memory.has_value();
  const bool reserved = p.setup.cluster.reserve.count > 0;
  std::vector<std::string> header = {"device",      "stages", "weights", "gradients", "optimizer",
                                     "activations", "stash",  "buffers", "temporary"};
  const bool unlike = !p.setup.cluster.runs.empty();
  if (unlike) header.insert(header.begin() + 1, "kind");
  if (reserved) header.emplace_back("reserve");
  header.emplace_back("peak");
  if (limited) header.insert(header.end(), {"left", "fits"});
  table.row(header);
  const auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const MemoryParts& peak = p.memory[slot].peak;
    std::vector<std::string> row = {
        p.device_name(slot),     fmt::format("{}", fmt::join(stages[slot], ",")),
        to_text(peak.weights),   to_text(peak.gradients),
        to_text(peak.optimizer), to_text(peak.activations),
        to_text(peak.stash),     to_text(peak.buffers),
        to_text(peak.temporary)};
    if (unlike) row.insert(row.begin() + 1, p.device_kind(slot));
    if (reserved) row.push_back(to_text(p.setup.cluster.reserve));
    row.push_back(to_text(peak.sum()));
    if (limited) {
      row.push_back(left_text(p, slot));
      row.emplace_back(*p.fits(slot) ? "yes" : "NO");
    }
    table.row(std::move(row));
  }
  table.join_alike();
  table.may_lack({"stash", "temporary"});
  return table;
}

/// "80 GiB on each device", or on each of every kind.
std::string memory_text(const Cluster& cluster) {
  if (cluster.runs.empty()) return to_text(*cluster.memory) + " on each device";
  std::vector<std::string> kinds;
  for (const DeviceRun& run : cluster.runs)
    kinds.push_back(fmt::format("{} on each {}", to_text(*run.memory), run.name));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

Table way_table(const Outcome& p, const std::vector<WayToFit>& ways) {
  Table table;
  std::vector<std::string> header = {"", "peak", "iteration time", "against now"};
  if (p.setup.cluster.memory) header.insert(header.begin() + 2, "fits");
  table.row(header);
  for (const WayToFit& way : ways) {
    std::vector<std::string> row = {
        way.what, to_text(Bytes{way.peak_memory_bytes}), time_text(way.iteration_time_s),
        fmt::format("{:+.1f} %", 100 * (way.iteration_time_s / p.iteration_time_s - 1))};
    if (p.setup.cluster.memory) row.insert(row.begin() + 2, *way.fits ? "yes" : "NO");
    table.row(std::move(row));
  }
  return table;
}

}  // namespace

Document memory_table(const Outcome& p, const std::vector<WayToFit>& ways) {
  Document text;
  text.sentence(headline(p) + '\n');
  text.blank_line();
  text.table(device_memory_table(p));
  if (p.setup.cluster.memory)
    text.sentence(fmt::format("memory: {}{}", memory_text(p.setup.cluster),
                              p.setup.cluster.reserve.count > 0
                                  ? ", besides " + to_text(p.setup.cluster.reserve) + " of reserve"
                                  : ""));
  if (!ways.empty()) {
    text.sentence("\nwhat takes less, the fastest that fits first");
    text.table(way_table(p, ways));
    text.sentence(fmt::format("the first: {}", fmt::join(ways.front().overrides, " ")));
  }
  text.sentence(remarks(p));
  return text;
}

std::string memory_json(const Outcome& p, const std::vector<WayToFit>& ways,
                        const std::string& version) {
  Json devices = Json::array();
  const auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const MemoryParts& peak = p.memory[slot].peak;
    Json device = {{"device", p.graph.devices[slot].value}};
    if (const std::string kind = p.device_kind(slot); !kind.empty()) {
      device["kind"] = kind;
      device["memory_limit_bytes"] =
          p.memory_limit(slot) ? Json(p.memory_limit(slot)->count) : Json(nullptr);
    }
    device.update({{"stages", stages[slot]},
                   {"weights_bytes", peak.weights.count},
                   {"gradients_bytes", peak.gradients.count},
                   {"optimizer_bytes", peak.optimizer.count},
                   {"activations_bytes", peak.activations.count},
                   {"stash_bytes", peak.stash.count},
                   {"buffers_bytes", peak.buffers.count},
                   {"temporary_bytes", peak.temporary.count},
                   {"reserve_bytes", p.setup.cluster.reserve.count},
                   {"peak_memory_bytes", peak.sum().count},
                   {"fits", or_null(p.fits(slot))}});
    devices.push_back(std::move(device));
  }
  Json rows = Json::array();
  for (const WayToFit& way : ways) {
    rows.push_back({{"what", way.what},
                    {"overrides", way.overrides},
                    {"peak_memory_bytes", way.peak_memory_bytes},
                    {"iteration_time_s", way.iteration_time_s},
                    {"throughput_samples_per_s", or_null(way.throughput_samples_per_s)},
                    {"fits", or_null(way.fits)}});
  }
  const Json json = {{"schema_version", 1},
                     {"kind", "memory"},
                     {"tool", {{"name", "plumbline"}, {"version", version}}},
                     {"scenario", p.setup.name},
                     {"memory_limit_bytes", p.setup.cluster.memory && p.setup.cluster.runs.empty()
                                                ? Json(p.setup.cluster.memory->count)
                                                : Json(nullptr)},
                     {"iteration_time_s", p.iteration_time_s},
                     {"fits", or_null(p.fits())},
                     {"devices", std::move(devices)},
                     {"ways", std::move(rows)},
                     {"estimated", p.setup.estimated},
                     {"notes", p.setup.notes}};
  return json.dump(1) + '\n';
}

}  // namespace plumbline
