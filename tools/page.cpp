// The page is a list of sections, each a function.
//
// SPDX-License-Identifier: MIT
#include "tools/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/error_lines.h"
#include "tools/markdown.h"
#include "tools/resimulation.h"
#include "tools/summary.h"

namespace plumbline {
namespace {

using Files = std::vector<const ResultFile*>;

struct GroupText {
  const char* title;
  const char* row;      ///< Its name in tables.
  const char* meaning;  ///< A sentence below the title on what was run.
  const char* noun;     ///< The noun for its files.
};

GroupText text_of(ResultGroup group) {
  switch (group) {
    case ResultGroup::practicals:
      return {"The course practicals", "course practicals, on `synthetic`",
              "Two devices; options A (naive), B (gpipe) and C (the one-thread loop, "
              "delayed-backward), and true 1f1b. Each op\ncosts 0.5 ms besides what its samples "
              "cost. On `synthetic`: threads wait for as long as an op is modelled to take.",
              "mini-batch"};
    case ResultGroup::matrix:
      return {
          "Schedules, devices, micro-batches",
          "schedules x devices x micro-batches, on `synthetic`",
          "Equal stages of 1 ms forward and 2 ms backward on free links (examples/for-real.yaml), "
          "on `synthetic`. Ops that wait\ntake the time that was predicted, so what is left is "
          "the tool's own cost.",
          "part"};
    case ResultGroup::examples:
      return {"The examples as they are", "`examples/*.yaml` as they are, on `synthetic`",
              "Every scenario of `examples/` without a change, on `synthetic`, but for "
              "`layouts.yaml`, whose iteration takes most of a minute.\nTheir order says nothing: "
              "they are different models.",
              "part"};
    case ResultGroup::networks:
      return {"Networks trained on CPU cores", "networks, on `cpu`",
              "Each network is calibrated on two cores with micro-batches of 16 samples. Its "
              "schedules are predicted from that\nprofile alone. Then they are trained for real on "
              "the same cores, with `plan.partition: balanced` and free links.",
              "network"};
    case ResultGroup::schedules:
      return {
          "Other schedules on CPU cores", "other schedules of networks, on `cpu`",
          "The same networks and profiles under the other schedules: asynchronous, with several "
          "stages on a device, with split\nbackwards, in both directions; 1f1b beside them.",
          "network"};
    case ResultGroup::copies:
      return {"Copies on CPU cores", "copies of networks, on `cpu`",
              "Each of two cores holds the whole network (`plan.data_parallel: 2`, a stage a copy) "
              "and was calibrated so (`--copies 2`).\nGradients are all-reduced over links of 4 "
              "GB/s; *shared*: with `training.zero_stage: 1`; *in buckets*: of 1 MB "
              "(`schedule.bucket`), beside the last backward.",
              "network"};
    case ResultGroup::links:
      return {
          "Links between CPU cores", "networks over slow links, on `cpu`",
          "The networks and profiles of the first table, over links of 200 MB/s with a latency "
          "of 0.5 ms. Cores share their memory,\nso no link is measured: the tool holds tensors "
          "back for as long. *Overlapped*: beside compute. *Blocking*: both devices wait.",
          "network"};
    case ResultGroup::recomputation:
      return {
          "Recomputation on CPU cores", "networks with recomputation, on `cpu`",
          "The networks and profiles of the first table: as they are, with each stage's forward "
          "recomputed before its backward\n(*full*), and with each layer's (*layers*). Profiles "
          "know nothing of recomputed forwards.",
          "network"};
    case ResultGroup::gpu_spins:
      return {
          "Spinning kernels on a GPU", "kernels that spin, on parts of a GPU",
          "One GPU split into parts that work side by side (green contexts), on `cuda`. Each op "
          "is a kernel that spins for its\nmodelled time. Tensors are copied over links that are "
          "held at 2 GB/s, with 20 us but on eight parts. What a launch and\na hand-over take was "
          "calibrated. What is left is what holding a link takes, and the tool's "
          "own.",
          "parts"};
    case ResultGroup::gpu_networks:
      return {
          "Networks trained on a GPU", "networks, on parts of a GPU",
          "On `cuda`. Each network is calibrated on all parts of one GPU at work. Its schedules "
          "are predicted from that profile\nalone. Then they are trained for real on the same "
          "parts, with `plan.partition: balanced`, measured links, cuBLASLt and cuDNN.\n"
          "*blocking*: copies hold both ends, as `.to()` does; *hybrid*: two pipelines that "
          "share their gradients. The GPU is an H100 where nothing else is said.",
          "network, parts"};
  }
  return {};
}

Files of_group(const std::vector<ResultFile>& results, ResultGroup group) {
  Files files;
  files.reserve(results.size());
  for (const ResultFile& result : results) {
    if (result.group == group) files.push_back(&result);
  }
  return files;
}

/// The value under `key`, or "not stated".
std::string fact(const std::map<std::string, std::string>& facts, const std::string& key) {
  const auto found = facts.find(key);
  return found == facts.end() ? "not stated" : found->second;
}

/// The distinct values under `key` in all results, in the order of the results.
std::vector<std::string> facts(const std::vector<ResultFile>& results, const std::string& key) {
  std::vector<std::string> values;
  for (const ResultFile& result : results) {
    std::string value = fact(result.machine, key);
    if (std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(std::move(value));
  }
  return values;
}

std::string of(std::size_t part, std::size_t all) { return fmt::format("{} of {}", part, all); }

/// A warning before any number; "" if there is none.
std::string warning(const std::vector<ResultFile>& results) {
  const auto is_short = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const auto& one) { return one.is_short; }));
  if (is_short == 0) return "";
  const std::string which = is_short == results.size()
                                ? "These numbers are"
                                : fmt::format("{} results are", of(is_short, results.size()));
  return fmt::format(
      "**{} of a short run** (`scripts/validate --quick`), which shows that\neverything "
      "works: few points, few iterations. Do not judge the accuracy by it.\n",
      which);
}

std::string missing_groups(const std::vector<ResultFile>& results) {
  std::vector<std::string> missing;
  for (const ResultGroup group : kResultGroups) {
    if (of_group(results, group).empty() && !is_of_gpu(group))
      missing.emplace_back(text_of(group).row);
  }
  if (missing.empty()) return "";
  return fmt::format("Not in these results: {}.\n", fmt::join(missing, "; "));
}

// ---- where it was measured

std::string machine_section(const std::vector<ResultFile>& results) {
  std::vector<std::vector<std::string>> machine = {{"machine", ""}};
  for (const char* key : {"processor", "cores", "system", "compiler", "library", "tool"})
    machine.push_back({key, fmt::format("{}", fmt::join(facts(results, key), "; "))});
  std::vector<std::vector<std::string>> runs = {
      {"result", "part of", "date (UTC)", "commit", "load before", "runs", "clean iterations"}};
  for (const ResultGroup group : kResultGroups) {
    for (const ResultFile* file : of_group(results, group)) {
      const Summary summary = summarize({file});
      runs.push_back({file->name, text_of(group).row, fact(file->machine, "date"),
                      fact(file->machine, "commit"), fact(file->machine, "load"),
                      std::to_string(summary.runs),
                      fmt::format("{} of {}", summary.clean, summary.iterations)});
    }
  }
  return "## Where and when\n\n" + markdown_table(machine, {0, 1}) + '\n' +
         markdown_table(runs, {0, 1, 2, 3}) +
         "\n*Load before* is the system's load average over a minute, before the first iteration: "
         "0 is a quiet machine.\n";
}

// ---- tables of summaries

std::vector<std::string> summary_row(const std::string& name, const Summary& s, bool ranked) {
  const bool any = s.measured > 0;
  const auto tau = s.ranking.tau();
  return {name,
          std::to_string(s.runs),
          any ? unsigned_percent(s.error.mean_size) : "-",
          any ? unsigned_percent(s.error.median_size) : "-",
          range_cell(s.error, any),
          worst_cell(s),
          memory_cell(s),
          verdict_cell(s),
          ranked ? order_cell(s.ranking) : "-",
          ranked && tau ? fmt::format("{:.2f}", *tau) : "-",
          fmt::format("{} of {}", s.clean, s.iterations)};
}

std::vector<std::string> summary_header(const std::string& first) {
  return {first,
          "runs",
          "error, mean of sizes",
          "median of sizes",
          "from ... to",
          "worst",
          "peak memory",
          "verdicts",
          "pairs in the predicted order",
          "tau",
          "clean iterations"};
}

const std::vector<std::size_t> kSummaryLeft = {0, 5, 6, 7};

/// Only runs of one model have a meaningful order.
bool is_ranked(ResultGroup group) { return group != ResultGroup::examples; }

std::string unmeasured(const Summary& summary) {
  if (summary.measured == summary.runs) return "";
  return fmt::format(
      "\nNothing clean was measured in {} runs: they count in no error, in no order and among the "
      "INCONCLUSIVE.\n",
      of(summary.runs - summary.measured, summary.runs));
}

/// Each file of the group, and all of them where there are several.
std::string error_table(const Files& files, ResultGroup group) {
  std::vector<std::vector<std::string>> rows = {summary_header(text_of(group).noun)};
  for (const ResultFile* file : files)
    rows.push_back(summary_row(file->name, summarize({file}), is_ranked(group)));
  const Summary all = summarize(files);
  if (files.size() > 1) rows.push_back(summary_row("all", all, is_ranked(group)));
  return markdown_table(rows, kSummaryLeft) + unmeasured(all);
}

/// The causes that these results contain. The profile's share is known if the layers were timed
/// again. The share of recording the trace is known if iterations were executed a second time for
/// it.
struct Causes {
  std::size_t first = 1;
  std::size_t end = kCauses.size();
};
Causes causes_of(const Files& files) {
  const Summary summary = summarize(files);
  const bool tells = summary.causes.back().mean_size > 0;
  return {summary.again.runs > 0 ? std::size_t{0} : 1, kCauses.size() - (tells ? 0 : 1)};
}

/// The errors with the layers' times measured beside the run; "" if these were not measured.
std::string again_table(const Files& files, ResultGroup group) {
  if (summarize(files).again.runs == 0) return "";
  std::vector<std::vector<std::string>> rows = {{text_of(group).noun, "runs",
                                                 "error, mean of sizes", "own error", "from ... to",
                                                 "worst", "rounds of a run differ by", "at most"}};
  const auto row = [&](const std::string& name, const TimedAgain& again) {
    const bool any = again.runs > 0;
    rows.push_back(
        {name, std::to_string(again.runs), any ? unsigned_percent(again.by_profile.mean_size) : "-",
         any ? unsigned_percent(again.error.mean_size) : "-", range_cell(again.error, any),
         worst_cell(again), any ? unsigned_percent(again.rounds.mean) : "-",
         any ? unsigned_percent(again.rounds.max) : "-"});
  };
  for (const ResultFile* file : files) row(file->name, summarize({file}).again);
  if (files.size() > 1) row("all", summarize(files).again);
  return "The machine does not stay as it was when the profile was measured. So runs were made in "
         "rounds, each in turn with the\nothers, and the layers timed again before, between and "
         "after them. What is left of the error with these times is\nthe prediction's "
         "own. "
         "What rounds of one run differ by, from the fastest to the slowest, is how well a "
         "measurement tells\nwhat the next one will be.\n\n" +
         markdown_table(rows, {0, 5}) + '\n';
}

std::string cause_table(const Files& files, ResultGroup group) {
  std::vector<std::vector<std::string>> rows = {{text_of(group).noun}};
  const Causes causes = causes_of(files);
  rows.front().insert(rows.front().end(), kCauses.begin() + causes.first,
                      kCauses.begin() + causes.end);
  const auto row = [&](const std::string& name, const Summary& summary) {
    std::vector<std::string> cells = {name};
    for (std::size_t i = causes.first; i < causes.end; ++i) {
      const Spread& cause = summary.causes[i];
      cells.push_back(summary.measured == 0
                          ? "-"
                          : fmt::format("{:.2f} ({:+.2f} to {:+.2f})", 100 * cause.mean_size,
                                        100 * cause.min, 100 * cause.max));
    }
    rows.push_back(std::move(cells));
  };
  for (const ResultFile* file : files) row(file->name, summarize({file}));
  if (files.size() > 1) row("all", summarize(files));
  return "Where the error comes from, in points of it: the mean of sizes (from ... to)\n\n" +
         markdown_table(rows);
}

std::string calibration_table(const Files& files) {
  std::vector<std::vector<std::string>> rows = {
      {"network", "date (UTC)", "load before", "passes", "dropped", "noise", "drift"}};
  for (const ResultFile* file : files) {
    if (file->calibration.empty()) continue;
    rows.push_back({file->name});
    for (const char* key : {"date", "load", "passes", "dropped", "noise", "drift"})
      rows.back().push_back(fact(file->calibration, key));
  }
  if (rows.size() == 1) return "";
  return "\nThe calibrations ([what these "
         "say](../how-to/calibrating.md#what-calibrate-measures-and-why-so)), as shares of "
         "1:\n\n" +
         markdown_table(rows, {0, 1});
}

// ---- all points

std::vector<std::string> point_row(const ResultFile& file, const ResultPoint& point,
                                   const Causes& causes) {
  std::vector<std::string> cells = {file.name, point.schedule, std::to_string(point.devices),
                                    std::to_string(point.micro_batches),
                                    time_cell(point.predicted_s)};
  if (has_scenarios(file.group)) cells.front() = point.scenario;
  if (point.measured) {
    const ResultPoint::Measured& m = *point.measured;
    cells.push_back(time_cell(m.time_s));
    cells.push_back(signed_percent(m.error));
    if (causes.first == 0) cells.push_back(m.again_error ? signed_percent(*m.again_error) : "-");
    const auto parts = by_cause(m.shares);
    for (std::size_t i = causes.first; i < causes.end; ++i)
      cells.push_back(fmt::format("{:+.2f}", 100 * parts[i] / m.time_s));
    cells.emplace_back(name(m.memory));
  } else {
    cells.insert(cells.end(), 3 + (causes.first == 0 ? 1 : 0) + causes.end - causes.first, "-");
  }
  cells.push_back(fmt::format("{} of {}", point.clean, point.iterations));
  cells.emplace_back(name(point.verdict));
  return cells;
}

std::string all_points(const Files& files, ResultGroup group) {
  std::vector<std::vector<std::string>> rows = {
      {has_scenarios(group) ? "scenario" : text_of(group).noun, "schedule", "devices",
       "micro-batches", "predicted", "measured", "error"}};
  const Causes causes = causes_of(files);
  if (causes.first == 0) rows.front().emplace_back("own error");
  rows.front().insert(rows.front().end(), kCauses.begin() + causes.first,
                      kCauses.begin() + causes.end);
  const std::size_t memory = rows.front().size();
  for (const char* title : {"memory", "clean", "verdict"}) rows.front().emplace_back(title);
  std::string commands;
  for (const ResultFile* file : files) {
    commands += file->command + '\n';
    for (const ResultPoint& point : file->points) rows.push_back(point_row(*file, point, causes));
  }
  return fmt::format(
      "<details><summary>All {} points</summary>\n\n{}\n```sh\n{}```\n\n</details>\n",
      rows.size() - 1, markdown_table(rows, {0, 1, memory, memory + 2}), commands);
}

/// What of the errors grows with the micro-batches; "" where no schedule ran with several numbers.
std::string line_section(const Files& files, ResultGroup group) {
  if (group != ResultGroup::networks && group != ResultGroup::gpu_networks) return "";
  const std::string table = error_line_table(files, text_of(group).noun);
  if (table.empty()) return "";
  return "\nThe same errors as lines over the number of micro-batches, from the run with the "
         "fewest "
         "to that with the most: what a\nmicro-batch more adds (predicted - measured), and what is "
         "there without any; from the lowest to the highest of the\nschedules. *Two that cancel*: "
         "schedules whose parts have opposite signs, so that a run looks better than its "
         "parts.\n\n" +
         table;
}

/// The same runs, predicted by this version; "" where they were not.
std::string again_section(const Files& files, const std::vector<ResultFile>& resimulated) {
  const std::string noun = text_of(ResultGroup::gpu_networks).noun;
  const std::string table = resimulation_table(files, resimulated, noun);
  if (table.empty()) return "";
  Files again;
  for (const ResultFile& file : resimulated) again.push_back(&file);
  return "\n### The same runs, predicted by this version\n\nNothing was measured anew: profiles "
         "and "
         "measured times are those above, and predictions are what this version makes\nof them. "
         "[resimulated.json](resimulated.json) has each run. Measured links are looked up in their "
         "tables since then.\n\n" +
         table + '\n' + error_line_table(again, noun);
}

std::string group_section(const Files& files, ResultGroup group,
                          const std::vector<ResultFile>& resimulated) {
  const GroupText text = text_of(group);
  std::string section = fmt::format("\n## {}\n\n{}\n\n", text.title, text.meaning);
  section += error_table(files, group) + '\n' + again_table(files, group);
  section += cause_table(files, group) + line_section(files, group);
  if (trains(group)) section += calibration_table(files);
  if (group == ResultGroup::gpu_networks) section += again_section(files, resimulated);
  return section + '\n' + all_points(files, group);
}

std::string how_to_repeat() {
  return "\n## How to repeat it\n\n"
         "```sh\n"
         "scripts/validate                    # runs everything; goes on where it was interrupted\n"
         "scripts/validation-page FOLDER      # this page and the table of accuracy.md, from its "
         "results\n"
         "scripts/validate-gpu --budget 15    # on a GPU: what that is asked, and more time is "
         "more of it\n"
         "scripts/validation-page --gpu FOLDER\n"
         "```\n\n"
         "`scripts/validate` says at its end which folder that is. The machine should do nothing "
         "else: what it does\nelse takes iterations away, and what it does to a calibration stays "
         "in every prediction. The commands of\neach part stand below its points; FOLDER is that "
         "folder's `raw/COMMIT`, where the profiles and scenarios are.\n";
}

std::string head(const std::vector<ResultFile>& results) {
  std::string text =
      "# Predicted beside measured\n\n"
      "<!-- written by scripts/validation-page from docs/results/validation/*.json; do not edit "
      "-->\n\n"
      "How far predictions are from runs of the same schedules. An error is predicted / measured - "
      "1 of the iteration\ntime: **negative means predicted too fast**. What the "
      "verdicts and causes mean stands "
      "in\n[running.md](../how-to/running.md#reading-validate).\n\n";
  for (const std::string& more : {warning(results), missing_groups(results)}) {
    if (!more.empty()) text += more + '\n';
  }
  return text;
}

std::string overview(const std::vector<ResultFile>& results) {
  std::vector<std::vector<std::string>> rows = {summary_header("what")};
  for (const ResultGroup group : kResultGroups) {
    const Files files = of_group(results, group);
    if (!files.empty())
      rows.push_back(summary_row(text_of(group).row, summarize(files), is_ranked(group)));
  }
  return "\n## In short\n\n" + markdown_table(rows, kSummaryLeft) +
         "\n*Peak memory*: `exact` is to the byte. `ties` is a buffer more: what the prediction "
         "puts "
         "at one instant came one after the\nother. `order` is another order of events, for which "
         "the same rules give what was measured. *Pairs* are of runs of one\nmodel and number of "
         "devices, by samples per second. Those whose measured times differ by no more than their "
         "noise are\nnot counted, nor are those predicted as equal, within 0.1 % (in results "
         "before "
         "2026-11-27, these count as wrong). *Tau*\nis Kendall's, over the others.\n";
}

/// "1.70 % (+4.11 %)".
std::string again_cell(const TimedAgain& again) {
  if (again.runs == 0) return "-";
  return fmt::format("{} ({})", unsigned_percent(again.error.mean_size),
                     signed_percent(*again.worst->measured->again_error));
}

}  // namespace

std::string validation_page(const std::vector<ResultFile>& results,
                            const std::vector<ResultFile>& resimulated) {
  std::string page = head(results);
  page += machine_section(results);
  page += overview(results);
  for (const ResultGroup group : kResultGroups) {
    const Files files = of_group(results, group);
    if (!files.empty()) page += group_section(files, group, resimulated);
  }
  return page + how_to_repeat();
}

std::string accuracy_table(const std::vector<ResultFile>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"what", "runs", "error of iteration time, mean of sizes", "from ... to", "worst",
       "own error, mean (worst)", "peak memory", "pairs in the predicted order"}};
  const auto row = [&](const std::string& name, const Files& files, bool ranked) {
    const Summary s = summarize(files);
    const bool any = s.measured > 0;
    rows.push_back({name, std::to_string(s.runs), any ? unsigned_percent(s.error.mean_size) : "-",
                    range_cell(s.error, any), worst_cell(s), again_cell(s.again), memory_cell(s),
                    ranked ? order_cell(s.ranking) : "-"});
  };
  for (const ResultGroup group : kResultGroups) {
    const Files files = of_group(results, group);
    if (files.empty()) continue;
    row(text_of(group).row, files, is_ranked(group));
    if (group != ResultGroup::networks && group != ResultGroup::gpu_networks) continue;
    for (const ResultFile* file : files) row("of them " + file->name, {file}, true);
  }
  std::string text = markdown_table(rows, {0, 4, 6});
  for (const std::string& more : {warning(results), missing_groups(results)}) {
    if (!more.empty()) text += '\n' + more;
  }
  std::vector<std::string> places;  // each processor with all that was measured on it
  for (const std::string& processor : facts(results, "processor")) {
    std::vector<std::string> parts;
    for (const ResultFile& result : results) {
      if (fact(result.machine, "processor") != processor) continue;
      const std::string cores =
          fact(result.machine, "cores") + (is_of_gpu(result.group) ? "" : " cores");
      if (std::find(parts.begin(), parts.end(), cores) == parts.end()) parts.push_back(cores);
    }
    places.push_back(fmt::format("{} ({})", processor, fmt::join(parts, "; ")));
  }
  return text + fmt::format("\nMeasured {} on {}.\n", fmt::join(facts(results, "date"), ", "),
                            fmt::join(places, " and "));
}

}  // namespace plumbline
