// Looking up, and weighing what is near.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/measured_kernels.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "models/kernels/kernel_table_reader.h"

namespace plumbline {
namespace {

constexpr std::size_t kNearest = 8;

/// A kernel may lie this far outside of the hull, in logarithms: 2 %. Rows of experts are padded
/// in some frameworks and not in others.
constexpr double kSlack = .02;

using Direction = std::array<int, kMostSizes>;

/// All directions over `sizes` axes with components of -1, 0 and 1, one of each opposite pair.
std::vector<Direction> directions_over(std::size_t sizes) {
  std::vector<Direction> directions;
  std::size_t count = 1;
  for (std::size_t i = 0; i < sizes; ++i) count *= 3;
  for (std::size_t number = 0; number < count; ++number) {
    Direction direction{};
    std::size_t rest = number;
    int first = 0;
    for (std::size_t i = 0; i < sizes; ++i, rest /= 3) {
      direction[i] = static_cast<int>(rest % 3) - 1;
      if (first == 0) first = direction[i];
    }
    if (first > 0) directions.push_back(direction);
  }
  return directions;
}

const std::vector<Direction>& directions(std::size_t sizes) {
  static const std::array<std::vector<Direction>, kMostSizes + 1> all = [] {
    std::array<std::vector<Direction>, kMostSizes + 1> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = directions_over(i);
    return made;
  }();
  return all[sizes];
}

double along(const Direction& direction, const std::array<double, kMostSizes>& point) {
  double sum = 0;
  for (std::size_t i = 0; i < kMostSizes; ++i) sum += direction[i] * point[i];
  return sum;
}

std::array<double, kMostSizes> point_of(const KernelKey& key) {
  std::array<double, kMostSizes> point{};
  for (std::size_t i = 0; i < kMostSizes; ++i)
    point[i] = std::log(static_cast<double>(std::max<std::int64_t>(1, key.sizes[i])));
  return point;
}

double distance(const std::array<double, kMostSizes>& a, const std::array<double, kMostSizes>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kMostSizes; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

void MeasuredKernels::Cloud::add(const KernelRow& row) {
  const std::vector<Direction>& all = directions(size_count(row.key.group.kernels));
  if (rows.empty()) {
    least.assign(all.size(), std::numeric_limits<double>::infinity());
    most.assign(all.size(), -std::numeric_limits<double>::infinity());
  }
  rows.push_back(&row);
  points.push_back(point_of(row.key));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double at = along(all[i], points.back());
    least[i] = std::min(least[i], at);
    most[i] = std::max(most[i], at);
  }
}

bool MeasuredKernels::Cloud::holds(const Point& point) const {
  const std::vector<Direction>& all = directions(size_count(rows.front()->key.group.kernels));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double at = along(all[i], point);
    if (at < least[i] - kSlack || at > most[i] + kSlack) return false;
  }
  return true;
}

std::vector<KernelFinding::Neighbour> MeasuredKernels::Cloud::nearest(const Point& point) const {
  std::vector<std::pair<double, std::size_t>> by_distance;
  by_distance.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    by_distance.emplace_back(distance(point, points[i]), i);
  const std::size_t count = std::min(kNearest, by_distance.size());
  std::partial_sort(by_distance.begin(), by_distance.begin() + static_cast<std::ptrdiff_t>(count),
                    by_distance.end());
  std::vector<KernelFinding::Neighbour> near;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    near.push_back({rows[by_distance[i].second], 1 / by_distance[i].first});
    sum += near.back().weight;
  }
  for (KernelFinding::Neighbour& one : near) one.weight /= sum;
  return near;
}

MeasuredKernels::MeasuredKernels(KernelTable table) : table_(std::move(table)) {
  for (const KernelRow& row : table_.rows) {
    rows_.emplace(row.key, &row);
    clouds_[row.key.group].add(row);
  }
}

KernelFinding MeasuredKernels::look_up(const KernelKey& key) const {
  KernelFinding found;
  if (const auto row = rows_.find(key); row != rows_.end()) {
    found.row = row->second;
    return found;
  }
  const auto cloud = clouds_.find(key.group);
  if (cloud == clouds_.end()) return found;
  const Point point = point_of(key);
  if (cloud->second.holds(point)) found.near = cloud->second.nearest(point);
  return found;
}

const KernelFinding& MeasuredKernels::find(const KernelKey& key) const {
  {
    const std::shared_lock<std::shared_mutex> reading(mutex_);
    const auto known = found_.find(key);
    if (known != found_.end()) return known->second;
  }
  KernelFinding found = look_up(key);
  const std::unique_lock<std::shared_mutex> writing(mutex_);
  return found_.emplace(key, std::move(found)).first->second;
}

Result<std::shared_ptr<const MeasuredKernels>> shared_kernels(const std::string& path) {
  struct Known {
    std::filesystem::file_time_type written;
    std::uintmax_t size = 0;
    std::shared_ptr<const MeasuredKernels> kernels;
  };
  static std::mutex mutex;
  static std::map<std::string, Known> all;
  const std::unique_lock<std::mutex> lock(mutex);
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  const auto size = error ? 0 : std::filesystem::file_size(path, error);
  if (const auto known = all.find(path); !error && known != all.end() &&
                                         known->second.written == written &&
                                         known->second.size == size)
    return known->second.kernels;
  auto table = read_kernel_table(path);
  if (!table) return table.problems();
  auto kernels = std::make_shared<const MeasuredKernels>(*std::move(table));
  all[path] = {written, size, kernels};
  return std::shared_ptr<const MeasuredKernels>(std::move(kernels));
}

}  // namespace plumbline
