// Whether the communication that a schedule file spells out fits its ops.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/files/torch_csv.h"

namespace plumbline {

/// The errors of the SEND, RECV, UNSHARD, RESHARD and REDUCE_GRAD cells; empty = none. The rules:
///  - Each cell names a stage of its own row.
///  - SEND and RECV come in pairs, once each, never between stages of one row. A SEND is behind the
///    op that makes its data, a RECV before the op that needs it.
///  - Where there are any, every edge between two rows has its pair.
///  - REDUCE_GRAD occurs once per replica of a stage, or nowhere, behind its last B and W.
/// It does not know whether the ops themselves are complete. Requires: `rows` holds the rows of
/// every stage that ops name.
Diagnostics communication_faults(const TorchCells& cells, const StageRows& rows);

}  // namespace plumbline
