// The ops of a trace without named ranges, guessed from what its kernels were launched by.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/recording/rank_events.h"

namespace plumbline {

/// Ranges of forwards and backwards, without stages and micro-batches. Work that autograd launched
/// (or, on a CPU, did) is a backward's, other work outside of the optimizer is a forward's. One op
/// ends where the other kind begins, and where a send or a receive was issued in between. Pieces of
/// less than a tenth of the longest of their kind are no ops: loss scaling, clipping, copies.
std::vector<TitledRange> guessed_ops(const RankEvents& events);

}  // namespace plumbline
