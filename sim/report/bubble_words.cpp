// Points are rounded from their sums, so that the printed numbers add up.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bubble_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"

namespace plumbline {
namespace {

/// Hundredths of a percent, as printed.
std::int64_t hundredths(double fraction) { return std::llround(1e4 * fraction); }

std::string points(std::int64_t hundredths) {
  return fmt::format("{:.2f} points", static_cast<double>(hundredths) / 100);
}

/// A term with the points by which the printed sum grows.
struct PrintedTerm {
  BubbleCause cause;
  std::int64_t points = 0;
};

/// The printed terms, in the order of the causes. Causes that are no costs of their own come last.
std::vector<PrintedTerm> printed(const BubbleTerms& terms) {
  std::vector<PrintedTerm> found;
  double sum = terms.whole;
  for (const BubbleTerm& term : terms.terms) {
    const std::int64_t before = hundredths(sum);
    sum = &term == &terms.terms.back() ? terms.base : sum - term.fraction;
    if (hundredths(sum) != before) found.push_back({term.cause, before - hundredths(sum)});
  }
  std::stable_partition(found.begin(), found.end(), [](const PrintedTerm& term) {
    return term.cause >= BubbleCause::uneven_stages;
  });
  return found;
}

/// The cause of the term, as a plural or a name.
std::string what(const Outcome& p, BubbleCause cause) {
  switch (cause) {
    case BubbleCause::uneven_stages:
      return "uneven stages";
    case BubbleCause::uneven_passes:
      return "other ratios of forward to backward";
    case BubbleCause::uneven_slices:
      return p.setup.costs.lengths ? "micro-batches of unlike length" : "uneven slices";
    case BubbleCause::transfers:
      return p.graph.blocking ? "blocking transfers" : "transfers";
    case BubbleCause::collectives:
      if (p.setup.rules.sharing.degree > 0) return "reduce-scatters, all-reduces and all-gathers";
      return p.setup.rules.sharing.shares() ? "reduce-scatters and all-gathers" : "all-reduces";
    case BubbleCause::updates:
      return "updates";
    case BubbleCause::overhead:
      return "overhead per iteration";
    case BubbleCause::pairs:
      return "pairs that overlap";
    case BubbleCause::changing_rates: {
      const std::vector<bool> shared = p.graph.shared_channels();
      const bool cards = std::find(shared.begin(), shared.end(), true) != shared.end();
      if (!p.graph.has_slowdowns()) return "shared network cards";
      if (!p.graph.has_neighbours())
        return cards ? "shared network cards and what ops take longer beside traffic"
                     : "what ops take longer beside traffic";
      if (p.graph.slowdowns.size() == 1 && p.graph.updates_at_once.empty())
        return "transfers that others' work slows down";
      return cards ? "shared network cards and neighbours that slow each other"
                   : "neighbours that slow each other";
    }
    case BubbleCause::measured:
      return "measured times instead of predicted ones";
  }
  return "";
}

/// Whether this stage or device sets the period of an asynchronous run's steady state.
bool sets_period(const Outcome& p, const SlowestStage& slowest) {
  const auto& steady = p.metrics.steady;
  return steady && steady->period_s <= slowest.work_s * (1 + 1e-6);
}

/// A further remark on a term; "" = none.
std::string remark(const Outcome& p, const BubbleTerms& terms, BubbleCause cause) {
  if (cause == BubbleCause::uneven_stages && terms.slowest) {
    return to_text(*terms.slowest) + (sets_period(p, *terms.slowest) ? "; it sets the period" : "");
  }
  if (cause == BubbleCause::transfers && p.graph.blocking) return "they count as busy time";
  return "";
}

/// "(p-1)/(m+p-1) with p = 4 and m = 8"
std::string formula_text(const Outcome& p, const ClosedForm& formula) {
  const PipelineShape& shape = p.setup.schedule.shape;
  const double chunks = p.setup.rounds();
  const std::size_t positions = chunks > 1 ? shape.slots : shape.positions.size();
  const std::string rounds = chunks > 1 ? fmt::format(", v = {:.3g}", chunks) : "";
  const std::string slices = p.setup.slices > 1 ? fmt::format(", k = {}", p.setup.slices) : "";
  return fmt::format("{} with p = {}{}{} and m = {}", formula.text, positions, rounds, slices,
                     p.setup.micro_batches);
}

}  // namespace

std::string to_text(const SlowestStage& slowest) {
  const std::string who = slowest.is_device ? fmt::format("device {} (stages {})", slowest.device,
                                                          fmt::join(slowest.stages, ", "))
                                            : fmt::format("stage {}", slowest.stage);
  std::string why;
  if (slowest.why == "more layers") {
    why = " (it has more layers)";
  } else if (slowest.why == "recomputation") {
    why = " (it recomputes more)";
  } else if (!slowest.why.empty()) {
    why = fmt::format(" (it holds {})", slowest.why);
  }
  return fmt::format("{} takes {:.1f} % more than the mean{}", who, 100 * slowest.above_mean, why);
}

Document bubble_table(const Outcome& p, const BubbleTerms& terms) {
  Document text;
  const std::vector<PrintedTerm> shown = printed(terms);
  if (shown.empty()) return text;
  text.sentence(fmt::format("\nwhat the {} is made of", terms.steady ? "steady bubble" : "bubble"));
  Table table;
  table.has_no_header();
  const auto line = [&](const std::string& number, const std::string& of) {
    table.row({fmt::format("{:>13}", number)}, of);
  };
  line(percent(terms.base), terms.formula
                                ? "equal stages, free links: " + formula_text(p, *terms.formula)
                                : std::string("equal stages, free links, simulated"));
  for (const PrintedTerm& term : shown) {
    const std::string more = remark(p, terms, term.cause);
    line(fmt::format("{}{}", term.points > 0 ? "+" : "", points(term.points)),
         what(p, term.cause) + (more.empty() ? "" : ": " + more));
  }
  line(percent(terms.whole), "together");
  text.table(std::move(table));
  return text;
}

Document bubble_or_base(const Outcome& p, const BubbleTerms& terms) {
  if (p.metrics.makespan.count() == 0) return {};
  Document text = bubble_table(p, terms);
  if (!text.empty()) return text;
  text.sentence(fmt::format("  the {} of {} is that of equal stages on free links{}",
                            terms.steady ? "steady bubble" : "bubble fraction",
                            percent(terms.whole),
                            terms.formula ? ": " + formula_text(p, *terms.formula) : ""));
  return text;
}

std::string bubble_sentences(const Outcome& p, const BubbleTerms& terms, bool measured) {
  if (p.metrics.makespan.count() == 0) return "The run takes no time, so there is no bubble.";
  const std::string run = measured ? "the measured run" : "the simulation";
  std::string text;
  if (terms.steady) {
    text = fmt::format(
        "No closed form holds for an asynchronous schedule. In the steady state {}, and the "
        "warm-up "
        "and the drain are paid once. Equal stages on free links would have a steady bubble of {}",
        terms.slowest ? "the slowest stage or link sets the period, and the others wait for it"
                      : "all stages take the same",
        percent(terms.base));
  } else if (terms.formula) {
    text =
        fmt::format("By the formula for equal stages on free links, {}, the bubble fraction is {}",
                    formula_text(p, *terms.formula), percent(terms.base));
  } else {
    text = fmt::format(
        "No closed form is known for this order{}: equal stages on free links have a bubble "
        "fraction "
        "of {} in a simulation of their own",
        p.graph.flushes ? "" : " without a flush", percent(terms.base));
  }
  const std::int64_t difference = hundredths(terms.whole) - hundredths(terms.base);
  const std::vector<PrintedTerm> shown = printed(terms);
  if (shown.empty()) return text + fmt::format("; {} says the same.", run);
  text += difference == 0
              ? fmt::format("; {} has the same.", run)
              : fmt::format("; {} has {}, {} {}.", run, percent(terms.whole),
                            points(std::abs(difference)), difference > 0 ? "more" : "less");
  std::vector<std::string> parts;
  for (const PrintedTerm& term : shown) {
    const std::string more = remark(p, terms, term.cause);
    parts.push_back(fmt::format("{} {} {}{}", what(p, term.cause),
                                term.points > 0 ? "add" : "take off", points(std::abs(term.points)),
                                more.empty() ? "" : ": " + more));
  }
  std::string list = fmt::format("{}", fmt::join(parts, "; "));
  list.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(list.front())));
  text += ' ' + list + '.';
  if (p.formula && terms.formula && p.formula->text != terms.formula->text)
    text += fmt::format(
        " The stages and links as they are have a closed form, too: {}, which gives {}.",
        p.formula->text, percent(p.formula->bubble_fraction));
  return text;
}

}  // namespace plumbline
