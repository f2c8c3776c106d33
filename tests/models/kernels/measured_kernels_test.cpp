// Times from a table: measured, interpolated within what was measured, modelled outside.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/measured_kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "models/kernels/kernel_model.h"
#include "models/kernels/kernel_table_writer.h"

namespace plumbline {
namespace {

KernelDevice an_h100() {
  return {.traits = kernel_traits("h100-sxm"),
          .peak = 989e12,
          .fp8_peak = 1979e12,
          .memory_bandwidth = 3.35e12,
          .link = 450e9,
          .network = 50e9};
}

ProductKernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

KernelRow row_of(const Kernel& kernel, double seconds,
                 Accumulation accumulation = Accumulation::none) {
  KernelRow row;
  row.key = *key_of(kernel, accumulation);
  row.time = Duration{std::llround(seconds * 1e9)};
  return row;
}

/// The model with a table, whose closure is 1 where it says none.
KernelModel with(KernelTable table) {
  if (!table.closure.gemm) table.closure.gemm = 1;
  return {an_h100(), usual_stack(), std::make_shared<const MeasuredKernels>(std::move(table))};
}

/// A table in which each product takes `factor` times its modelled time.
KernelTable table_of_products(double factor) {
  const KernelModel model(an_h100(), usual_stack());
  KernelTable table;
  table.device = "NVIDIA H100 80GB HBM3";
  for (const std::int64_t m : {1024, 2048, 8192})
    for (const std::int64_t n : {1024, 4096, 16384})
      for (const std::int64_t k : {1024, 4096, 16384})
        table.rows.push_back(
            row_of(product(m, n, k), factor * model.modelled_seconds(product(m, n, k))));
  return table;
}

TEST_CASE("a kernel that the table has takes its time, times the closure") {
  KernelTable table;
  table.closure.gemm = 1.5;
  table.rows = {row_of(product(4096, 4096, 4096), 300e-6)};
  const KernelModel model = with(table);
  const KernelTime time = model.time_of(product(4096, 4096, 4096));
  CHECK(time.origin == KernelOrigin::measured);
  CHECK(time.seconds == doctest::Approx(450e-6));
}

TEST_CASE("within the hull the ratio to the model is interpolated, outside the model holds") {
  const KernelModel model = with(table_of_products(1.25));
  const KernelTime inside = model.time_of(product(3000, 5000, 6000));
  CHECK(inside.origin == KernelOrigin::interpolated);
  CHECK(inside.seconds ==
        doctest::Approx(1.25 * model.modelled_seconds(product(3000, 5000, 6000))).epsilon(1e-4));
  for (const ProductKernel& outside :
       {product(512, 4096, 4096), product(4096, 32768, 4096), product(4096, 4096, 512)}) {
    const KernelTime time = model.time_of(outside);
    CHECK(time.origin == KernelOrigin::modelled);
    CHECK(time.seconds == model.modelled_seconds(outside));
  }
  ProductKernel other = product(3000, 5000, 6000);
  other.pass = KernelPass::input;
  CHECK(model.time_of(other).origin == KernelOrigin::modelled);
}

TEST_CASE("sizes that are a little outside of the hull count as within") {
  KernelTable table;
  table.rows = {row_of(product(1232, 4096, 4096), 1e-3)};
  const KernelModel model = with(table);
  CHECK(model.time_of(product(1229, 4096, 4096)).origin == KernelOrigin::interpolated);
  CHECK(model.time_of(product(1200, 4096, 4096)).origin == KernelOrigin::modelled);
}

TEST_CASE("a corner that the box holds, but not the hull, is modelled") {
  KernelTable table;
  table.rows = {row_of(product(1024, 1024, 1024), 1e-3), row_of(product(8192, 1024, 1024), 1e-3),
                row_of(product(1024, 8192, 1024), 1e-3)};
  const KernelModel model = with(table);
  CHECK(model.time_of(product(2048, 2048, 1024)).origin == KernelOrigin::interpolated);
  CHECK(model.time_of(product(6000, 6000, 1024)).origin == KernelOrigin::modelled);
}

TEST_CASE("the nearer of two rows weighs more") {
  const KernelModel alone(an_h100(), usual_stack());
  const auto time = [&](std::int64_t m) { return alone.modelled_seconds(product(m, 4096, 4096)); };
  KernelTable table;
  table.rows = {row_of(product(1024, 4096, 4096), 1 * time(1024)),
                row_of(product(8192, 4096, 4096), 2 * time(8192))};
  const KernelModel model = with(table);
  CHECK(model.time_of(product(2048, 4096, 4096)).seconds / time(2048) ==
        doctest::Approx(1 + 1.0 / 3).epsilon(1e-3));
  CHECK(model.time_of(product(4096, 4096, 4096)).seconds / time(4096) ==
        doctest::Approx(1 + 2.0 / 3).epsilon(1e-3));
}

TEST_CASE("products for the weights take the row with the sums that the stack makes") {
  ProductKernel kernel = product(4096, 4096, 4096);
  kernel.pass = KernelPass::weights;
  KernelTable table;
  table.rows = {row_of(kernel, 1e-3, Accumulation::none), row_of(kernel, 2e-3, Accumulation::fp32)};
  CHECK(with(table).seconds(kernel) == doctest::Approx(2e-3));
  table.closure.gemm = 1;
  const auto eager = KernelModel(an_h100(), *find_software_stack("eager-2023"),
                                 std::make_shared<const MeasuredKernels>(table));
  CHECK(eager.seconds(kernel) == doctest::Approx(1e-3));
  table.rows.pop_back();
  CHECK(with(table).seconds(kernel) == doctest::Approx(1e-3));
}

TEST_CASE("attention, memory and collectives are looked up by all of their sizes") {
  const AttentionKernel attention{false, 1, 4096, 4096, 32, 8, 128, 128};
  const MemoryKernel norm{
      .kind = MemoryKind::norm, .rows = 4096, .columns = 8192, .bytes = 2.0 * 2 * 4096 * 8192};
  const CollectiveKernel gather{
      .kind = CollectiveKind::all_gather, .devices = 8, .near = 8, .bytes = 1 << 26};
  KernelTable table;
  table.closure = {.gemm = 9, .sdpa = 2, .memory = 3, .from = {}};
  table.rows = {row_of(attention, 1e-3), row_of(norm, 50e-6), row_of(gather, 200e-6)};
  const KernelModel model = with(table);
  CHECK(model.seconds(attention) == doctest::Approx(2e-3));
  CHECK(model.seconds(norm) == doctest::Approx(150e-6));
  CHECK(model.seconds(gather) == doctest::Approx(200e-6));
  AttentionKernel backward = attention;
  backward.backward = true;
  CHECK(model.time_of(backward).origin == KernelOrigin::modelled);
  CollectiveKernel far = gather;
  far.near = 4;
  CHECK(model.time_of(far).origin == KernelOrigin::modelled);
}

TEST_CASE("without a closure of its own, a table's products take that of the stack") {
  KernelTable table;
  table.rows = {row_of(product(4096, 4096, 4096), 300e-6)};
  const KernelModel model(an_h100(), usual_stack(), std::make_shared<const MeasuredKernels>(table));
  CHECK(model.seconds(product(4096, 4096, 4096)) ==
        doctest::Approx(300e-6 * usual_stack().product_closure));
  CHECK(model.closure(KernelClass::sdpa) == 1);
}

TEST_CASE("a time tells how long the kernel takes alone") {
  KernelTable table = table_of_products(1.25);
  table.closure.gemm = 1.5;
  const KernelModel model(an_h100(), usual_stack(), std::make_shared<const MeasuredKernels>(table));
  const double stack_closure = usual_stack().product_closure;
  for (const ProductKernel& one : {product(1024, 1024, 1024), product(3000, 5000, 6000)})
    CHECK(model.time_of(one).alone() ==
          doctest::Approx(1.25 * model.modelled_seconds(one)).epsilon(1e-3));
  const ProductKernel outside = product(512, 4096, 4096);
  CHECK(model.time_of(outside).alone() ==
        doctest::Approx(model.modelled_seconds(outside) / stack_closure));
  const AttentionKernel attention{false, 1, 4096, 4096, 32, 8, 128, 128};
  CHECK(model.time_of(attention).alone() == model.modelled_seconds(attention));
}

TEST_CASE(
    "attention over some queries takes the time of fewer heads over all, if that was measured") {
  const AttentionKernel all{false, 1, 8192, 8192, 8, 2, 128, 128};
  const AttentionKernel some{false, 1, 2048, 8192, 32, 8, 128, 128};
  KernelTable table;
  table.rows = {row_of(all, 1e-3)};
  const KernelModel model = with(table);
  const KernelTime time = model.time_of(some);
  CHECK(time.origin == KernelOrigin::interpolated);
  CHECK(time.seconds ==
        doctest::Approx(1e-3 * model.modelled_seconds(some) / model.modelled_seconds(all)));
  table.rows.push_back(row_of(some, 2e-3));
  CHECK(with(table).seconds(some) == doctest::Approx(2e-3));
  // 10 heads of keys are no multiple of 3 devices: no attention over fewer heads does as much.
  const AttentionKernel uneven{false, 1, 2048, 6144, 30, 10, 128, 128};
  table.rows = {row_of(AttentionKernel{false, 1, 6144, 6144, 10, 3, 128, 128}, 1e-3)};
  CHECK(with(table).time_of(uneven).origin == KernelOrigin::modelled);
}

TEST_CASE("a pass adds up its kernels by how their times came about") {
  KernelTable table;
  table.rows = {row_of(product(4096, 4096, 4096), 300e-6)};
  table.launch = LaunchTimes{.gap = {}, .per_op = std::chrono::milliseconds(1), .host_per_op = {}};
  const KernelModel model = with(table);
  const PassTime pass =
      model.seconds({product(4096, 4096, 4096), product(512, 4096, 4096)}, KernelOverlap{});
  CHECK(pass.kernels.measured_s == doctest::Approx(300e-6));
  CHECK(pass.kernels.modelled_s == model.modelled_seconds(product(512, 4096, 4096)));
  CHECK(pass.kernels.interpolated_s == 0);
  CHECK(pass.computing_s == doctest::Approx(2e-3));  // two launches
}

TEST_CASE("a file is read once, and again when it has changed") {
  const auto path = std::filesystem::temp_directory_path() / "plumbline-shared.kernels.yaml";
  KernelTable table = table_of_products(1);
  std::ofstream(path) << kernel_table_yaml(table);
  const auto first = shared_kernels(path.string());
  const auto second = shared_kernels(path.string());
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->get() == second->get());
  table.rows.pop_back();
  std::ofstream(path) << kernel_table_yaml(table);
  const auto third = shared_kernels(path.string());
  REQUIRE(third);
  CHECK((*third)->table().rows.size() + 1 == (*first)->table().rows.size());
  std::filesystem::remove(path);
  CHECK_FALSE(shared_kernels(path.string()));
}

}  // namespace
}  // namespace plumbline
