// NCCL on the fake driver: ranks meet on its streams.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "calibrate/cuda/libraries/nccl.h"

namespace plumbline {

/// Works on the FakeCuda that there is. What a group enqueues begins when all its streams are
/// ready, and ends on all at once: a transfer after what a copy of so many bytes takes, an
/// all-reduce after that of 2 (r - 1) copies of an rth of them, as in a ring. Sums are those of
/// fp32 or bf16, in the order of the ranks.
///
/// Answered as an error, and told by the driver's faults(): a GPU twice in a communicator, a call
/// outside of a group, a stream of another GPU, a group in which a call has no partner, ranks that
/// want other sizes. After each group no context is current. Failures are planted with
/// FakeCuda::fail under the library's names ("ncclSend").
const Nccl& fake_nccl();

/// Ranks that are not destroyed.
std::size_t live_nccl_ranks();

}  // namespace plumbline
