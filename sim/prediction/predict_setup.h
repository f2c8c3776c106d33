// From a setup to a prediction: the tool's main path, a list of passes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/prediction/outcome.h"

namespace plumbline {

/// How a run is evaluated. Both give the same times to the tick.
enum class Evaluation {
  events,  ///< The whole graph, by the event engine.
  /// As a longest path if no rates change during the run, else by the event engine. If copies are
  /// alike, only the first one is evaluated; OpGraph::copies_represented counts them.
  fastest,
};

/// The outcome of a run of this setup. Errors, without a mark: a run that does not fit into 64
/// bits.
Result<Outcome> predict(TrainingSetup setup, Evaluation evaluation = Evaluation::events);

}  // namespace plumbline
