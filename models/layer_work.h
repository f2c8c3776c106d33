// What a layer works through, where its times are not known: FLOPs and bytes moved.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "models/section_reader.h"
#include "models/units.h"

namespace plumbline {

/// What one pass over a layer works through, for one micro-batch. It knows no device and no time:
/// see roofline.h.
struct PassWork {
  Flops flops;
  Flops fp8_flops;        ///< Of these, what is multiplied in fp8.
  Bytes memory_traffic;   ///< Read from and written to the device's memory.
  Bytes link_traffic;     ///< Sent to other devices of the group, within a server,
  Bytes network_traffic;  ///< and to those in other servers.

  friend bool operator==(const PassWork&, const PassWork&) = default;
};

/// The three passes over one layer.
struct LayerWork {
  PassWork forward;
  PassWork backward_input;
  PassWork backward_weight;

  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

/// Reads flops, fp8_flops, memory_traffic, link_traffic and network_traffic of a layer: each a
/// quantity, which is then that of every pass, or a map of forward, backward_input and
/// backward_weight (absent = 0). Nothing where neither flops nor memory_traffic stands there.
/// Errors: traffic between devices alone, more fp8_flops than flops.
std::optional<LayerWork> read_layer_work(SectionReader& section, Diagnostics& problems);

/// Adds that fp8_flops are more than flops.
void refuse_fp8_flops(SectionReader& section);

}  // namespace plumbline
