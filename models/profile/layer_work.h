// What a layer works through, where its times are not known: FLOPs and bytes moved.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/units.h"

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

}  // namespace plumbline
