// The terms of a bubble, in words.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/document.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// "stage 3 takes 3.6 % more than the mean (it holds head)".
std::string to_text(const SlowestStage& slowest);

/// The terms of the bubble as a table with a heading; the printed numbers add up. Empty if no term
/// is large enough to print.
Document bubble_table(const Outcome& outcome, const BubbleTerms& terms);

/// That table. If there is none, a line that names the bubble as that of equal stages; empty for a
/// run that takes no time.
Document bubble_or_base(const Outcome& outcome, const BubbleTerms& terms);

/// Sentences that compare the bubble of equal stages on free links with the bubble of the run, and
/// explain the difference. They give the closed form for the run itself, if there is one.
/// `measured`: the run is no simulation.
std::string bubble_sentences(const Outcome& outcome, const BubbleTerms& terms, bool measured);

}  // namespace plumbline
