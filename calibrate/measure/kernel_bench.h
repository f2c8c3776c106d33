// Timing single kernels on one device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "models/kernels/kernel_table.h"
#include "models/network/network.h"

namespace plumbline {

/// The form of the kernels that keys leave open: that of one model.
struct KernelForms {
  NormKind norm = NormKind::rms_norm;
  std::optional<Activation> activation = Activation::silu;  ///< Nothing = one without a kernel.
  bool gated = true;
  std::int64_t head_size = 128;
  std::int64_t tokens = 1024;  ///< Of a sample.
  /// Norms of rows that are not this wide are those of each head in them; 0 = no head has a norm.
  std::int64_t hidden_beside_head_norms = 0;

  /// Whether norms of such rows are those of heads.
  bool norms_heads(std::int64_t columns) const {
    return hidden_beside_head_norms > 0 && columns != hidden_beside_head_norms &&
           columns % head_size == 0;
  }
};

/// A kernel with operands of its own.
class BenchedKernel {
 public:
  virtual ~BenchedKernel() = default;

  /// Runs it so many times in a row and returns the mean time of one, in ns. Runs take many copies
  /// of the operands in turn, so that caches hold few of them. Nothing where other work took
  /// the device away meanwhile. Requires: times >= 1. Errors: an exception of the device.
  virtual std::optional<double> nanoseconds(std::int64_t times) = 0;
};

/// The kernels of one device.
class KernelBench {
 public:
  virtual ~KernelBench() = default;

  /// The kernel of this key, with its operands in memory; nullptr where the device has none, or
  /// where this bench makes none of this class. Errors: an exception of the device, as where its
  /// memory does not hold the operands.
  virtual std::unique_ptr<BenchedKernel> prepare(const KernelKey& key) = 0;
  /// The library that computes it: "oneDNN 2.6.3".
  virtual std::string library(const KernelKey& key) const = 0;
};

}  // namespace plumbline
