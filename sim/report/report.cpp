// The table for people.
//
// SPDX-License-Identifier: MIT
#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/bubble_words.h"

namespace plumbline {
namespace {

std::string stages_of(const std::vector<std::uint32_t>& stages) {
  const bool is_run = stages.back() - stages.front() + 1 == stages.size();
  if (is_run && stages.size() > 2) return fmt::format("{}-{}", stages.front(), stages.back());
  return fmt::format("{}", fmt::join(stages, ","));
}

std::string summary(const Outcome& p) {
  const Metrics& m = p.metrics;
  Table table;
  const auto line = [&](std::string_view name, std::string_view value,
                        const std::string& remark = "") {
    table.row({fmt::format("{:<16} {:>16}{}", name, value, remark.empty() ? "" : "   " + remark)});
  };
  if (m.steady) {
    line("iteration time", time_text(p.iteration_time_s),
         fmt::format("{} x the period", p.setup.micro_batches));
    line("steady period", time_text(m.steady->period_s), "for each micro-batch");
  } else if (m.period) {
    line("iteration time", time_text(p.iteration_time_s),
         "the period: each device begins the next iteration at once (training.flush: none)");
  } else {
    line("iteration time", time_text(p.iteration_time_s));
  }
  if (const auto likely = p.likely_iteration_time())
    line("sure to", range_text(*likely), short_text(*p.setup.errors));
  if (p.uncertainty) {
    const Uncertainty& u = *p.uncertainty;
    const auto at = [&](double share) { return u.iteration_time_s(share); };
    line("with noise", time_text(at(0.5)),
         fmt::format("in the median of {}; {} to {} in 90 % of them",
                     plural(static_cast<std::int64_t>(u.iteration_times_s.size()), "sampled run"),
                     time_text(at(0.05)), time_text(at(0.95))));
  }
  line("throughput", p.throughput_samples_per_s
                         ? fmt::format("{:.5g} samples/s", *p.throughput_samples_per_s)
                         : "-");
  if (p.uncertainty && p.uncertainty->iteration_time_s(0.05) > 0) {
    const auto at = [&](double share) {
      return fmt::format("{:.5g}",
                         p.samples_per_iteration() / p.uncertainty->iteration_time_s(share));
    };
    line("with noise", at(0.5) + " samples/s",
         fmt::format("in the median; {} to {} in 90 % of the runs", at(0.95), at(0.05)));
  }
  if (const auto rate = p.flops_per_s_per_device())
    line("arithmetic", flop_rate_text(*rate), arithmetic_remark(p));
  if (m.steady) {
    line("steady bubble", percent(m.steady->bubble_fraction),
         "idle / (devices x time), in the steady state");
    line("whole run", to_text(m.makespan),
         fmt::format("fill {}, steady {}, drain {}", to_text(m.steady->fill),
                     to_text(m.steady->length), to_text(m.steady->drain)));
  }
  const PipelineShape& shape = p.setup.schedule.shape;
  std::string positions;
  if (const double rounds = p.setup.rounds(); rounds > 1) {
    positions = fmt::format(" with p = {}, the devices, and v = {:.3g}, the stages of each",
                            shape.slots, rounds);
  } else if (shape.positions.size() != shape.stages()) {
    positions = fmt::format(" with p = {}, the devices in a row", shape.positions.size());
  }
  const std::string whole = m.steady ? ", over the whole run" : "";
  const auto formula = [&](double value, const std::string& text) {
    return p.formula ? fmt::format("; by formula {}{}", percent(value), text) : std::string();
  };
  line("bubble fraction", percent(m.bubble_fraction()),
       (m.period ? "idle / (devices x period)" : "idle / (devices x makespan)") + whole +
           (p.formula ? formula(p.formula->bubble_fraction, ", from " + p.formula->text + positions)
                      : ""));
  line("bubble overhead", percent(m.bubble_overhead()),
       "idle / busy" + whole + (p.formula ? formula(p.formula->bubble_overhead, "") : ""));
  if (m.all_reduce_bytes.count > 0) {
    const bool sharded = p.setup.rules.sharded != Sharded::nothing;
    line(sharded ? "collectives" : "all-reduces", std::to_string(m.all_reduces),
         fmt::format("{}{} sent along their rings; {} of device time exposed by them",
                     sharded ? "reduce-scatters and all-gathers: " : "",
                     to_text(m.all_reduce_bytes), to_text(m.idle_for(IdleCause::all_reduce))));
  }
  line("communication", percent(m.communication_stall_fraction()),
       fmt::format("of the device time is idle for it; {} of it exposed by {}, {}",
                   to_text(m.exposed), plural(m.transfers, "transfer"), to_text(m.transfer_bytes)));
  if (const auto sent = p.sent_in_groups_fraction())
    line("within groups", percent(*sent),
         "of the device time is sending within groups, which counts as busy");
  return table.print();
}

std::string device_table(const Outcome& p) {
  Table table;
  std::vector<std::string> header = {"device",    "stages",   "busy",        "idle",   "bubble",
                                     "in flight", "versions", "peak memory", "peak at"};
  if (p.setup.cluster.memory) header.emplace_back("fits");
  table.row(header);
  const auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const DeviceMetrics& device = p.metrics.devices[slot];
    const DeviceMemory& memory = p.memory[slot];
    const double bubble =
        p.metrics.whole().count() > 0 ? seconds(device.idle) / seconds(p.metrics.whole()) : 0;
    std::vector<std::string> row = {p.device_name(slot),
                                    stages_of(stages[slot]),
                                    to_text(device.busy),
                                    to_text(device.idle),
                                    percent(bubble),
                                    std::to_string(memory.peak_in_flight),
                                    std::to_string(memory.weight_versions),
                                    to_text(memory.peak.sum()),
                                    memory.peak_op};
    if (p.setup.cluster.memory) row.emplace_back(*p.fits(slot) ? "yes" : "NO");
    table.row(std::move(row));
  }
  if (p.graph.slots() > kMaxSeparate) table.join_alike();
  return table.print();
}

/// Idle times by cause, with a column for each cause that occurs.
std::string cause_table(const Outcome& p) {
  std::vector<IdleCause> shown;
  for (const IdleCause cause : kIdleCauses) {
    const bool occurs =
        std::any_of(p.metrics.devices.begin(), p.metrics.devices.end(),
                    [&](const DeviceMetrics& d) { return d.idle_by_cause.of(cause).count() > 0; });
    if (occurs) shown.push_back(cause);
  }
  if (shown.empty()) return "";
  Table table;
  std::vector<std::string> header = {"device"};
  for (const IdleCause cause : shown) header.emplace_back(name(cause));
  table.row(header);
  for (std::size_t slot = 0; slot < p.metrics.devices.size(); ++slot) {
    std::vector<std::string> row = {p.device_name(slot)};
    for (const IdleCause cause : shown) {
      row.push_back(to_text(p.metrics.devices[slot].idle_by_cause.of(cause)));
    }
    table.row(std::move(row));
  }
  if (p.graph.slots() > kMaxSeparate) table.join_alike();
  return "\nwhere the idle time comes from\n" + table.print();
}

std::string memory_table(const Outcome& p) {
  const bool any = std::any_of(p.memory.begin(), p.memory.end(),
                               [](const DeviceMemory& d) { return d.peak.sum().count > 0; });
  if (!any) return "";
  Table table;
  const bool has_temporary =
      std::any_of(p.memory.begin(), p.memory.end(),
                  [](const DeviceMemory& d) { return d.peak.temporary.count > 0; });
  const auto add_row = [&](std::vector<std::string> row) {
    if (!has_temporary) row.erase(row.end() - 2);
    table.row(std::move(row));
  };
  add_row({"device", "weights", "gradients", "optimizer", "activations", "stash", "buffers",
           "temporary", "peak"});
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const MemoryParts& peak = p.memory[slot].peak;
    add_row({p.device_name(slot), to_text(peak.weights), to_text(peak.gradients),
             to_text(peak.optimizer), to_text(peak.activations), to_text(peak.stash),
             to_text(peak.buffers), to_text(peak.temporary), to_text(peak.sum())});
  }
  if (p.graph.slots() > kMaxSeparate) table.join_alike();
  return "\nwhat the peak memory holds\n" + table.print();
}

/// The number of weight versions that each stage keeps, and the versions that one micro-batch uses.
std::string version_table(const Outcome& p) {
  if (!p.metrics.steady) return "";
  const std::uint32_t m = p.metrics.steady->first;
  Table table;
  table.row({"stage", "kept", "bytes each", "gradients late by", ""});
  for (std::size_t s = 0; s < p.setup.weights.size(); ++s) {
    const StageVersions& stage = p.setup.weights[s];
    const VersionUse& use = stage.uses[m];
    table.row({std::to_string(s), std::to_string(stage.kept),
               to_text(p.setup.costs.stages[s].parameters), plural(use.staleness(), "update"),
               fmt::format("micro-batch {}: forward on version {}, backward on version {}, applied "
                           "to version {}",
                           m, use.forward, use.backward, use.applied_to)});
  }
  return "\nversions of the weights\n" + table.print();
}

}  // namespace

std::string range_text(const TimeRange& range) {
  const double last = range.low_s > 0 ? std::pow(10, std::ceil(std::log10(range.low_s)) - 3) : 1;
  const auto rounded = [&](double time_s) { return std::round(time_s / last) * last; };
  return fmt::format("{} to {}", time_text(rounded(range.low_s)), time_text(rounded(range.high_s)));
}

std::string remarks(const Outcome& p) {
  std::string text;
  if (p.fits() == false) text += shortage(p) + '\n';
  for (const std::string& estimate : p.setup.estimated) text += "estimated: " + estimate + '\n';
  for (const std::string& note : p.setup.notes) text += "note: " + note + '\n';
  return text.empty() ? "" : '\n' + text;
}

std::string arithmetic_remark(const Outcome& p) {
  std::string text =
      p.setup.group_devices() > 1
          ? fmt::format("of the model on each device of the groups of {}", p.setup.group_devices())
          : "of the model on each device";
  if (const auto share = p.model_flops_utilization())
    text += fmt::format(": {} of its peak of {} (MFU)", percent(*share), to_text(*p.setup.peak));
  if (p.setup.rules.recompute != Recompute::none) text += "; what is run again does not count";
  return text;
}

std::string headline(const Outcome& p) {
  const Schedule& schedule = p.setup.schedule;
  const std::uint32_t copies = p.setup.copies();
  std::string text = fmt::format(
      "{}\n  {}: {}{} on {}, {} of {}", p.setup.name, schedule.name,
      copies > 1 ? fmt::format("{} copies of ", copies) : "",
      plural(schedule.shape.stages(), "stage"),
      p.setup.group_devices() > 1
          ? fmt::format("{} of {} devices", plural(p.graph.slots(), "group"),
                        p.setup.group_devices())
          : plural(p.graph.slots(), "device"),
      plural(p.setup.micro_batches, "micro-batch"), plural(p.setup.micro_batch_size, "sample"));
  if (p.setup.slices > 1) text += fmt::format(", each in {} slices", p.setup.slices);
  if (p.setup.mini_batches > 1) text += fmt::format(", {} mini-batches", p.setup.mini_batches);
  if (p.graph.asynchronous()) text += fmt::format(", {} micro-batches run", p.graph.micro_batches);
  return text;
}

std::string to_table(const Outcome& p, const std::optional<TimelineStyle>& style) {
  const std::string image = style ? timeline(p, *style) : "";
  const std::string bubble = p.bubble_terms ? bubble_table(p, *p.bubble_terms) : "";
  return headline(p) + "\n\n" + summary(p) + '\n' + device_table(p) + (image.empty() ? "" : "\n") +
         image + bubble + cause_table(p) + memory_table(p) + version_table(p) + remarks(p);
}

}  // namespace plumbline
