// JSON written directly into text: a few shapes, all known here.
//
// SPDX-License-Identifier: MIT
#include "sim/report/report_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"
#include "schedules/order/in_flight.h"
#include "sim/engine/stage_memory.h"
#include "sim/report/bill_report.h"
#include "sim/report/bubble_words.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

/// A JSON array of `text(value)` for each value.
template <class Values, class Text>
std::string array(const Values& values, const Text& text) {
  std::string json = "[";
  for (const auto& value : values) {
    if (json.size() > 1) json += ',';
    json += text(value);
  }
  return json + ']';
}

template <class Values>
std::string numbers(const Values& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

/// What the iteration time is of, and where it likely lies.
std::string time_remark(const Outcome& p) {
  const Metrics& m = p.metrics;
  std::string remark = m.steady   ? fmt::format("{} x the period of {}", p.setup.micro_batches,
                                                time_text(m.steady->period_s))
                       : m.period ? "the period: no flush between mini-batches"
                                  : "of one mini-batch";
  if (const auto likely = p.likely_iteration_time())
    remark += "; likely range " + range_text(*likely);
  if (p.uncertainty) {
    remark += fmt::format("; 9 of 10 runs with noise take {} to {}",
                          time_text(p.uncertainty->iteration_time_s(0.05)),
                          time_text(p.uncertainty->iteration_time_s(0.95)));
  }
  return remark;
}

/// "of the device time is idle; the formula (p-1)/(m+p-1) says the same"
std::string bubble_remark(const BubbleTerms& terms) {
  std::string remark = "of the device time is idle";
  if (terms.steady) remark += " in the steady state";
  if (!terms.formula) return remark;
  remark += "; the formula " + terms.formula->text;
  return percent(terms.base) == percent(terms.whole)
             ? remark + " says the same"
             : fmt::format("{} says {} for equal stages on free links", remark,
                           percent(terms.base));
}

std::vector<ReportFigure> figures_of(const Outcome& p, const BubbleTerms& terms) {
  const Metrics& m = p.metrics;
  std::vector<ReportFigure> figures = {
      {"Iteration time", time_text(p.iteration_time_s), time_remark(p), true},
      {m.steady ? "Steady bubble" : "Bubble fraction", percent(terms.whole), bubble_remark(terms),
       true},
      {"Throughput",
       p.throughput_samples_per_s ? fmt::format("{:.5g} /s", *p.throughput_samples_per_s) : "-",
       "samples per second"}};
  const Bill bill = p.bill();
  if (const auto goodput = p.goodput())
    figures.push_back(
        {"Goodput", percent(goodput->fraction),
         fmt::format("checkpoints {}, lost work {}, restarts {}",
                     percent(goodput->checkpoint_fraction), percent(goodput->lost_fraction),
                     percent(goodput->restart_fraction))});
  if (bill.days)
    figures.push_back({"Training", days_text(*bill.days) + " days",
                       tokens_text(static_cast<double>(*p.setup.rates.tokens)) + " tokens"});
  if (bill.cost)
    figures.push_back({"Cost", money_text(*bill.cost, bill.currency),
                       tokens_text(*bill.gpu_hours) + " GPU-hours"});
  if (const auto rate = p.flops_per_s_per_device())
    figures.push_back({"Model FLOPs", flop_rate_text(*rate), arithmetic_remark(p)});
  if (m.steady) {
    figures.push_back({"Bubble fraction", percent(m.bubble_fraction()),
                       m.period ? "idle / (devices x period)" : "idle / (devices x makespan)"});
  }
  figures.push_back({"Bubble overhead", percent(m.bubble_overhead()), "idle / busy"});
  figures.push_back({"Communication", percent(m.communication_stall_fraction()),
                     "of the device time is waiting for the network"});
  if (const auto sent = p.sent_in_groups_fraction())
    figures.push_back({"TP, CP, EP", percent(*sent), "of the device time; it counts as busy"});
  const auto largest =
      std::max_element(p.memory.begin(), p.memory.end(),
                       [](const auto& a, const auto& b) { return a.peak.sum() < b.peak.sum(); });
  const auto slot = static_cast<std::size_t>(largest - p.memory.begin());
  figures.push_back(
      {"Peak memory", to_text(largest->peak.sum()),
       fmt::format("device {}{}", p.graph.devices[slot].value,
                   p.setup.cluster.memory ? ", of " + to_text(*p.memory_limit(slot)) : "")});
  return figures;
}

/// The memory of each stage for a micro-batch; `again` is that of B or of I, depending on the
/// order.
std::vector<StageMemory> memory_of_stages(const Outcome& p) {
  auto memory =
      stage_memory(p.setup.costs, p.setup.schedule.shape.positions, p.setup.rules.recompute);
  const auto& order = p.setup.schedule.issue_order;
  const bool splits = std::any_of(order.begin(), order.end(),
                                  [](const Op& op) { return op.kind == OpKind::backward_input; });
  if (splits) {
    for (StageMemory& stage : memory)
      stage.again = std::max(stage.again, stage.recomputed_by_input);
  }
  return memory;
}

std::string stage_json(const Outcome& p, std::size_t s, const std::vector<std::uint32_t>& in_flight,
                       const std::vector<StageMemory>& memory) {
  const Stage& stage = p.setup.partition.stages[s];
  const StageCost& cost = p.setup.costs.stages[s];
  // For an update, the part that each device of the stage does.
  const auto hold = [&](std::size_t kind) {
    return p.graph.cost_of({static_cast<std::uint32_t>(s)}, kind).hold;
  };
  const Duration per_op = hold(0) - cost.forward;
  const Duration update = hold(OpGraph::kUpdateClass) - per_op;
  std::vector<std::uint32_t> devices;
  devices.reserve(p.graph.stage_slots[s].size());
  for (const std::uint32_t slot : p.graph.stage_slots[s])
    devices.push_back(p.graph.devices[slot].value);
  return fmt::format(
      "{{\"layers\":{},\"devices\":{},\"forward_ns\":{},\"backward_ns\":{},\"update_ns\":{},"
      "\"parameter_bytes\":{},\"gradient_bytes\":{},\"kept_bytes\":{},\"again_bytes\":{},"
      "\"crossing_bytes\":{},\"window\":{}}}",
      array(stage.layers,
            [&](LayerId id) { return script_text(p.setup.model->graph.layer(id).name); }),
      numbers(devices), cost.forward.count(), cost.backward.count(), update.count(),
      cost.parameters.count, cost.gradients.count, memory[s].kept.count, memory[s].again.count,
      p.setup.costs.cut_bytes(static_cast<std::uint32_t>(s)).count, in_flight[s]);
}

}  // namespace

std::string script_json(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const std::string_view rest = json.substr(i, 3);
    if (c == '<' || c == '>' || c == '&') {
      safe += fmt::format("\\u{:04x}", c);
    } else if (rest == "\xe2\x80\xa8" || rest == "\xe2\x80\xa9") {
      safe += rest == "\xe2\x80\xa8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string script_text(std::string_view text) {
  std::string json = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      json += "\\ufffd";  // the command line may have bytes that are no text
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      json += fmt::format("\\u{:04x}", c);
    } else {
      if (c == '"' || c == '\\') json += '\\';
      json += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return script_json(json + '"');
}

std::string figures_json(const std::vector<ReportFigure>& figures) {
  return array(figures, [](const ReportFigure& figure) {
    return fmt::format("{{\"label\":{},\"value\":{},\"remark\":{},\"is_main\":{}}}",
                       script_text(figure.label), script_text(figure.value),
                       script_text(figure.remark), figure.is_main);
  });
}

std::string memory_json(const MemoryParts& memory) {
  return fmt::format(
      "{{\"weights_bytes\":{},\"gradients_bytes\":{},\"optimizer_bytes\":{},"
      "\"activations_bytes\":{},\"stash_bytes\":{},\"buffers_bytes\":{},\"temporary_bytes\":{}}}",
      memory.weights.count, memory.gradients.count, memory.optimizer.count,
      memory.activations.count, memory.stash.count, memory.buffers.count, memory.temporary.count);
}

std::string texts_json(const std::vector<std::string>& texts) {
  return array(texts, [](const std::string& text) { return script_text(text); });
}

std::string layout_json(const Outcome& p, const ColumnLayout& layout) {
  const auto costs = array(p.graph.costs, [&](const Cost& cost) {
    return fmt::format("[{},{}]", cost.latency.count() / layout.tick_ns, cost.bytes.count);
  });
  const auto channels = array(p.graph.channels, [](const Channel& channel) {
    return fmt::format("[{},{}]", channel.from_slot, channel.to_slot);
  });
  const auto devices =
      array(p.graph.devices, [](DeviceId device) { return std::to_string(device.value); });
  return fmt::format(
      "{{\"tick_ns\":{},\"makespan\":{},\"slices\":{},\"devices\":{},\"slot_items\":{},\"slot_"
      "busy\":{},"
      "\"slot_gaps\":{},\"memory_points\":{},\"memory_sampled\":{},\"channels\":{},"
      "\"channel_items\":{},\"moment_items\":{},\"costs\":{}}}",
      layout.tick_ns, layout.makespan, p.setup.slices, devices, numbers(layout.slot_items),
      numbers(layout.slot_busy), numbers(layout.slot_gaps), numbers(layout.memory_points),
      array(layout.memory_sampled, [](bool value) { return value ? "true" : "false"; }), channels,
      numbers(layout.channel_items), layout.moment_items, costs);
}

std::string run_facts(const TracedRun& run, const ColumnLayout& layout,
                      const std::string& version) {
  const Outcome& p = run.outcome;
  std::vector<std::size_t> stages(p.setup.partition.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s] = s;
  const std::vector<std::uint32_t> in_flight = max_in_flight(p.setup.schedule);
  const std::vector<StageMemory> memory = memory_of_stages(p);
  std::string headline_text = headline(p);
  headline_text.erase(0, std::min(p.setup.name.size() + 3, headline_text.size()));
  const bool measured = run.title == "measured";
  const BubbleTerms bubble = p.bubble_terms ? *p.bubble_terms : bubble_terms(p, measured);
  std::vector<std::string> remarks;
  if (p.fits() == false) remarks.push_back(shortage(p));
  for (const std::string& estimate : p.setup.estimated) remarks.push_back("estimated: " + estimate);
  for (const std::string& note : p.setup.notes) remarks.push_back(note);
  return fmt::format(
      "{{\"title\":{},\"headline\":{},\"figures\":{},\"formula_words\":{},\"remarks\":{},"
      "\"memory_limit_bytes\":{},\"reserve_bytes\":{},\"stages\":{},\"layout\":{},\"summary\":{}}}",
      script_text(run.title), script_text(headline_text), figures_json(figures_of(p, bubble)),
      script_text(bubble_sentences(p, bubble, measured)), texts_json(remarks),
      p.setup.cluster.memory ? std::to_string(p.setup.cluster.memory->count) : "null",
      p.setup.cluster.reserve.count,
      array(stages, [&](std::size_t s) { return stage_json(p, s, in_flight, memory); }),
      layout_json(p, layout), script_json(to_json(p, version)));
}

}  // namespace plumbline
