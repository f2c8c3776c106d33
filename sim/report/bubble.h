// The bubble of the textbook beside the simulated one, and the terms of the difference.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "schedules/generators/bubble_formulas.h"

namespace plumbline {

/// One mini-batch of a pipeline with one stage a device and transfers that overlap with compute.
struct BubbleQuestion {
  std::vector<Duration> forward;  ///< One per stage.
  std::vector<Duration> backward;
  Duration latency{};  ///< The latency of each link.
  std::uint32_t micro_batches = 1;
};

/// The result of one schedule.
struct BubbleAnswer {
  std::string schedule;
  Duration makespan{};  ///< The simulated makespan.
  double bubble_fraction = 0;
  double bubble_overhead = 0;
  std::optional<ClosedForm> formula;  ///< The formula, if one holds for these times.
  /// The makespan in three terms, simulated one after the other: all stages with the mean times and
  /// free links; the addition by differences between stages; the addition by latency.
  Duration equal_and_free{};
  Duration by_uneven_stages{};
  Duration by_latency{};
};

/// The answers of naive, gpipe, 1f1b and delayed-backward. Requires: as many backward as forward
/// times, at least one; micro_batches >= 1.
std::vector<BubbleAnswer> compare_bubbles(const BubbleQuestion& question);

/// A question with its answers.
struct AnsweredBubble {
  BubbleQuestion question;
  std::vector<BubbleAnswer> answers;
};

/// One row per question: the formulas, and the simulated bubble fraction of each schedule.
/// Requires: at least one question; answers of the same schedules.
Document to_table(const std::vector<AnsweredBubble>& rows);

/// The formulas with the numbers put in, the table, and the difference in words.
Document to_table(const BubbleQuestion& question, const std::vector<BubbleAnswer>& answers);

}  // namespace plumbline
