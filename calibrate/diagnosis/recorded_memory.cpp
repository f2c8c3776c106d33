// Recorded devices stand in the order of the prediction's.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/recorded_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_tree.h"
#include "base/quantity.h"
#include "base/section_reader.h"
#include "base/table.h"
#include "sim/engine/memory.h"

namespace plumbline {
namespace {

/// The curve under a key: a list of pairs.
MemoryCurve curve_of(SectionReader& section, const std::string& path, Diagnostics& problems) {
  MemoryCurve curve;
  const auto* points = section.list("curve");
  if (!points) return curve;
  for (const YamlNode& point : *points) {
    if (point.items.size() != 2) {
      problems.push_back(input_error(point.mark, path + ".curve has pairs of a time and bytes"));
      break;
    }
    constexpr std::int64_t latest = std::int64_t{1} << 60;
    const auto time = read_count(point.items[0], path + ".curve", 0, latest, problems);
    const auto bytes = read_count(point.items[1], path + ".curve", 0, kLargestQuantity, problems);
    if (!time || !bytes) break;
    if (!curve.empty() && *time < curve.back().first) {
      problems.push_back(input_error(point.mark, path + ".curve goes back in time"));
      break;
    }
    curve.emplace_back(*time, Bytes{*bytes});
  }
  return curve;
}

RecordedMemory device_of(const YamlNode& node, const std::string& path, Diagnostics& problems) {
  SectionReader section(node, path, problems);
  const auto whole = [&](const char* key) {
    if (!section.has(key)) section.error(section.mark(), section.path_of(key) + " is missing");
    const auto found = section.count(key, 0, kLargestQuantity);
    return found ? found->value : 0;
  };
  RecordedMemory device;
  if (const auto source = section.text("source")) device.source = source->value;
  device.device = whole("device");
  device.least = {whole("least_bytes")};
  device.peak = {whole("peak_bytes")};
  device.reserved = {whole("reserved_bytes")};
  device.curve = curve_of(section, path, problems);
  section.finish();
  return device;
}

/// What a device holds during the whole run.
Bytes at_rest(const MemoryParts& peak) {
  return peak.sum() - peak.activations - peak.buffers - peak.temporary;
}

/// The memory of each device over the prediction.
std::vector<MemoryCurve> predicted_curves(const Outcome& outcome) {
  const auto all_steps =
      memory_steps(outcome.graph, outcome.trace, outcome.setup.costs,
                   outcome.setup.schedule.shape.positions, memory_rules(outcome.setup));
  std::vector<MemoryCurve> curves;
  for (std::size_t slot = 0; slot < all_steps.size(); ++slot) {
    const Bytes fixed = at_rest(outcome.memory[slot].peak);
    MemoryCurve curve = {{0, fixed}};
    for (const MemoryStep& step : all_steps[slot])
      curve.emplace_back(step.at.time_since_epoch().count() / 1000,
                         fixed + step.activations + step.buffers);
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// A curve as a line of bars, each the most of its part of the time.
std::string bars(const MemoryCurve& curve, Bytes top) {
  constexpr std::size_t columns = 60;
  constexpr const char* levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<Bytes> most(columns);
  const std::int64_t first = curve.front().first;
  const std::int64_t length = std::max<std::int64_t>(curve.back().first - first, 1);
  std::size_t before = 0;
  Bytes held = curve.front().second;
  for (const auto& [time, bytes] : curve) {
    const auto column =
        std::min(columns - 1, static_cast<std::size_t>(static_cast<double>(time - first) /
                                                       static_cast<double>(length) * columns));
    for (std::size_t c = before; c <= column; ++c) most[c] = std::max(most[c], held);
    held = bytes;
    most[column] = std::max(most[column], held);
    before = column;
  }
  for (std::size_t c = before; c < columns; ++c) most[c] = std::max(most[c], held);
  std::string text;
  for (const Bytes one : most) {
    const double share =
        top.count > 0 ? static_cast<double>(one.count) / static_cast<double>(top.count) : 0;
    text += levels[std::clamp(static_cast<int>(std::ceil(share * 8)) - 1, 0, 7)];
  }
  return text;
}

std::string off_by(Bytes predicted, Bytes recorded) {
  if (recorded.count == 0) return "-";
  return fmt::format(
      "{:+.1f} %",
      100 * (static_cast<double>(predicted.count) / static_cast<double>(recorded.count) - 1));
}

}  // namespace

Result<std::vector<RecordedMemory>> read_recorded_memory(const std::string& path) {
  const auto root = read_json(path);
  if (!root) return root.problems();
  Diagnostics problems;
  SectionReader document(*root, "", problems);
  document.count("version", 1, 1);
  document.choice_of("kind", {"memory"}, "kind of file that is read here",
                     "scripts/memory-snapshot.py writes such files");
  std::vector<RecordedMemory> devices;
  if (const auto* list = document.list("devices")) {
    for (std::size_t i = 0; i < list->size(); ++i)
      devices.push_back(device_of((*list)[i], fmt::format("devices[{}]", i), problems));
  }
  document.finish();
  if (!problems.empty()) return problems;
  return devices;
}

Result<Document> memory_beside(const Outcome& outcome,
                               const std::vector<RecordedMemory>& recorded) {
  if (recorded.size() != outcome.memory.size())
    return input_error({},
                       fmt::format("the memory of {} was recorded, and the scenario has {}",
                                   plural(recorded.size(), "device"), outcome.memory.size()),
                       "snapshots stand in the order of the pipeline's devices, one of each");
  Table table;
  table.row({"device", "at rest", "recorded", "off", "peak", "recorded", "off", "reserved"});
  const auto curves = predicted_curves(outcome);
  Document text;
  std::string lines;
  for (std::size_t slot = 0; slot < recorded.size(); ++slot) {
    const MemoryParts& peak = outcome.memory[slot].peak;
    const RecordedMemory& real = recorded[slot];
    table.row({outcome.device_name(slot), to_text(at_rest(peak)), to_text(real.least),
               off_by(at_rest(peak), real.least), to_text(peak.sum()), to_text(real.peak),
               off_by(peak.sum(), real.peak), to_text(real.reserved)});
    const Bytes top = std::max(peak.sum(), real.peak);
    lines += fmt::format("  device {} predicted │{}│\n", outcome.device_name(slot),
                         bars(curves[slot], top));
    if (!real.curve.empty())
      lines += fmt::format("  device {} recorded  │{}│\n", outcome.device_name(slot),
                           bars(real.curve, top));
  }
  table.repeat(1);
  text.sentence("\nbeside what was recorded: the least and the most that were allocated");
  text.table(std::move(table));
  text.sentence("\nthe memory of an iteration, and of the whole recording");
  text.verbatim(lines);
  return text;
}

std::string memory_csv(const Outcome& outcome, const std::vector<RecordedMemory>& recorded) {
  std::string text = "device,source,time_s,bytes\n";
  const auto add = [&](std::size_t slot, const char* source, const MemoryCurve& curve) {
    for (const auto& [time, bytes] : curve)
      text += fmt::format("{},{},{:.6f},{}\n", outcome.device_name(slot), source,
                          static_cast<double>(time - curve.front().first) / 1e6, bytes.count);
  };
  const auto curves = predicted_curves(outcome);
  for (std::size_t slot = 0; slot < recorded.size(); ++slot) {
    add(slot, "predicted", curves[slot]);
    add(slot, "recorded", recorded[slot].curve);
  }
  return text;
}

}  // namespace plumbline
