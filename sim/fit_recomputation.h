// As few layers run again as the memory needs. SPDX-License-Identifier: MIT
#pragma once

#include "sim/scenario.h"

namespace plumbline {

/// The scenario as it is, or, where schedule.recompute_layers is `fit`, with a number for each
/// stage and a note of them: the fewest with which its devices fit, by simulated peaks. Stages of
/// one device take about equal shares of their layers; where a device does not fit with all of
/// them, all devices take all. The numbers are found by halving on all devices at once: where how
/// long one holds its buffers depends on how long another computes, one fewer may do as well.
/// AdaPipe (Sun et al. 2024) chooses stage by stage for the same reason: under 1F1B a stage in
/// front holds more micro-batches than one behind. Requires: a plan that is settled. Errors: no
/// memory is given; those of predict().
Result<Scenario> fit_recomputation(Scenario scenario);

}  // namespace plumbline
