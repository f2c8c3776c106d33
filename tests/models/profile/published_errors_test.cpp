// The errors of published runs: whose a prediction has, and which predictions have none.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/published_errors.h"

#include <doctest/doctest.h>

#include "models/kernels/kernel_traits.h"
#include "models/kernels/software_stack.h"
#include "models/ops/layer_op.h"
#include "models/profile/estimate.h"
#include "models/profile/profile_reader.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

LayerOps layer(const LinearOp& linear, const AttentionOp& attention) {
  LayerOps ops;
  ops.ops = {{linear, false}, {attention, false}};
  return ops;
}

/// The same with an exchange between `devices`.
LayerOps layer(const LinearOp& linear, const AttentionOp& attention, ExchangeKind kind,
               std::int64_t devices = 4) {
  LayerOps ops = layer(linear, attention);
  ops.ops.push_back({ExchangeOp{.kind = kind, .devices = devices}, false});
  return ops;
}

PublishedErrors errors_of(RunKind kind, const char* device, const char* stack,
                          DeviceRates rates = DeviceRates::of_sheet) {
  return published_errors(kind, kernel_traits(device), rates, *find_software_stack(stack));
}

TEST_CASE("the ops of a layer say which kind of run it is") {
  const LinearOp plain, in_fp8{.format = NumberFormat::fp8}, of_experts{.experts = 8};
  const AttentionOp whole{.queries = 65536, .keys = 65536};
  const AttentionOp shared{.queries = 16384, .keys = 65536};
  const AttentionOp shared_but_short{.queries = 4096, .keys = 8192};
  constexpr auto keys = ExchangeKind::gather_keys;
  constexpr auto heads = ExchangeKind::exchange_heads;
  CHECK(run_kind(layer(plain, whole)) == RunKind::dense);
  CHECK(run_kind(layer(plain, whole, ExchangeKind::gather_tokens)) == RunKind::dense);
  CHECK(run_kind(layer(plain, whole, heads, 1)) == RunKind::dense);
  CHECK(run_kind(layer(plain, shared_but_short, keys)) == RunKind::dense);
  CHECK(run_kind(layer(in_fp8, whole)) == RunKind::dense_fp8);
  CHECK(run_kind(layer(in_fp8, shared, keys)) == RunKind::long_shared);
  CHECK(run_kind(layer(plain, whole, heads)) == RunKind::long_shared);  // all queries, fewer heads
  CHECK(run_kind(layer(of_experts, shared, keys)) == RunKind::experts);
}

TEST_CASE("an interval is wider where no run was compared, and widest by a data sheet") {
  for (const RunKind kind :
       {RunKind::dense, RunKind::dense_fp8, RunKind::long_shared, RunKind::experts}) {
    const PublishedErrors same = errors_of(kind, "h100-sxm", "megatron-core");
    const PublishedErrors left_out = errors_of(kind, "h200-sxm", "megatron-core");
    const PublishedErrors other_stack = errors_of(kind, "b200-sxm", "torch-compile");
    const PublishedErrors sheet = errors_of(kind, "l40s", "megatron-core");
    const PublishedErrors changed =
        errors_of(kind, "h100-sxm", "megatron-core", DeviceRates::given);
    CHECK(changed.basis == ErrorBasis::left_out);
    CHECK(same.basis == ErrorBasis::same);
    CHECK(left_out.basis == ErrorBasis::left_out);
    CHECK(other_stack.basis == ErrorBasis::left_out);
    CHECK(sheet.basis == ErrorBasis::sheet);
    CHECK(same.low < 1);
    CHECK(same.high > 1);
    CHECK(left_out.low <= same.low);
    CHECK(left_out.high >= same.high);
    CHECK(sheet.low <= left_out.low);
    CHECK(sheet.high >= left_out.high);
    CHECK(same.runs > 0);
  }
  const PublishedErrors dense = errors_of(RunKind::dense, "h100-sxm", "megatron-core");
  CHECK(range_text(dense) == "-9 to +16 %");
  CHECK(to_text(dense) ==
        "9 of 10 published runs of dense models lay within -9 to +16 % of their prediction (260 "
        "runs, none seen by the fit)");
  CHECK(order_sentence().find("836 pairs") != std::string::npos);
}

/// A model of two layers; `first` has times where it is given none.
Model model_of(const std::string& first) {
  const std::string text =
      "version: 1\nkind: profile\nlayers:\n"
      "  - {name: a, " +
      first +
      ", output: 1 MB, activation: 1 MB, parameters: 1 MB}\n"
      "  - {name: b, flops: 1 GFLOP, output: 1 MB, activation: 1 MB, parameters: 1 MB}\n";
  auto model = parse_profile(test::text_source("p.yaml", text));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  Model read = *std::move(model);
  read.profile.dtype = NumberFormat::bf16;
  return read;
}

TEST_CASE("an estimate has errors only if all of its times come from kernels") {
  Estimate estimate;
  estimate.device.name = "h100-sxm in bf16";
  estimate.device.peak = {989'000'000'000'000};
  estimate.device.memory_bandwidth = {3'350'000'000'000};
  const KernelModel kernels({.traits = kernel_traits("h100-sxm"),
                             .peak = 989e12,
                             .memory_bandwidth = 3350e9,
                             .link = 450e9},
                            usual_stack());
  const auto ops = std::make_shared<const LayerOps>(
      layer({.rows = 4096, .outputs = 4096, .inputs = 4096}, {.queries = 4096, .keys = 4096}));
  const auto estimated = [&](const std::string& first, bool with_ops, bool with_kernels) {
    Model model = model_of(first);
    for (LayerCosts& costs : model.profile.measurements.front().layers) {
      if (with_ops && !costs.timed) costs.ops = ops;
    }
    estimate.kernels.reset();
    if (with_kernels) estimate.kernels = KernelSetting{kernels, {}, {}, {}, 8};
    REQUIRE_FALSE(estimate_times(model, estimate, {}));
    return model.profile.errors;
  };
  REQUIRE(estimated("flops: 1 GFLOP", true, true));
  CHECK(estimated("flops: 1 GFLOP", true, true)->kind == RunKind::dense);
  CHECK_FALSE(estimated("flops: 1 GFLOP", true, false));                // a roofline
  CHECK_FALSE(estimated("flops: 1 GFLOP", false, true));                // no ops
  CHECK_FALSE(estimated("forward: 1 ms, backward: 2 ms", true, true));  // a measured layer
}

TEST_CASE("errors hold for costs as they were estimated: at the profile's sizes, unsliced") {
  Profile profile;
  profile.errors = errors_of(RunKind::dense, "h100-sxm", "megatron-core");
  profile.measurements.resize(1);
  CHECK(errors_at(profile, 3, 1));  // of an unknown size, which is never scaled
  profile.measurements.front().batch = 2;
  profile.measurements.push_back({.batch = 8, .layers = {}});
  CHECK(errors_at(profile, 2, 1));
  CHECK(errors_at(profile, 8, 1));
  CHECK_FALSE(errors_at(profile, 4, 1));   // interpolated
  CHECK_FALSE(errors_at(profile, 16, 1));  // scaled
  CHECK_FALSE(errors_at(profile, 2, 2));
}

}  // namespace
}  // namespace plumbline
