// The bubble of the textbook beside the simulated one, and which term makes the difference.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/generators/bubble_formulas.h"

namespace plumbline {

/// One mini-batch of a pipeline with one stage a device and transfers that overlap with compute.
struct BubbleQuestion {
  std::vector<Duration> forward;  ///< Of each stage.
  std::vector<Duration> backward;
  Duration latency{};  ///< Of each link.
  std::uint32_t micro_batches = 1;
};

/// What one schedule makes of it.
struct BubbleAnswer {
  std::string schedule;
  Duration makespan{};  ///< Simulated.
  double bubble_fraction = 0;
  double bubble_overhead = 0;
  std::optional<ClosedForm> formula;  ///< Where one holds for these times.
  /// The makespan in three terms, simulated one after the other: every stage with the mean times
  /// and free links; what the differences between stages add; what latency adds to that.
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

/// Of several questions a row each: the formulas, and the simulated bubble fraction of each
/// schedule. Requires: at least one, with the answers of the same schedules.
std::string to_text(const std::vector<AnsweredBubble>& rows);

/// The formulas with the numbers put in, the table, and the difference in words.
std::string to_text(const BubbleQuestion& question, const std::vector<BubbleAnswer>& answers);

}  // namespace plumbline
