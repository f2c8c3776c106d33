// An order with its communication, as PyTorch's pipeline runtime executes it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "schedules/order/schedule.h"

namespace plumbline {

/// PyTorch's `compute_comms` CSV: one row per device, with SEND_F, RECV_F, SEND_B and RECV_B beside
/// the ops, UNSHARD before the first op of each stage and REDUCE_GRAD behind its last one. A SEND
/// stands behind its op, and its RECV where the receiver's row is at that moment of the issue
/// order, as torch.distributed.pipelining lowers an order. Rows reach each pair in one total order,
/// so they do not hang. Requires: stages without replicas.
std::string lowered_csv(const Schedule& schedule);

}  // namespace plumbline
