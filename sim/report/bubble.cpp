// Simulates the textbook's pipeline three times: equal and free, uneven, with latency.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/bug.h"
#include "base/quantity.h"
#include "base/table.h"
#include "schedules/generators/generators.h"
#include "sim/engine/metrics.h"
#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/report/bubble_words.h"

namespace plumbline {
namespace {

Metrics simulate_question(const BubbleQuestion& question, const ScheduleRule& rule) {
  const auto stages = static_cast<std::uint32_t>(question.forward.size());
  std::vector<LayerCosts> costs(stages);
  std::vector<std::vector<DeviceId>> devices;
  for (std::uint32_t s = 0; s < stages; ++s) {
    costs[s].forward.mean = question.forward[s];
    costs[s].backward.mean = question.backward[s];
    devices.push_back({DeviceId{s}});
  }
  const LayerGraph graph = LayerGraph::chain(std::vector<Layer>(stages));
  const Partition partition =
      make_partition(graph.topological_order(), std::vector<std::uint32_t>(stages, 1), devices);
  const PipelineShape shape = pipeline_shape(partition, question.micro_batches);
  const auto schedule = generate(rule, shape, windows(rule, shape, std::nullopt), Mark{});
  PLUMBLINE_CHECK(bool{schedule}, rule.name);
  const auto op_graph =
      lower(*schedule, stage_costs(graph, costs, partition), devices_in_use(partition),
            flat_cluster(stages, {question.latency, std::nullopt}), {}, Mark{});
  PLUMBLINE_CHECK(bool{op_graph}, rule.name);
  return measure(*op_graph, simulate(*op_graph), {});
}

Duration mean(const std::vector<Duration>& times) {
  return std::accumulate(times.begin(), times.end(), Duration{}) /
         static_cast<std::int64_t>(times.size());
}

BubbleAnswer answer(const BubbleQuestion& question, const ScheduleRule& rule) {
  const std::size_t stages = question.forward.size();
  BubbleQuestion equal = question;
  equal.forward.assign(stages, mean(question.forward));
  equal.backward.assign(stages, mean(question.backward));
  equal.latency = {};
  BubbleQuestion free = question;
  free.latency = {};

  const Metrics metrics = simulate_question(question, rule);
  BubbleAnswer found;
  found.schedule = rule.name;
  found.makespan = metrics.makespan;
  found.bubble_fraction = metrics.bubble_fraction();
  found.bubble_overhead = metrics.bubble_overhead();
  found.formula = closed_form(
      rule.name, {question.forward, question.backward,
                  std::vector<Duration>(stages - 1, question.latency), question.micro_batches});
  const Duration free_makespan = simulate_question(free, rule).makespan;
  found.equal_and_free = simulate_question(equal, rule).makespan;
  found.by_uneven_stages = free_makespan - found.equal_and_free;
  found.by_latency = found.makespan - free_makespan;
  return found;
}

/// The two textbook formulas with the numbers put in.
Document formulas(std::uint64_t p, std::uint64_t m) {
  const auto share = [](std::uint64_t a, std::uint64_t b) {
    return percent(static_cast<double>(a) / static_cast<double>(b));
  };
  Table table;
  table.has_no_header();
  table.row({"bubble overhead", "(p-1)/m", fmt::format("{}/{}", p - 1, m), share(p - 1, m),
             "idle / busy"});
  table.row({"bubble fraction", "(p-1)/(m+p-1)", fmt::format("{}/{}", p - 1, m + p - 1),
             share(p - 1, m + p - 1), "idle / (devices x makespan)"});
  table.row({"efficiency", "m/(m+p-1)", fmt::format("{}/{}", m, m + p - 1), share(m, m + p - 1),
             "busy / (devices x makespan)"});
  Document text;
  text.sentence(
      "two numbers are called \"the bubble\": the same idle time over two denominators\n");
  text.table(std::move(table));
  return text;
}

/// The stage whose forward and backward take longest; nothing if all take the same time.
std::optional<SlowestStage> slowest_of(const BubbleQuestion& question) {
  Duration sum{};
  Duration longest{};
  SlowestStage slowest;
  for (std::uint32_t s = 0; s < question.forward.size(); ++s) {
    const Duration time = question.forward[s] + question.backward[s];
    sum += time;
    if (time <= longest) continue;
    longest = time;
    slowest.stage = s;
  }
  const auto stages = static_cast<std::int64_t>(question.forward.size());
  if (stages * longest == sum) return std::nullopt;
  slowest.above_mean = seconds(longest) * static_cast<double>(stages) / seconds(sum) - 1;
  return slowest;
}

std::string differences(const BubbleQuestion& question, const std::vector<BubbleAnswer>& answers) {
  std::string text;
  for (const BubbleAnswer& a : answers) {
    if (a.by_uneven_stages == Duration{} && a.by_latency == Duration{}) continue;
    text += fmt::format("  {}: {} with equal stages and free links", a.schedule,
                        to_text(a.equal_and_free));
    const auto term = [&](Duration by, std::string_view what) {
      if (by == Duration{}) return;
      const Duration size = by < Duration{} ? -by : by;
      text += fmt::format("; {} {} {}", what, by < Duration{} ? "take off" : "add", to_text(size));
    };
    term(a.by_uneven_stages, "uneven stages");
    term(a.by_latency, fmt::format("links of {}", to_text(question.latency)));
    text += '\n';
  }
  if (text.empty()) return "";
  const bool uneven = std::any_of(answers.begin(), answers.end(), [](const BubbleAnswer& a) {
    return a.by_uneven_stages != Duration{};
  });
  if (const auto slowest = slowest_of(question); uneven && slowest)
    text += fmt::format("  {}\n", to_text(*slowest));
  return "\nwhere the difference to the formula comes from\n" + text;
}

}  // namespace

std::vector<BubbleAnswer> compare_bubbles(const BubbleQuestion& question) {
  PLUMBLINE_CHECK(!question.forward.empty() && question.forward.size() == question.backward.size(),
                  question.forward.size(), question.backward.size());
  std::vector<BubbleAnswer> answers;
  for (const char* name : {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"}) {
    answers.push_back(answer(question, *find_schedule_rule(name)));
  }
  return answers;
}

Document to_table(const BubbleQuestion& question, const std::vector<BubbleAnswer>& answers) {
  Document text;
  text.sentence(fmt::format("p = {} stage{}, m = {} micro-batch{}\n\n", question.forward.size(),
                            question.forward.size() == 1 ? "" : "s", question.micro_batches,
                            question.micro_batches == 1 ? "" : "es"));
  text.append(formulas(question.forward.size(), question.micro_batches));
  text.sentence("\nsimulated");
  Table table;
  table.row({"schedule", "makespan", "bubble fraction", "bubble overhead", "by formula", "from"});
  for (const BubbleAnswer& a : answers) {
    table.row({a.schedule, to_text(a.makespan), percent(a.bubble_fraction),
               percent(a.bubble_overhead), a.formula ? percent(a.formula->bubble_fraction) : "-",
               a.formula ? a.formula->text : "no closed form is known for these times"});
  }
  text.table(std::move(table));
  text.sentence(differences(question, answers));
  return text;
}

Document to_table(const std::vector<AnsweredBubble>& rows) {
  PLUMBLINE_CHECK(!rows.empty(), rows.size());
  Table table;
  std::vector<std::string> header = {"stages", "micro-batches", "(p-1)/m", "(p-1)/(m+p-1)",
                                     "m/(m+p-1)"};
  for (const BubbleAnswer& a : rows.front().answers) header.push_back(a.schedule);
  table.row(std::move(header));
  for (const auto& [question, answers] : rows) {
    const auto p = static_cast<double>(question.forward.size());
    const double m = question.micro_batches;
    std::vector<std::string> cells = {fmt::format("{:.0f}", p), fmt::format("{:.0f}", m),
                                      percent((p - 1) / m), percent((p - 1) / (m + p - 1)),
                                      percent(m / (m + p - 1))};
    for (const BubbleAnswer& a : answers) cells.push_back(percent(a.bubble_fraction));
    table.row(std::move(cells));
  }
  table.repeat(2);
  Document text;
  text.sentence(
      "by formula: the bubble overhead (p-1)/m = idle / busy, the bubble fraction (p-1)/(m+p-1) = "
      "idle / (devices x makespan), the efficiency m/(m+p-1) = busy / (devices x makespan); then "
      "the simulated bubble fraction of each schedule\n\n");
  text.table(std::move(table));
  return text;
}

}  // namespace plumbline
