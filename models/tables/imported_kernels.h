// An import of kernels in the making: a table, and a count of what it left out.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/kernels/kernel_table.h"

namespace plumbline {

/// A time as a file has it.
struct TimedKernel {
  KernelKey key;
  double seconds = 0;
  std::string how{}, layout{};
  double spread = 0;
};

/// A table in the making. Of several rows with one key the fastest stays; rows that no kernel of a
/// layer has are left out.
class ImportedKernels {
 public:
  /// Adds a row, its time rounded to the nanosecond. Returns what is wrong with it, without a
  /// place: a time, a size or a spread that no table holds.
  [[nodiscard]] Diagnostics add(const TimedKernel& kernel);
  /// Adds a row whose key is a forward's, and whose time is that of the forward and its backward,
  /// both by the library `how`.
  [[nodiscard]] Diagnostics add_with_backward(const TimedKernel& kernel);
  void leave_out(const std::string& reason) { ++left_out_[reason]; }
  /// Adds to the table's provenance what a file says under `key`. Of several values the table names
  /// the smallest and the largest: numbers by their value and before words. "" says nothing.
  void add_provenance(const std::string& key, const std::string& value);

  /// Makes backwards of the times of forwards with their backwards: what is left beside the forward
  /// alone of the same library, from whatever file.
  void subtract_forwards();

  /// The row with this key, or nullptr.
  const KernelRow* find(const KernelKey& key) const;

  /// Subtracts the forwards. Returns the rows by key, in ascending order.
  KernelTable take();

  /// How many rows were left out, by reason.
  const std::map<std::string, std::int64_t>& left_out() const { return left_out_; }

 private:
  /// The smallest and the largest of several values.
  struct Range {
    std::string least, most;
  };

  void keep(const TimedKernel& kernel);
  void subtract_forward(TimedKernel both);

  std::map<std::string, Range> provenance_;
  std::map<KernelKey, KernelRow> rows_;
  /// The fastest forwards of each library.
  std::map<KernelKey, std::map<std::string, Duration>> forwards_;
  std::vector<TimedKernel> with_backward_;
  std::map<std::string, std::int64_t> left_out_;
};

/// Adds the rows of a file to `imported`. Errors: those of the file; lines that are not as the
/// format has them, with their place and what is wanted.
/// - csv: kind, dtype, pass, a to f, us, and further columns (docs/how-to/kernel-tables.md).
std::optional<Diagnostics> import_csv_kernels(const std::string& path, ImportedKernels& imported);
/// - aiconfigurator: its tables of products, attention and NCCL (github.com/ai-dynamo/
///   aiconfigurator, systems/data), plain or gzip; times in ms, of forwards alone.
std::optional<Diagnostics> import_aiconfigurator_kernels(const std::string& path,
                                                         ImportedKernels& imported);
/// - simumax: a system file of github.com/MooreThreads/SimuMax (configs/system): efficiencies,
///   which become times with the peak beside them.
std::optional<Diagnostics> import_simumax_kernels(const std::string& path,
                                                  ImportedKernels& imported);

}  // namespace plumbline
