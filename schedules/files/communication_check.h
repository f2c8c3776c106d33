// Whether the communication that a schedule file spells out fits its ops.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/files/torch_csv.h"

namespace plumbline {

/// What is wrong with the SEND, RECV, UNSHARD, RESHARD and REDUCE_GRAD cells, none if there are
/// none: each names a stage of its own row; SEND and RECV stand in pairs, once each, never between
/// stages of one row, behind the op that makes the data and before the one that needs it; where
/// there is any, every edge between two rows has its pair; and REDUCE_GRAD stands once a replica of
/// a stage, or nowhere, behind its last B and W. It does not know whether the ops themselves are
/// complete. Requires: rows holds those of every stage that ops name.
Diagnostics communication_faults(const TorchCells& cells, const StageRows& rows);

}  // namespace plumbline
