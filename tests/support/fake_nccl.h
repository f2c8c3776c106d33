// NCCL on the fake driver: ranks meet on its streams.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "calibrate/cuda/libraries/nccl.h"

namespace plumbline {

/// NCCL for the one FakeCuda. The work of a group begins when all its streams are ready, and ends
/// on all of them at once. A transfer takes the time of a copy of its bytes. An all-reduce takes
/// that of 2 (r - 1) copies of 1/r of its bytes, as in a ring. Sums are fp32 or bf16, in the order
/// of the ranks.
///
/// These return errors, and the driver's faults() reports them: a GPU twice in a communicator, a
/// call outside of a group, a stream of another GPU, a call without a partner in its group, ranks
/// with different sizes. After each group no context is current. Failures are planted with
/// FakeCuda::fail under the library's names ("ncclSend").
const Nccl& fake_nccl();

/// The number of ranks that are not destroyed.
std::size_t live_nccl_ranks();

}  // namespace plumbline
