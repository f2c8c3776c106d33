// Pages 1 to 3: one GPU at a time, fill and drain, 1F1B.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>

#include "sim/quiz/answer_text.h"
#include "sim/quiz/question_list.h"

namespace plumbline {
namespace {

/// The most micro-batches of an answer that is simulated.
constexpr std::int64_t kMostAnswered = 10'000;

/// A share in percent, right if it is no more than half of a unit of the last digit away.
/// `otherwise` may say more of a wrong answer.
Question ask_idle_percent(
    const QuizRun& run, double half_digit, const char* format,
    const std::function<std::string(double, const Outcome&)>& otherwise = {}) {
  Question question;
  question.kind = QuestionKind::number;
  question.unit = "%";
  question.find_answer = [run, format] {
    return fmt::format(fmt::runtime(format), idle_share_of(outcome_of(run)).percent());
  };
  question.check = [run, half_digit, otherwise](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = number_in_answer(text, "%");
    if (!answer) return answer.problems();
    const Outcome outcome = outcome_of(run);
    const double percent = idle_share_of(outcome).percent();
    constexpr double rounding = 1e-9;
    if (text.find('%') == text.npos && std::abs(*answer * 100 - percent) <= half_digit + rounding)
      return input_error({}, fmt::format("'{}' looks like a share of 1", clipped(text)),
                         "write it in percent");
    CheckedAnswer checked;
    checked.right = std::abs(*answer - percent) <= half_digit + rounding;
    checked.said = fmt::format("The GPUs are idle for {} of their time.", percent_text(percent));
    if (!checked.right && otherwise) checked.said += otherwise(*answer, outcome);
    checked.shown = run;
    return checked;
  };
  return question;
}

std::string least_said(const IdleShare& share, std::int64_t micro_batches, std::int64_t limit) {
  return fmt::format("With {} the bubble is {}, which is {}below {} %",
                     counted(micro_batches, "micro-batch", "micro-batches"),
                     percent_text(share.percent()), share.is_below(limit) ? "" : "not ", limit);
}

}  // namespace

Question ask_naive_share(Figures& figures) {
  const std::int64_t p = figures.between(4, 3, 8);
  const QuizRun run = equal_stages(p, "naive", 4);
  Question question = ask_idle_percent(run, 0.05, "{:.1f}");
  question.text = fmt::format(
      "{} GPUs work one after the other (naive): each micro-batch goes forward through all of them "
      "and back, and then the next one begins. For which share of their time are the GPUs idle? In "
      "percent, to a tenth.",
      p);
  question.values = {{"p", std::to_string(p)}};
  return question;
}

Question ask_naive_devices(Figures& figures) {
  const std::int64_t wanted = figures.between(5, 3, 8);
  constexpr std::int64_t most = 64;
  const auto run_of = [](std::int64_t p) { return equal_stages(p, "naive", 4); };
  const auto meets = [wanted](const IdleShare& share) {
    return share.idle * wanted == share.whole * (wanted - 1);
  };
  Question question;
  question.unit = "GPUs";
  const std::string fraction = fmt::format("{}/{}", wanted - 1, wanted);
  const std::string percent =
      percent_text(100.0 * static_cast<double>(wanted - 1) / static_cast<double>(wanted));
  question.text = fmt::format(
      "GPUs work one after the other (naive). How many GPUs are there if they are idle for exactly "
      "{} of their time ({})?",
      fraction, percent);
  question.values = {{"fraction", fraction}, {"percent", percent}};
  question.find_answer = [run_of, meets] {
    std::int64_t p = 1;
    while (!meets(idle_share_of(outcome_of(run_of(p))))) ++p;
    return std::to_string(p);
  };
  question.check = [run_of, meets](const std::string& text) -> Result<CheckedAnswer> {
    const auto p = whole_in_answer(text, "GPUs", 1, most);
    if (!p) return p.problems();
    const IdleShare share = idle_share_of(outcome_of(run_of(*p)));
    return CheckedAnswer{meets(share),
                         fmt::format("With {} the idle share is {}.", counted(*p, "GPU", "GPUs"),
                                     percent_text(share.percent())),
                         run_of(*p)};
  };
  return question;
}

Question ask_fill_least(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 8);
  const std::int64_t limit = figures.one_of(5, {5, 8, 10, 12});
  const QuizRun run = equal_stages(p, "gpipe", 4);
  const auto run_of = [run](std::int64_t m) {
    return run.with({setting("schedule.micro_batches", m)});
  };
  const auto share_of = [run_of](std::int64_t m) { return idle_share_of(outcome_of(run_of(m))); };
  Question question;
  question.unit = "micro-batches";
  question.text = fmt::format(
      "GPipe on {} GPUs with equal stages and free links: what is the least number of "
      "micro-batches "
      "with which the bubble is below {} % of the device time?",
      p, limit);
  question.values = {{"p", std::to_string(p)}, {"limit", std::to_string(limit)}};
  question.run = run;
  question.find_answer = [share_of, limit] {
    std::int64_t m = 1;
    while (!share_of(m).is_below(limit)) ++m;
    return std::to_string(m);
  };
  question.check = [run_of, share_of, limit](const std::string& text) -> Result<CheckedAnswer> {
    const auto m = whole_in_answer(text, "micro-batches", 1, kMostAnswered);
    if (!m) return m.problems();
    const IdleShare share = share_of(*m);
    if (!share.is_below(limit))
      return CheckedAnswer{false, least_said(share, *m, limit) + ".", run_of(*m)};
    if (*m == 1) return CheckedAnswer{true, least_said(share, *m, limit) + ".", run_of(*m)};
    const IdleShare fewer = share_of(*m - 1);
    return CheckedAnswer{
        !fewer.is_below(limit),
        fmt::format("{}. {}.", least_said(share, *m, limit), least_said(fewer, *m - 1, limit)),
        run_of(fewer.is_below(limit) ? *m - 1 : *m)};
  };
  return question;
}

Question ask_fill_share(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 8);
  const std::int64_t m = figures.between(16, 4, 32);
  const QuizRun run = equal_stages(p, "gpipe", m);
  constexpr double half_digit = 0.005;
  Question question = ask_idle_percent(
      run, half_digit, "{:.2f}", [](double answer, const Outcome& outcome) -> std::string {
        const double overhead = outcome.metrics.bubble_overhead() * 100;
        if (std::abs(answer - overhead) > half_digit + 1e-9) return "";
        return fmt::format(
            " {} is the idle time per busy time (bubble overhead), the answer to another question.",
            percent_text(overhead));
      });
  question.text = fmt::format(
      "GPipe with {} equal stages on {} GPUs and {} micro-batches, free links: which share of all "
      "device time, busy and idle, is idle? In percent, to a hundredth.",
      p, p, m);
  question.values = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  return question;
}

Question ask_one_bubble(Figures& figures) {
  const std::int64_t p = figures.between(4, 2, 8);
  const std::int64_t m = figures.between(8, 2, 24);
  const QuizRun run = equal_stages(p, "1f1b", m);
  const auto shares = [run] {
    return std::pair(idle_share_of(outcome_of(run)),
                     idle_share_of(outcome_of(run.with({"schedule.name=gpipe"}))));
  };
  const auto right = [shares]() -> std::string {
    const auto [ours, gpipe] = shares();
    const std::int64_t a = ours.idle * gpipe.whole;
    const std::int64_t b = gpipe.idle * ours.whole;
    return a < b ? "smaller" : a == b ? "same" : "larger";
  };
  Question question;
  question.kind = QuestionKind::choice;
  question.choices = {{"smaller", "smaller"}, {"same", "the same"}, {"larger", "larger"}};
  question.text = fmt::format(
      "{} GPUs with equal stages, free links, {} micro-batches: is the bubble of 1F1B smaller than "
      "that of GPipe, the same, or larger?",
      p, m);
  question.values = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  question.find_answer = right;
  question.check = [run, shares, right,
                    choices = question.choices](const std::string& text) -> Result<CheckedAnswer> {
    const auto choice = choice_in_answer(text, choices);
    if (!choice) return choice.problems();
    const auto [ours, gpipe] = shares();
    return CheckedAnswer{*choice == right(),
                         fmt::format("The bubble is {} with 1F1B and {} with GPipe.",
                                     percent_text(ours.percent()), percent_text(gpipe.percent())),
                         run};
  };
  return question;
}

Question ask_in_flight(Figures& figures) {
  const std::int64_t p = figures.between(4, 3, 6);
  const std::int64_t gpu = figures.between(2, 0, p - 1);
  const std::int64_t m = figures.between(8, p, 12);
  const QuizRun run = equal_stages(p, "1f1b", m);
  const auto in_flight = [run, gpu] {
    return std::int64_t{outcome_of(run).memory[static_cast<std::size_t>(gpu)].peak_in_flight};
  };
  Question question;
  question.unit = "micro-batches";
  question.text = fmt::format(
      "1F1B on {} GPUs with {} micro-batches: for how many micro-batches at most does GPU {}, "
      "counted from 0, hold activations at the same time?",
      p, m, gpu);
  question.values = {
      {"p", std::to_string(p)}, {"m", std::to_string(m)}, {"gpu", std::to_string(gpu)}};
  question.find_answer = [in_flight] { return std::to_string(in_flight()); };
  question.check = [run, in_flight, gpu](const std::string& text) -> Result<CheckedAnswer> {
    const auto answer = whole_in_answer(text, "micro-batches", 0, kMostAnswered);
    if (!answer) return answer.problems();
    const std::int64_t most = in_flight();
    return CheckedAnswer{*answer == most,
                         fmt::format("GPU {} has at most {} in flight.", gpu,
                                     counted(most, "micro-batch", "micro-batches")),
                         run};
  };
  return question;
}

}  // namespace plumbline
