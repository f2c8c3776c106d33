// From ranges to layer times: statistics over the runs that count.
//
// SPDX-License-Identifier: MIT
#include "models/import/torch_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/quantity.h"
#include "base/some_of.h"
#include "base/statistics.h"
#include "base/table.h"
#include "base/units.h"
#include "models/import/torch_events.h"
#include "models/import/trace_events.h"
#include "models/import/trace_kernels.h"
#include "models/import/trace_nesting.h"
#include "models/import/trace_runs.h"

namespace plumbline {
namespace {

/// The times of one pass of one layer.
struct PassTimes {
  MeasuredTime time;
  std::size_t runs_in_all = 0;  ///< Runs, those of skipped steps included.
  std::size_t runs = 0;
  RunClock clock = RunClock::cpu;
  bool has_no_work = false;  ///< Nothing was launched on the GPU, which other passes use.
};

std::string frequent_names(const std::vector<NameCount>& names) {
  std::vector<std::string> told;
  told.reserve(names.size());
  for (const auto& [name, count] : names)
    told.push_back(fmt::format("'{}' ({})", clipped(name), count));
  return some_of(told);
}

MeasuredTime measured(std::vector<double> microseconds) {
  for (double& time : microseconds) time *= 1e3;
  return measured_time(microseconds);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string time_text(double microseconds) {
  return to_text(Duration(std::llround(std::min(microseconds * 1e3, 9e18))));
}

/// The lengths of a pass's runs, by clock.
using PassLengths = std::array<std::vector<double>, kRunClocks>;

class TraceSummary {
 public:
  TraceSummary(TraceEvents events, const std::shared_ptr<const Source>& source,
               const TraceOptions& options)
      : events_(std::move(events)), source_(source), options_(options) {}

  Result<TraceModel> make() {
    if (events_.ranges.empty()) return no_ranges();
    // One layer within another would count twice; recomputation is part of a backward.
    const TraceNesting nesting = leave_out_recomputation(events_, kMaxTold);
    check_nesting(nesting);
    if (!problems_.empty()) return problems_;
    // GPU work of each range on the CPU.
    work_ = join_kernels(events_, nesting.autograd_threads);
    // Runs, in the order in which the CPU started them, without those of skipped steps.
    runs_ = layer_runs(events_.ranges, work_);
    events_.ranges = {};
    count_runs();
    auto counted = skip_steps(runs_, std::move(events_.steps), options_.skip, source_);
    if (!counted) return counted.problems();
    take(*std::move(counted));
    // Times of every pass, on the best clock for it.
    sum_up();
    check_passes();
    if (!problems_.empty()) return problems_;
    note_clocks();
    note_kernels();
    note_runs();
    return TraceModel{model(), std::move(notes_)};
  }

 private:
  void error(std::string message, std::string help = "") {
    problems_.push_back(input_error({source_}, std::move(message), std::move(help)));
  }

  std::string range_name(std::uint32_t layer, RangePass pass) const {
    return clipped(options_.names.name(pass, events_.layers[layer]));
  }

  Diagnostics no_ranges() {
    const std::vector<NameCount>& named =
        events_.annotations.empty() ? events_.others : events_.annotations;
    std::string message =
        fmt::format("no range of a layer is among the {}", plural(events_.events, "event"));
    if (!named.empty())
      message += fmt::format("; the most frequent {} {}",
                             events_.annotations.empty() ? "events are" : "named ranges are",
                             frequent_names(named));
    error(std::move(message),
          fmt::format("put record_function(\"{}\") around each layer's forward, and \"{}\" around "
                      "its backward; or say how they are named with --forward and --backward",
                      options_.names.name(RangePass::forward, "NAME"),
                      options_.names.name(RangePass::backward, "NAME")));
    return problems_;
  }

  void check_nesting(const TraceNesting& nesting) {
    for (const auto& [inner, outer] : nesting.twice)
      error(fmt::format("the range '{}' lies within '{}', so its time would count twice",
                        range_name(inner.layer, inner.pass), range_name(outer.layer, outer.pass)),
            "give ranges to layers that are not parts of each other");
    if (nesting.recomputed > 0)
      notes_.push_back(fmt::format("{} within a backward {} part of it: recomputed activations",
                                   plural(nesting.recomputed, "forward"),
                                   nesting.recomputed == 1 ? "is" : "are"));
  }

  void count_runs() {
    for (const LayerRun& run : runs_) ++times(run.layer, run.pass).runs_in_all;
  }

  void take(CountedRuns counted) {
    runs_ = std::move(counted.runs);
    steps_ = counted.steps;
    notes_.insert(notes_.end(), counted.notes.begin(), counted.notes.end());
  }

  void sum_up() {
    std::map<std::pair<std::uint32_t, RangePass>, PassLengths> lengths;
    for (const LayerRun& run : runs_) {
      lengths[{run.layer, run.pass}][static_cast<std::size_t>(run.clock)].push_back(run.length);
      if (run.pass == RangePass::forward && !is_ordered_[run.layer]) {
        is_ordered_[run.layer] = true;
        order_.push_back(run.layer);
      }
    }
    for (auto& [key, of_pass] : lengths) sum_up(key.first, key.second, of_pass);
  }

  /// Chooses the clock of a pass. Ranges on the GPU contain only the work that the range's own
  /// thread launched. So they count only where they agree with the kernels, or where no kernel can
  /// be joined.
  void sum_up(std::uint32_t layer, RangePass pass, PassLengths& lengths) {
    const auto on = [&](RunClock clock) -> std::vector<double>& {
      return lengths[static_cast<std::size_t>(clock)];
    };
    PassTimes& found = times(layer, pass);
    const bool all_joined = work_.kernels > 0 && work_.ambiguous == 0 && work_.without_launch == 0;
    if (on(RunClock::kernels).empty() && on(RunClock::gpu_range).empty() && all_joined) {
      found.has_no_work = true;
      std::fill(on(RunClock::cpu).begin(), on(RunClock::cpu).end(), 0.0);
    }
    found.clock = !on(RunClock::kernels).empty()     ? RunClock::kernels
                  : !on(RunClock::gpu_range).empty() ? RunClock::gpu_range
                                                     : RunClock::cpu;
    if (found.clock == RunClock::kernels && !on(RunClock::gpu_range).empty()) {
      const double by_kernels = mean_of(on(RunClock::kernels));
      const double by_range = mean_of(on(RunClock::gpu_range));
      if (std::abs(by_range - by_kernels) <= kAgreement * by_kernels)
        found.clock = RunClock::gpu_range;
      else
        disagreements_.push_back(fmt::format("{} ({} by range, {} by kernels)",
                                             range_name(layer, pass), time_text(by_range),
                                             time_text(by_kernels)));
    }
    const std::vector<double>& chosen = on(found.clock);
    if (*std::max_element(chosen.begin(), chosen.end()) > kLongest)
      error(fmt::format("the kernels of a range '{}' lie further apart than a time may be",
                        range_name(layer, pass)));
    else
      found.time = measured(chosen);
    found.runs = chosen.size();
  }

  bool ran(std::uint32_t layer, RangePass pass) { return times(layer, pass).runs > 0; }

  /// Checks that each layer has a forward, and a backward or both of its parts.
  void check_passes() {
    for (std::uint32_t layer = 0; layer < events_.layers.size(); ++layer) {
      const bool has_forward = ran(layer, RangePass::forward);
      const bool has_input = ran(layer, RangePass::backward_input);
      const bool has_weight = ran(layer, RangePass::backward_weight);
      const bool has_backward = ran(layer, RangePass::backward) || has_input || has_weight;
      if (has_forward && has_backward && has_input == has_weight) continue;
      if (!has_forward && !has_backward) {
        report_missing(layer, RangePass::forward, "neither forward nor backward");
      } else if (!has_forward) {
        report_missing(layer, RangePass::forward, "a backward and no forward");
      } else if (!has_backward) {
        report_missing(layer, RangePass::backward, "a forward and no backward");
      } else {
        report_missing(layer, has_input ? RangePass::backward_weight : RangePass::backward_input,
                       has_input ? "a backward_input and no backward_weight"
                                 : "a backward_weight and no backward_input");
      }
    }
  }

  void report_missing(std::uint32_t layer, RangePass missing, std::string_view which) {
    error(fmt::format("the layer '{}' has {} in the steps that count",
                      clipped(events_.layers[layer]), which),
          times(layer, missing).runs_in_all > 0
              ? std::string("it ran only in what --skip leaves out, or outside of all steps")
              : fmt::format("it is a range '{}'", range_name(layer, missing)));
  }

  void note_clocks() {
    std::vector<std::string> on_cpu, without_work;
    std::size_t on_gpu = 0;
    for (const std::uint32_t layer : order_) {
      for (const RangePass pass : kAllRangePasses) {
        const PassTimes& pass_times = times(layer, pass);
        if (pass_times.runs == 0) continue;
        if (pass_times.has_no_work)
          without_work.push_back(range_name(layer, pass));
        else if (pass_times.clock == RunClock::cpu)
          on_cpu.push_back(range_name(layer, pass));
        else
          ++on_gpu;
      }
    }
    clock_ = on_gpu == 0 ? "cpu" : on_cpu.empty() ? "gpu" : "gpu and cpu";
    if (on_gpu > 0)
      notes_.emplace_back(
          "times are the GPU's, from the start of a range's first kernel to the end of its last");
    if (!disagreements_.empty())
      notes_.push_back(fmt::format(
          "warning: {} on the GPU {} not what the kernels launched within {} take, which count: "
          "{}; a range on the GPU misses what other threads launch, as autograd does",
          disagreements_.size() == 1
              ? "the range of 1 pass"
              : fmt::format("the ranges of {} passes", disagreements_.size()),
          disagreements_.size() == 1 ? "is" : "are", disagreements_.size() == 1 ? "it" : "them",
          some_of(disagreements_)));
    if (!without_work.empty())
      notes_.push_back(fmt::format(
          "{} nothing on the GPU, so {} 0: {}",
          without_work.size() == 1 ? "1 pass launches"
                                   : fmt::format("{} passes launch", without_work.size()),
          without_work.size() == 1 ? "its time is" : "their times are", some_of(without_work)));
    if (on_gpu > 0 && !on_cpu.empty())
      notes_.push_back(fmt::format(
          "warning: {} no range on the GPU, so the time is the CPU's, which may only be that of "
          "launching: {}",
          on_cpu.size() == 1 ? "1 pass has" : fmt::format("{} passes have", on_cpu.size()),
          some_of(on_cpu)));
    if (on_gpu == 0 && events_.gpu_work > 0)
      notes_.push_back(fmt::format(
          "warning: the trace has {} of GPU work, and none can be joined to a range, by a range on "
          "the GPU or by args.correlation of its launch: these times are the CPU's, which launches "
          "work and goes on; call torch.cuda.synchronize() at the end of each range",
          plural(events_.gpu_work, "event")));
  }

  /// Notes the kernels that were not joined to ranges, and the share of the times that kernels
  /// fill.
  void note_kernels() {
    if (work_.kernels == 0) return;
    double busy = 0;
    double length = 0;
    for (const LayerRun& run : runs_) {
      if (run.clock == RunClock::kernels) length += run.length;
      busy += run.busy;
    }
    if (busy < kWellFilled * length)
      notes_.push_back(fmt::format(
          "warning: kernels run in {:.0f} % of these times; in the rest the GPU waits, as a rule "
          "for the CPU to launch",
          100 * busy / length));
    if (work_.ambiguous > 0)
      notes_.push_back(fmt::format(
          "warning: {} left out: autograd launched {} while several backwards waited",
          work_.ambiguous == 1 ? "1 kernel is" : fmt::format("{} kernels are", work_.ambiguous),
          work_.ambiguous == 1 ? "it" : "them"));
    if (work_.of_others > 0)
      notes_.push_back(fmt::format(
          "{} left out: threads launched {} that are not autograd's, beside the ranges of others",
          work_.of_others == 1 ? "1 kernel or copy is"
                               : fmt::format("{} kernels and copies are", work_.of_others),
          work_.of_others == 1 ? "it" : "them"));
    if (work_.collectives > 0)
      notes_.push_back(
          fmt::format("{} of NCCL's collectives count{}: where they reduce gradients over copies, "
                      "plan.data_parallel "
                      "would count them a second time",
                      plural(work_.collectives, "kernel"), work_.collectives == 1 ? "s" : ""));
    if (work_.sends_and_receives > 0)
      notes_.push_back(
          fmt::format("{} of NCCL {} left out: sends and receives are no part of a "
                      "layer's time, and wait for other devices",
                      plural(work_.sends_and_receives, "kernel"),
                      work_.sends_and_receives == 1 ? "is" : "are"));
    if (work_.maybe_sends > 0)
      notes_.push_back(
          fmt::format("warning: {} of NCCL may be {}all-to-all{} of the layers, or send{} between "
                      "stages, which "
                      "wait for other devices; the times hold {}",
                      plural(work_.maybe_sends, "kernel"), work_.maybe_sends == 1 ? "an " : "",
                      work_.maybe_sends == 1 ? "" : "s",
                      work_.maybe_sends == 1 ? "s or receives" : "s and receives",
                      work_.maybe_sends == 1 ? "it" : "them"));
    if (work_.without_launch > 0)
      notes_.push_back(fmt::format(
          "{} in no range: the trace does not hold the call that launched {}",
          work_.without_launch == 1 ? "1 kernel is"
                                    : fmt::format("{} kernels are", work_.without_launch),
          work_.without_launch == 1 ? "it" : "them"));
  }

  void note_runs() {
    std::size_t min = times(order_.front(), RangePass::forward).runs;
    std::size_t max = min;
    for (const std::uint32_t layer : order_) {
      for (const RangePass pass : kAllRangePasses) {
        if (pass == RangePass::update || !ran(layer, pass)) continue;
        min = std::min(min, times(layer, pass).runs);
        max = std::max(max, times(layer, pass).runs);
      }
    }
    if (min != max) {
      notes_.push_back(fmt::format(
          "warning: passes ran between {} and {} times; a layer that runs more often than others "
          "in a micro-batch counts once",
          min, max));
    } else if (steps_ > 0 && min > steps_ && min % steps_ == 0) {
      notes_.push_back(fmt::format(
          "every pass ran {} times a step: each run is taken as one micro-batch", min / steps_));
    }
  }

  Model model() {
    Model model;
    std::vector<Layer> layers;
    layers.reserve(order_.size());
    Measurement measurement;
    measurement.layers.reserve(order_.size());
    for (const std::uint32_t layer : order_) {
      layers.push_back({.name = events_.layers[layer], .kind = {}, .parameters = {}});
      LayerCosts costs;
      costs.forward = times(layer, RangePass::forward).time;
      if (ran(layer, RangePass::backward_input))
        costs.split = SplitBackward{times(layer, RangePass::backward_input).time,
                                    times(layer, RangePass::backward_weight).time};
      if (ran(layer, RangePass::backward))
        costs.backward = times(layer, RangePass::backward).time;
      else
        costs.backward.mean = costs.split->input.mean + costs.split->weight.mean;
      costs.update = times(layer, RangePass::update).time;
      measurement.layers.push_back(costs);
    }
    model.graph = LayerGraph::chain(std::move(layers));
    model.profile.measurements.push_back(std::move(measurement));
    model.profile.provenance = {{"clock", clock_},
                                {"skipped_steps", std::to_string(options_.skip)}};
    if (steps_ > 0) model.profile.provenance["steps"] = std::to_string(steps_);
    return model;
  }

  PassTimes& times(std::uint32_t layer, RangePass pass) {
    return times_[layer * kRangePasses + static_cast<std::size_t>(pass)];
  }

  static constexpr std::size_t kMaxTold = 20;
  static constexpr double kAgreement = 0.01;  // relative to the kernels' time
  static constexpr double kWellFilled = 0.9;  // of the time from the first to the last kernel
  static constexpr double kLongest = static_cast<double>(kLargestQuantity) / 1e3;

  TraceEvents events_;
  std::shared_ptr<const Source> source_;
  const TraceOptions& options_;
  TraceWork work_;
  std::vector<LayerRun> runs_;
  std::size_t steps_ = 0;  // steps that count; 0 where the trace has none
  std::vector<PassTimes> times_ = std::vector<PassTimes>(events_.layers.size() * kRangePasses);
  std::vector<bool> is_ordered_ = std::vector<bool>(events_.layers.size());
  std::vector<std::uint32_t> order_;  // layers in the order of their first forwards
  std::vector<std::string> disagreements_;
  std::string clock_;
  std::vector<std::string> notes_;
  Diagnostics problems_;
};

}  // namespace

Result<TraceModel> parse_torch_trace(std::istream& text,
                                     const std::shared_ptr<const Source>& source,
                                     const TraceOptions& options) {
  auto events = read_trace_events(text, source, options.names);
  if (!events) return events.problems();
  auto trace = TraceSummary(*std::move(events), source, options).make();
  if (!trace) return trace;
  std::filesystem::path name(source->name);
  name = name.filename();
  for (const std::string_view end : {".gz", ".json", ".trace", ".pt"}) {
    if (name.extension() == end) name = name.stem();
  }
  trace->model.name = name.string();
  return trace;
}

Result<TraceModel> read_torch_trace(const std::string& path, const TraceOptions& options) {
  return read_trace_file<TraceModel>(
      path, [&](std::istream& text, const std::shared_ptr<const Source>& source) {
        return parse_torch_trace(text, source, options);
      });
}

}  // namespace plumbline
