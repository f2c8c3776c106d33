// The blocks of a network walked in place, beside their kernels alone.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/measure/calibration.h"
#include "models/import/transformer_options.h"
#include "models/import/transformer_shape.h"
#include "models/kernels/kernel_model.h"
#include "models/network/network.h"

namespace plumbline {

/// A layer's forward and backward, in seconds.
struct WalkedLayer {
  std::string name;
  double walked_s = 0;  ///< Measured in place.
  double alone_s = 0;   ///< The sum of its kernels, each timed alone.
};

/// The blocks of the network, and its head.
struct WalkedBlocks {
  std::vector<WalkedLayer> blocks;  ///< Attention and MLP of each are layers of their own.
  WalkedLayer head;

  double walked_s() const;  ///< Of the blocks; the next, too.
  double alone_s() const;
  /// How much longer kernels take in blocks than alone: the ratio of the sums. The head of a model
  /// of many blocks weighs little, and that of a few as much as they do; so it is not in it.
  double factor() const { return walked_s() / alone_s(); }
};

/// The seconds of each layer of the network but its embedding, from the kernels of the model that
/// it was made of; without collectives. Attention and MLP of a block are layers of their own, as in
/// the network. Errors: kernels that no table holds, or that this one has not, with their number;
/// options that do not suit the shape.
Result<std::vector<double>> seconds_alone(const TransformerShape& shape, TransformerOptions options,
                                          const KernelModel& kernels);

/// Walks the network for about so many seconds, and compares. `network` is that of `shape`. Errors:
/// those of seconds_alone() and of a calibration; nothing measured because it was interrupted.
Result<WalkedBlocks> walk_blocks(CalibrationDevices& devices, const Network& network,
                                 const TransformerShape& shape, const TransformerOptions& options,
                                 const KernelModel& kernels, double seconds,
                                 const std::function<bool()>& interrupted);

}  // namespace plumbline
