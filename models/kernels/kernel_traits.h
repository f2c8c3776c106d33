// The numbers that decide how long kernels take on a device: a few for each class, with where
// they come from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace plumbline {

/// Matrix products in one number format on one device.
struct ProductTraits {
  double ceiling = 0;  ///< The share of the peak that very large products reach, in bursts.
  double depth = 0;    ///< As if k were so much larger: what a tile costs besides.
  double tail = 0;     ///< The share of a last wave's missing tiles that costs time all the same.
  double memory_share = 0;  ///< The share of the memory's bandwidth, where products wait for it.
  double small = 1;  ///< How much longer a FLOP takes in tiles of 128 x 128 than in larger ones.
  /// The mean error on measured products that these numbers were not fitted to; 0 = no such
  /// products are known.
  double held_out_error = 0;
};

/// One direction of attention in one kernel: shares of the peak by head size, and how fast they
/// are reached.
struct AttentionTraits {
  struct AtSize {
    double size = 0;   ///< Numbers of a head of queries and keys.
    double share = 0;  ///< Of the peak, for long sequences and many heads.
    double keys = 0;   ///< The number of keys at which half as much again is needed.
  };
  /// Ascending; between two of them as on a line, outside as at the nearest. Empty entries: size 0.
  std::array<AtSize, 4> at{};
  double fill = 0;  ///< How much longer, for each block of queries that a multiprocessor lacks.
};

/// Attention both ways.
struct AttentionRates {
  AttentionTraits forward, backward;
};

/// Which kernels of attention a software stack brings.
enum class AttentionKind : std::uint8_t { flash_1, flash_2, newest };

/// Collectives between the devices of one server: l0 + l1 x steps + V / (link x share) + c sqrt(V),
/// in seconds, with V the bytes that each device sends.
struct CollectiveTraits {
  double start_s = 0;     ///< l0.
  double step_s = 0;      ///< l1.
  double root = 0;        ///< c, in s / sqrt(B).
  double all_reduce = 1;  ///< Shares of the link's bandwidth.
  double all_gather = 1;
  double reduce_scatter = 1;
  double all_to_all = 1;
};

/// The kernels of one device.
struct KernelTraits {
  std::string_view device;  ///< The name of its preset; "" = numbers alone are known.
  std::int64_t multiprocessors = 0;
  ProductTraits bf16;
  std::optional<ProductTraits> fp8;
  double weights_factor = 1;  ///< How much longer a product for the weights takes.
  double launch_s = 0;        ///< A product, or attention.
  double sustained = 1;       ///< The clock in training, of that in bursts: products alone feel it.
  AttentionRates newest;
  double clock_hz = 0;       ///< In bursts: scales attention kernels that were written for an A100.
  double memory_share = 0;   ///< Of the bandwidth, by norms, activations, residuals.
  double permute_share = 0;  ///< By tokens put in order.
  double update_share = 0;   ///< By an optimizer's step.
  double memory_start_s = 0;
  CollectiveTraits collectives;
  double network_share = 0;      ///< Of a network card's bandwidth.
  double network_step_s = 0;     ///< A step between servers.
  double ring_step_s = 4e-6;     ///< A step of a ring over all copies of a model.
  std::string_view source;       ///< Where the numbers come from.
  std::string_view caveat = "";  ///< What is told of a device whose own kernels were not measured.
};

/// The kernels of attention that a stack brings: the newest are the device's own; FlashAttention 1
/// and 2 were written for an A100, of whose peak they reach 37 and 63 % (backward 31 and 58), and
/// get as many FLOPs done in each clock of a multiprocessor elsewhere (Dao 2023,
/// "FlashAttention-2", figures 4 to 6; on an H100 pull request 1791 of Dao-AILab/flash-attention),
/// but no larger share of the peak than on an A100. `peak`: FLOP/s of the device's products.
AttentionRates attention_rates(const KernelTraits& traits, AttentionKind kind, double peak);

/// The traits of the device with this preset's name. Requires: it is the name of a preset.
const KernelTraits& kernel_traits(std::string_view preset);

/// The traits of a device of which only numbers are known: what is usual, with the multiprocessors
/// and the clock of the generation whose peak is the nearest by ratio. `peak`: FLOP/s of products.
const KernelTraits& usual_kernel_traits(double peak);

}  // namespace plumbline
