// From a setup to a prediction: the tool's main path, a list of passes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/prediction/outcome.h"

namespace plumbline {

/// How a run is evaluated. Both give the same times to the tick.
enum class Evaluation {
  events,  ///< By the event engine, all of it.
  /// As a longest path where no rates change under way, else by the event engine; of copies that
  /// are alike the first one for all of them: its graph `copies_represented` them.
  fastest,
};

/// What a run of this setup comes to. Errors, without a mark: a run that does not fit into 64 bits.
Result<Outcome> predict(TrainingSetup setup, Evaluation evaluation = Evaluation::events);

}  // namespace plumbline
