// The kernels of a model's layers, added up from a table.
//
// SPDX-License-Identifier: MIT
#include "calibrate/kernels/walked_blocks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/tables/kernel_list.h"
#include "tests/support/kernel_models.h"
#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

KernelModel model_with(KernelTable table) {
  return {kernel_device("h100-sxm"), *find_software_stack("plumbline"),
          std::make_shared<MeasuredKernels>(std::move(table))};
}

TransformerOptions options() {
  TransformerOptions options = tokens(16, 2);
  options.dtype = NumberFormat::fp32;
  return options;
}

/// A table with all kernels of kLlama, each of so many ns.
KernelTable table_of(std::int64_t ns) {
  const ListedLayouts layouts{.sequences = {16},
                              .batches = {2},
                              .tensor = {1},
                              .context = {1},
                              .expert = {1},
                              .options = options()};
  KernelTable table;
  for (const ListedKernel& kernel :
       needed_kernels(shape_of(kLlama), layouts, model_with({})).kernels) {
    KernelRow row;
    row.key = kernel.key;
    row.time = Duration{ns};
    table.rows.push_back(row);
  }
  return table;
}

TEST_CASE("a layer takes as long as its kernels alone, whatever the closure") {
  KernelTable table = table_of(1000);
  table.closure = {2, 2, 2, {}};
  const auto seconds = seconds_alone(shape_of(kLlama), options(), model_with(std::move(table)));
  REQUIRE(seconds);
  // Two blocks of attention and MLP, and the head.
  REQUIRE(seconds->size() == 5);
  CHECK((*seconds)[0] == (*seconds)[2]);
  CHECK((*seconds)[1] == (*seconds)[3]);
  // The head: its norm and loss forward and backward, and three products.
  CHECK((*seconds)[4] * 1e9 == doctest::Approx(7 * 1000));
  // Attention: norm, rotation, attention and residual, twice, and two products of three passes.
  // Queries, keys and values are made by one product; queries and keys turn in one kernel or two.
  CHECK((*seconds)[0] * 1e9 >= 14 * 1000);
  // MLP: norm, activation and residual, twice, and two products of three passes.
  CHECK((*seconds)[1] * 1e9 == doctest::Approx(12 * 1000));
}

TEST_CASE("kernels without a measured time are an error") {
  KernelTable table = table_of(1000);
  table.rows.pop_back();
  table.rows.pop_back();
  const auto seconds = seconds_alone(shape_of(kLlama), options(), model_with(std::move(table)));
  REQUIRE_FALSE(seconds);
  CHECK(seconds.problems().front().message ==
        "2 kernels of the layers that are walked have no measured time");
}

TEST_CASE("attention with a window is in no table") {
  std::string mistral = kLlama;
  mistral.replace(mistral.find("llama"), 5, "mistral");
  mistral.insert(mistral.size() - 1, R"(, "sliding_window": 8)");
  const auto seconds = seconds_alone(shape_of(mistral), options(), model_with(table_of(1000)));
  REQUIRE_FALSE(seconds);
  CHECK(seconds.problems().front().message ==
        "no table holds attention with a window, which these layers have");
}

TEST_CASE("the factor is that of the sums of the blocks") {
  const WalkedBlocks blocks{{{"a", 3, 2}, {"b", 3, 2}, {"c", 2, 1}}, {"head", 100, 1}};
  CHECK(blocks.walked_s() == 8);
  CHECK(blocks.alone_s() == 5);
  CHECK(blocks.factor() == doctest::Approx(1.6));
}

}  // namespace
}  // namespace plumbline::test
