// Page 8: weight versions.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

/// The question of how many weight versions a GPU holds under PipeDream.
Question ask_weight_versions(const QuizRun& run, std::int64_t gpu) {
  const auto versions = [run, gpu] {
    return std::int64_t{outcome_of(run).memory[static_cast<std::size_t>(gpu)].weight_versions};
  };
  Question question;
  question.unit = "versions";
  question.find_answer = [versions] { return std::to_string(versions()); };
  question.check = [run, versions, gpu](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = whole_in_answer(text, "versions", 0, 10'000);
    if (!answer) return answer.problems();
    const std::int64_t held = versions();
    return CheckedAnswer{
        *answer == held,
        fmt::format("GPU {} holds {} of its weights.", gpu, counted(held, "version", "versions")),
        run};
  };
  return question;
}

}  // namespace

Question ask_versions(Figures& figures) {
  const std::int64_t p = figures.between(4, 3, 8);
  const std::int64_t gpu = figures.between(0, 0, p - 1);
  Question question = ask_weight_versions(equal_stages(p, "pipedream", 8 * p), gpu);
  question.text = fmt::format(
      "PipeDream with weight stashing on {} GPUs, one stage each. How many versions of its weights "
      "does GPU {}, counted from 0, hold at most, the newest one included?",
      p, gpu);
  question.values = {{"p", std::to_string(p)}, {"gpu", std::to_string(gpu)}};
  return question;
}

Question ask_two_versions(Figures& figures) {
  const std::int64_t p = figures.between(4, 3, 8);
  const std::int64_t gpu = figures.between(0, 0, p - 2);
  Question question =
      ask_weight_versions(equal_stages(p, "pipedream", 8 * p).with({"schedule.weights=two"}), gpu);
  question.text = fmt::format(
      "PipeDream-2BW on {} GPUs, one stage each: an update comes only once for several "
      "micro-batches. How many versions of its weights does GPU {}, counted from 0, hold?",
      p, gpu);
  question.values = {{"p", std::to_string(p)}, {"gpu", std::to_string(gpu)}};
  return question;
}

}  // namespace plumbline
