// Times from a table: of a kernel that was measured, or of those nearest to it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/kernels/kernel_table.h"

namespace plumbline {

/// The times that a table has for a kernel: its own row; else rows near to it; else nothing.
struct KernelFinding {
  struct Neighbour {
    const KernelRow* row = nullptr;
    double weight = 0;  ///< All add up to 1.
  };
  const KernelRow* row = nullptr;
  std::vector<Neighbour> near;
};

/// A table that is asked for times. Several threads may use it at once.
class MeasuredKernels {
 public:
  explicit MeasuredKernels(KernelTable table);

  const KernelTable& table() const { return table_; }

  /// The row with this key. Else, where the key lies within the hull of its group's rows, the 8
  /// nearest of them, with weights that fall with the distance; sizes count by their logarithms.
  /// The hull is that of all planes whose normals have components of -1, 0 and 1, so it is a little
  /// wider than the convex one, and 2 % more. What was found is kept, and valid as long as this is.
  const KernelFinding& find(const KernelKey& key) const;

 private:
  using Point = std::array<double, kMostSizes>;

  /// The rows of a group as points.
  struct Cloud {
    std::vector<const KernelRow*> rows;
    std::vector<Point> points;
    std::vector<double> least, most;  ///< Along each direction.

    void add(const KernelRow& row);
    bool holds(const Point& point) const;
    std::vector<KernelFinding::Neighbour> nearest(const Point& point) const;
  };

  KernelFinding look_up(const KernelKey& key) const;

  KernelTable table_;
  std::map<KernelKey, const KernelRow*> rows_;
  std::map<KernelGroup, Cloud> clouds_;
  mutable std::shared_mutex mutex_;
  mutable std::map<KernelKey, KernelFinding> found_;
};

/// Reads a table; one that this process has read and that has not changed since is shared. Errors:
/// those of read_kernel_table.
Result<std::shared_ptr<const MeasuredKernels>> shared_kernels(const std::string& path);

}  // namespace plumbline
