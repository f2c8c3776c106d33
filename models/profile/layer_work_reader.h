// The keys of a layer's FLOPs and bytes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/section_reader.h"
#include "models/profile/layer_work.h"

namespace plumbline {

/// Reads flops, fp8_flops, memory_traffic, link_traffic and network_traffic of a layer. Each is a
/// quantity, which then holds for every pass, or a map of forward, backward_input and
/// backward_weight (absent = 0). Nothing where neither flops nor memory_traffic is there. Errors:
/// traffic between devices without either, more fp8_flops than flops.
std::optional<LayerWork> read_layer_work(SectionReader& section, Diagnostics& problems);

/// Adds the error that fp8_flops are more than flops.
void report_fp8_flops(SectionReader& section);

}  // namespace plumbline
