// What an import of kernels makes: a table, and a count of what it left out.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "models/kernels/kernel_table.h"

namespace plumbline {

/// A table in the making. Of several rows with one key the fastest stays.
class ImportedKernels {
 public:
  /// Adds a row of `seconds`, rounded to the nanosecond, at least one.
  void add(const KernelKey& key, double seconds, std::string how, std::string layout = "",
           double spread = 0);
  void leave_out(const std::string& reason) { ++left_out_[reason]; }

  /// The row with this key, or nullptr.
  const KernelRow* find(const KernelKey& key) const;

  /// The rows by key, in ascending order.
  KernelTable take();

  /// How many rows were left out, by reason.
  const std::map<std::string, std::int64_t>& left_out() const { return left_out_; }

  std::map<std::string, std::string> provenance;

 private:
  std::map<KernelKey, KernelRow> rows_;
  std::map<std::string, std::int64_t> left_out_;
};

/// Adds the rows of a file to `imported`. Errors: those of the file; lines that are not as the
/// format has them, with their place and what is wanted.
/// - csv: kind, dtype, pass, a to f, us, and further columns (docs/kernel-tables.md).
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
