// The tables and the CSV.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/diagnosis_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/quantity.h"
#include "base/table.h"

namespace plumbline {
namespace {

/// "3.4 ms", "0 s"; rounded as times in tables are.
std::string text_of(Duration time) { return time_text(seconds(time)); }

std::string clock_text(OpClock clock) {
  switch (clock) {
    case OpClock::kernels:
      return "times are those of the kernels on the GPUs";
    case OpClock::work:
      return "the traces have no kernels of a GPU: times are those of the calls on the CPU";
    case OpClock::ranges:
      return "the traces have neither kernels nor calls: times are those of the ranges";
  }
  return "";
}

std::string headline(const Diagnosis& d) {
  const RecordedRun& run = d.run;
  const std::string order =
      d.scenario.schedule.empty() ? "an order of its own" : d.scenario.schedule;
  return fmt::format("{}: {} on {}, {}, {}", order, plural(run.stages, "stage"),
                     plural(run.devices.size(), "device"), plural(run.micro_batches, "micro-batch"),
                     plural(run.iterations.size(), "iteration"));
}

Table summary(const Diagnosis& d) {
  const Statistics& time = d.costs.iteration_s;
  Table table;
  table.has_no_header();
  table.row({"iteration time", time_text(d.measured.outcome.iteration_time_s)},
            time.samples > 1 ? fmt::format("the one in the middle of {}, {} to {}", time.samples,
                                           time_text(time.min), time_text(time.max))
                             : "one iteration alone could be measured");
  const double bubble = d.bubble_fraction();
  table.row({"bubble fraction", percent(bubble)}, "of the device time is idle");
  if (bubble < 1) table.row({"bubble overhead", percent(bubble / (1 - bubble))}, "idle / busy");
  return table;
}

/// The devices: busy time, and idle time by cause. Ranks are left out where they are the devices'
/// numbers.
Table devices(const Diagnosis& d) {
  std::vector<RunIdle> causes;
  for (std::size_t i = 0; i < kRunIdles; ++i) {
    const auto cause = static_cast<RunIdle>(i);
    if (std::any_of(d.times.begin(), d.times.end(),
                    [&](const DeviceTime& time) { return time.of(cause).count() > 0; }))
      causes.push_back(cause);
  }
  bool same_numbers = true;
  for (std::size_t i = 0; i < d.run.devices.size(); ++i)
    same_numbers = same_numbers && d.run.devices[i].rank == static_cast<std::int64_t>(i);
  Table table;
  std::vector<std::string> titles = {"device"};
  if (!same_numbers) titles.emplace_back("rank");
  titles.insert(titles.end(), {"stages", "busy"});
  for (const RunIdle cause : causes) titles.emplace_back(name(cause));
  table.row(std::move(titles));
  for (std::size_t i = 0; i < d.times.size(); ++i) {
    const RunDevice& device = d.run.devices[i];
    std::vector<std::string> row = {std::to_string(i)};
    if (!same_numbers) row.push_back(std::to_string(device.rank));
    row.push_back(fmt::format("{}", fmt::join(device.stages, ",")));
    row.push_back(text_of(d.times[i].busy()));
    for (const RunIdle cause : causes) row.push_back(text_of(d.times[i].of(cause)));
    table.row(std::move(row));
  }
  table.may_lack({"stages", "between"});
  return table;
}

/// What each cause means, and its share of the device time.
Table causes(const Diagnosis& d) {
  Table table;
  table.row({"idle", "all devices", "share"});
  double all = 0;
  for (const DeviceTime& time : d.times) all += seconds(time.all_idle() + time.busy());
  for (std::size_t i = 0; i < kRunIdles; ++i) {
    const auto cause = static_cast<RunIdle>(i);
    double sum = 0;
    for (const DeviceTime& time : d.times) sum += seconds(time.of(cause));
    if (sum > 0)
      table.row({std::string(name(cause)), time_text(sum), percent(sum / all)},
                std::string(meaning(cause)));
  }
  return table;
}

Table ops(const Diagnosis& d) {
  Table table;
  table.row({"stage", "op", "time", "quartiles", "", "longest", "which", "in iteration", "busy"});
  for (const auto& [key, of] : d.costs.ops) {
    table.row({std::to_string(key.first), std::string(1, letter(key.second)), text_of(of.time),
               time_text(of.seconds.q1), time_text(of.seconds.q3), time_text(of.seconds.max),
               to_text(of.slowest), std::to_string(of.slowest_in), percent(of.busy_share)});
  }
  table.repeat(2);
  table.may_lack({"busy", "in iteration", "which"});
  return table;
}

Table links(const Diagnosis& d) {
  Table table;
  table.row({"from", "to", "transfers", "delay", "moving", "waiting", "bytes"});
  const auto text = [](const std::optional<Duration>& time) { return time ? text_of(*time) : "-"; };
  for (const LinkCosts& link : d.costs.links) {
    table.row({fmt::format("device {}", link.from), fmt::format("device {}", link.to),
               std::to_string(link.transfers), text(link.latency), text(link.moving),
               text(link.waiting), link.bytes.count > 0 ? to_text(link.bytes) : "-"});
  }
  table.repeat(2);
  return table;
}

std::string clocks(const Diagnosis& d) {
  std::string text;
  for (const RunDevice& device : d.run.devices) {
    constexpr Duration worth_telling{1000};
    if (std::chrono::abs(device.clock_ahead) < worth_telling &&
        device.clock_known_to.value_or(worth_telling) < worth_telling)
      continue;
    if (device.recording == d.run.devices.front().recording) continue;
    const std::string known =
        device.clock_known_to ? fmt::format(", give or take {}", text_of(*device.clock_known_to))
                              : ", seen in one direction only";
    text += fmt::format("the clock of rank {} is {} {} that of rank {}{}\n", device.rank,
                        text_of(std::chrono::abs(device.clock_ahead)),
                        device.clock_ahead.count() >= 0 ? "ahead of" : "behind",
                        d.run.devices.front().rank, known);
  }
  return text;
}

/// The mean over stages of what their ops take in all.
double mean_stage_s(const Diagnosis& d) {
  double sum = 0;
  for (const auto& [key, of] : d.costs.ops) sum += seconds(of.time);
  return sum / d.run.stages;
}

/// Sentences on what stands out.
std::vector<std::string> findings(const Diagnosis& d) {
  std::vector<std::string> all;
  const std::size_t busiest = d.busiest();
  const RunDevice& device = d.run.devices[busiest];
  if (d.run.devices.size() > 1) {
    double of_device = 0;
    for (const auto& [key, of] : d.costs.ops) {
      if (d.run.device_of(key.first) == busiest) of_device += seconds(of.time);
    }
    const double mean = mean_stage_s(d) * static_cast<double>(d.run.stages) /
                        static_cast<double>(d.run.devices.size());
    all.push_back(fmt::format(
        "device {} (rank {}) is busy longest, {} of the time: its ops take {:.2f} times the mean "
        "of all devices",
        busiest, device.rank, percent(seconds(d.times[busiest].busy()) / d.costs.iteration_s.mean),
        mean > 0 ? of_device / mean : 1));
  }
  std::string path;
  double sum = 0;
  for (const CriticalShare& share : d.critical) sum += seconds(share.time);
  for (const CriticalShare& share : d.critical)
    path += fmt::format("{}{} {}", path.empty() ? "" : ", ", share.what,
                        percent(sum > 0 ? seconds(share.time) / sum : 0));
  if (!path.empty()) all.push_back("the longest chain of the shown iteration: " + path);
  const auto gappy = std::min_element(
      d.costs.ops.begin(), d.costs.ops.end(),
      [](const auto& a, const auto& b) { return a.second.busy_share < b.second.busy_share; });
  constexpr double well_filled = 0.9;
  if (d.run.clock == OpClock::kernels && gappy->second.busy_share < well_filled)
    all.push_back(fmt::format(
        "within {} of stage {}, kernels run in {} of the time: the CPU launches them late",
        letter(gappy->first.second), gappy->first.first, percent(gappy->second.busy_share)));
  const auto uneven =
      std::max_element(d.costs.ops.begin(), d.costs.ops.end(), [](const auto& a, const auto& b) {
        return seconds(a.second.most) * seconds(b.second.least) <
               seconds(b.second.most) * seconds(a.second.least);
      });
  constexpr std::size_t enough = 3;  // iterations, so that one slow op is not taken for a rule
  if (d.run.iterations.size() >= enough && uneven->second.most > uneven->second.least * 3 / 2)
    all.push_back(fmt::format(
        "micro-batches are not alike: {} of stage {} takes {} for micro-batch {} and {} for {}; "
        "the "
        "scenario takes all as equal",
        letter(uneven->first.second), uneven->first.first, text_of(uneven->second.least),
        uneven->second.least_of, text_of(uneven->second.most), uneven->second.most_of));
  if (d.run.copies > 1) {
    std::vector<std::string> times;
    for (const double time : d.run.copy_times_s) times.push_back(time_text(time));
    all.push_back(
        fmt::format("{} ranks have each stage, as copies do: an iteration takes {} in the median "
                    "(--copy shows another one)",
                    d.run.copies, fmt::join(times, ", ")));
  }
  return all;
}

}  // namespace

Document to_table(const Diagnosis& d, const std::optional<TimelineStyle>& style) {
  Document text;
  text.sentence(headline(d));
  text.sentence(clock_text(d.run.clock) + "\n\n");
  text.table(summary(d));
  if (style) text.verbatim(timeline(d.measured.outcome, *style));
  text.sentence("\nan iteration of each device, on average");
  text.table(devices(d));
  text.sentence("\nwhy devices were idle");
  text.table(causes(d));
  text.sentence("\nops, over all iterations");
  text.table(ops(d));
  if (!d.costs.links.empty()) {
    text.sentence(
        "\ntransfers: delay is the mean time from the end of an op until its data was there, where "
        "a "
        "device waited for it; moving and waiting are medians, of the receive");
    text.table(links(d));
  }
  text.blank_line();
  for (const std::string& finding : findings(d)) text.sentence(finding);
  if (const std::string all = clocks(d); !all.empty()) text.sentence(all);
  for (const std::string& note : d.run.notes) text.sentence("note: " + note);
  text.sentence(fmt::format(
      "\nas a scenario it takes {}, {:.2f} % {} than the run, with a bubble of {} in place of {}",
      time_text(d.replayed->iteration_time_s), 100 * std::abs(d.replay_error()),
      d.replay_error() < 0 ? "less" : "more", percent(d.replayed->metrics.bubble_fraction()),
      percent(d.bubble_fraction())));
  return text;
}

Document overview(const std::vector<RankRecording>& recordings) {
  Document text;
  for (const RankRecording& recording : recordings) {
    std::set<std::uint32_t> stages;
    std::size_t count[2] = {0, 0};
    Duration sum[2] = {};
    for (const RecordedOp& op : recording.ops) {
      const std::size_t at = op.op.kind == OpKind::forward ? 0 : 1;
      ++count[at];
      sum[at] += op.work.length();
      if (op.op.stage) stages.insert(*op.op.stage);
    }
    const auto ops = [&](std::size_t at, const char* what) {
      std::string number = plural(count[at], what);
      if (count[at] == 0) return number;
      return fmt::format("{} of {} on average", number,
                         text_of(sum[at] / static_cast<std::int64_t>(count[at])));
    };
    text.sentence(fmt::format(
        "{}: {}, {}, {}{}, {}, {}{}", recording.file,
        recording.rank_known ? fmt::format("rank {}", recording.rank) : "a rank that is not told",
        plural(recording.events, "event"), plural(recording.steps.size(), "step"),
        stages.empty() ? "" : fmt::format(", stage {}", fmt::join(stages, ", ")), ops(0, "forward"),
        ops(1, "backward"), recording.guessed ? " (a guess: no range names an op)" : ""));
  }
  return text;
}

std::string ops_csv(const Diagnosis& d) {
  std::string text =
      "iteration,device,rank,stage,op,micro_batch,begin_ns,end_ns,busy_ns,input_ns,pass\n";
  const auto ns = [](SimTime at) { return at.time_since_epoch().count(); };
  for (const RunIteration& iteration : d.run.iterations) {
    const OpInputs inputs(d.run, iteration);
    for (std::size_t device = 0; device < iteration.ops.size(); ++device) {
      for (const RunOp& op : iteration.ops[device]) {
        const auto arrival = inputs.of(op).arrival;
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", iteration.number, device,
                            d.run.devices[device].rank, op.op.stage.value, letter(op.op.kind),
                            op.op.micro_batch.value, ns(op.work.begin), ns(op.work.end),
                            op.busy.count(), arrival ? std::to_string(ns(*arrival)) : "",
                            iteration.pass);
      }
    }
  }
  return text;
}

}  // namespace plumbline
