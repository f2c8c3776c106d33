// The time of a kernel on a device with a software stack.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/kernels/kernel.h"
#include "models/kernels/kernel_traits.h"
#include "models/kernels/measured_kernels.h"
#include "models/kernels/software_stack.h"

namespace plumbline {

/// A device as its kernels see it.
struct KernelDevice {
  KernelTraits traits;
  double peak = 0;              ///< FLOP/s of products in the model's format.
  double fp8_peak = 0;          ///< FLOP/s of products in fp8; 0 = none.
  double memory_bandwidth = 0;  ///< Bytes/s.
  double link = 0;              ///< Bytes/s to a neighbour in the server, one way; 0 = none.
  double network = 0;           ///< Bytes/s of its own network card, one way; 0 = none.
};

/// The overlap of collectives with the computing of the same pass.
struct KernelOverlap {
  /// The run overlaps communication where its stack can.
  bool on = false;
  bool has_chunks = false;  ///< Devices have several stages, between which tokens can travel.
  /// The hidden shares of collectives in a server and between servers, in the stack's place.
  std::optional<double> link = std::nullopt, network = std::nullopt;
};

/// How the time of a kernel came about.
enum class KernelOrigin : std::uint8_t { measured, interpolated, modelled };

struct KernelTime {
  double seconds = 0;  ///< Within a training step.
  KernelOrigin origin = KernelOrigin::modelled;
  double closure = 1;  ///< How much longer that is than the time of the kernel alone.

  /// The time of the kernel alone, as a measurement would find it.
  double alone() const { return seconds / closure; }
};

/// Times of kernels, in seconds, by how they came about.
struct KernelSums {
  double measured_s = 0, interpolated_s = 0, modelled_s = 0;

  double sum() const { return measured_s + interpolated_s + modelled_s; }
  void add(const KernelTime& time);
  KernelSums& operator+=(const KernelSums& other);
};

/// A pass over a layer, in seconds.
struct PassTime {
  double computing_s = 0;
  double sent_s = 0;    ///< In collectives.
  double hidden_s = 0;  ///< The part of that which computing hides.
  KernelSums kernels;   ///< All of them, hidden ones too, without what the host adds.
};

/// Devices that hold the same layers.
struct KernelRing {
  std::int64_t devices = 1;
  std::int64_t near = 1;  ///< Those in one server.
  double link = 0;        ///< Bytes/s between two in a server; 0 = that of the device.
  double network = 0;  ///< Bytes/s of all cards of a server together; 0 = those of `near` devices.
};

/// The times of a device's kernels: measured, interpolated, or modelled from their sizes.
class KernelModel {
 public:
  /// Without `measured`, all times are modelled. Launches that it measured replace those of the
  /// stack.
  KernelModel(const KernelDevice& device, const SoftwareStack& stack,
              std::shared_ptr<const MeasuredKernels> measured = nullptr);

  /// The time of one kernel: measured, if the table has its key. Else, within the hull of what was
  /// measured, its modelled time x the mean ratio of measured to modelled times of the nearest
  /// (MeasuredKernels::find). Both are multiplied by closure(). Else the modelled time.
  KernelTime time_of(const Kernel& kernel) const;
  double seconds(const Kernel& kernel) const { return time_of(kernel).seconds; }

  /// How much longer measured kernels of a class take in a training step: as the table says, else
  /// as the stack does of products, else 1.
  double closure(KernelClass kernels) const;

  /// The modelled time of one kernel, in seconds.
  /// - A product takes the best of three tiles: waves x tile x (k + depth) at the sustained peak,
  ///   or the time to move its matrices, whichever is longer.
  /// - Attention takes 2 products forward and 5 backward over the pairs that are not masked, at a
  ///   share of the peak that grows with its length and with its blocks.
  /// - A kernel that moves takes its bytes at a share of the bandwidth, and a start a launch.
  /// - A collective takes a start, a time for each step, and its bytes.
  double modelled_seconds(const Kernel& kernel) const;

  /// The time of a pass that launches `kernels`. The host needs a time for each launch; a pass
  /// takes at least that.
  PassTime seconds(const std::vector<Kernel>& kernels, const KernelOverlap& overlap) const;

  /// The time in which the devices of a ring gather `bytes` that they share, or scatter as many, in
  /// seconds: a start, a step for each other device, and the bytes that each device sends.
  double ring_seconds(double bytes, const KernelRing& ring) const;

  const KernelDevice& device() const { return device_; }
  const SoftwareStack& stack() const { return stack_; }
  /// The measured times; null = none.
  const MeasuredKernels* measured() const { return measured_.get(); }

 private:
  double of(const ProductKernel& kernel) const;
  double of(const AttentionKernel& kernel) const;
  double of(const MemoryKernel& kernel) const;
  double of(const CollectiveKernel& kernel) const;
  double all_to_all(const CollectiveKernel& kernel) const;
  double hidden_share(const CollectiveKernel& kernel, const KernelOverlap& overlap) const;
  /// A time from the table, if it has any for the kernel.
  std::optional<KernelTime> measured_time(const Kernel& kernel) const;
  /// A time from the table for attention of which each device has some queries: as many heads fewer
  /// over all queries are as much work.
  std::optional<KernelTime> by_fewer_heads(const AttentionKernel& kernel) const;
  /// A time from the table of a kernel whose result is added to `accumulation`.
  std::optional<KernelTime> measured_time(const Kernel& kernel, Accumulation accumulation) const;

  KernelDevice device_;
  SoftwareStack stack_;
  AttentionRates attention_;
  std::shared_ptr<const MeasuredKernels> measured_;
};

}  // namespace plumbline
