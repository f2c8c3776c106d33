// From ranges to layer times: runs, steps, statistics.
// SPDX-License-Identifier: MIT
#include "models/torch_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "models/gzip_file.h"
#include "models/statistics.h"
#include "models/trace_events.h"

namespace plumbline {
namespace {

/// One run of a layer's pass: a range on the CPU, or all of its ranges on GPUs.
struct Run {
  std::uint32_t layer;
  RangePass pass;
  bool on_gpu;
  double cpu_start;  ///< Of its range on the CPU, or where there is none its own.
  double length;
};

/// Of one pass of one layer.
struct PassTimes {
  MeasuredTime time;
  std::size_t runs_in_all = 0;  ///< With those of skipped steps.
  std::size_t runs = 0;
  bool on_gpu = false;
};

/// "a, b, c and 2 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", clipped(names[i]));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string some_of(const std::vector<NameCount>& names) {
  std::vector<std::string> told;
  told.reserve(names.size());
  for (const auto& [name, count] : names)
    told.push_back(fmt::format("'{}' ({})", clipped(name), count));
  return some_of(told);
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

MeasuredTime measured(std::vector<double> microseconds) {
  for (double& time : microseconds) time *= 1e3;
  return measured_time(microseconds);
}

class TraceSummary {
 public:
  TraceSummary(TraceEvents events, const std::shared_ptr<const Source>& source,
               const TraceOptions& options)
      : events_(std::move(events)), source_(source), options_(options) {}

  Result<TraceModel> make() {
    if (events_.ranges.empty()) return no_ranges();
    // One layer within another would count twice.
    leave_out_recomputation();
    if (!problems_.empty()) return problems_;
    // Runs, in the order in which the CPU started them, without those of skipped steps.
    make_runs();
    count_runs();
    skip_steps();
    if (!problems_.empty()) return problems_;
    // Times of every pass, on the clock that tells them best.
    sum_up();
    check_passes();
    if (!problems_.empty()) return problems_;
    note_clocks();
    note_runs();
    return TraceModel{model(), std::move(notes_)};
  }

 private:
  using Key = std::tuple<std::uint32_t, RangePass, std::int64_t>;

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
        fmt::format("no range of a layer is among the {}", counted(events_.events, "event"));
    if (!named.empty())
      message += fmt::format("; the most frequent {} {}",
                             events_.annotations.empty() ? "events are" : "named ranges are",
                             some_of(named));
    error(std::move(message),
          fmt::format("put record_function(\"{}\") around each layer's forward, and \"{}\" around "
                      "its backward; or say how they are named with --forward and --backward",
                      options_.names.name(RangePass::forward, "NAME"),
                      options_.names.name(RangePass::backward, "NAME")));
    return problems_;
  }

  /// Ranges on the CPU of one thread, each before those within it.
  std::vector<std::uint32_t> by_thread() const {
    std::vector<std::uint32_t> order;
    order.reserve(events_.ranges.size());
    for (std::uint32_t i = 0; i < events_.ranges.size(); ++i) {
      if (!events_.ranges[i].on_gpu) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const TraceRange& x = events_.ranges[a];
      const TraceRange& y = events_.ranges[b];
      return std::tuple(x.thread, x.start, -x.length, a) <
             std::tuple(y.thread, y.start, -y.length, b);
    });
    return order;
  }

  void leave_out_recomputation() {
    std::vector<std::uint32_t> open;
    std::set<std::pair<std::string, std::string>> told;
    std::set<Key> recomputed;
    std::vector<bool> is_left_out(events_.ranges.size());
    for (const std::uint32_t i : by_thread()) {
      const TraceRange& range = events_.ranges[i];
      // Its middle decides: rounding can make neighbours overlap by a hair.
      const double middle = range.start + range.length / 2;
      const auto holds = [&](const TraceRange& outer) {
        return outer.thread == range.thread && middle < outer.start + outer.length;
      };
      while (!open.empty() && !holds(events_.ranges[open.back()])) open.pop_back();
      if (!open.empty()) {
        const TraceRange& outer = events_.ranges[open.back()];
        if (range.pass == RangePass::forward && outer.pass == RangePass::backward) {
          is_left_out[i] = true;
          if (range.external_id) recomputed.insert({range.layer, range.pass, *range.external_id});
        } else if (told.size() < kMostTold) {
          const std::string inner_name = range_name(range.layer, range.pass);
          const std::string outer_name = range_name(outer.layer, outer.pass);
          if (told.emplace(inner_name, outer_name).second)
            error(fmt::format("the range '{}' lies within '{}', so its time would count twice",
                              inner_name, outer_name),
                  "give ranges to layers that are not parts of each other");
        }
      }
      open.push_back(i);
    }
    const auto left =
        static_cast<std::size_t>(std::count(is_left_out.begin(), is_left_out.end(), true));
    if (left == 0) return;
    notes_.push_back(
        fmt::format("{} within a backward {} part of it: activations that are computed again",
                    counted(left, "forward"), left == 1 ? "is" : "are"));
    std::vector<TraceRange> kept;
    kept.reserve(events_.ranges.size() - left);
    for (std::size_t i = 0; i < events_.ranges.size(); ++i) {
      const TraceRange& range = events_.ranges[i];
      const bool on_gpu_alone = range.on_gpu && range.external_id &&
                                recomputed.count({range.layer, range.pass, *range.external_id}) > 0;
      if (!is_left_out[i] && !on_gpu_alone) kept.push_back(range);
    }
    events_.ranges = std::move(kept);
  }

  /// Ranges on GPUs belong to the range on the CPU with their id: it tells their step, and those of
  /// several streams are one run.
  void make_runs() {
    std::vector<TraceRange>& ranges = events_.ranges;
    std::sort(ranges.begin(), ranges.end(), [](const TraceRange& a, const TraceRange& b) {
      return std::tuple(a.layer, a.pass, a.external_id, a.on_gpu, a.start) <
             std::tuple(b.layer, b.pass, b.external_id, b.on_gpu, b.start);
    });
    runs_.reserve(ranges.size());
    for (std::size_t i = 0; i < ranges.size();) {
      const TraceRange& first = ranges[i];
      double start = first.start;
      double end = first.start + first.length;
      double length = first.length;
      const bool follows_its_cpu_range =
          first.on_gpu && i > 0 && !ranges[i - 1].on_gpu && is_same(ranges[i - 1], first);
      const double cpu_start = follows_its_cpu_range ? ranges[i - 1].start : first.start;
      for (++i; i < ranges.size() && first.on_gpu && ranges[i].on_gpu && is_same(first, ranges[i]);
           ++i) {
        start = std::min(start, ranges[i].start);
        end = std::max(end, ranges[i].start + ranges[i].length);
        length = end - start;
      }
      runs_.push_back({first.layer, first.pass, first.on_gpu, cpu_start, length});
    }
    ranges.clear();
    ranges.shrink_to_fit();
    std::stable_sort(runs_.begin(), runs_.end(),
                     [](const Run& a, const Run& b) { return a.cpu_start < b.cpu_start; });
  }

  void count_runs() {
    for (const Run& run : runs_) ++times(run.layer, run.pass).runs_in_all;
  }

  static bool is_same(const TraceRange& a, const TraceRange& b) {
    return a.layer == b.layer && a.pass == b.pass && a.external_id &&
           a.external_id == b.external_id;
  }

  void skip_steps() {
    if (events_.steps.empty()) return skip_runs();
    std::vector<TraceStep>& steps = events_.steps;
    std::sort(steps.begin(), steps.end(),
              [](const TraceStep& a, const TraceStep& b) { return a.start < b.start; });
    const auto skip = static_cast<std::size_t>(options_.skip);
    if (skip >= steps.size())
      return error(fmt::format("there {} {}, and the first {} {} left out",
                               steps.size() == 1 ? "is" : "are", counted(steps.size(), "step"),
                               options_.skip, options_.skip == 1 ? "is" : "are"),
                   "profile more steps, or leave out fewer with --skip");
    std::size_t outside = 0;
    std::vector<Run> kept;
    kept.reserve(runs_.size());
    for (const Run& run : runs_) {
      const auto after =
          std::upper_bound(steps.begin(), steps.end(), run.cpu_start,
                           [](double start, const TraceStep& step) { return start < step.start; });
      const auto step = static_cast<std::size_t>(after - steps.begin());  // from 1
      if (step == 0 || run.cpu_start >= steps[step - 1].end) {
        ++outside;
      } else if (step > skip) {
        kept.push_back(run);
      }
    }
    runs_ = std::move(kept);
    steps_ = steps.size() - skip;
    if (outside > 0)
      notes_.push_back(fmt::format("{} outside of all steps {} left out", counted(outside, "range"),
                                   outside == 1 ? "is" : "are"));
  }

  void skip_runs() {
    std::map<std::tuple<std::uint32_t, RangePass, bool>, std::int64_t> seen;
    std::vector<Run> kept;
    kept.reserve(runs_.size());
    for (const Run& run : runs_) {
      if (++seen[{run.layer, run.pass, run.on_gpu}] > options_.skip) kept.push_back(run);
    }
    runs_ = std::move(kept);
    notes_.push_back(fmt::format(
        "the trace has no steps (ProfilerStep#N, from profiler.step()): the first {} of each layer "
        "{} left out instead",
        options_.skip == 1 ? "run" : fmt::format("{} runs", options_.skip),
        options_.skip == 1 ? "is" : "are"));
  }

  void sum_up() {
    struct Lengths {
      std::vector<double> cpu, gpu;
    };
    std::map<std::pair<std::uint32_t, RangePass>, Lengths> lengths;
    for (const Run& run : runs_) {
      Lengths& of_pass = lengths[{run.layer, run.pass}];
      (run.on_gpu ? of_pass.gpu : of_pass.cpu).push_back(run.length);
      if (run.pass == RangePass::forward && !is_ordered_[run.layer]) {
        is_ordered_[run.layer] = true;
        order_.push_back(run.layer);
      }
    }
    for (const auto& [key, of_pass] : lengths) {
      const bool on_gpu = !of_pass.gpu.empty();
      const std::vector<double>& chosen = on_gpu ? of_pass.gpu : of_pass.cpu;
      PassTimes& pass_times = times(key.first, key.second);
      pass_times.time = measured(chosen);
      pass_times.runs = chosen.size();
      pass_times.on_gpu = on_gpu;
    }
  }

  void check_passes() {
    for (std::uint32_t layer = 0; layer < events_.layers.size(); ++layer) {
      const bool has_forward = times(layer, RangePass::forward).runs > 0;
      const bool has_backward = times(layer, RangePass::backward).runs > 0;
      if (has_forward && has_backward) continue;
      const RangePass missing = has_forward ? RangePass::backward : RangePass::forward;
      const std::string which =
          has_forward || has_backward
              ? fmt::format("a {} and no {}",
                            to_text(has_forward ? RangePass::forward : RangePass::backward),
                            to_text(missing))
              : std::string("neither forward nor backward");
      error(fmt::format("the layer '{}' has {} in the steps that count",
                        clipped(events_.layers[layer]), which),
            times(layer, missing).runs_in_all > 0
                ? std::string("it ran only in what --skip leaves out, or outside of all steps")
                : fmt::format("it is a range '{}'", range_name(layer, missing)));
    }
  }

  void note_clocks() {
    std::vector<std::string> on_cpu;
    std::size_t on_gpu = 0;
    for (const std::uint32_t layer : order_) {
      for (const RangePass pass : {RangePass::forward, RangePass::backward, RangePass::update}) {
        const PassTimes& pass_times = times(layer, pass);
        if (pass_times.runs == 0) continue;
        if (pass_times.on_gpu) ++on_gpu;
        if (!pass_times.on_gpu) on_cpu.push_back(range_name(layer, pass));
      }
    }
    clock_ = on_gpu == 0 ? "cpu" : on_cpu.empty() ? "gpu" : "gpu and cpu";
    if (on_gpu > 0)
      notes_.emplace_back(
          "times are the GPU's, from the start of a range's first kernel to the end of its last");
    if (on_gpu > 0 && !on_cpu.empty())
      notes_.push_back(fmt::format(
          "warning: {} no range on the GPU, so the time is the CPU's, which may only be that of "
          "launching: {}",
          on_cpu.size() == 1 ? "1 pass has" : fmt::format("{} passes have", on_cpu.size()),
          some_of(on_cpu)));
    if (on_gpu == 0 && events_.gpu_work > 0)
      notes_.push_back(fmt::format(
          "warning: the trace has {} of GPU work and no range on the GPU: these times are the "
          "CPU's, which launches work and goes on; call torch.cuda.synchronize() at the end of "
          "each range",
          counted(events_.gpu_work, "event")));
  }

  void note_runs() {
    std::size_t least = times(order_.front(), RangePass::forward).runs;
    std::size_t most = least;
    for (const std::uint32_t layer : order_) {
      for (const RangePass pass : {RangePass::forward, RangePass::backward}) {
        least = std::min(least, times(layer, pass).runs);
        most = std::max(most, times(layer, pass).runs);
      }
    }
    if (least != most) {
      notes_.push_back(fmt::format(
          "warning: passes ran between {} and {} times; a layer that runs more often than others "
          "in a micro-batch counts once",
          least, most));
    } else if (steps_ > 0 && least > steps_ && least % steps_ == 0) {
      notes_.push_back(fmt::format(
          "every pass ran {} times a step: each run is taken as one micro-batch", least / steps_));
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
      costs.backward = times(layer, RangePass::backward).time;
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

  static constexpr std::size_t kMostTold = 20;

  TraceEvents events_;
  std::shared_ptr<const Source> source_;
  const TraceOptions& options_;
  std::vector<Run> runs_;
  std::size_t steps_ = 0;  // that count; 0 where the trace has none
  std::vector<PassTimes> times_ = std::vector<PassTimes>(events_.layers.size() * kRangePasses);
  std::vector<bool> is_ordered_ = std::vector<bool>(events_.layers.size());
  std::vector<std::uint32_t> order_;  // layers, by their first forward
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
  auto source = std::make_shared<Source>();
  source->name = path;
  GzipFile file(path);
  const auto file_error = [&] {
    return Diagnostic{.mark = {source},
                      .message = file.problem(),
                      .help = {},
                      .detail = {},
                      .fault = Fault::file};
  };
  if (!file.problem().empty()) return file_error();
  std::istream text(&file);
  auto trace = parse_torch_trace(text, source, options);
  if (!file.problem().empty()) return file_error();  // what the end that is missing leads to
  return trace;
}

Diagnostics add_sizes(const std::vector<CsvLayer>& table, TraceModel& trace) {
  Diagnostics problems;
  const std::vector<Layer>& layers = trace.model.graph.layers();
  std::map<std::string, const CsvLayer*, std::less<>> rows;
  for (const CsvLayer& row : table) rows.emplace(row.layer.name, &row);
  std::vector<Layer> sized = layers;
  std::vector<std::string> names, without;
  names.reserve(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    names.push_back(layers[i].name);
    const auto found = rows.find(layers[i].name);
    if (found == rows.end()) {
      without.push_back(layers[i].name);
      continue;
    }
    const CsvLayer& row = *found->second;
    sized[i].kind = row.layer.kind;
    sized[i].parameters = row.layer.parameters;
    LayerCosts& costs = trace.model.profile.measurements.front().layers[i];
    costs.output = row.costs.output;
    costs.activation = row.costs.activation;
    rows.erase(found);
  }
  for (const auto& [name, row] : rows)
    problems.push_back(input_error(row->mark,
                                   fmt::format("the trace has no layer '{}'", clipped(name)),
                                   did_you_mean(name, names)));
  if (!without.empty())
    trace.notes.push_back(fmt::format(
        "{} not in the table of sizes, and {} sizes of 0: {}",
        without.size() == 1 ? "1 layer is" : fmt::format("{} layers are", without.size()),
        without.size() == 1 ? "has" : "have", some_of(without)));
  trace.model.graph = LayerGraph::chain(std::move(sized));
  return problems;
}

}  // namespace plumbline
