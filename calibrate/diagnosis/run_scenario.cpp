// The text is written as a user would write it; then known schedules are tried for its order.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/run_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/exact_quantity.h"
#include "base/memory_files.h"
#include "base/table.h"
#include "base/yaml_text.h"
#include "schedules/generators/generators.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

/// Where the order of a scenario in memory stands.
constexpr const char* kOrderInMemory = "<the recorded order>";

Duration duration_of(double seconds) { return Duration{std::llround(seconds * 1e9)}; }

/// A part of a time; all parts add up to it.
Duration part_of(Duration time, std::uint32_t part, std::uint32_t parts) {
  return time * (part + 1) / parts - time * part / parts;
}

/// "{mean: 5 ms, median: 5 ms, q1: ..., q3: ..., samples: 40}", of one of `parts` equal layers; the
/// first ones take a nanosecond more where the time cannot be divided.
std::string statistics_text(const OpCosts& costs, std::uint32_t part, std::uint32_t parts) {
  const auto text = [&](double seconds) { return exact_text(duration_of(seconds / parts)); };
  return fmt::format("{{mean: {}, median: {}, q1: {}, q3: {}, samples: {}}}",
                     exact_text(part_of(costs.time, part, parts)), text(costs.seconds.median),
                     text(costs.seconds.q1), text(costs.seconds.q3), costs.seconds.samples);
}

/// The link of all pairs of devices.
struct OneLink {
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;
};

bool tells_arrivals(const RecordedRun& run) {
  return std::any_of(run.iterations.begin(), run.iterations.end(), [](const RunIteration& one) {
    return std::any_of(one.transfers.begin(), one.transfers.end(),
                       [](const auto& transfer) { return transfer.second.arrival().has_value(); });
  });
}

/// Where the bytes of all transfers are known, and how long they moved: their rate, and the rest
/// as a latency. Else all of it is a latency. Where nothing tells when data arrived, it ends with
/// the begin of the op that waited, and so contains the time between ops.
OneLink link_of(const RecordedRun& run, const RunCosts& costs) {
  OneLink link;
  Duration latency = costs.latency().value_or(Duration{});
  double bytes = 0, moving_s = 0;
  bool all_known = !costs.links.empty();
  for (const LinkCosts& one : costs.links) {
    all_known = all_known && one.bytes.count > 0 && one.moving && one.moving->count() > 0;
    bytes += static_cast<double>(one.bytes.count);
    moving_s += static_cast<double>(one.moving.value_or(Duration{}).count()) / 1e9;
  }
  if (all_known) {
    link.bandwidth = BytesPerSecond{std::llround(bytes / moving_s)};
    latency -= duration_of(moving_s / static_cast<double>(costs.links.size()));
  }
  if (!tells_arrivals(run)) latency -= costs.between_ops;
  link.latency = std::max(Duration{}, latency);
  return link;
}

/// The bytes that a stage sends to the next one; 0 = unknown.
Bytes output_of(const RecordedRun& run, const RunCosts& costs, std::uint32_t stage) {
  if (stage + 1 == run.stages) return {};
  for (const LinkCosts& link : costs.links) {
    if (link.from == run.device_of(stage) && link.to == run.device_of(stage + 1)) return link.bytes;
  }
  return {};
}

/// The layers of a stage.
std::string stage_text(const RecordedRun& run, const RunCosts& costs, std::uint32_t stage,
                       std::uint32_t layers) {
  const RunDevice& device = run.devices[run.device_of(stage)];
  const auto stages = static_cast<std::int64_t>(device.stages.size());
  const Duration update = costs.updates[run.device_of(stage)] / stages - costs.between_ops;
  const Bytes output = output_of(run, costs, stage);
  std::string text;
  for (std::uint32_t i = 0; i < layers; ++i) {
    text += layers == 1 ? fmt::format("    - name: stage{}\n", stage)
                        : fmt::format("    - name: stage{}.{}\n", stage, i);
    const auto time = [&](const char* key, OpKind kind) {
      if (const OpCosts* of = costs.find(stage, kind))
        text += fmt::format("      {}: {}\n", key, statistics_text(*of, i, layers));
    };
    time("forward", OpKind::forward);
    time("backward", OpKind::backward);
    time("backward_input", OpKind::backward_input);
    time("backward_weight", OpKind::backward_weight);
    if (update.count() > 0)
      text += fmt::format("      update: {}\n", exact_text(part_of(update, i, layers)));
    if (output.count > 0) text += fmt::format("      output: {}\n", exact_text(output));
  }
  return text;
}

std::string overhead_text(const RunCosts& costs) {
  const Duration per_op = std::max(Duration{}, costs.between_ops);
  const Duration per_iteration = std::max(Duration{}, costs.between_iterations);
  return fmt::format("overhead: {{per_op: {}, per_iteration: {}}}\n", exact_text(per_op),
                     exact_text(per_iteration));
}

/// All but the schedule.
std::string body(const RecordedRun& run, const RunCosts& costs, const RunText& wanted,
                 const std::vector<std::uint32_t>& layers) {
  const OneLink link = link_of(run, costs);
  std::string text = fmt::format("# Made by: {}\n", printable(wanted.made_by));
  const bool divided = layers != std::vector<std::uint32_t>(run.stages, 1);
  text += divided ? "# A recorded run. The layers of a stage are equal parts of what was recorded "
                    "of it; its\n"
                  : "# A recorded run. A layer is a whole stage; its\n";
  text +=
      "# update begins with the end of the last op, so that an all-reduce of gradients is part of "
      "it.\n"
      "# One link stands for all. per_op is the time between two ops of a device. Memory was not\n"
      "# recorded: layers have no bytes of it.\n";
  text += fmt::format("version: 1\nname: {}\nmodel:\n  layers:\n", yaml_scalar(wanted.name));
  for (std::uint32_t stage = 0; stage < run.stages; ++stage)
    text += stage_text(run, costs, stage, layers[stage]);
  text += fmt::format("cluster:\n  devices: {}\n", run.devices.size());
  if (run.devices.size() > 1) {
    const std::string bandwidth =
        link.bandwidth ? fmt::format(", bandwidth: {}", exact_text(*link.bandwidth)) : "";
    text += fmt::format("  link: {{latency: {}{}}}\n", exact_text(link.latency), bandwidth);
  }
  text +=
      fmt::format("plan: {{stages: {}, partition: [{}]}}\n", run.stages, fmt::join(layers, ", "));
  text += overhead_text(costs);
  text += "training: {flush: none}\n";
  return text;
}

std::string schedule_text(const std::string& name, std::size_t chunks, const RecordedRun& run) {
  const std::string of_chunks = chunks > 1 ? fmt::format(", chunks: {}", chunks) : "";
  return fmt::format("schedule: {{name: {}, micro_batches: {}{}}}\n", name, run.micro_batches,
                     of_chunks);
}

std::string file_text(const std::string& path) {
  return fmt::format("schedule: {{file: {}}}\n", yaml_scalar(path));
}

/// Whether a scenario has the run's order of ops.
bool has_order(const std::string& yaml, const RecordedRun& run) {
  const auto scenario = read_back({yaml, "", ""});
  if (!scenario) return false;
  const auto setup = resolve_setup(*scenario);
  return setup && setup->schedule.lists() == run.lists;
}

/// The scenario with the known schedule that has the run's order; nothing if there is none.
std::optional<RunScenario> with_known_schedule(const std::string& body, const RecordedRun& run) {
  const std::size_t chunks = run.devices.front().stages.size();
  for (const RunDevice& device : run.devices) {
    if (device.stages.size() != chunks) return std::nullopt;
  }
  // With one micro-batch, say, several have the same order: then the usual one.
  std::vector<ScheduleRule> rules = schedule_rules();
  std::stable_partition(rules.begin(), rules.end(), [](const ScheduleRule& rule) {
    return rule.name == "1f1b" || rule.name == "interleaved-1f1b";
  });
  for (const ScheduleRule& rule : rules) {
    if (rule.asynchronous || rule.whole_model) continue;
    const std::size_t min = rule.chunks ? rule.chunks->min_chunks : 1;
    const std::size_t max = rule.chunks ? rule.chunks->max_chunks : 1;
    if (chunks < min || chunks > max) continue;
    const std::string text = schedule_text(std::string(rule.name), max > 1 ? chunks : 1, run);
    if (has_order(body + text, run)) return RunScenario{body + text, std::string(rule.name), ""};
  }
  return std::nullopt;
}

/// The order as PyTorch reads it.
std::string order_text(const OpLists& lists) {
  std::string text;
  for (const auto& list : lists) {
    for (std::size_t i = 0; i < list.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ",", to_text(list[i]));
    text += '\n';
  }
  return text;
}

}  // namespace

Result<RunScenario> scenario_of(const RecordedRun& run, const RunCosts& costs,
                                const RunText& wanted) {
  std::vector<std::uint32_t> layers = wanted.layers;
  if (layers.size() <= 1) layers.assign(run.stages, layers.empty() ? 1 : layers.front());
  if (layers.size() != run.stages)
    return input_error({},
                       fmt::format("--layers has {} numbers, and the run had {}", layers.size(),
                                   plural(run.stages, "stage")),
                       "a number for each stage, or one for all");
  const std::string text = body(run, costs, wanted, layers);
  if (auto known = with_known_schedule(text, run)) return *std::move(known);
  return RunScenario{text + file_text(wanted.order_path), "", order_text(run.lists)};
}

Result<Scenario> read_back(const RunScenario& texts) {
  auto source = std::make_shared<Source>();
  source->name = "<the recorded run>";
  source->text = texts.yaml;
  if (texts.order.empty()) return parse_scenario(source, {});
  // The file is not on the disk yet.
  const MemoryFiles files({{kOrderInMemory, texts.order}});
  return parse_scenario(source, {fmt::format("schedule.file={}", kOrderInMemory)});
}

}  // namespace plumbline
