// Points are numbers in a mixed radix: one digit per axis.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/scenario/fingerprint.h"

namespace plumbline {
namespace {

/// The most points that are read to find errors common to all.
constexpr std::uint64_t kMaxProbed = 100'000;

/// The axes of both. An axis of the arguments replaces the section's axis of the same key.
std::vector<Axis> merged(std::vector<Axis> section, std::vector<Axis> arguments) {
  for (Axis& axis : arguments) {
    const auto same = std::find_if(section.begin(), section.end(),
                                   [&](const Axis& other) { return other.key == axis.key; });
    if (same == section.end()) {
      section.push_back(std::move(axis));
    } else {
      *same = std::move(axis);
    }
  }
  return section;
}

/// An error if an axis replaces everything that an earlier one sets.
std::optional<Diagnostic> check_overlap(const std::vector<Axis>& axes) {
  for (std::size_t later = 0; later < axes.size(); ++later) {
    for (std::size_t i = 0; i < later; ++i) {
      if (!axes[i].key.starts_with(axes[later].key + '.')) continue;
      return input_error(axes[later].changes.front().path.back().mark,
                         fmt::format("'{}' replaces what '{}' sets", clipped(axes[later].key),
                                     clipped(axes[i].key)),
                         "the axis of the whole section stands first");
    }
  }
  return std::nullopt;
}

bool contains(const Diagnostics& problems, const Diagnostic& wanted) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Diagnostic& problem) { return problem.message == wanted.message; });
}

}  // namespace

SweepNumbers numbers_of(const Outcome& outcome) {
  SweepNumbers numbers;
  numbers.iteration_time_s = outcome.iteration_time_s;
  numbers.throughput_samples_per_s = outcome.throughput_samples_per_s;
  numbers.devices = outcome.devices_used();
  numbers.model_flops_per_device_per_s = outcome.flops_per_s_per_device();
  numbers.model_flops_utilization = outcome.model_flops_utilization();
  if (const auto& noise = outcome.uncertainty) {
    numbers.iteration_time_p5_s = noise->iteration_time_s(0.05);
    numbers.iteration_time_p50_s = noise->iteration_time_s(0.5);
    numbers.iteration_time_p95_s = noise->iteration_time_s(0.95);
  }
  numbers.stages = static_cast<std::uint32_t>(outcome.setup.partition.stages.size());
  numbers.stages_raised_from = outcome.setup.stages_raised_from;
  numbers.bubble_fraction = outcome.metrics.bubble_fraction();
  numbers.bubble_overhead = outcome.metrics.bubble_overhead();
  if (outcome.metrics.steady)
    numbers.steady_bubble_fraction = outcome.metrics.steady->bubble_fraction;
  if (outcome.formula) numbers.formula_bubble_fraction = outcome.formula->bubble_fraction;
  numbers.communication_stall_fraction = outcome.metrics.communication_stall_fraction();
  numbers.sent_in_groups_fraction = outcome.sent_in_groups_fraction();
  const auto max = std::max_element(
      outcome.memory.begin(), outcome.memory.end(),
      [](const DeviceMemory& a, const DeviceMemory& b) { return a.peak.sum() < b.peak.sum(); });
  const auto slot = static_cast<std::size_t>(max - outcome.memory.begin());
  numbers.peak_memory_bytes = max->peak.sum().count;
  numbers.peak_memory_device = outcome.graph.devices[slot].value;
  numbers.fits = outcome.fits();
  if (const auto limit = outcome.memory_limit(slot)) numbers.memory_limit_bytes = limit->count;
  numbers.bill = outcome.bill();
  numbers.devices_without_stage = outcome.setup.devices_without_stage();
  return numbers;
}

std::optional<std::int64_t> SweepNumbers::samples() const {
  if (!throughput_samples_per_s) return std::nullopt;
  return std::llround(*throughput_samples_per_s * iteration_time_s);
}

std::vector<std::size_t> SweepResult::values_at(std::uint64_t point) const {
  std::vector<std::size_t> indices(axes.size());
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    indices[axis] = static_cast<std::size_t>(point % axes[axis].values.size());
    point /= axes[axis].values.size();
  }
  return indices;
}

Sweep::Sweep(ScenarioText text, std::vector<Axis> axes)
    : text_(std::move(text)), axes_(std::move(axes)) {
  header_.points = 1;
  header_.axes.reserve(axes_.size());
  for (const Axis& axis : axes_) {
    header_.axes.push_back({axis.key, axis.values});
    header_.points *= axis.values.size();
  }
}

Result<Sweep> Sweep::open(const std::string& path, const std::vector<std::string>& arguments) {
  return make(ScenarioText::open(path), arguments);
}

Result<Sweep> Sweep::parse(const std::shared_ptr<const Source>& source,
                           const std::vector<std::string>& arguments) {
  return make(ScenarioText::parse(source), arguments);
}

Result<Sweep> Sweep::make(Result<ScenarioText> text, const std::vector<std::string>& arguments) {
  if (!text) return text.problems();

  // The axes.
  Diagnostics problems;
  std::vector<Axis> axes;
  for (const YamlNode::Entry& entry : text->root().entries) {
    if (entry.key == "sweep") axes = read_axes(entry.value, problems);
  }
  auto given = read_axes(arguments);
  if (!keep(given, problems) || !problems.empty()) return problems;
  axes = merged(std::move(axes), *std::move(given));
  if (axes.empty()) {
    return input_error({text->root().mark.source}, "a sweep without an axis",
                       "give a key several values: schedule.micro_batches=4,8,16 or "
                       "schedule.micro_batches='range(4, 65, 4)'; or a sweep section in the file");
  }
  if (auto refused = check_overlap(axes)) return *refused;
  double points = 1;
  for (const Axis& axis : axes) points *= static_cast<double>(axis.values.size());
  if (points > static_cast<double>(kMaxCombinations)) {
    return input_error(
        {text->root().mark.source},
        fmt::format("the axes make {:.0f} points, more than {}", points, kMaxCombinations),
        "give some axes fewer values, or a range a larger step");
  }

  // The scenario's errors that no axis can fix.
  Sweep sweep(*std::move(text), std::move(axes));
  problems = sweep.problems_everywhere();
  if (!problems.empty()) return problems;
  sweep.header_.scenario = sweep.name();
  sweep.header_.file = sweep.text_.root().mark.source->name;
  sweep.header_.fingerprint = sweep.fingerprint();
  return sweep;
}

Result<Scenario> Sweep::read(std::uint64_t point) const {
  const std::vector<std::size_t> indices = header_.values_at(point);
  std::vector<const YamlOverride*> changes;
  changes.reserve(axes_.size());
  for (std::size_t i = 0; i < axes_.size(); ++i) changes.push_back(&axes_[i].changes[indices[i]]);
  return text_.read(changes);
}

/// The errors of the first point that all other points have too.
Diagnostics Sweep::problems_everywhere() const {
  const auto first = read(0);
  Diagnostics everywhere = first ? Diagnostics{} : first.problems();
  const std::uint64_t probed = std::min(points(), kMaxProbed);
  for (std::uint64_t point = 1; point < probed && !everywhere.empty(); ++point) {
    const auto other = read(point);
    if (other) return {};
    std::erase_if(everywhere,
                  [&](const Diagnostic& problem) { return !contains(other.problems(), problem); });
  }
  return everywhere;
}

/// The name as in a scenario. It also works for sweeps whose first point cannot be read.
std::string Sweep::name() const {
  const YamlNode& root = text_.root();
  for (const YamlNode::Entry& entry : root.entries) {
    if (entry.key == "name" && !entry.value.text.empty()) return entry.value.text;
  }
  return printable(std::filesystem::path(root.mark.source->name).stem().string());
}

std::string Sweep::fingerprint() const {
  Fingerprint print;
  print.add(text_.root().mark.source->text);
  print.add(named_files(text_.root()));
  for (const Axis& axis : axes_) {
    print.add(axis.key);
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      print.add(axis.values[i]);
      print.add(named_files(axis.key, axis.changes[i].value));
    }
  }
  return print.hex();
}

Result<Scenario> Sweep::scenario(std::uint64_t point) const {
  auto scenario = read(point);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

SweepRow Sweep::evaluate(std::uint64_t point) const {
  SweepRow row;
  row.point = point;
  const auto refuse = [&](const Diagnostics& problems) {
    row.reason = problems.front().message;
    return std::move(row);
  };
  auto written = read(point);
  if (!written) return refuse(written.problems());
  const auto settled = settle_and_predict(*std::move(written));
  if (!settled) return refuse(settled.problems());
  const Outcome& outcome = settled->outcome;
  row.numbers = numbers_of(outcome);
  row.estimated = outcome.setup.estimated;
  if (row.numbers->fits == false) row.reason = shortage(outcome);
  return row;
}

}  // namespace plumbline
