// The table for people.
//
// SPDX-License-Identifier: MIT
#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/document.h"
#include "base/quantity.h"
#include "base/table.h"
#include "models/kernels/published_errors.h"
#include "sim/report/bill_report.h"
#include "sim/report/bubble_words.h"

namespace plumbline {
namespace {

std::string stages_of(const std::vector<std::uint32_t>& stages) {
  const bool is_run = stages.back() - stages.front() + 1 == stages.size();
  if (is_run && stages.size() > 2) return fmt::format("{}-{}", stages.front(), stages.back());
  return fmt::format("{}", fmt::join(stages, ","));
}

/// The lines of the summary: a name, a value, and what it means.
class Summary {
 public:
  explicit Summary(const Outcome& p) : p_(p), m_(p.metrics) {}

  Table lines() {
    add_times();
    add_throughput();
    add_steady_state();
    add_bubble();
    add_communication();
    table_.has_no_header();
    return std::move(table_);
  }

 private:
  void line(std::string name, std::string value, std::string remark = "") {
    table_.row({std::move(name), std::move(value)}, std::move(remark));
  }

  void add_times() {
    line("iteration time", time_text(p_.iteration_time_s),
         m_.steady   ? fmt::format("{} x the period", p_.setup.micro_batches)
         : m_.period ? "the period: each device begins the next iteration at once (training.flush: "
                       "none)"
                     : "");
    if (m_.steady) line("steady period", time_text(m_.steady->period_s), "for each micro-batch");
    if (const auto likely = p_.likely_iteration_time())
      line("likely range", range_text(*likely), to_text(*p_.setup.errors));
    if (!p_.uncertainty) return;
    const auto at = [&](double share) {
      return time_text(p_.uncertainty->iteration_time_s(share));
    };
    line("with noise", at(0.5),
         fmt::format("the median of {}; 90 % of them take {} to {}",
                     plural(static_cast<std::int64_t>(p_.uncertainty->iteration_times_s.size()),
                            "sampled run"),
                     at(0.05), at(0.95)));
  }

  void add_throughput() {
    line("throughput", p_.throughput_samples_per_s
                           ? fmt::format("{:.5g} samples/s", *p_.throughput_samples_per_s)
                           : "-");
    if (p_.uncertainty && p_.uncertainty->iteration_time_s(0.05) > 0) {
      const auto at = [&](double share) {
        return fmt::format("{:.5g}",
                           p_.samples_per_iteration() / p_.uncertainty->iteration_time_s(share));
      };
      line("with noise", at(0.5) + " samples/s",
           fmt::format("the median; 90 % of the runs reach {} to {}", at(0.95), at(0.05)));
    }
    add_bill_lines(p_, table_);
    if (const auto rate = p_.flops_per_s_per_device())
      line("model FLOPs", flop_rate_text(*rate), arithmetic_remark(p_));
  }

  void add_steady_state() {
    if (!m_.steady) return;
    line("steady bubble", percent(m_.steady->bubble_fraction),
         "of the device time is idle in the steady state");
    line("whole run", to_text(m_.makespan),
         fmt::format("fill {}, steady state {}, drain {}", to_text(m_.steady->fill),
                     to_text(m_.steady->length), to_text(m_.steady->drain)));
  }

  /// "with p = 2, the devices in a row": where p is not the number of stages.
  std::string positions() const {
    const PipelineShape& shape = p_.setup.schedule.shape;
    if (const double rounds = p_.setup.rounds(); rounds > 1)
      return fmt::format(" with p = {}, the devices, and v = {:.3g}, the stages of each",
                         shape.slots, rounds);
    if (shape.positions.size() != shape.stages())
      return fmt::format(" with p = {}, the devices in a row", shape.positions.size());
    return "";
  }

  void add_bubble() {
    const std::string where = m_.steady ? " over the whole run" : m_.period ? " in a period" : "";
    std::string formula;
    if (p_.formula) {
      const std::string by_formula = percent(p_.formula->bubble_fraction);
      const bool same = by_formula == percent(m_.bubble_fraction());
      formula = fmt::format("; the formula {}{} says {}", p_.formula->text, positions(),
                            same ? "the same" : by_formula);
    }
    line("bubble fraction", percent(m_.bubble_fraction()),
         fmt::format("of the device time is idle{}{}", where, formula));
    line("bubble overhead", percent(m_.bubble_overhead()), "idle time / busy time" + where);
  }

  void add_communication() {
    if (m_.all_reduce_bytes.count > 0) {
      const Sharing& sharing = p_.setup.rules.sharing;
      line(sharing.shares() ? "collectives" : "all-reduces", std::to_string(m_.all_reduces),
           fmt::format("{}{} sent around rings; devices wait {} for them",
                       sharing.degree > 0 ? "reduce-scatters, all-reduces and all-gathers: "
                       : sharing.shares() ? "reduce-scatters and all-gathers: "
                                          : "",
                       to_text(m_.all_reduce_bytes), to_text(m_.idle_for(IdleCause::all_reduce))));
    }
    if (m_.transfers > 0)
      line("transfers", std::to_string(m_.transfers),
           fmt::format("{} between stages; devices {} {} for them", to_text(m_.transfer_bytes),
                       p_.graph.blocking ? "are held, or wait," : "wait", to_text(m_.exposed)));
    line("communication", percent(m_.communication_stall_fraction()),
         "of the device time is waiting for the network");
    if (const auto sent = p_.sent_in_groups_fraction())
      line("TP, CP, EP", percent(*sent),
           "of the device time is communication of tensor, context and expert parallelism; it "
           "counts "
           "as busy");
  }

  const Outcome& p_;
  const Metrics& m_;
  Table table_;
};

Table device_table(const Outcome& p) {
  Table table;
  std::vector<std::string> header = {"device",    "stages",   "busy",        "idle",   "bubble",
                                     "in flight", "versions", "peak memory", "peak at"};
  const bool unlike = !p.setup.cluster.runs.empty();
  if (unlike) header.insert(header.begin() + 1, "kind");
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
    if (unlike) row.insert(row.begin() + 1, p.device_kind(slot));
    if (p.setup.cluster.memory) row.emplace_back(*p.fits(slot) ? "yes" : "NO");
    table.row(std::move(row));
  }
  table.join_alike();
  table.may_lack({"versions", "peak at", "in flight", "idle"});
  return table;
}

/// "all-reduce".
std::string title_of(IdleCause cause) {
  std::string title{name(cause)};
  std::replace(title.begin(), title.end(), '_', '-');
  return title;
}

/// Idle times by cause, with a column for each cause that occurs.
void add_cause_table(const Outcome& p, Document& text) {
  std::vector<IdleCause> shown;
  for (const IdleCause cause : kIdleCauses) {
    const bool occurs =
        std::any_of(p.metrics.devices.begin(), p.metrics.devices.end(),
                    [&](const DeviceMetrics& d) { return d.idle_by_cause.of(cause).count() > 0; });
    if (occurs) shown.push_back(cause);
  }
  if (shown.empty()) return;
  Table table;
  std::vector<std::string> header = {"device"};
  const bool gathers = p.setup.rules.sharing.shares();
  for (const IdleCause cause : shown) {
    const bool is_any = gathers && cause == IdleCause::all_reduce;
    header.push_back(is_any ? "collectives" : title_of(cause));
  }
  table.row(header);
  for (std::size_t slot = 0; slot < p.metrics.devices.size(); ++slot) {
    std::vector<std::string> row = {p.device_name(slot)};
    for (const IdleCause cause : shown) {
      row.push_back(to_text(p.metrics.devices[slot].idle_by_cause.of(cause)));
    }
    table.row(std::move(row));
  }
  table.join_alike();
  text.sentence("\nwhere the idle time comes from");
  text.table(std::move(table));
}

void add_memory_table(const Outcome& p, Document& text) {
  const bool any = std::any_of(p.memory.begin(), p.memory.end(),
                               [](const DeviceMemory& d) { return d.peak.sum().count > 0; });
  if (!any) return;
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
  table.join_alike();
  text.sentence("\nwhat the peak memory holds");
  text.table(std::move(table));
}

/// The number of weight versions that each stage keeps, and the versions that one micro-batch uses.
void add_version_table(const Outcome& p, Document& text) {
  if (!p.metrics.steady) return;
  const std::uint32_t m = p.metrics.steady->first;
  Table table;
  table.row({"stage", "kept", "bytes each", "gradients late by"});
  for (std::size_t s = 0; s < p.setup.weights.size(); ++s) {
    const StageVersions& stage = p.setup.weights[s];
    const VersionUse& use = stage.uses[m];
    table.row({std::to_string(s), std::to_string(stage.kept),
               to_text(p.setup.costs.stages[s].parameters), plural(use.staleness(), "update")},
              fmt::format("micro-batch {}: forward on version {}, backward on version {}, applied "
                          "to version {}",
                          m, use.forward, use.backward, use.applied_to));
  }
  text.sentence("\nversions of the weights");
  text.table(std::move(table));
}

}  // namespace

std::string range_text(const TimeRange& range) {
  const double last = range.low_s > 0 ? std::pow(10, std::ceil(std::log10(range.low_s)) - 3) : 1;
  const auto rounded = [&](double time_s) { return std::round(time_s / last) * last; };
  return fmt::format("{} to {}", time_text(rounded(range.low_s)), time_text(rounded(range.high_s)));
}

std::string estimated_line(const std::vector<std::string>& estimates) {
  std::map<std::string, std::vector<std::string>> by_kind;
  for (const std::string& estimate : estimates) {
    std::vector<std::string>& all = by_kind[estimate.substr(0, estimate.find(':'))];
    if (std::find(all.begin(), all.end(), estimate) == all.end()) all.push_back(estimate);
  }
  std::vector<std::string> parts;
  for (const std::string& estimate : estimates) {
    const auto kind = by_kind.find(estimate.substr(0, estimate.find(':')));
    if (kind == by_kind.end()) continue;
    parts.push_back(kind->second.size() == 1 ? estimate
                                             : estimate + " (other rows differ: --json has all)");
    by_kind.erase(kind);
  }
  return parts.empty() ? "" : fmt::format("estimated: {}", fmt::join(parts, "\nestimated: "));
}

std::string remarks(const Outcome& p) {
  std::string text;
  if (p.fits() == false) text += shortage(p) + '\n';
  const bool has_range = p.likely_iteration_time().has_value();  // its line says how sure it is
  for (const std::string& estimate : p.setup.estimated) {
    if (has_range && estimate == estimate_of(*p.setup.errors)) continue;
    text += "estimated: " + estimate + '\n';
  }
  for (const std::string& note : p.setup.notes) text += "note: " + note + '\n';
  return text.empty() ? "" : '\n' + text;
}

std::string arithmetic_remark(const Outcome& p) {
  std::string text = "on each device";
  if (const auto share = p.model_flops_utilization())
    text += fmt::format(": {} of its peak of {} (MFU)", percent(*share), to_text(*p.setup.peak));
  if (p.setup.rules.recompute != Recompute::none)
    text += "; recomputation is not counted as useful";
  return text;
}

std::string headline(const Outcome& p) {
  const Schedule& schedule = p.setup.schedule;
  const std::uint32_t copies = p.setup.copies();
  std::string text = fmt::format(
      "{}\n  {}: {} on {}{}, {} of {}", p.setup.name, schedule.name,
      plural(schedule.shape.stages(), "stage"),
      p.setup.group_devices() > 1
          ? fmt::format("{} of {} devices", plural(p.graph.slots(), "group"),
                        p.setup.group_devices())
          : plural(p.graph.slots(), "device"),
      copies > 1 ? fmt::format(", data parallel {}", copies) : "",
      plural(p.setup.micro_batches, "micro-batch"), plural(p.setup.micro_batch_size, "sample"));
  if (p.setup.slices > 1) text += fmt::format(", each in {} slices", p.setup.slices);
  if (p.setup.mini_batches > 1) text += fmt::format(", {} mini-batches", p.setup.mini_batches);
  if (p.graph.asynchronous()) text += fmt::format(", {} micro-batches run", p.graph.micro_batches);
  return text;
}

Document to_table(const Outcome& p, const std::optional<TimelineStyle>& style) {
  Document text;
  text.sentence(headline(p) + '\n');
  text.blank_line();
  text.table(Summary(p).lines());
  text.blank_line();
  text.table(device_table(p));
  if (style) {
    if (const std::string image = timeline(p, *style); !image.empty()) text.verbatim('\n' + image);
  }
  if (p.bubble_terms) text.append(bubble_table(p, *p.bubble_terms));
  add_cause_table(p, text);
  add_memory_table(p, text);
  add_version_table(p, text);
  text.sentence(remarks(p));
  return text;
}

}  // namespace plumbline
