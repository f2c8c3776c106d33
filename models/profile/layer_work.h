// The work of a layer whose times are not known: FLOPs and bytes moved.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/units.h"

namespace plumbline {

/// The work of one pass over a layer, for one micro-batch. It knows no device and no time: see
/// roofline.h.
struct PassWork {
  Flops flops;
  Flops fp8_flops;        ///< The part of `flops` for products in fp8.
  Bytes memory_traffic;   ///< Read from and written to the device's memory.
  Bytes link_traffic;     ///< Sent to other devices of the group in its server.
  Bytes network_traffic;  ///< Sent to devices of the group in other servers.

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
