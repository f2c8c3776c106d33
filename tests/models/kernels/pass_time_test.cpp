// The sum over a pass: what computing hides, and the host's least time.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <vector>

#include "tests/support/close_to.h"
#include "tests/support/kernel_models.h"

namespace plumbline {
namespace {

const ProductKernel kLarge = {.m = 8'192, .n = 8'192, .k = 8'192};

CollectiveKernel sent(CollectiveUse use, std::int64_t near = 8, std::int64_t bytes = 1 << 26) {
  return {
      .kind = CollectiveKind::all_gather, .use = use, .devices = 8, .near = near, .bytes = bytes};
}

double seconds_of(const PassTime& pass) { return pass.computing_s + pass.sent_s - pass.hidden_s; }

/// The share of a collective beside a large product that is hidden.
double hidden_share(const char* stack, const CollectiveKernel& collective,
                    const KernelOverlap& overlap) {
  const PassTime pass =
      test::kernel_model("h100-sxm", stack).seconds({kLarge, collective}, overlap);
  return pass.hidden_s / pass.sent_s;
}

TEST_CASE("a pass takes the sum of its kernels, less what computing hides") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const CollectiveKernel gather = sent(CollectiveUse::tensor);
  const PassTime pass = model.seconds({kLarge, gather}, {.on = true});
  CHECK(pass.computing_s == model.seconds(kLarge));
  CHECK(pass.sent_s == model.seconds(gather));
  CHECK(pass.hidden_s == test::close_to(.7 * pass.sent_s));
  CHECK(seconds_of(pass) == test::close_to(pass.computing_s + .3 * pass.sent_s));
  const PassTime apart = model.seconds({kLarge, gather}, {});
  CHECK(apart.hidden_s == 0);
  CHECK(seconds_of(apart) == pass.computing_s + pass.sent_s);
}

TEST_CASE("what is hidden takes at most as long as the computing") {
  const KernelModel model = test::kernel_model("h100-sxm");
  const ProductKernel small{.m = 128, .n = 128, .k = 128};
  const CollectiveKernel long_one = sent(CollectiveUse::tensor, 8, 1LL << 32);
  for (const KernelOverlap& overlap : {KernelOverlap{.on = true}, KernelOverlap{.link = 1.0}}) {
    const PassTime pass = model.seconds({small, long_one}, overlap);
    CHECK(pass.hidden_s == pass.computing_s);
    CHECK(seconds_of(pass) == pass.sent_s);
  }
}

TEST_CASE("a stack hides each use of collectives to a share of its own") {
  using enum CollectiveUse;
  const KernelOverlap on{.on = true};
  const KernelOverlap chunks{.on = true, .has_chunks = true};
  CHECK(hidden_share("megatron-core", sent(tensor), on) == test::close_to(.7));
  CHECK(hidden_share("megatron-core", sent(tensor), {}) == 0);
  CHECK(hidden_share("megatron-core", sent(tensor_again), on) == 1);
  CHECK(hidden_share("megatron-core", sent(tensor_again), {}) == 0);
  CHECK(hidden_share("megatron-core", sent(context), {}) == test::close_to(.7));
  CHECK(hidden_share("megatron-core", sent(experts), on) == 0);
  CHECK(hidden_share("megatron-core", sent(experts), chunks) == test::close_to(.8));
  CHECK(hidden_share("megatron-core", sent(other), chunks) == 0);
  CHECK(hidden_share("megatron-2022", sent(tensor_gradient), {}) == test::close_to(.5));
  CHECK(hidden_share("megatron-2022", sent(tensor_again), {}) == 1);
  CHECK(hidden_share("torch-compile", sent(context), on) == 0);
}

TEST_CASE("a given overlap replaces the stack's, in a server and between servers apart") {
  using enum CollectiveUse;
  const KernelOverlap given{.on = true, .has_chunks = true, .link = .25, .network = .5};
  for (const CollectiveUse use : {tensor, tensor_again, tensor_gradient, context, experts}) {
    CHECK(hidden_share("megatron-core", sent(use), given) == test::close_to(.25));
    CHECK(hidden_share("megatron-core", sent(use, 4), given) == test::close_to(.5));
  }
  CHECK(hidden_share("megatron-core", sent(other), given) == 0);
  const KernelOverlap none{.on = true, .link = 0.0};
  CHECK(hidden_share("megatron-core", sent(tensor), none) == 0);
  CHECK(hidden_share("megatron-core", sent(tensor, 4), none) == test::close_to(.7));
}

TEST_CASE("many small kernels take at least the host's time for each launch") {
  const KernelModel model = test::kernel_model("h100-sxm", "eager-2023");
  const MemoryKernel tiny{.kind = MemoryKind::norm, .bytes = 1'024, .launches = 2};
  const std::vector<Kernel> kernels(10, tiny);
  CHECK(seconds_of(model.seconds(kernels, {})) == test::close_to(20 * 8e-6));
  // A collective counts as two launches; its own time is not waited for once more.
  std::vector<Kernel> with_collective = kernels;
  with_collective.emplace_back(sent(CollectiveUse::other, 8, 1'024));
  const PassTime pass = model.seconds(with_collective, {});
  CHECK(seconds_of(pass) == test::close_to(22 * 8e-6));
  CHECK(pass.sent_s == model.seconds(with_collective.back()));
  // Long kernels hide the host.
  CHECK(seconds_of(model.seconds({kLarge}, {})) == model.seconds(kLarge));
}

}  // namespace
}  // namespace plumbline
