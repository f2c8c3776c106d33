// Lists of what layouts need: each kernel once, without what a table has.
//
// SPDX-License-Identifier: MIT
#include "models/tables/kernel_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "models/tables/imported_kernels.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

KernelModel an_h100(std::shared_ptr<const MeasuredKernels> measured = nullptr) {
  const KernelDevice device{.traits = kernel_traits("h100-sxm"),
                            .peak = 989e12,
                            .fp8_peak = 1979e12,
                            .memory_bandwidth = 3.35e12,
                            .link = 450e9,
                            .network = 50e9};
  return {device, usual_stack(), std::move(measured)};
}

ListedLayouts layouts_of(std::vector<std::int64_t> tensor) {
  return {.sequences = {128},
          .batches = {1, 2},
          .tensor = std::move(tensor),
          .context = {1},
          .expert = {1},
          .options = {}};
}

const ListedKernel* find(const NeededKernels& needed, const Kernel& kernel,
                         Accumulation accumulation = Accumulation::none) {
  const auto key = key_of(kernel, accumulation);
  const auto found = std::find_if(needed.kernels.begin(), needed.kernels.end(),
                                  [&](const ListedKernel& one) { return one.key == key; });
  return found == needed.kernels.end() ? nullptr : &*found;
}

TEST_CASE("the kernels of all layouts are listed once, the weightiest first") {
  const TransformerShape shape = test::shape_of(test::kLlama);
  const NeededKernels needed = needed_kernels(shape, layouts_of({1, 2}), an_h100());
  CHECK(needed.layouts == 4);
  CHECK(needed.misfits.empty());
  std::set<KernelKey> keys;
  for (const ListedKernel& kernel : needed.kernels) {
    keys.insert(kernel.key);
    CHECK(kernel.key.group.kernels != KernelClass::collectives);
  }
  CHECK(keys.size() == needed.kernels.size());
  CHECK(std::is_sorted(
      needed.kernels.begin(), needed.kernels.end(),
      [](const ListedKernel& a, const ListedKernel& b) { return a.weight > b.weight; }));
  // Queries, keys and values of 4, 2 and 2 heads of 16, and the same on each of two devices.
  CHECK(find(needed, ProductKernel{.m = 128, .n = 128, .k = 64}));
  CHECK(find(needed, ProductKernel{.m = 256, .n = 64, .k = 64}));
  const ListedKernel* gradient =
      find(needed, ProductKernel{.pass = KernelPass::weights, .m = 128, .n = 64, .k = 128},
           Accumulation::fp32);
  REQUIRE(gradient);
  CHECK(gradient->per_layer >= 1);
  CHECK(find(needed, AttentionKernel{true, 2, 128, 128, 2, 1, 16, 16}));
}

TEST_CASE("layouts that do not divide the model are left out and counted") {
  const TransformerShape shape = test::shape_of(test::kLlama);
  const NeededKernels needed = needed_kernels(shape, layouts_of({1, 3}), an_h100());
  CHECK(needed.layouts == 2);
  std::int64_t misfits = 0;
  for (const auto& [why, count] : needed.misfits) misfits += count;
  CHECK(misfits == 2);
}

TEST_CASE("a size that is said twice is one layout") {
  const TransformerShape shape = test::shape_of(test::kLlama);
  const NeededKernels once = needed_kernels(shape, layouts_of({1, 2, 3}), an_h100());
  ListedLayouts layouts = layouts_of({1, 2, 1, 3, 3});
  layouts.batches = {1, 2, 1};
  layouts.context = {1, 1};
  const NeededKernels twice = needed_kernels(shape, layouts, an_h100());
  CHECK(twice.layouts == once.layouts);
  CHECK(twice.misfits == once.misfits);
  CHECK(kernel_list_csv(twice.kernels) == kernel_list_csv(once.kernels));
}

TEST_CASE("what is listed and then measured is missing no more") {
  const TransformerShape shape = test::shape_of(test::kDeepSeek);
  ListedLayouts layouts = layouts_of({1});
  const NeededKernels needed = needed_kernels(shape, layouts, an_h100());
  std::string csv = kernel_list_csv(needed.kernels);
  // A calibration fills the column `us`, which stands empty before two others.
  std::string measured;
  std::size_t begin = 0;
  while (begin < csv.size()) {
    const std::size_t end = csv.find('\n', begin);
    std::string line = csv.substr(begin, end - begin);
    if (begin > 0) {
      std::size_t at = 0;
      for (int commas = 0; commas < 9; ++commas) at = line.find(',', at) + 1;
      line.insert(at, "12.5");
    }
    measured += line + '\n';
    begin = end + 1;
  }
  const test::TemporaryFolder folder;
  ImportedKernels imported;
  const auto problems = import_csv_kernels(folder.file("measured.csv", measured), imported);
  REQUIRE_MESSAGE(!problems, (problems ? to_text(*problems) : ""));
  CHECK(imported.left_out().empty());
  const auto table = std::make_shared<const MeasuredKernels>(imported.take());
  CHECK(table->table().rows.size() == needed.kernels.size());
  CHECK(needed_kernels(shape, layouts, an_h100(table)).kernels.empty());
  layouts.batches = {1, 4};
  CHECK_FALSE(needed_kernels(shape, layouts, an_h100(table)).kernels.empty());
}

TEST_CASE("the modelled time of a listed kernel is that of the kernel alone, as it is measured") {
  const ProductKernel product{.m = 128, .n = 128, .k = 64};
  const AttentionKernel attention{false, 1, 128, 128, 4, 2, 16, 16};
  const KernelModel model = an_h100();
  const NeededKernels needed = needed_kernels(test::shape_of(test::kLlama), layouts_of({1}), model);
  const ListedKernel* listed = find(needed, product);
  REQUIRE(listed);
  CHECK(listed->modelled_seconds * model.stack().product_closure ==
        doctest::Approx(model.modelled_seconds(product)));
  const ListedKernel* other = find(needed, attention);
  REQUIRE(other);
  CHECK(other->modelled_seconds == model.modelled_seconds(attention));
}

TEST_CASE("keys that are more than the queries stand in a column of their own") {
  ListedLayouts layouts = layouts_of({1});
  layouts.context = {2};
  const NeededKernels needed = needed_kernels(test::shape_of(test::kLlama), layouts, an_h100());
  CHECK(find(needed, AttentionKernel{false, 1, 64, 128, 4, 2, 16, 16}));
  const std::string csv = kernel_list_csv(needed.kernels);
  CHECK(csv.find("sdpa,bf16,fwd,1,64,4,2,16,16,,,,128,,") != std::string::npos);
  CHECK(kernel_list_json(needed.kernels).find("\"keys\": 128") != std::string::npos);
}

}  // namespace
}  // namespace plumbline
