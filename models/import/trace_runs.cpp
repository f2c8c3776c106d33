// Runs from ranges and their kernels, and runs without those of skipped steps.
//
// SPDX-License-Identifier: MIT
#include "models/import/trace_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/table.h"

namespace plumbline {
namespace {

bool is_same(const TraceRange& a, const TraceRange& b) {
  return a.layer == b.layer && a.pass == b.pass && a.external_id && a.external_id == b.external_id;
}

void add_cpu_run(const TraceRange& range, const RangeWork& work, std::vector<LayerRun>& runs) {
  runs.push_back({range.layer, range.pass, RunClock::cpu, range.start, range.length});
  if (work.kernels > 0)
    runs.push_back({range.layer, range.pass, RunClock::kernels, range.start, work.end - work.start,
                    work.busy});
}

/// Leaves out the first `skip` runs of each pass on each clock, for a trace without steps.
CountedRuns skip_runs(const std::vector<LayerRun>& runs, std::int64_t skip) {
  std::map<std::tuple<std::uint32_t, RangePass, RunClock>, std::int64_t> seen;
  CountedRuns counted;
  counted.runs.reserve(runs.size());
  for (const LayerRun& run : runs) {
    if (++seen[{run.layer, run.pass, run.clock}] > skip) counted.runs.push_back(run);
  }
  if (skip == 0) return counted;
  counted.notes.push_back(fmt::format(
      "the trace has no steps (ProfilerStep#N, from profiler.step()): the first {} of each layer "
      "{} left out instead",
      skip == 1 ? "run" : fmt::format("{} runs", skip), skip == 1 ? "is" : "are"));
  return counted;
}

}  // namespace

std::vector<LayerRun> layer_runs(const std::vector<TraceRange>& ranges, const TraceWork& work) {
  std::vector<std::uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
    const TraceRange& a = ranges[x];
    const TraceRange& b = ranges[y];
    return std::tuple(a.layer, a.pass, a.external_id, a.on_gpu, a.start) <
           std::tuple(b.layer, b.pass, b.external_id, b.on_gpu, b.start);
  });
  std::vector<LayerRun> runs;
  runs.reserve(ranges.size());
  for (std::size_t i = 0; i < order.size();) {
    const TraceRange& first = ranges[order[i]];
    if (!first.on_gpu) {
      add_cpu_run(first, work.of_range[order[i]], runs);
      ++i;
      continue;
    }
    const bool follows_its_cpu_range =
        i > 0 && !ranges[order[i - 1]].on_gpu && is_same(ranges[order[i - 1]], first);
    const double cpu_start = follows_its_cpu_range ? ranges[order[i - 1]].start : first.start;
    const double start = first.start;  // the earliest of its ranges
    double end = first.start + first.length;
    double length = first.length;
    for (++i; i < order.size() && ranges[order[i]].on_gpu && is_same(first, ranges[order[i]]);
         ++i) {
      end = std::max(end, ranges[order[i]].start + ranges[order[i]].length);
      length = end - start;
    }
    runs.push_back({first.layer, first.pass, RunClock::gpu_range, cpu_start, length});
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const LayerRun& a, const LayerRun& b) { return a.cpu_start < b.cpu_start; });
  return runs;
}

Result<CountedRuns> skip_steps(const std::vector<LayerRun>& runs, std::vector<TraceStep> steps,
                               std::int64_t skip, const std::shared_ptr<const Source>& source) {
  if (steps.empty()) return skip_runs(runs, skip);
  std::sort(steps.begin(), steps.end(),
            [](const TraceStep& a, const TraceStep& b) { return a.start < b.start; });
  const auto skipped = static_cast<std::size_t>(skip);
  if (skipped >= steps.size())
    return input_error(
        {source},
        fmt::format("there {} {}, and the first {} {} left out", steps.size() == 1 ? "is" : "are",
                    plural(steps.size(), "step"), skip, skip == 1 ? "is" : "are"),
        "profile more steps, or leave out fewer with --skip");
  std::size_t outside = 0;
  CountedRuns counted;
  counted.runs.reserve(runs.size());
  for (const LayerRun& run : runs) {
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), run.cpu_start,
                         [](double start, const TraceStep& step) { return start < step.start; });
    const auto step = static_cast<std::size_t>(after - steps.begin());  // counts from 1
    if (step == 0 || run.cpu_start >= steps[step - 1].end) {
      ++outside;
    } else if (step > skipped) {
      counted.runs.push_back(run);
    }
  }
  counted.steps = steps.size() - skipped;
  if (outside > 0)
    counted.notes.push_back(fmt::format("{} outside of all steps {} left out",
                                        plural(outside, "range"), outside == 1 ? "is" : "are"));
  return counted;
}

}  // namespace plumbline
