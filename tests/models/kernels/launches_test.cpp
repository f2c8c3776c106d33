// Which kernels an op launches in each pass, and what a stack changes.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/launches.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/close_to.h"
#include "tests/support/kernel_text.h"

namespace plumbline {
namespace {

const SoftwareStack& stack(const char* name) { return *find_software_stack(name); }

LayerOps only(LayerOp::Shape shape) { return {.ops = {{std::move(shape)}}}; }

/// The kernels of one op as text.
std::vector<std::string> texts(const LayerOp::Shape& shape, KernelPass pass,
                               const char* name = "megatron-core") {
  std::vector<std::string> all;
  for (const Kernel& kernel : launches(only(shape), pass, stack(name)))
    all.push_back(test::to_text(kernel));
  return all;
}

/// Bytes and launches of all kernels of one op that move.
struct Moved {
  double bytes = 0;
  std::int64_t launches = 0;
  friend bool operator==(const Moved&, const Moved&) = default;
};
Moved moved(const LayerOp::Shape& shape, KernelPass pass, const char* name = "megatron-core") {
  Moved all;
  for (const Kernel& kernel : launches(only(shape), pass, stack(name))) {
    const auto* memory = std::get_if<MemoryKernel>(&kernel);
    if (!memory) continue;
    all.bytes += memory->bytes;
    all.launches += memory->launches;
  }
  return all;
}

using Texts = std::vector<std::string>;
using enum KernelPass;

TEST_CASE("a linear layer is one product in each pass, with three shapes") {
  const LinearOp op{.rows = 4'096, .outputs = 1'024, .inputs = 512};
  CHECK(texts(op, forward) == Texts{"product bf16 forward 4096 x 1024 x 512"});
  CHECK(texts(op, input) == Texts{"product bf16 input 4096 x 512 x 1024"});
  CHECK(texts(op, weights) == Texts{"product bf16 weights 1024 x 512 x 4096"});
}

TEST_CASE("a linear layer in fp8 casts what it multiplies, but for the weights' gradient") {
  const LinearOp op{.format = NumberFormat::fp8, .rows = 4'096, .outputs = 1'024, .inputs = 512};
  CHECK(texts(op, forward) == Texts{"cast forward 4096 x 512: 8388608 B in 1 launch",
                                    "product fp8 forward 4096 x 1024 x 512"});
  CHECK(moved(op, input) == Moved{4. * 4'096 * 1'024, 1});
  CHECK(texts(op, weights) == Texts{"product fp8 weights 1024 x 512 x 4096"});
}

TEST_CASE("linear layers of experts are one kernel, each with an equal part of the rows") {
  const LinearOp op{.rows = 1'000, .outputs = 64, .inputs = 32, .experts = 8};
  CHECK(texts(op, forward) == Texts{"grouped product bf16 forward 125 x 64 x 32 in 8 groups"});
  CHECK(texts(op, weights) == Texts{"grouped product bf16 weights 64 x 32 x 125 in 8 groups"});
}

TEST_CASE("attention is one kernel each way, or products with a softmax between") {
  AttentionOp op{.batch = 2,
                 .queries = 1'024,
                 .keys = 1'024,
                 .heads = 16,
                 .key_heads = 4,
                 .query_size = 64,
                 .value_size = 64};
  CHECK(texts(op, forward) ==
        Texts{"attention forward 2 x 1024 queries, 1024 keys, 16 heads of 64 and 64"});
  CHECK(texts(op, input).size() == 1);
  CHECK(texts(op, weights).empty());
  op.keeps_scores = true;
  CHECK(texts(op, forward) == Texts{"product bf16 forward 1024 x 1024 x 64, 32 times",
                                    "product bf16 forward 1024 x 64 x 1024, 32 times",
                                    "scores forward 32768 x 1024: 134217728 B in 1 launch",
                                    "sum forward 2048 x 1024: 8388608 B in 1 launch"});
  CHECK(texts(op, input).size() == 6);
  const Moved without = moved(op, forward);
  op.drops = true;  // in a kernel of its own, with a mask of a byte a number
  CHECK(moved(op, forward).bytes - without.bytes == 5. * 2 * 16 * 1'024 * 1'024);
}

TEST_CASE("a stack fuses activations and residuals, or does not") {
  const double number = 2. * 4'096 * 1'024;
  const ActivationOp gated{4'096, 1'024, true};
  CHECK(moved(gated, forward, "megatron-core") == Moved{3 * number, 1});
  CHECK(moved(gated, forward, "eager-2023") == Moved{5 * number, 2});
  CHECK(moved(gated, input, "megatron-core") == Moved{5 * number, 1});
  CHECK(moved(gated, input, "eager-2023") == Moved{8 * number, 3});
  const ActivationOp plain{4'096, 1'024, false};
  CHECK(moved(plain, forward, "eager-2023") == Moved{2 * number, 1});
  CHECK(moved(plain, input, "eager-2023") == Moved{3 * number, 1});
  ResidualOp residual{4'096, 1'024, false};
  CHECK(moved(residual, forward, "megatron-core") == Moved{3 * number, 1});
  CHECK(moved(residual, forward, "torch-compile") == Moved{2 * number, 1});
  residual.drops = true;
  CHECK(moved(residual, forward, "megatron-core") == Moved{3.5 * number, 1});
  CHECK(moved(residual, input, "megatron-core") == Moved{5.5 * number, 2});
}

TEST_CASE("norms, rotations, routing, permutations, the loss and lookups move what they must") {
  const double number = 2. * 4'096 * 1'024;
  CHECK(moved(NormOp{4'096, 1'024}, forward) == Moved{2 * number, 1});
  CHECK(moved(NormOp{4'096, 1'024}, input) == Moved{3 * number, 2});
  CHECK(moved(NormOp{4'096, 1'024}, weights) == Moved{});
  CHECK(moved(RotationOp{4'096, 1'024, false}, input) == Moved{2 * number, 2});
  CHECK(moved(RotationOp{4'096, 1'024, true}, forward) == Moved{4 * number, 3});
  CHECK(moved(SumOp{4'096, 1'024}, input) == Moved{3 * number, 1});
  CHECK(moved(RoutingOp{4'096, 8}, forward) == Moved{16. * 4'096 * 8, 6});
  CHECK(moved(PermuteOp{4'096, 1'024, 1, 0}, forward) == Moved{2 * number, 1});
  CHECK(moved(PermuteOp{4'096, 1'024, 2, 2'048}, input) == Moved{4.5 * number, 2});
  CHECK(moved(LossOp{4'096, 1'024}, forward, "megatron-core") == Moved{5 * number, 3});
  CHECK(moved(LossOp{4'096, 1'024}, forward, "eager-2023") == Moved{7 * number, 3});
  CHECK(moved(LossOp{4'096, 1'024}, input, "eager-2023") == Moved{9 * number, 3});
  LookupOp lookup{.rows = 4'096, .columns = 1'024, .table_rows = 8'192};
  CHECK(moved(lookup, forward) == Moved{2 * number, 1});
  CHECK(moved(lookup, input) == Moved{});
  CHECK(moved(lookup, weights, "megatron-core") == Moved{number + 8. * 8'192 * 1'024, 2});
  CHECK(moved(lookup, weights, "eager-2023") == Moved{number + 2. * 8'192 * 1'024, 2});
  lookup.positions = true;
  CHECK(moved(lookup, forward) == Moved{3 * number, 1});
}

TEST_CASE("each exchange sends in the passes that need it") {
  const auto sends = [](ExchangeKind kind, KernelPass pass) {
    return texts(ExchangeOp{.kind = kind, .devices = 4, .near = 4, .bytes = 1'024}, pass);
  };
  const auto over = [](const char* kind) {
    return Texts{std::string(kind) + " 1024 B over 4 devices"};
  };
  using enum ExchangeKind;
  CHECK(sends(gather_tokens, forward) == over("all_gather"));
  CHECK(sends(gather_tokens, input) == over("reduce_scatter"));
  CHECK(sends(gather_tokens, weights) == over("all_gather"));
  CHECK(sends(scatter_sums, forward) == over("reduce_scatter"));
  CHECK(sends(scatter_sums, input) == over("all_gather"));
  CHECK(sends(scatter_sums, weights).empty());
  CHECK(sends(copy_tokens, forward).empty());
  CHECK(sends(copy_tokens, input) == over("all_reduce"));
  CHECK(sends(add_sums, forward) == over("all_reduce"));
  CHECK(sends(add_sums, input).empty());
  CHECK(sends(scatter_rows, weights) == over("all_gather"));
  CHECK(sends(add_rows, forward) == over("all_reduce"));
  CHECK(sends(add_losses, input).empty());
  CHECK(sends(gather_keys, input).size() == 2);
  CHECK(sends(to_experts, forward) == over("all_to_all"));
  CHECK(sends(to_experts, input) == over("all_to_all"));
  CHECK(sends(to_experts, weights).empty());
  CHECK(texts(ExchangeOp{.kind = add_sums, .devices = 1, .bytes = 1'024}, forward).empty());
  const ExchangeOp keys{
      .kind = gather_keys, .devices = 2, .near = 2, .bytes = 1'024, .repeated = 8};
  CHECK(texts(keys, forward, "torch-compile") == Texts{"all_gather 8192 B over 2 devices"});
  CHECK(texts(keys, forward, "megatron-core") == Texts{"all_gather 1024 B over 2 devices"});
}

TEST_CASE("selective recomputation launches the forward of the ops that are marked") {
  LayerOps ops{.ops = {{NormOp{64, 64}, true},
                       {LinearOp{.rows = 64, .outputs = 32, .inputs = 64}, false},
                       {ActivationOp{64, 32, true}, true},
                       {LinearOp{.rows = 64, .outputs = 64, .inputs = 16}, false}}};
  const std::vector<Kernel> again = launches_again(ops, usual_stack());
  REQUIRE(again.size() == 2);
  CHECK(test::to_text(again[0]) == "norm forward 64 x 64: 16384 B in 1 launch");
  const std::vector<Kernel> last = last_product(ops, usual_stack());
  REQUIRE(last.size() == 1);
  CHECK(test::to_text(last[0]) == "product bf16 forward 64 x 64 x 16");
  CHECK(last_product(only(NormOp{64, 64}), usual_stack()).empty());
}

}  // namespace
}  // namespace plumbline
