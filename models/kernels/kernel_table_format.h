// The table of a kernels file: its sections, and the columns of their rows.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_format.h"
#include "models/kernels/kernel_table.h"

namespace plumbline {

/// The contents of a column.
enum class RowColumn : std::uint8_t {
  dtype,
  pass,
  size,  ///< The next of KernelKey::sizes.
  layout,
  accumulate,
  query_size,
  value_size,
  causal,
  memory_kind,
  collective_kind,
  devices,
  scope,
  bytes,  ///< The only size of a collective.
  time,
  spread,
  how,
};

struct NamedColumn {
  RowColumn what;
  std::string_view name;
};

/// A class of kernels as a section of the file. All columns after `time` may be left out.
struct RowFormat {
  KernelClass kernels;
  std::span<const NamedColumn> columns;

  /// How many columns no row may leave out.
  std::size_t least_columns() const;
  /// "dtype, pass, m, n, k, ...".
  std::string column_names() const;
};

const RowFormat& row_format(KernelClass kernels);

/// The words for a pass over kernels of a class; those for which a class has no kernels are left
/// out. "backward" is KernelPass::input.
std::vector<std::string> pass_words(KernelClass kernels);
std::string_view pass_word(KernelClass kernels, KernelPass pass);

/// The largest size of a kernel; of a collective's bytes it is kLargestQuantity.
inline constexpr std::int64_t kLargestSize = 1'000'000'000'000;

inline constexpr double kLargestSpread = 1000;

/// A layout that is not said.
inline constexpr std::string_view kAnyLayout = "any";

inline constexpr std::string_view kInServer = "server";
inline constexpr std::string_view kOnNetwork = "network";

/// The format of the whole file, and of its sections.
const SectionFormat& kernels_format();
const SectionFormat& kernels_provenance_format();
const SectionFormat& clock_format();
const SectionFormat& closure_format();
const SectionFormat& launch_format();

}  // namespace plumbline
