// Page 7: copies of a pipeline, as in practical 10.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bug.h"
#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

constexpr std::int64_t kHybridStages = 2;

/// examples/practical-10.yaml with so many copies.
QuizRun practical_10(std::int64_t copies, std::int64_t m) {
  return {
      fmt::format("version: 1\n"
                  "name: practical 10\n"
                  "model:\n"
                  "  uniform:\n"
                  "    {{layers: 2, forward: 4 ms, backward: 8 ms, output: 8 MiB, activation: 32 "
                  "MiB, parameters: 32 MiB}}\n"
                  "  batch: 32\n"
                  "cluster:\n"
                  "  devices: {0}\n"
                  "  link: {{bandwidth: 8000 MiB/s}}\n"
                  "plan:\n"
                  "  stages: 2\n"
                  "  data_parallel: {1}\n"
                  "schedule: {{name: gpipe, micro_batches: {2}}}\n"
                  "training: {{micro_batch_size: 8}}\n",
                  kHybridStages * copies, copies, m),
      {},
      {}};
}

/// The slots of one copy, stage by stage.
std::vector<std::uint32_t> slots_of_copy(const Outcome& outcome, std::int64_t copy) {
  std::vector<std::uint32_t> slots;
  for (const auto& of_stage : outcome.graph.stage_slots) {
    PLUMBLINE_CHECK(copy < static_cast<std::int64_t>(of_stage.size()), copy, of_stage.size());
    slots.push_back(of_stage[static_cast<std::size_t>(copy)]);
  }
  return slots;
}

std::vector<std::int64_t> gpus_of_copy(const QuizRun& run, std::int64_t copy) {
  const Outcome outcome = outcome_of(run);
  std::vector<std::int64_t> gpus;
  for (const std::uint32_t slot : slots_of_copy(outcome, copy))
    gpus.push_back(outcome.graph.devices[slot].value);
  return gpus;
}

std::int64_t forwards_of_copy(const QuizRun& run, std::int64_t copy) {
  const Outcome outcome = outcome_of(run);
  std::int64_t forwards = 0;
  for (const std::uint32_t slot : slots_of_copy(outcome, copy)) {
    for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
      if (outcome.graph.activities[node].kind == ActivityKind::forward &&
          outcome.graph.nodes[node].resource == slot)
        ++forwards;
    }
  }
  return forwards;
}

}  // namespace

Question ask_ranks(Figures& figures) {
  const std::int64_t copies = figures.between(2, 2, 4);
  const std::int64_t rank = figures.between(1, 0, copies - 1);
  const QuizRun run = practical_10(copies, 4);
  Question question;
  question.kind = QuestionKind::numbers;
  question.unit = "GPUs";
  question.text = fmt::format(
      "Practical 10 with {} processes: each rank holds a copy of a model of two stages, on {} GPUs "
      "in all. Stage 0 of all ranks stands on the first GPUs, stage 1 on the GPUs behind them, as "
      "in the practical. Which two GPUs has rank {}? GPUs and ranks are counted from 0; the GPU of "
      "stage 0 comes first.",
      copies, kHybridStages * copies, rank);
  question.values = {{"copies", std::to_string(copies)},
                     {"gpus", std::to_string(kHybridStages * copies)},
                     {"rank", std::to_string(rank)}};
  question.find_answer = [run, rank] {
    return fmt::format("{}", fmt::join(gpus_of_copy(run, rank), " "));
  };
  question.check = [run, rank](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = numbers_in_answer(text, kHybridStages);
    if (!answer) return answer.problems();
    const std::vector<std::int64_t> gpus = gpus_of_copy(run, rank);
    return CheckedAnswer{*answer == gpus,
                         fmt::format("Rank {} has stage 0 on GPU {} and stage 1 on GPU {}.", rank,
                                     gpus.front(), gpus.back()),
                         run};
  };
  return question;
}

Question ask_steps(Figures& figures) {
  const std::int64_t copies = figures.between(2, 2, 4);
  const std::int64_t m = figures.between(4, 2, 12);
  const QuizRun run = practical_10(copies, m);
  Question question;
  question.unit = "forwards";
  question.text = fmt::format(
      "Practical 10 with {} ranks. Each rank runs its own {} micro-batches through its two stages. "
      "How many forward ops does one rank run in one mini-batch, those of both stages counted?",
      copies, m);
  question.values = {{"copies", std::to_string(copies)}, {"m", std::to_string(m)}};
  question.find_answer = [run] { return std::to_string(forwards_of_copy(run, 0)); };
  question.check = [run](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = whole_in_answer(text, "forwards", 0, 10'000);
    if (!answer) return answer.problems();
    const std::int64_t forwards = forwards_of_copy(run, 0);
    return CheckedAnswer{*answer == forwards,
                         fmt::format("Rank 0 runs {} on its two GPUs.",
                                     counted(forwards, "forward op", "forward ops")),
                         run};
  };
  return question;
}

}  // namespace plumbline
