// Pages 5 and 6: fixed costs of ops, uneven stages, slow links.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/bug.h"
#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

constexpr std::int64_t kBalanceGpus = 3;

/// GPipe on two GPUs: a mini-batch of 4 samples with `work` ms of forward and backward on each.
QuizRun run_with_fixed_cost(std::int64_t work) {
  return {fmt::format("version: 1\n"
                      "name: a fixed cost of each op\n"
                      "model:\n"
                      "  uniform: {{layers: 2, forward: {} ms, backward: {} ms}}\n"
                      "  batch: 4\n"
                      "cluster: {{devices: 2}}\n"
                      "schedule: {{name: gpipe, micro_batches: 4}}\n"
                      "training: {{mini_batch_size: 4}}\n",
                      work / 4, work - work / 4),
          {},
          {}};
}

/// The times with 2 and with 4 micro-batches.
struct TwoAndFour {
  Duration two;
  Duration four;
};
TwoAndFour times_at(const QuizRun& run, std::int64_t cost_ns) {
  const std::string cost = fmt::format("overhead.per_op={} ns", cost_ns);
  const auto time = [&](const char* micro_batches) {
    return outcome_of(run.with({micro_batches, cost})).metrics.makespan;
  };
  return {time("schedule.micro_batches=2"), time("schedule.micro_batches=4")};
}

/// The times of the slowest stage: forward and backward of one micro-batch.
Duration slowest_stage_of(const Outcome& outcome, std::int64_t micro_batches) {
  Duration most{};
  for (const DeviceMetrics& device : outcome.metrics.devices) most = std::max(most, device.busy);
  return most / micro_batches;
}

std::string ms_text(Duration time) {
  return fmt::format("{} ms", static_cast<double>(time.count()) / 1e6);
}

}  // namespace

Question ask_fixed_cost(Figures& figures) {
  const std::int64_t work = figures.between(6, 3, 12) * 4;
  const QuizRun run = run_with_fixed_cost(work);
  Question question;
  question.unit = "ms";
  question.text = fmt::format(
      "GPipe on two GPUs with free links. Forward and backward of a whole mini-batch take {} ms on "
      "each GPU, into however many micro-batches it is cut. Each op takes a fixed cost besides. "
      "From "
      "which fixed cost of an op on are 2 micro-batches faster than 4? In ms, to 2 %.",
      work);
  question.values = {{"work", fmt::format("{} ms", work)}};
  question.run = run;
  question.find_answer = [run, work] {
    std::int64_t below = 0;
    std::int64_t above = work * 1'000'000;
    while (above - below > 1) {
      const std::int64_t middle = below + (above - below) / 2;
      const TwoAndFour times = times_at(run, middle);
      (times.two < times.four ? above : below) = middle;
    }
    return fmt::format("{:.3f}", static_cast<double>(below) / 1e6);
  };
  question.check = [run](const std::string& text) -> Result<CheckedAnswer> {
    const auto cost = number_in_answer(text, "ms");
    if (!cost) return cost.problems();
    constexpr double most_ms = 1'000;
    if (*cost > most_ms)
      return input_error({}, fmt::format("a fixed cost has at most {} ms", most_ms));
    const auto at = [&](double factor) {
      return static_cast<std::int64_t>(std::llround(*cost * factor * 1e6));
    };
    const TwoAndFour less = times_at(run, at(1 / 1.02));
    const TwoAndFour more = times_at(run, at(1 / 0.98));
    const TwoAndFour times = times_at(run, at(1));
    return CheckedAnswer{
        less.four <= less.two && more.two <= more.four,
        fmt::format("With a fixed cost of {} ms, 2 micro-batches take {} and 4 take {}.", *cost,
                    ms_text(times.two), ms_text(times.four)),
        run.with({fmt::format("overhead.per_op={} ns", at(1))})};
  };
  return question;
}

Question ask_balance(Figures& figures) {
  const std::int64_t layers = figures.between(6, 6, 8);
  constexpr std::int64_t usual[] = {4, 2, 3, 1, 5, 2};
  std::vector<std::int64_t> times;
  std::string list;
  for (std::int64_t i = 0; i < layers; ++i) {
    times.push_back(figures.between(usual[i % 6], 1, 9));
    list += fmt::format("    - {{name: layer {}, forward: {} ms, backward: {} ms}}\n", i,
                        times.back(), 2 * times.back());
  }
  constexpr std::int64_t m = 4;
  const QuizRun run{fmt::format("version: 1\n"
                                "name: uneven layers on 3 GPUs\n"
                                "model:\n"
                                "  layers:\n"
                                "{}"
                                "cluster: {{devices: 3}}\n"
                                "plan: {{stages: 3}}\n"
                                "schedule: {{name: 1f1b, micro_batches: {}}}\n",
                                list, m),
                    {},
                    {}};
  const auto best = [run] { return outcome_of(run.with({"plan.partition=balanced"})); };
  Question question;
  question.kind = QuestionKind::numbers;
  question.unit = "layers";
  question.text = fmt::format(
      "{} layers in a row take {} ms forward, and twice as long backward. Three GPUs hold one "
      "stage "
      "each. How many layers go to each stage so that the slowest stage is as short as possible? "
      "Three numbers.",
      layers, fmt::join(times, ", "));
  question.values = {{"layers", std::to_string(layers)},
                     {"times", fmt::format("{}", fmt::join(times, ", "))}};
  question.run = run;
  question.find_answer = [best] {
    std::vector<std::size_t> counts;
    for (const Stage& stage : best().setup.partition.stages) counts.push_back(stage.layers.size());
    return fmt::format("{}", fmt::join(counts, " "));
  };
  question.check = [run, best, layers](const std::string& text) -> Result<CheckedAnswer> {
    const auto counts = numbers_in_answer(text, kBalanceGpus);
    if (!counts) return counts.problems();
    std::int64_t sum = 0;
    for (const std::int64_t count : *counts) {
      if (count < 1 || count > layers)
        return input_error({},
                           fmt::format("no stage can have {}", counted(count, "layer", "layers")),
                           "each stage has at least one layer");
      sum += count;
    }
    if (sum != layers)
      return input_error(
          {}, fmt::format("the three numbers add up to {}, but there are {} layers", sum, layers));
    const QuizRun answered =
        run.with({fmt::format("plan.partition=[{}]", fmt::join(*counts, ", "))});
    const Duration slowest = slowest_stage_of(outcome_of(answered), m);
    const Duration least = slowest_stage_of(best(), m);
    return CheckedAnswer{
        slowest == least,
        fmt::format(
            "The slowest stage takes {} for each micro-batch, and {} is the least possible.",
            ms_text(slowest), ms_text(least)),
        answered};
  };
  return question;
}

Question ask_latency_choice(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 4);
  const std::int64_t m = figures.between(8, 4, 12);
  const std::int64_t latency_us = figures.one_of(500, {0, 0, 250, 500, 1000});
  const bool uneven = latency_us == 0 && figures.between(0, 0, 1) == 1;
  std::string list;
  for (std::int64_t i = 0; i < p; ++i) {
    const bool slow_forward = uneven && i == 0;
    list += fmt::format("    - {{name: layer {}, forward: {} ms, backward: {} ms}}\n", i,
                        slow_forward ? 3 : 1,
                        slow_forward ? 1
                        : uneven     ? 3
                                     : 2);
  }
  const std::string latency = fmt::format("{} ms", static_cast<double>(latency_us) / 1000);
  const QuizRun run{fmt::format("version: 1\n"
                                "name: {0} GPUs and a link\n"
                                "model:\n"
                                "  layers:\n"
                                "{1}"
                                "cluster: {{devices: {0}, link: {{latency: {2}}}}}\n"
                                "plan: {{stages: {0}}}\n"
                                "schedule: {{name: 1f1b, micro_batches: {3}}}\n",
                                p, list, latency, m),
                    {},
                    {}};
  const auto times = [run] {
    return std::pair(outcome_of(run).metrics.makespan,
                     outcome_of(run.with({"schedule.name=gpipe"})).metrics.makespan);
  };
  const auto right = [times]() -> std::string {
    const auto [ours, gpipe] = times();
    return ours < gpipe ? "1f1b" : gpipe < ours ? "gpipe" : "same";
  };
  Question question;
  question.kind = QuestionKind::choice;
  question.choices = {{"1f1b", "1F1B"}, {"gpipe", "GPipe"}, {"same", "both take the same time"}};
  const std::string stages =
      uneven ? "On GPU 0 a forward takes 3 ms and a backward 1 ms, elsewhere 1 ms and 3 ms"
             : "A forward takes 1 ms and a backward 2 ms on each";
  question.text = fmt::format(
      "{} GPUs with one stage each, {} micro-batches. {}. Each link has a latency of {}. Which "
      "schedule has the shorter iteration, 1F1B or GPipe?",
      p, m, stages, latency);
  question.values = {{"p", std::to_string(p)},
                     {"m", std::to_string(m)},
                     {"uneven", uneven ? "yes" : "no"},
                     {"latency", latency}};
  question.find_answer = right;
  question.check = [run, times, right,
                    choices = question.choices](const std::string& text) -> Result<CheckedAnswer> {
    const auto choice = choice_in_answer(text, choices);
    if (!choice) return choice.problems();
    const auto [ours, gpipe] = times();
    return CheckedAnswer{*choice == right(),
                         fmt::format("1F1B takes {}, GPipe {}.", ms_text(ours), ms_text(gpipe)),
                         run};
  };
  return question;
}

}  // namespace plumbline
