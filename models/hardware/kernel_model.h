// How long an op takes on a device with a software stack.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/units.h"
#include "models/hardware/kernel_traits.h"
#include "models/hardware/software_stack.h"
#include "models/ops/op.h"

namespace plumbline {

/// A device as its kernels see it.
struct KernelDevice {
  KernelTraits traits;
  double peak = 0;              ///< FLOP/s of products in the model's format.
  double fp8_peak = 0;          ///< FLOP/s of products in fp8; 0 = none.
  double memory_bandwidth = 0;  ///< Bytes/s.
  double link = 0;              ///< Bytes/s to a neighbour in the server, one way; 0 = none.
  double network = 0;           ///< Bytes/s of its own network card, one way; 0 = none.
  std::int64_t per_server = 0;  ///< Devices of a server; 0 = all are in one.
};

/// A pass over a layer, in seconds.
struct PassTime {
  double computing_s = 0;
  double sent_s = 0;    ///< In collectives.
  double hidden_s = 0;  ///< Of that, what computing hides.

  double seconds() const { return computing_s + sent_s - hidden_s; }
};

/// The model of a device's kernels: what each op takes, from its sizes.
class KernelModel {
 public:
  KernelModel(const KernelDevice& device, const SoftwareStack& stack)
      : device_(device), stack_(stack) {}

  /// The time of one op, in seconds. A product takes the best of three tiles:
  /// waves x tile x (k + depth) at the sustained peak, or the time to move its matrices; attention
  /// 2 or 5 products over the pairs that are not masked, at a share that grows with its length and
  /// its blocks; all else its bytes at a share of the bandwidth, and a start for each kernel; a
  /// collective a start, a time for each step, and its bytes.
  double seconds(const Op& op) const;

  /// The time of a pass. `overlaps`: the layer's collectives may run beside computing;
  /// `has_chunks`: those of experts, too.
  PassTime seconds(const std::vector<Op>& ops, bool overlaps, bool has_chunks) const;

 private:
  double product(const ProductOp& op) const;
  double attention(const AttentionOp& op) const;
  double memory(const MemoryOp& op) const;
  double collective(const CollectiveOp& op) const;
  double to_experts(const CollectiveOp& op) const;
  double hidden_share(CollectiveUse use, bool overlaps, bool has_chunks) const;

  KernelDevice device_;
  SoftwareStack stack_;
};

}  // namespace plumbline
