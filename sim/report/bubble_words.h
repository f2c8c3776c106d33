// What a bubble is made of, in words.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// "stage 3 takes 3.6 % more than the mean (it holds head)".
std::string to_text(const SlowestStage& slowest);

/// The terms of the bubble as a table that adds up as it is printed, with a heading; "" where there
/// are none that show.
std::string bubble_table(const Outcome& outcome, const BubbleTerms& terms);

/// That table, or, where there is none, a line that says whose bubble this is; "" for a run that
/// takes no time.
std::string bubble_or_base(const Outcome& outcome, const BubbleTerms& terms);

/// The bubble of equal stages on free links beside that of the run, and what the difference is made
/// of, in sentences; the closed form for the run as it is, where there is one. `measured` = the run
/// is no simulation.
std::string bubble_sentences(const Outcome& outcome, const BubbleTerms& terms, bool measured);

}  // namespace plumbline
