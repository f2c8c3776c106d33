// A predicted run: its numbers, its devices and its reports.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/units.h"
#include "library/predict/inside.h"
#include "sim/planning/predict.h"
#include "sim/prediction/uncertainty.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/html_report.h"
#include "sim/report/report.h"
#include "sim/report/shell_command.h"
#include "sim/whatif/row_number.h"
#include "sim/whatif/sweep_condition.h"

namespace plumbline::v1 {
namespace {

IdleTimes idle_times(const IdleByCause& idle) {
  IdleTimes times;
  times.fill = seconds(idle.fill);
  times.drain = seconds(idle.drain);
  times.dependency = seconds(idle.dependency);
  times.transfer = seconds(idle.transfer);
  times.all_reduce = seconds(idle.all_reduce);
  times.rendezvous = seconds(idle.rendezvous);
  times.update = seconds(idle.update);
  times.overhead = seconds(idle.overhead);
  return times;
}

Memory memory_of(const MemoryParts& parts) {
  return {parts.weights.count,     parts.gradients.count, parts.optimizer.count,
          parts.activations.count, parts.stash.count,     parts.buffers.count,
          parts.temporary.count};
}

Device device_of(const plumbline::Outcome& outcome, std::size_t slot,
                 const std::vector<std::uint32_t>& stages) {
  const DeviceMetrics& metrics = outcome.metrics.devices[slot];
  const DeviceMemory& memory = outcome.memory[slot];
  Device device;
  device.device = outcome.graph.devices[slot].value;
  device.stages = stages;
  device.busy_s = seconds(metrics.busy);
  device.idle_s = seconds(metrics.idle);
  const double whole = seconds(metrics.busy + metrics.idle);
  device.bubble_fraction = whole > 0 ? device.idle_s / whole : 0;
  device.idle_by_cause_s = idle_times(metrics.idle_by_cause);
  device.peak_memory_bytes = memory.peak.sum().count;
  device.memory = memory_of(memory.peak);
  device.peak_op = memory.peak_op;
  device.peak_in_flight = memory.peak_in_flight;
  device.weight_versions = memory.weight_versions;
  device.fits = outcome.fits(slot);
  return device;
}

std::vector<Device> devices_of(const plumbline::Outcome& outcome) {
  const auto stages = outcome.graph.stages_by_slot();
  std::vector<Device> devices;
  devices.reserve(stages.size());
  for (std::size_t slot = 0; slot < stages.size(); ++slot)
    devices.push_back(device_of(outcome, slot, stages[slot]));
  return devices;
}

}  // namespace

Run::Inside::Inside(Scenario scenario, plumbline::Outcome predicted)
    : asked(std::move(scenario)), outcome(std::move(predicted)), devices(devices_of(outcome)) {}

const Outcome& Run::Inside::with_terms() const {
  std::call_once(terms_found_, [&] { outcome.bubble_terms = bubble_terms(outcome); });
  return outcome;
}

Result<Run> predict(const Scenario& scenario) {
  auto resolved = resolve(scenario);
  if (!resolved) return resolved.error();
  auto outcome = plumbline::predict(resolved->inside().scenario);
  if (!outcome) return error_of(outcome.problems());
  if (auto note = lockstep_note(*outcome)) outcome->setup.notes.push_back(*std::move(note));
  return Run(std::make_shared<const Run::Inside>(*std::move(resolved), *std::move(outcome)));
}

const std::string& Run::name() const { return inside_->outcome.setup.name; }
const std::string& Run::schedule() const { return inside_->outcome.setup.schedule.name; }
std::uint32_t Run::stages() const {
  return static_cast<std::uint32_t>(inside_->outcome.setup.partition.stages.size());
}
std::uint32_t Run::micro_batches() const { return inside_->outcome.setup.micro_batches; }
std::uint32_t Run::mini_batches() const { return inside_->outcome.setup.mini_batches; }

double Run::iteration_time_s() const { return inside_->outcome.iteration_time_s; }
double Run::makespan_s() const { return seconds(inside_->outcome.metrics.makespan); }
std::optional<double> Run::throughput_samples_per_s() const {
  return inside_->outcome.throughput_samples_per_s;
}
double Run::bubble_fraction() const { return inside_->outcome.metrics.bubble_fraction(); }
double Run::bubble_overhead() const { return inside_->outcome.metrics.bubble_overhead(); }
std::optional<double> Run::steady_bubble_fraction() const {
  const auto& steady = inside_->outcome.metrics.steady;
  if (!steady) return std::nullopt;
  return steady->bubble_fraction;
}
std::optional<double> Run::formula_bubble_fraction() const {
  const auto& formula = inside_->outcome.formula;
  if (!formula) return std::nullopt;
  return formula->bubble_fraction;
}
double Run::communication_stall_fraction() const {
  return inside_->outcome.metrics.communication_stall_fraction();
}
std::optional<std::pair<double, double>> Run::likely_iteration_time_s() const {
  const auto range = inside_->outcome.likely_iteration_time();
  if (!range) return std::nullopt;
  return std::pair(range->low_s, range->high_s);
}
std::int64_t Run::peak_memory_bytes() const {
  std::int64_t peak = 0;
  for (const Device& device : inside_->devices) peak = std::max(peak, device.peak_memory_bytes);
  return peak;
}
std::optional<bool> Run::fits() const { return inside_->outcome.fits(); }
std::string Run::shortage() const {
  return fits().value_or(true) ? "" : plumbline::shortage(inside_->outcome);
}
const std::vector<std::string>& Run::estimated() const { return inside_->outcome.setup.estimated; }
const std::vector<std::string>& Run::notes() const { return inside_->outcome.setup.notes; }

Result<std::optional<double>> Run::number(const std::string& name) const {
  const RowNumber* const found = find_row_number(name);
  if (found == nullptr) {
    std::vector<std::string> names;
    names.reserve(row_numbers().size());
    for (const RowNumber& one : row_numbers()) names.emplace_back(one.name);
    return error_of(
        {input_error({}, "unknown number '" + clipped(name) + "'", did_you_mean(name, names))});
  }
  return found->of(numbers_of(inside_->outcome));
}

Result<bool> Run::meets(const std::string& condition) const {
  const auto read = parse_condition(condition, {});
  if (!read) return error_of(read.problems());
  SweepRow row;
  row.numbers = numbers_of(inside_->outcome);
  return read->holds(row);
}

const std::vector<Device>& Run::devices() const { return inside_->devices; }
const Ops& Run::ops() const { return inside_->ops(); }
const Transfers& Run::transfers() const { return inside_->transfers(); }

std::string Run::text(std::size_t width) const {
  TimelineStyle style;
  style.width = page_of(width).value_or(100);
  return to_table(inside_->with_terms(), style).print(page_of(width));
}
std::string Run::json() const { return to_json(inside_->with_terms(), kLibraryVersion); }
std::string Run::html() const {
  const Scenario::Inside& asked = inside_->asked.inside();
  const Source& source = *asked.scenario.source;
  const std::string command = shell_command("simulate", source.name, asked.settings);
  return html_report(source, {{inside_->with_terms(), "predicted"}},
                     {command, kLibraryVersion, asked.settings, {}, {}});
}
std::string Run::chrome_trace() const { return plumbline::chrome_trace(inside_->outcome); }
std::string Run::order_csv() const { return torch_csv(inside_->outcome.setup.schedule); }

}  // namespace plumbline::v1
