// Times from ops: the kernels that a layer launches, on a device with a software stack.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "models/kernels/kernel_model.h"
#include "models/ops/layer_op.h"
#include "models/profile/pass_parts.h"

namespace plumbline {

/// Weights that copies of a model share, so that each micro-batch gathers them.
struct SharedWeights {
  std::int64_t copies = 1;  ///< 1 = nothing is shared.
  std::int64_t near = 1;    ///< Copies in one server.
  /// How often a forward gathers them, and how often a backward gathers them or scatters their
  /// gradients.
  int forward = 0;
  int backward = 0;
  double link = 0;     ///< Bytes/s between copies in a server; 0 = that of the device.
  double network = 0;  ///< Bytes/s of all cards of a server together; 0 = those of the devices.
};

/// Everything beside a layer's ops that decides the times of its kernels.
struct KernelSetting {
  KernelModel model;
  std::string file;  ///< The table of measured kernels; "" = none.
  KernelOverlap overlap;
  SharedWeights weights;
  std::int64_t devices = 1;  ///< All of the run: more of them wait longer for the slowest.
  /// Each block is recomputed by itself: its last product need not run again. (A stage that is
  /// recomputed as a whole needs the outputs of all its blocks but the last.)
  bool recomputes_blocks = false;
};

/// The parts of a layer's passes, and of which times they consist.
struct KernelParts : LayerParts {
  KernelSums kernels;  ///< Of its three passes.
};

/// The parts of a layer's passes. A share of the gathering of shared weights and of the scattering
/// of their gradients shows beside the computing of each pass (SoftwareStack::exposed_weights). A
/// forward that is recomputed gathers nothing: it uses what its backward gathers.
KernelParts kernel_parts(const LayerOps& ops, Bytes parameters, const KernelSetting& setting);

/// The factor by which passes take longer on `devices` than on 8, the usual server.
double wait_for_slowest(const SoftwareStack& stack, std::int64_t devices);

}  // namespace plumbline
