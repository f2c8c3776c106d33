// Lists of kernels on a bench whose kernels take known times.
//
// SPDX-License-Identifier: MIT
#include "calibrate/kernels/measure_kernels.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace plumbline::test {
namespace {

KernelKey gemm(std::int64_t m) {
  KernelKey key;
  key.group.format = NumberFormat::fp32;
  key.sizes = {m, 2, 3, 1, 1};
  return key;
}

ListedKernel listed(const KernelKey& key, double weight) {
  ListedKernel kernel;
  kernel.key = key;
  kernel.weight = weight;
  return kernel;
}

/// Kernels that take m microseconds, every second run a tenth longer, and the first one a hundred
/// times as long. Those of m = 13 do not exist,
/// those of m = 14 are too large, those of m = 15 never run undisturbed.
class KnownBench : public KernelBench {
 public:
  class Known : public BenchedKernel {
   public:
    Known(std::int64_t m, std::vector<std::int64_t>& runs) : m_(m), runs_(runs) {}

    std::optional<double> nanoseconds(std::int64_t times) override {
      runs_.push_back(times);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (m_ == 15) return std::nullopt;
      const double time = 1000.0 * static_cast<double>(m_);
      if (runs_.size() == 1) return 100 * time;
      return runs_.size() % 2 == 0 ? 1.1 * time : time;
    }

   private:
    std::int64_t m_;
    std::vector<std::int64_t>& runs_;
  };

  std::unique_ptr<BenchedKernel> prepare(const KernelKey& key) override {
    order.push_back(key.sizes[0]);
    if (key.sizes[0] == 13) return nullptr;
    if (key.sizes[0] == 14) throw std::bad_alloc();
    return std::make_unique<Known>(key.sizes[0], runs[key.sizes[0]]);
  }
  std::string library(const KernelKey&) const override { return "known 1.0"; }

  std::vector<std::int64_t> order;
  std::map<std::int64_t, std::vector<std::int64_t>> runs;
};

TEST_CASE("each kernel is measured, in the order of the list") {
  KnownBench bench;
  std::vector<KernelRow> rows;
  std::vector<std::size_t> told;
  KernelBudget budget;
  budget.seconds = 2;
  budget.measured = [&](const KernelRow& row) { rows.push_back(row); };
  budget.progress = [&](const KernelKey&, std::size_t measured, double share) {
    told.push_back(measured);
    CHECK(share >= 0);
    CHECK(share <= 1);
  };
  const MeasuredList list = measure_kernels(
      bench, {listed(gemm(500), 3), listed(gemm(7), 2), listed(gemm(40), 1)}, budget);
  CHECK(bench.order == std::vector<std::int64_t>{500, 7, 40});
  CHECK(told == std::vector<std::size_t>{0, 1, 2});
  CHECK(list.measured == 3);
  CHECK_FALSE(list.interrupted);
  REQUIRE(rows.size() == 3);
  for (const KernelRow& row : rows) {
    const double time = 1000.0 * static_cast<double>(row.key.sizes[0]);
    CHECK(static_cast<double>(row.time.count()) >= time);
    CHECK(static_cast<double>(row.time.count()) <= 1.1 * time);
    CHECK(row.spread > 0);
    CHECK(row.spread < 0.11);
    CHECK(row.how == "known 1.0");
  }
  // A sample lasts 0.2 ms or one run, whatever the first run took.
  CHECK(bench.runs[500].front() == 1);
  CHECK(bench.runs[500].back() == 1);
  CHECK(bench.runs[7].back() >= 25);
  CHECK(bench.runs[7].back() <= 29);
  CHECK(bench.runs[40].size() >= 9);
}

TEST_CASE("what cannot be measured is told apart") {
  KnownBench bench;
  KernelBudget budget;
  budget.seconds = 1;
  const MeasuredList list = measure_kernels(
      bench, {listed(gemm(13), 4), listed(gemm(14), 3), listed(gemm(15), 2), listed(gemm(2), 1)},
      budget);
  CHECK(list.measured == 1);
  REQUIRE(list.not_computed.size() == 1);
  CHECK(list.not_computed.front().key == gemm(13));
  REQUIRE(list.too_large.size() == 1);
  CHECK(list.too_large.front().key == gemm(14));
  REQUIRE(list.no_time_left.size() == 1);
  CHECK(list.no_time_left.front().key == gemm(15));
}

TEST_CASE("the first kernel is measured without any time, and no other") {
  KnownBench bench;
  KernelBudget budget;
  budget.seconds = 1e-9;
  const MeasuredList list =
      measure_kernels(bench, {listed(gemm(2), 2), listed(gemm(3), 1), listed(gemm(4), 1)}, budget);
  CHECK(list.measured == 1);
  CHECK(list.no_time_left.size() == 2);
  CHECK(bench.order == std::vector<std::int64_t>{2});
}

TEST_CASE("an interruption ends it before the next kernel") {
  KnownBench bench;
  std::size_t measured = 0;
  KernelBudget budget;
  budget.seconds = 1;
  budget.measured = [&](const KernelRow&) { ++measured; };
  budget.interrupted = [&] { return measured == 2; };
  const MeasuredList list =
      measure_kernels(bench, {listed(gemm(2), 3), listed(gemm(3), 2), listed(gemm(4), 1)}, budget);
  CHECK(list.interrupted);
  CHECK(list.measured == 2);
  CHECK(list.no_time_left.empty());
}

TEST_CASE("kernels are described for people") {
  CHECK(described(gemm(4096)) == "gemm forward 4096 x 2 x 3, fp32");
  KernelKey attention;
  attention.group.kernels = KernelClass::sdpa;
  attention.group.pass = KernelPass::input;
  attention.sizes = {1, 128, 128, 8, 2};
  CHECK(described(attention) == "sdpa backward 1 x 128 x 128 x 8 x 2, bf16");
  KernelKey norm;
  norm.group.kernels = KernelClass::memory;
  norm.group.memory = MemoryKind::norm;
  norm.sizes = {128, 64, 1, 1, 1};
  CHECK(described(norm) == "norm forward 128 x 64, bf16");
}

}  // namespace
}  // namespace plumbline::test
