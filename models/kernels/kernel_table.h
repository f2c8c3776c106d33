// A table of measured kernel times: its rows, and where they come from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "models/kernels/kernel.h"

namespace plumbline {

/// The classes of kernels, each a section of a table.
enum class KernelClass : std::uint8_t { gemm, grouped, batched, sdpa, memory, collectives };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 6> kKernelClasses = {
    "gemm", "grouped", "batched", "sdpa", "memory", "collectives"};

constexpr std::string_view name_of(KernelClass kernels) {
  return kKernelClasses[static_cast<std::size_t>(kernels)];
}

constexpr bool is_product(KernelClass kernels) {
  return kernels == KernelClass::gemm || kernels == KernelClass::grouped ||
         kernels == KernelClass::batched;
}

/// The sum that a product's result is added to: none, or gradients that are kept.
enum class Accumulation : std::uint8_t { none, bf16, fp32 };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> kAccumulations = {"none", "bf16", "fp32"};

/// The common properties of kernels between whose times one may interpolate.
struct KernelGroup {
  KernelClass kernels = KernelClass::gemm;
  /// Of memory-bound kernels bf16 or fp32: 2 or 4 bytes a number. bf16 for collectives.
  NumberFormat format = NumberFormat::bf16;
  KernelPass pass = KernelPass::forward;  ///< input: the backward of attention and of memory.
  Accumulation accumulation = Accumulation::none;          ///< Products alone have it.
  MemoryKind memory = MemoryKind::norm;                    ///< Memory alone has it.
  CollectiveKind collective = CollectiveKind::all_reduce;  ///< Collectives alone have it.
  std::int64_t query_size = 0, value_size = 0;             ///< The sizes of attention's heads.
  bool is_causal = true;
  std::int64_t devices = 0;    ///< The members of a collective.
  bool is_on_network = false;  ///< A collective may go between servers.

  friend auto operator<=>(const KernelGroup&, const KernelGroup&) = default;
};

/// The most sizes that a kernel has beside its group.
inline constexpr std::size_t kMostSizes = 5;

/// The key of a time: the group, and the sizes in the order of the table's columns. gemm: m, n, k;
/// grouped and batched: how many, m, n, k; sdpa: batch, queries, keys, heads, kv_heads; memory:
/// rows, columns; collectives: bytes, of the whole tensor or (all_to_all) of what a device sends.
/// Sizes that a class does not have are 1.
struct KernelKey {
  KernelGroup group;
  std::array<std::int64_t, kMostSizes> sizes{1, 1, 1, 1, 1};

  friend bool operator==(const KernelKey&, const KernelKey&) = default;
  friend bool operator<(const KernelKey& a, const KernelKey& b) {
    return std::tie(a.group, a.sizes) < std::tie(b.group, b.sizes);
  }
};

/// How many sizes the kernels of a class have.
std::size_t size_count(KernelClass kernels);

/// The key of a kernel that adds its result to `accumulation`; nothing for those that no table
/// holds: memory-bound ones over numbers that have neither 2 bytes nor 4.
std::optional<KernelKey> key_of(const Kernel& kernel, Accumulation accumulation);

/// The format by which rows of memory-bound kernels are told apart: bf16 for numbers of 2 bytes,
/// fp32 for those of 4; nothing for others.
std::optional<NumberFormat> memory_format(NumberFormat format);

/// Why no kernel of a layer ever has this key, or "" where one may: a row with it changes nothing.
std::string_view why_never_launched(const KernelKey& key);

/// The kernel with other sizes: bytes and launches as if they grew with them.
/// Requires: `key` is of the kernel's group.
Kernel resized(const Kernel& kernel, const KernelKey& key);

/// A measured time.
struct KernelRow {
  KernelKey key;
  Duration time{};     ///< Above 0.
  double spread = 0;   ///< Its spread over the repetitions, as a share; 0 = not said.
  std::string how;     ///< The library that was timed; "" = not said.
  std::string layout;  ///< How a product's operands lie: TN; "" = not said.

  friend bool operator==(const KernelRow&, const KernelRow&) = default;
};

/// How much longer kernels take in a training step than alone, by class; absent = not known.
struct KernelClosure {
  std::optional<double> gemm, sdpa, memory;
  std::vector<std::string> from;  ///< The texts that say what they were derived from.

  /// The factor of a class; collectives have none.
  std::optional<double> of(KernelClass kernels) const;
};

/// The times of launches.
struct LaunchTimes {
  std::optional<Duration> gap;          ///< The device's, between two kernels in a queue.
  std::optional<Duration> per_op;       ///< The host's, from one launch to the next.
  std::optional<Duration> host_per_op;  ///< A framework's, on top of the host's.

  /// The least time from one launch to the next, in seconds.
  double seconds() const;
};

/// The measured times of one device and one software stack. Invariant: no two rows have one key.
struct KernelTable {
  std::string device;
  std::map<std::string, std::string> provenance;
  std::map<std::string, std::string> clock;  ///< provenance.clock: burst, sustained, rated.
  KernelClosure closure;
  std::optional<LaunchTimes> launch;
  std::vector<KernelRow> rows;
};

}  // namespace plumbline
